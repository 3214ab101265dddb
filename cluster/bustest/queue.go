package bustest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/pce-engine/pce/cluster"
)

// take gets the next job, which must be a certain one.
func take(t *testing.T, ctx context.Context, q cluster.Queue, id, body string, attempt int) cluster.Delivery {
	t.Helper()
	d, err := q.Next(ctx)
	fatal(t, "next job", err)
	if d.ID() != id || string(d.Job()) != body || d.Attempt() < attempt {
		t.Fatalf("job %q with %q, attempt %d, want %q with %q, attempt %d or later", d.ID(), d.Job(), d.Attempt(), id, body, attempt)
	}
	return d
}

// none wants no job within some time.
func none(t *testing.T, q cluster.Queue, wait time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), wait)
	defer cancel()
	if d, err := q.Next(ctx); err == nil {
		t.Fatalf("a job %q, attempt %d, where there is none to take", d.ID(), d.Attempt())
	}
}

func jobs(t *testing.T, b Bench) {
	ctx := b.limited(t)
	x, y := b.Open(t).Jobs(), b.Open(t).Jobs()
	for range 3 {
		fatal(t, "submit", x.Submit(ctx, "bt-j1", []byte("one")))
	}
	fatal(t, "submit", y.Submit(ctx, "bt-j1", []byte("other"))) // it is there
	first := take(t, ctx, x, "bt-j1", "one", 1)
	if first.Attempt() != 1 {
		t.Errorf("attempt %d is the first", first.Attempt())
	}
	fatal(t, "submit", y.Submit(ctx, "bt-j1", []byte("other"))) // still
	none(t, y, b.Lease)
	fatal(t, "submit", x.Submit(ctx, "bt-j2", nil))
	second := take(t, ctx, y, "bt-j2", "", 1)
	fatal(t, "release", first.Release(ctx))
	again := take(t, ctx, y, "bt-j1", "one", 2)
	fatal(t, "working", again.Working(ctx))
	fatal(t, "done", again.Done(ctx))
	fatal(t, "done twice", again.Done(ctx))
	fatal(t, "done", second.Done(ctx))
	none(t, x, b.Lease)

	// One that waits gets what comes.
	got := make(chan error, 1)
	go func() {
		d, err := x.Next(ctx)
		if err == nil && d.ID() != "bt-j3" {
			err = errors.New("job " + d.ID())
		}
		if err == nil {
			err = d.Done(ctx)
		}
		got <- err
	}()
	b.Sleep(b.Lease / 4)
	fatal(t, "submit", y.Submit(ctx, "bt-j3", []byte("three")))
	fatal(t, "job for one that waits", <-got)
}

// jobRedelivery: a job stays with a taker that works, and leaves one that has
// vanished.
func jobRedelivery(t *testing.T, b Bench) {
	ctx := b.limited(t)
	x, y := b.Open(t).Jobs(), b.Open(t).Jobs()
	fatal(t, "submit", x.Submit(ctx, "bt-again", []byte("job")))
	d := take(t, ctx, x, "bt-again", "job", 1)
	other := make(chan cluster.Delivery, 1)
	go func() {
		defer close(other)
		if d, err := y.Next(ctx); err == nil {
			other <- d
		}
	}()
	for range 16 { // four leases
		fatal(t, "working", d.Working(ctx))
		b.Sleep(b.Lease / 4)
		select {
		case d := <-other:
			t.Fatalf("the job went to another, attempt %d, while it was worked on", d.Attempt())
		default:
		}
	}
	next, ok := <-other // d is not worked on any more
	if !ok {
		t.Fatal("the job of a taker that has vanished went to no other")
	}
	if next.ID() != "bt-again" || next.Attempt() < 2 {
		t.Errorf("job %q, attempt %d", next.ID(), next.Attempt())
	}
	fatal(t, "done", next.Done(ctx))
	none(t, x, b.Lease)
}

// jobOnce gives many jobs to many takers.
func jobOnce(t *testing.T, b Bench) {
	ctx := b.limited(t)
	const n, members = 24, 3
	queue := b.Open(t).Jobs()
	for i := range n {
		fatal(t, "submit", queue.Submit(ctx, name("bt-many", i), []byte{byte(i)}))
	}
	taking, stop := context.WithCancel(ctx)
	defer stop()
	var mu sync.Mutex
	taken := map[string]int{}
	var all sync.WaitGroup
	for range members {
		q := b.Open(t).Jobs()
		all.Go(func() {
			for {
				d, err := q.Next(taking)
				if err != nil {
					return
				}
				if err := d.Done(ctx); err != nil {
					t.Errorf("done: %v", err)
				}
				mu.Lock()
				taken[d.ID()]++
				if len(taken) == n {
					stop()
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	for id, times := range taken {
		if times != 1 {
			t.Errorf("job %s was taken %d times", id, times)
		}
	}
	if len(taken) != n {
		t.Errorf("%d of %d jobs were taken", len(taken), n)
	}
}

func deadLetters(t *testing.T, b Bench) {
	ctx := b.limited(t)
	x, y := b.Open(t).Jobs(), b.Open(t).Jobs()
	want := []cluster.DeadLetter{
		{Run: "bt-d", Shard: -1, Reason: "no such file \"x\"", Time: time.Unix(1700000000, 123).UTC()},
		{Run: "bt-d", Shard: 7, Reason: "", Time: time.Unix(1600000000, 0).UTC()},
		{Run: "bt-e", Shard: 0, Reason: "again", Time: time.Unix(1800000000, 0).UTC()},
		{Run: "bt-e", Shard: 0, Reason: "again", Time: time.Unix(1800000000, 0).UTC()},
	}
	for _, l := range want {
		fatal(t, "add a dead letter", x.Bury(ctx, l))
	}
	got, err := y.Dead(ctx)
	fatal(t, "dead letters", err)
	if len(got) < len(want) {
		t.Fatalf("%d dead letters, %d were added", len(got), len(want))
	}
	got = got[len(got)-len(want):]
	for i, l := range got {
		w := want[i]
		if l.Run != w.Run || l.Shard != w.Shard || l.Reason != w.Reason || !l.Time.Equal(w.Time) {
			t.Errorf("letter %d is %+v, want %+v", i, l, w)
		}
	}
}
