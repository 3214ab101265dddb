package simnet

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pce-engine/pce/cluster"
)

// bad is a network on which calls have to be tried again.
var bad = Faults{Drop: 0.3, Duplicate: 0.3, MinDelay: time.Millisecond, MaxDelay: 50 * time.Millisecond, Late: 0.05, LateBy: 3 * time.Second}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestBucketKnowsItsCalls has calls come again: they find what they wrote
// themselves, and not what another call wrote, the same value or not.
func TestBucketKnowsItsCalls(t *testing.T) {
	for seed := range uint64(20) {
		within(t, seed, bad, func(t *testing.T, n *Network) {
			ctx, b := t.Context(), n.Host("a").Bus().Bucket(cluster.RunsBucket)
			first, err := b.Create(ctx, "k", []byte("1"))
			ok(t, err)
			second, err := b.Update(ctx, "k", []byte("1"), first)
			ok(t, err)
			if _, err := b.Update(ctx, "k", []byte("1"), first); !errors.Is(err, cluster.ErrConflict) {
				t.Errorf("seed %d: update of an old revision: %v", seed, err)
			}
			if r, err := b.Get(ctx, "k"); err != nil || r.Revision != second {
				t.Errorf("seed %d: record %+v, %v, want revision %d", seed, r, err, second)
			}
		})
	}
}

func TestBucket(t *testing.T) {
	within(t, 1, Faults{}, func(t *testing.T, n *Network) {
		ctx, b := t.Context(), n.Host("a").Bus().Bucket(cluster.RunsBucket)
		want := func(what string, err, target error) {
			t.Helper()
			if !errors.Is(err, target) {
				t.Errorf("%s: %v, want %v", what, err, target)
			}
		}
		_, err := b.Get(ctx, "k")
		want("get of nothing", err, cluster.ErrNoRecord)
		_, err = b.Update(ctx, "k", nil, 1)
		want("update of nothing", err, cluster.ErrConflict)
		first, err := b.Create(ctx, "k", []byte("1"))
		want("create", err, nil)
		_, err = b.Create(ctx, "k", []byte("1"))
		want("create again", err, cluster.ErrConflict)
		second, err := b.Update(ctx, "k", []byte("2"), first)
		want("update", err, nil)
		_, err = b.Update(ctx, "k", []byte("3"), first)
		want("update of an old revision", err, cluster.ErrConflict)
		third, err := b.Put(ctx, "other", []byte("3"))
		want("put", err, nil)
		want("delete of an old revision", b.Delete(ctx, "k", first), cluster.ErrConflict)
		all, err := b.List(ctx)
		want("list", err, nil)
		if len(all) != 2 || all[0].Key != "k" || string(all[0].Value) != "2" || all[0].Revision != second || all[1].Revision != third {
			t.Errorf("records %+v", all)
		}
		want("delete", b.Delete(ctx, "k", second), nil)
		want("delete of nothing", b.Delete(ctx, "k", 0), nil)
		last, err := b.Create(ctx, "k", nil)
		want("create after delete", err, nil)
		if !(first < second && second < third && third < last) {
			t.Errorf("revisions %d, %d, %d, %d do not grow", first, second, third, last)
		}
		for _, key := range []string{"", "a.b", "a b", "ä"} {
			if _, err := b.Put(ctx, key, nil); !errors.Is(err, cluster.ErrCluster) {
				t.Errorf("key %q: %v", key, err)
			}
		}
		_, err = n.Host("a").Bus().Bucket("other").List(ctx)
		want("a bucket that is none", err, cluster.ErrCluster)
	})
}

