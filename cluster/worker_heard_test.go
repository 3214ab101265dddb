package cluster

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// takingBus has buckets that take every record.
type takingBus struct{ Bus }

type takingBucket struct{ Bucket }

func (takingBus) Bucket(string) Bucket { return takingBucket{} }

func (takingBucket) Put(context.Context, string, []byte) (uint64, error) { return 1, nil }

func (takingBucket) Update(context.Context, string, []byte, uint64) (uint64, error) { return 2, nil }

func (takingBucket) Get(context.Context, string) (Record, error) { return Record{}, ErrNoRecord }

// TestHealth asks a worker whether it hears from the broker: not before the first answer, nor long after the last one.
func TestHealth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, err := NewWorker(WorkerOptions{ID: "w", Bus: takingBus{}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Health(); err == nil {
			t.Error("it is ready before it has heard anything")
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			w.register(ctx, nil)
		}()
		time.Sleep(10 * DefaultLease)
		if _, err := w.Health(); err != nil {
			t.Error(err)
		}
		stop()
		<-done
		time.Sleep(2 * DefaultLease)
		if _, err := w.Health(); err == nil {
			t.Error("it is ready long after it was heard")
		}
	})
}

// TestHeardMonotonic wants the time of the last answer with the monotonic clock, by which Health measures also where the other one is set.
func TestHeardMonotonic(t *testing.T) {
	w, err := NewWorker(WorkerOptions{ID: "w", Bus: takingBus{}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	w.register(ctx, nil) // writes the record once
	if at := w.heard.Load(); at == nil || !strings.Contains(at.String(), " m=") {
		t.Errorf("it was heard at %v, which lacks the monotonic clock", at)
	}
}
