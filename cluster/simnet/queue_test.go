package simnet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pce-engine/pce/cluster"
)

func TestQueue(t *testing.T) {
	within(t, 1, Faults{}, func(t *testing.T, n *Network) {
		ctx, a, b := t.Context(), n.Host("a").Bus().Jobs(), n.Host("b").Bus().Jobs()
		next := func(q cluster.Queue, id string, attempt int) cluster.Delivery {
			t.Helper()
			d, err := q.Next(ctx)
			ok(t, err)
			if d.ID() != id || string(d.Job()) != "job "+id || d.Attempt() != attempt {
				t.Fatalf("%s %q attempt %d, want %s attempt %d", d.ID(), d.Job(), d.Attempt(), id, attempt)
			}
			return d
		}
		none := func(q cluster.Queue, wait time.Duration) {
			t.Helper()
			short, cancel := context.WithTimeout(ctx, wait)
			defer cancel()
			if d, err := q.Next(short); !errors.Is(err, cluster.ErrUnreachable) {
				t.Fatalf("job %v, %v", d, err)
			}
		}
		for _, id := range []string{"1", "2", "1"} {
			ok(t, a.Submit(ctx, id, []byte("job "+id)))
		}
		first, second := next(a, "1", 1), next(b, "2", 1)
		none(b, time.Second)
		ok(t, second.Done(ctx))
		for range 5 { // who works keeps it
			none(b, AckWait-2*time.Second)
			ok(t, first.Working(ctx))
		}
		ok(t, first.Release(ctx))
		first = next(b, "1", 2)
		start := time.Now()
		again := next(a, "1", 3) // b does not work on it
		if took := time.Since(start); took != AckWait {
			t.Errorf("redelivered after %v", took)
		}
		ok(t, first.Release(ctx)) // has it no more
		none(b, time.Second)
		n.StopBroker()
		n.StartBroker()
		ok(t, again.Done(ctx))
		none(b, 2*AckWait)
		time.AfterFunc(time.Minute, func() { ok(t, a.Submit(ctx, "1", []byte("job 1"))) })
		ok(t, next(b, "1", 1).Done(ctx))

		want := []cluster.DeadLetter{{Run: "r", Shard: -1, Reason: "first", Time: time.Now()}, {Run: "r", Shard: 3, Reason: "second"}}
		ok(t, a.Bury(ctx, want[0]))
		ok(t, b.Bury(ctx, want[1]))
		if got, err := a.Dead(ctx); err != nil || !slices.Equal(got, want) {
			t.Errorf("dead letters %v, %v", got, err)
		}
	})
}

// TestWaitingNext has Next wait for long, be given up, and lose the broker.
func TestWaitingNext(t *testing.T) {
	within(t, 1, Faults{MinDelay: 100 * time.Millisecond}, func(t *testing.T, n *Network) {
		ctx, a, b := t.Context(), n.Host("a").Bus().Jobs(), n.Host("b").Bus().Jobs()
		ok(t, b.Submit(ctx, "0", nil))
		short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		defer cancel()
		if _, err := a.Next(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		<-time.After(time.Second) // the question is there by now, and nobody waits
		d, err := b.Next(ctx)
		ok(t, err)
		if d.Attempt() != 1 {
			t.Errorf("the job went to one that did not wait any more")
		}
		ok(t, d.Done(ctx))
		taken := make(chan time.Time)
		take := func(q cluster.Queue) {
			d, err := q.Next(ctx)
			ok(t, err)
			taken <- time.Now()
			ok(t, d.Done(ctx))
		}
		go take(a)
		<-time.After(4 * pollAfter)
		go take(b)
		<-time.After(pollAfter / 2)
		start := time.Now()
		go func() { ok(t, n.Host("c").Bus().Jobs().Submit(ctx, "1", nil)) }()
		go func() { ok(t, n.Host("d").Bus().Jobs().Submit(ctx, "2", nil)) }()
		for range 2 {
			if took := (<-taken).Sub(start); took > time.Second {
				t.Errorf("a taker that waits got a job after %v", took)
			}
		}
		<-time.After(time.Second)
		go take(a)
		<-time.After(time.Second)
		n.StopBroker()
		n.StartBroker()
		start = time.Now()
		ok(t, n.Host("c").Bus().Jobs().Submit(ctx, "3", nil))
		if took := (<-taken).Sub(start); took < time.Second || took > pollAfter {
			t.Errorf("the question survived the broker, or was not repeated: a job after %v", took)
		}
		<-time.After(time.Minute)
	})
}

// TestSubmitOnce has a job done before its submitter knows that it is there.
func TestSubmitOnce(t *testing.T) {
	within(t, 1, Faults{}, func(t *testing.T, n *Network) {
		n.CutOneWay(Broker, "a")
		time.AfterFunc(time.Minute, n.HealAll)
		go func() {
			d, err := n.Host("b").Bus().Jobs().Next(t.Context())
			ok(t, err)
			ok(t, d.Done(t.Context()))
		}()
		ok(t, n.Host("a").Bus().Jobs().Submit(t.Context(), "1", nil))
		n.mu.Lock()
		defer n.mu.Unlock()
		if len(n.broker.jobs) != 0 {
			t.Error("the job is there again")
		}
	})
}

// TestQueueOnABadNetwork has workers crash, too: all jobs are done, and none is
// left or buried twice.
func TestQueueOnABadNetwork(t *testing.T) {
	within(t, 9, bad, func(t *testing.T, n *Network) {
		const jobs = 40
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		left := make(chan string, jobs*10)
		for i := range jobs {
			ok(t, n.Host("a").Bus().Jobs().Submit(ctx, fmt.Sprint(i), nil))
			ok(t, n.Host("a").Bus().Jobs().Bury(ctx, cluster.DeadLetter{Shard: i}))
		}
		var g sync.WaitGroup
		for w := range 4 {
			g.Go(func() {
				id := fmt.Sprint("w", w)
				for ctx.Err() == nil {
					d, err := n.Host(id).Bus().Jobs().Next(ctx)
					if err != nil {
						continue
					}
					if w == 3 && d.Attempt() == 1 {
						n.Crash(id)
						continue
					}
					if d.Done(ctx) == nil {
						left <- d.ID()
					}
				}
			})
		}
		done := map[string]bool{}
		for len(done) < jobs {
			done[<-left] = true
		}
		cancel()
		g.Wait()
		n.mu.Lock()
		defer n.mu.Unlock()
		if len(n.broker.jobs) != 0 || len(n.broker.dead) != jobs {
			t.Errorf("%d jobs left, %d dead letters", len(n.broker.jobs), len(n.broker.dead))
		}
	})
}