func TestLease(t *testing.T) {
	within(t, 1, Faults{}, func(t *testing.T, n *Network) {
		ctx, b := t.Context(), n.Host("a").Bus().Bucket(cluster.LeadBucket)
		revision, err := b.Create(ctx, "k", nil)
		ok(t, err)
		for range 3 {
			time.Sleep(Lease - 1)
			revision, err = b.Update(ctx, "k", nil, revision)
			ok(t, err)
		}
		time.Sleep(Lease / 2)
		n.StopBroker()
		time.Sleep(Lease / 2)
		n.StartBroker()
		if all, err := b.List(ctx); err != nil || len(all) != 0 {
			t.Errorf("%d records after the lease, %v", len(all), err)
		}
		if _, err := b.Update(ctx, "k", nil, revision); !errors.Is(err, cluster.ErrConflict) {
			t.Errorf("update after the lease: %v", err)
		}
		if again, err := b.Create(ctx, "k", nil); err != nil || again <= revision {
			t.Errorf("revision %d after %d, %v", again, revision, err)
		}
	})
}

func TestUnreachable(t *testing.T) {
	within(t, 1, Faults{}, func(t *testing.T, n *Network) {
		b := n.Host("a").Bus().Bucket(cluster.RunsBucket)
		n.StopBroker()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		_, err := b.Put(ctx, "k", nil)
		if !errors.Is(err, cluster.ErrUnreachable) || !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Minute {
			t.Errorf("put without a broker: %v after %v", err, time.Since(start))
		}
		time.AfterFunc(time.Hour, n.StartBroker)
		if _, err := b.Put(t.Context(), "k", nil); err != nil {
			t.Errorf("put that waits for the broker: %v", err)
		}
		// The request arrives, the reply does not.
		n.CutOneWay(Broker, "a")
		short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := b.Put(short, "one-way", nil); !errors.Is(err, cluster.ErrUnreachable) {
			t.Errorf("put without a reply: %v", err)
		}
		n.HealAll()
		if _, err := b.Get(t.Context(), "one-way"); err != nil {
			t.Errorf("the put did not arrive: %v", err)
		}
	})
}

// TestNoFalseConflict loses replies of a writer that has no rival.
func TestNoFalseConflict(t *testing.T) {
	within(t, 3, bad, func(t *testing.T, n *Network) {
		b := n.Host("a").Bus().Bucket(cluster.RunsBucket)
		revision, err := b.Create(t.Context(), "k", []byte("first"))
		ok(t, err)
		for i := range 300 {
			if revision, err = b.Update(t.Context(), "k", fmt.Append(nil, i), revision); err != nil {
				t.Fatalf("update %d: %v", i, err)
			}
		}
		ok(t, b.Delete(t.Context(), "k", revision))
	})
}

// TestRivals has several writers count in one record: none is lost.
func TestRivals(t *testing.T) {
	within(t, 4, bad, func(t *testing.T, n *Network) {
		var g sync.WaitGroup
		_, err := n.Host("a").Bus().Bucket(cluster.RunsBucket).Create(t.Context(), "k", nil)
		ok(t, err)
		const each = 40
		for w := range 3 {
			g.Go(func() {
				b := n.Host(fmt.Sprint("h", w)).Bus().Bucket(cluster.RunsBucket)
				for i := range each {
					for {
						r, err := b.Get(t.Context(), "k")
						if err != nil {
							t.Error(err)
							return
						}
						_, err = b.Update(t.Context(), "k", fmt.Appendf(r.Value, "%d.%d ", w, i), r.Revision)
						if err == nil {
							break
						}
						if !errors.Is(err, cluster.ErrConflict) {
							t.Error(err)
							return
						}
					}
				}
			})
		}
		g.Wait()
		r, err := n.Host("a").Bus().Bucket(cluster.RunsBucket).Get(t.Context(), "k")
		ok(t, err)
		all := strings.Fields(string(r.Value))
		slices.Sort(all)
		// A conflict may hide a write that was replaced before its writer looked,
		// so some may come twice; none may be missing.
		if got := len(slices.Compact(all)); got != 3*each {
			t.Errorf("%d writes, want %d", got, 3*each)
		}
	})
}

