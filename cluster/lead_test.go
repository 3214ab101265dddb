package cluster_test

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/cluster/simnet"
)

// lateBus answers to an update half a second after it was carried out, and says on updated when that was.
type lateBus struct {
	cluster.Bus
	updated chan struct{}
}

type lateBucket struct {
	cluster.Bucket
	updated chan struct{}
}

func (b lateBus) Bucket(name string) cluster.Bucket { return lateBucket{b.Bus.Bucket(name), b.updated} }

func (b lateBucket) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	next, err := b.Bucket.Update(ctx, key, value, revision)
	select {
	case b.updated <- struct{}{}:
	default:
	}
	select {
	case <-time.After(500 * time.Millisecond):
		return next, err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// TestLeadReleased closes a run while its lead is being renewed over a slow line: the lead is free at once, not after its lease.
func TestLeadReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, simnet.Faults{})
		defer w.finish()
		w.startWorker("w-1") // without one, the run would not begin
		tr := w.addTraining("c-0")
		host := w.net.Host("c-0")
		defer host.Peers().Close()
		bus := lateBus{host.Bus(), make(chan struct{})}
		c := cluster.NewCoordinator(cluster.CoordinatorOptions{ID: "c-0", Bus: bus, Peers: []cluster.Peers{host.Peers()}, Log: w.log})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		r, err := c.Begin(ctx, cluster.RunOptions{Spec: tr.toy.Spec("c-0"), Transport: "memory"})
		if err != nil {
			t.Fatal(err)
		}
		select {
		case <-bus.updated:
		case <-ctx.Done():
			t.Error("the lead was not renewed")
		}
		if err := r.Close(ctx); err != nil {
			t.Error(err)
		}
		if list, err := host.Bus().Bucket(cluster.LeadBucket).List(ctx); err != nil || len(list) != 0 {
			t.Errorf("%d records of the lead stay (%v)", len(list), err)
		}
	})
}

// TestLeadShortened gives the broker a shorter lease than its coordinator lives by, while that leads a run: it lives by the shorter one
// from its next renewal on, its record does not vanish again, and a worker that comes is let in at once.
func TestLeadShortened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const before = 60 * simnet.Lease // what the broker had
		w, r, has := leaseWorld(t, before)
		defer w.finish()
		has.Store(int64(simnet.Lease))
		time.Sleep(before)
		for range 60 {
			time.Sleep(time.Second)
			if _, err := w.net.Host("c-0").Bus().Bucket(cluster.LeadBucket).Get(t.Context(), cluster.LeadKey); err != nil {
				t.Errorf("the lead is not held: %v", err)
			}
		}
		generation := statusOf(t, w).Term.Generation
		w.startWorker("w-2")
		time.Sleep(simnet.Lease)
		if now := statusOf(t, w).Term.Generation; now == generation {
			t.Errorf("a worker that came a lease ago has not been let in: no term after generation %d", now)
		}
		if err := r.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestLeadLengthened gives the broker a longer lease, by which workers live that are started since: they speak less often than once in
// the lease that the coordinator began with, and are not given up for that.
func TestLeadLengthened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, r, has := leaseWorld(t, simnet.Lease/12) // workers here speak every tenth of simnet.Lease
		defer w.finish()
		has.Store(int64(simnet.Lease))
		time.Sleep(simnet.Lease)
		before := statusOf(t, w).Term
		time.Sleep(10 * simnet.Lease)
		if now := statusOf(t, w).Term; now != before {
			t.Errorf("the run went from term %v to %v, though its worker stayed", before, now)
		}
		if err := r.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestLeadFollowed waits for the lead that another run has, while the broker is given a shorter lease: the lead is kept from its first
