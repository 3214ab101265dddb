package bustest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/pce-engine/pce/cluster"
)

func records(t *testing.T, b Bench) {
	ctx := b.limited(t)
	x, y := b.Open(t).Bucket(cluster.RunsBucket), b.Open(t).Bucket(cluster.RunsBucket)
	_, err := x.Get(ctx, "bt-r")
	matches(t, "get of nothing", err, cluster.ErrNoRecord)
	_, err = x.Update(ctx, "bt-r", []byte("v"), 1)
	matches(t, "update of nothing", err, cluster.ErrConflict)
	_, err = x.Update(ctx, "bt-r", []byte("v"), 0)
	matches(t, "update of revision 0", err, cluster.ErrConflict)
	fatal(t, "delete of nothing", x.Delete(ctx, "bt-r", 0))

	r1, err := x.Create(ctx, "bt-r", []byte("1"))
	fatal(t, "create", err)
	_, err = y.Create(ctx, "bt-r", []byte("1"))
	matches(t, "second create", err, cluster.ErrConflict)
	is(t, ctx, y, "bt-r", "1", r1)
	r2, err := y.Update(ctx, "bt-r", []byte("2"), r1)
	fatal(t, "update", err)
	_, err = x.Update(ctx, "bt-r", []byte("3"), r1)
	matches(t, "update of an old revision", err, cluster.ErrConflict)
	_, err = x.Update(ctx, "bt-r", []byte("2"), r1) // the value that is there, written by another
	matches(t, "update of an old revision", err, cluster.ErrConflict)
	is(t, ctx, x, "bt-r", "2", r2)
	r3, err := x.Put(ctx, "bt-r", nil)
	fatal(t, "put", err)
	is(t, ctx, y, "bt-r", "", r3)
	matches(t, "delete of an old revision", y.Delete(ctx, "bt-r", r2), cluster.ErrConflict)
	is(t, ctx, y, "bt-r", "", r3)
	fatal(t, "delete", y.Delete(ctx, "bt-r", r3))
	_, err = x.Get(ctx, "bt-r")
	matches(t, "get of what was deleted", err, cluster.ErrNoRecord)
	_, err = x.Update(ctx, "bt-r", []byte("4"), r3)
	matches(t, "update of what was deleted", err, cluster.ErrConflict)
	fatal(t, "second delete", x.Delete(ctx, "bt-r", r3))
	r4, err := x.Create(ctx, "bt-r", []byte("5"))
	fatal(t, "create of what was deleted", err)
	if !(r1 > 0 && r1 < r2 && r2 < r3 && r3 < r4) {
		t.Errorf("revisions %d %d %d %d do not grow", r1, r2, r3, r4)
	}
	is(t, ctx, y, "bt-r", "5", r4)
	fatal(t, "delete of any revision", x.Delete(ctx, "bt-r", 0))
}

func is(t *testing.T, ctx context.Context, k cluster.Bucket, key, value string, revision uint64) {
	t.Helper()
	r, err := k.Get(ctx, key)
	fatal(t, "get "+key, err)
	if r.Key != key || string(r.Value) != value || r.Revision != revision {
		t.Fatalf("record %q with %q at %d, want %q with %q at %d", r.Key, r.Value, r.Revision, key, value, revision)
	}
}

// revisions of a bucket grow over all keys, and List has the newest.
func revisions(t *testing.T, b Bench) {
	ctx := b.limited(t)
	x := b.Open(t).Bucket(cluster.RunsBucket)
	want := map[string]cluster.Record{}
	last := uint64(0)
	for i := range 30 {
		key := name("bt-v", i%7)
		value := name("value", i)
		r, err := x.Put(ctx, key, []byte(value))
		fatal(t, "put", err)
		if r <= last {
			t.Fatalf("revision %d after %d", r, last)
		}
		last = r
		want[key] = cluster.Record{Key: key, Value: []byte(value), Revision: r}
		if i == 20 {
			fatal(t, "delete", x.Delete(ctx, key, r))
			delete(want, key)
		}
	}
	fatal(t, "delete", x.Delete(ctx, "bt-v-3", 0))
	delete(want, "bt-v-3")
	list, err := x.List(ctx)
	fatal(t, "list", err)
	seen := 0
	for _, r := range list {
		if len(r.Key) < 4 || r.Key[:4] != "bt-v" {
			continue // of another check
		}
		seen++
		w, ok := want[r.Key]
		if !ok || string(w.Value) != string(r.Value) || w.Revision != r.Revision {
			t.Errorf("listed %q with %q at %d, want %q at %d", r.Key, r.Value, r.Revision, w.Value, w.Revision)
		}
	}
	if seen != len(want) {
		t.Errorf("%d records listed, want %d", seen, len(want))
	}
	if list, err := b.Open(t).Bucket(cluster.LeadBucket).List(ctx); err != nil || len(list) != 0 {
		t.Errorf("another bucket lists %d records (%v)", len(list), err)
	}
}

func keys(t *testing.T, b Bench) {
	ctx := b.limited(t)
	bus := b.Open(t)
	x := bus.Bucket(cluster.RunsBucket)
	for _, bad := range badNames {
		if _, err := x.Get(ctx, bad); err == nil || errors.Is(err, cluster.ErrNoRecord) {
			t.Errorf("get of the key %q: %v", bad, err)
		}
		if _, err := x.Put(ctx, bad, nil); err == nil {
			t.Errorf("the key %q was put", bad)
		}
		if _, err := x.Create(ctx, bad, nil); err == nil {
			t.Errorf("the key %q was created", bad)
		}
		if err := x.Delete(ctx, bad, 0); err == nil {
			t.Errorf("the key %q was deleted", bad)
		}
	}
	for _, good := range []string{"a", "A-9_z", "-", "_", "--"} {
		r, err := x.Put(ctx, good, []byte(good))
		fatal(t, "put "+good, err)
		is(t, ctx, x, good, good, r)
		fatal(t, "delete "+good, x.Delete(ctx, good, r))
	}
}