func TestBlobs(t *testing.T) {
	within(t, 2, bad, func(t *testing.T, n *Network) {
		ctx, a, b := t.Context(), n.Host("a").Bus().Blobs(), n.Host("b").Bus().Blobs()
		for _, content := range [][]byte{{}, []byte("content"), bytes.Repeat([]byte("x"), 3<<20)} {
			sum := sha256.Sum256(content)
			digest := hex.EncodeToString(sum[:])
			if err := b.Get(ctx, digest, io.Discard); !errors.Is(err, cluster.ErrNoRecord) {
				t.Errorf("get of nothing: %v", err)
			}
			if err := a.Put(ctx, digest, bytes.NewReader(append([]byte("-"), content...)), int64(len(content)+1)); err == nil {
				t.Error("contents of another digest were taken")
			}
			if err := a.Put(ctx, digest, bytes.NewReader(content), int64(len(content)+1)); err == nil {
				t.Error("short contents were taken")
			}
			ok(t, a.Put(ctx, digest, bytes.NewReader(content), int64(len(content))))
			ok(t, b.Put(ctx, digest, nil, int64(len(content)))) // not read
			var got bytes.Buffer
			ok(t, b.Get(ctx, digest, &got))
			if !bytes.Equal(got.Bytes(), content) {
				t.Errorf("%d bytes came back, want %d", got.Len(), len(content))
			}
			n.mu.Lock()
			n.broker.blobs[digest] = []byte("damaged")
			n.mu.Unlock()
			if err := b.Get(ctx, digest, io.Discard); err == nil || errors.Is(err, cluster.ErrNoRecord) {
				t.Errorf("get of damaged contents: %v", err)
			}
			ok(t, b.Delete(ctx, digest))
			if err := a.Get(ctx, digest, io.Discard); !errors.Is(err, cluster.ErrNoRecord) {
				t.Errorf("get after delete: %v", err)
			}
		}
		if err := a.Put(ctx, "x", nil, 1<<40); err == nil {
			t.Error("a terabyte was taken")
		}
	})
}

func TestEvents(t *testing.T) {
	within(t, 1, Faults{MinDelay: time.Millisecond, MaxDelay: time.Second}, func(t *testing.T, n *Network) {
		e := n.Host("a").Bus().Events()
		ok(t, e.Publish("run", []byte("old")))
		time.Sleep(EventAge)
		const events = 100
		go func() {
			for i := range events {
				ok(t, e.Publish("run", fmt.Append(nil, i)))
				ok(t, e.Publish("other", []byte("of another run")))
				time.Sleep(100 * time.Millisecond)
			}
		}()
		time.Sleep(time.Second)
		n.SetFaults(Faults{Drop: 0, MinDelay: time.Millisecond, MaxDelay: 8 * time.Second}) // some replies come after the next question
		follow := func() (got []string) {
			ok(t, n.Host("b").Bus().Events().Follow(t.Context(), "run", func(event []byte) bool {
				got = append(got, string(event))
				return len(got) < events
			}))
			return got
		}
		for range 2 {
			got := follow()
			for i := range events {
				if got[i] != fmt.Sprint(i) {
					t.Fatalf("event %d is %s", i, got[i])
				}
			}
		}
		// Old events go while somebody follows.
		last := time.Now()
		ok(t, n.Host("b").Bus().Events().Follow(t.Context(), "run", func(event []byte) bool {
			if string(event) == fmt.Sprint(events-1) {
				time.AfterFunc(2*EventAge, func() { ok(t, e.Publish("run", []byte("end"))) })
			}
			return string(event) != "end"
		}))
		if took := time.Since(last); took > 3*EventAge {
			t.Errorf("the event was seen after %v", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := n.Host("b").Bus().Events().Follow(ctx, "none", func([]byte) bool { return true }); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("following until the end: %v", err)
		}
		synctest.Wait()
	})
}