// renewal on.
func TestLeadFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, simnet.Faults{})
		defer w.finish()
		w.startWorker("w-1")
		tr := w.addTraining("c-0")
		host := w.net.Host("c-0")
		defer host.Peers().Close()
		leads := host.Bus().Bucket(cluster.LeadBucket)
		if _, err := leads.Create(t.Context(), cluster.LeadKey, []byte(`{"id": "c-1"}`)); err != nil {
			t.Fatal(err)
		}
		var has atomic.Int64
		has.Store(int64(10 * simnet.Lease))
		c := cluster.NewCoordinator(cluster.CoordinatorOptions{
			ID: "c-0", Bus: host.Bus(), Peers: []cluster.Peers{host.Peers()}, Lease: 10 * simnet.Lease, Log: w.log,
			LeaseNow: func(context.Context) (time.Duration, error) { return time.Duration(has.Load()), nil },
		})
		r, err := c.Begin(t.Context(), cluster.RunOptions{
			Spec: tr.toy.Spec("run"), Transport: "memory", OnWait: func(cluster.Holder) { has.Store(int64(simnet.Lease)) },
		})
		if err != nil {
			t.Fatal(err)
		}
		for range 30 {
			time.Sleep(time.Second)
			if _, err := leads.Get(t.Context(), cluster.LeadKey); err != nil {
				t.Errorf("the lead is not held: %v", err)
			}
		}
		if err := r.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// leaseWorld begins a run on one worker, of a coordinator that asks for the lease in has, where it finds the one that it is made with.
func leaseWorld(t *testing.T, lease time.Duration) (w *world, r *cluster.Run, has *atomic.Int64) {
	w, has = newWorld(t, 1, simnet.Faults{}), new(atomic.Int64)
	has.Store(int64(lease))
	w.startWorker("w-1")
	tr := w.addTraining("c-0")
	host := w.net.Host("c-0")
	t.Cleanup(func() { _ = host.Peers().Close() })
	c := cluster.NewCoordinator(cluster.CoordinatorOptions{
		ID: "c-0", Bus: host.Bus(), Peers: []cluster.Peers{host.Peers()}, Lease: lease, Log: w.log,
		LeaseNow: func(context.Context) (time.Duration, error) { return time.Duration(has.Load()), nil },
	})
	r, err := c.Begin(t.Context(), cluster.RunOptions{Spec: tr.toy.Spec("run"), Transport: "memory"})
	if err != nil {
		t.Fatal(err)
	}
	return w, r, has
}

// statusOf reads what the coordinator says of the run.
func statusOf(t *testing.T, w *world) (s cluster.RunStatus) {
	rec, err := w.net.Host("c-0").Bus().Bucket(cluster.RunsBucket).Get(t.Context(), "run")
	if err == nil {
		err = json.Unmarshal(rec.Value, &s)
	}
	if err != nil {
		t.Error(err)
	}
	return s
}

// betweenBucket has an update of the record that it returns carried out before its reader can delete that.
type betweenBucket struct {
	cluster.Bucket
	once bool
}

func (b *betweenBucket) Get(ctx context.Context, key string) (cluster.Record, error) {
	r, err := b.Bucket.Get(ctx, key)
	if err == nil && !b.once {
		b.once = true
		_, err = b.Bucket.Update(ctx, key, r.Value, r.Revision)
	}
	return r, err
}

// TestWithdraw: the own record goes, although a late update of it comes between; that of another stays.
func TestWithdraw(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bucket := simnet.New(1, simnet.Faults{}).Host("c-0").Bus().Bucket(cluster.LeadBucket)
		if _, err := bucket.Create(t.Context(), cluster.LeadKey, []byte("own")); err != nil {
			t.Fatal(err)
		}
		for _, step := range []struct {
			value string
			left  int
		}{{"other", 1}, {"own", 0}, {"own", 0}} {
			err := cluster.Withdraw(t.Context(), &betweenBucket{Bucket: bucket}, cluster.LeadKey, []byte(step.value))
			list, listErr := bucket.List(t.Context())
			if err != nil || listErr != nil || len(list) != step.left {
				t.Errorf("withdrawn with the error %v: %d records stay (%v), want %d", err, len(list), listErr, step.left)
			}
		}
	})
}