// race has many add to one number.
func race(t *testing.T, b Bench) {
	ctx := b.limited(t)
	const members, adds = 4, 10
	var all sync.WaitGroup
	created := make(chan bool, members)
	for range members {
		k := b.Open(t).Bucket(cluster.RunsBucket)
		all.Go(func() {
			_, err := k.Create(ctx, "bt-race", []byte{0})
			created <- err == nil
			if err != nil && !errors.Is(err, cluster.ErrConflict) {
				t.Errorf("create: %v", err)
			}
			for done := 0; done < adds; {
				r, err := k.Get(ctx, "bt-race")
				if err == nil {
					_, err = k.Update(ctx, "bt-race", []byte{r.Value[0] + 1}, r.Revision)
				}
				switch {
				case err == nil:
					done++
				case !errors.Is(err, cluster.ErrConflict):
					t.Errorf("update: %v", err)
					return
				}
			}
		})
	}
	all.Wait()
	close(created)
	winners := 0
	for won := range created {
		if won {
			winners++
		}
	}
	if winners != 1 {
		t.Errorf("%d members created one record", winners)
	}
	x := b.Open(t).Bucket(cluster.RunsBucket)
	r, err := x.Get(ctx, "bt-race")
	fatal(t, "get", err)
	if r.Value[0] != members*adds {
		t.Errorf("%d additions counted, %d were confirmed", r.Value[0], members*adds)
	}
	fatal(t, "delete", x.Delete(ctx, "bt-race", 0))
}

// expiry: members vanish when they do not write, and runs stay.
func expiry(t *testing.T, b Bench) {
	ctx := b.limited(t)
	bus := b.Open(t)
	x, runs := bus.Bucket(cluster.MembersBucket), bus.Bucket(cluster.RunsBucket)
	stays, err := runs.Put(ctx, "bt-stays", []byte("run"))
	fatal(t, "put", err)
	written := time.Now() // at the latest
	r, err := x.Create(ctx, "bt-alive", []byte("a"))
	fatal(t, "create", err)
	gone, err := x.Create(ctx, "bt-gone", []byte("g"))
	fatal(t, "create", err)
	for renewals := 1; renewals <= 12; renewals++ { // three leases
		b.Sleep(b.Lease / 4)
		before := time.Now()
		next, err := x.Update(ctx, "bt-alive", []byte("a"), r)
		if errors.Is(err, cluster.ErrConflict) && time.Since(written) > b.Lease { // a busy machine did not come to it in time
			next, err = x.Create(ctx, "bt-alive", []byte("a"))
			renewals = 0
		}
		fatal(t, "renewal", err)
		written = before
		if next <= r {
			t.Fatalf("revision %d after %d", next, r)
		}
		r = next
	}
	_, err = x.Get(ctx, "bt-gone")
	matches(t, "get of what has expired", err, cluster.ErrNoRecord)
	_, err = x.Update(ctx, "bt-gone", []byte("g"), gone)
	matches(t, "update of what has expired", err, cluster.ErrConflict)
	is(t, ctx, x, "bt-alive", "a", r)
	again, err := x.Create(ctx, "bt-gone", []byte("back"))
	fatal(t, "create of what has expired", err)
	if again <= r {
		t.Errorf("revision %d after %d", again, r)
	}
	b.eventually(t, "expiry of all", func() bool {
		list, err := x.List(ctx)
		fatal(t, "list", err)
		return len(list) == 0
	})
	last, err := x.Put(ctx, "bt-alive", nil)
	fatal(t, "put", err)
	if last <= again {
		t.Errorf("revision %d after all expired at %d", last, again)
	}
	fatal(t, "delete", x.Delete(ctx, "bt-alive", last))
	is(t, ctx, runs, "bt-stays", "run", stays)
	fatal(t, "delete", runs.Delete(ctx, "bt-stays", 0))
}

// lead goes from one that stops writing to the next, at a higher revision.
func lead(t *testing.T, b Bench) {
	ctx := b.limited(t)
	x, y := b.Open(t).Bucket(cluster.LeadBucket), b.Open(t).Bucket(cluster.LeadBucket)
	mine, err := x.Create(ctx, "bt-lead", []byte("x"))
	fatal(t, "create", err)
	var theirs uint64
	tries := 0
	b.eventually(t, "taking the lead", func() bool {
		tries++
		theirs, err = y.Create(ctx, "bt-lead", []byte("y"))
		if err != nil {
			matches(t, "create", err, cluster.ErrConflict)
		}
		return err == nil
	})
	if tries < 2 {
		t.Error("the lead was free while it was held")
	}
	if theirs <= mine {
		t.Errorf("fence %d after %d", theirs, mine)
	}
	_, err = x.Update(ctx, "bt-lead", []byte("x"), mine)
	matches(t, "renewal by the old holder", err, cluster.ErrConflict)
	matches(t, "release by the old holder", x.Delete(ctx, "bt-lead", mine), cluster.ErrConflict)
	fatal(t, "release", y.Delete(ctx, "bt-lead", theirs))
	next, err := x.Create(ctx, "bt-lead", []byte("x"))
	fatal(t, "create after release", err)
	if next <= theirs {
		t.Errorf("fence %d after %d", next, theirs)
	}
	fatal(t, "release", x.Delete(ctx, "bt-lead", next))
}
