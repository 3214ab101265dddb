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

// mutedBus does not reach the records of runs while it is muted.
type mutedBus struct {
	cluster.Bus
	muted *atomic.Bool
}

type mutedBucket struct {
	cluster.Bucket
	muted *atomic.Bool
}

func (b mutedBus) Bucket(name string) cluster.Bucket {
	if name != cluster.RunsBucket {
		return b.Bus.Bucket(name)
	}
	return mutedBucket{b.Bus.Bucket(name), b.muted}
}

func (b mutedBucket) Get(ctx context.Context, key string) (cluster.Record, error) {
	if b.muted.Load() {
		return cluster.Record{}, cluster.ErrUnreachable
	}
	return b.Bucket.Get(ctx, key)
}

func (b mutedBucket) Put(ctx context.Context, key string, value []byte) (uint64, error) {
	if b.muted.Load() {
		return 0, cluster.ErrUnreachable
	}
	return b.Bucket.Put(ctx, key, value)
}

// TestStatusOfLater cuts a coordinator off while another one leads its run, waits for workers of it, or ends it: what the later lead has said
// of the run stays when the first one is back, also where that one has not written before. Of a run that was left unfinished meanwhile,
// which the first one leads then, it says so.
func TestStatusOfLater(t *testing.T) {
	for name, tc := range map[string]struct {
		workers int    // that the later lead waits for
		left    string // the state in which that leaves the run; "": it leads on
		muted   bool   // the first one has written nothing
		lead    string // whose status there is at the end
		state   string
	}{
		"led":                    {workers: 1, lead: "c-1", state: "running"},
		"waiting":                {workers: 2, lead: "c-1", state: "running"},
		"done":                   {workers: 1, left: "done", lead: "c-1", state: "done"},
		"done, unwritten":        {workers: 1, left: "done", muted: true, lead: "c-1", state: "done"},
		"interrupted":            {workers: 1, left: cluster.StateInterrupted, lead: "c-0", state: "running"},
		"interrupted, unwritten": {workers: 1, left: cluster.StateInterrupted, muted: true, lead: "c-0", state: "running"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 1, simnet.Faults{MinDelay: time.Millisecond, MaxDelay: time.Millisecond})
				defer w.finish()
				tr := w.addTraining("c-0")
				w.startWorker("w0")
				ctx, end := context.WithTimeout(t.Context(), time.Hour)
				defer end()
				var muted atomic.Bool
				muted.Store(tc.muted)
				running := cluster.RunOptions{Spec: tr.toy.Spec("run"), Transport: "memory", Status: cluster.RunStatus{State: "running"}}
				coordinator := func(id string) *cluster.Coordinator {
					host := w.net.Host(id)
					bus := host.Bus()
					if id == "c-0" {
						bus = mutedBus{bus, &muted}
					}
					return cluster.NewCoordinator(cluster.CoordinatorOptions{ID: id, Bus: bus, Peers: []cluster.Peers{host.Peers()}, Log: w.log})
				}
				r, err := coordinator("c-0").Begin(ctx, running)
				if err != nil {
					t.Fatal(err)
				}
				defer w.net.Host("c-0").Peers().Close()
				defer func() { _ = r.Close(context.WithoutCancel(ctx)) }()
				time.Sleep(2 * cluster.DefaultLease)
				w.net.Isolate("c-0")
				time.Sleep(2 * cluster.DefaultLease)

				runs := w.net.Host("c-1").Bus().Bucket(cluster.RunsBucket)
				defer w.net.Host("c-1").Peers().Close()
				status := func() (s cluster.RunStatus) {
					t.Helper()
					rec, err := runs.Get(ctx, "run")
					if err == nil {
						err = json.Unmarshal(rec.Value, &s)
					}
					if err != nil {
						t.Fatal(err)
					}
					return s
				}
				beginning, stop := context.WithCancel(ctx)
				defer stop()
				began := make(chan *cluster.Run, 1)
				running.Workers = tc.workers
				later := coordinator("c-1")
				go func() {
					r, err := later.Begin(beginning, running)
					if err != nil && beginning.Err() == nil {
						t.Error(err)
					}
					began <- r
				}()
				closeLater := func() {
					stop()
					if later := <-began; later != nil {
						_ = later.Close(ctx)
					}
				}
				time.Sleep(3 * cluster.DefaultLease)
				s := status()
				if s.Lead != "c-1" || s.State != "running" {
					t.Errorf("the run is %s of %s, want running of c-1", s.State, s.Lead)
				}
				if tc.left != "" {
					closeLater()
					s = status()
					s.State = tc.left
					text, err := json.Marshal(s)
					if err == nil {
						_, err = runs.Put(ctx, "run", text)
					}
					if err != nil {
						t.Fatal(err)
					}
				}
				muted.Store(false)
				w.net.Rejoin("c-0")
				time.Sleep(2 * cluster.DefaultLease)
				if s := status(); s.Lead != tc.lead || s.State != tc.state {
					t.Errorf("when the first one is back the run is %s of %s, want %s of %s", s.State, s.Lead, tc.state, tc.lead)
				}
				if tc.left == "" {
					closeLater()
				}
			})
		})
	}
}

// TestStatusOfEnded leads a run whose record says that it has ended, as a coordinator does that was stopped before it began while another
// one did the whole run: that end stays, unless the run is one that continues.
func TestStatusOfEnded(t *testing.T) {
	for again, want := range map[bool]string{false: cluster.StateDone, true: "running"} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 1, simnet.Faults{})
			defer w.finish()
			tr := w.addTraining("c-0")
			w.startWorker("w0")
			host := w.net.Host("c-0")
			defer host.Peers().Close()
			runs := host.Bus().Bucket(cluster.RunsBucket)
			if _, err := runs.Put(t.Context(), "run", []byte(`{"run": "run", "state": "done"}`)); err != nil {
				t.Fatal(err)
			}
			c := cluster.NewCoordinator(cluster.CoordinatorOptions{ID: "c-0", Bus: host.Bus(), Peers: []cluster.Peers{host.Peers()}, Log: w.log})
			r, err := c.Begin(t.Context(), cluster.RunOptions{Spec: tr.toy.Spec("run"), Transport: "memory", Again: again, Status: cluster.RunStatus{State: "running"}})
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * cluster.DefaultLease)
			var s cluster.RunStatus
			rec, err := runs.Get(t.Context(), "run")
			if err == nil {
				err = json.Unmarshal(rec.Value, &s)
			}
			if err != nil || s.State != want {
				t.Errorf("again %v: the run is %q, %v; want %s", again, s.State, err, want)
			}
			if err := r.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}
