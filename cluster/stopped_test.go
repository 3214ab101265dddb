package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/cluster/simnet"
	"github.com/pce-engine/pce/em"
)

// leadHere begins a run of tr on the coordinator of c-0, with its first parameters, and the flows of so many epochs.
func (w *world) leadHere(ctx context.Context, tr *training, o cluster.RunOptions, epochs int) (*cluster.Run, *cluster.FlowSource) {
	w.t.Helper()
	host := w.net.Host("c-0")
	co := cluster.NewCoordinator(cluster.CoordinatorOptions{ID: "c-0", Bus: host.Bus(), Peers: []cluster.Peers{host.Peers()}, Log: w.log})
	o.Spec, o.Transport = tr.toy.Spec("run"), "memory"
	r, err := co.Begin(ctx, o)
	if err != nil {
		w.t.Fatal(err)
	}
	_, named := tr.sources()
	f := r.FlowsOf(ctx, tr.layout(), tr.rows, named)
	plan := em.Plan{Schedule: tr.schedule(), ShardRows: tr.shardRows, Epochs: epochs}
	if err := errors.Join(f.WriteParams(ctx, 0, tr.first()), f.Begin(ctx, plan)); err != nil {
		w.t.Fatal(err)
	}
	return r, f
}

// TestStopped reads the parameters of a run that is stopped, as its last checkpoint does: from
// the workers if they are there, and with ErrLost a few leases after the last of them died.
// While the run is not stopped, reading waits for workers.
func TestStopped(t *testing.T) {
	for _, c := range []struct{ dead, stopped bool }{{false, true}, {true, true}, {true, false}} {
		t.Run(fmt.Sprintf("dead=%v/stopped=%v", c.dead, c.stopped), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 1, simnet.Faults{MinDelay: time.Millisecond, MaxDelay: time.Millisecond})
				defer w.finish()
				w.quick = true
				tr := w.addTraining("c-0")
				w.startWorker("w0")
				ctx, stop := context.WithCancel(context.Background())
				defer stop()
				r, f := w.leadHere(ctx, tr, cluster.RunOptions{AuditFile: filepath.Join(w.dir, "audit")}, 1)
				defer w.net.Host("c-0").Peers().Close()
				defer func() { _ = r.Close(context.WithoutCancel(ctx)) }()
				if _, err := f.Step(ctx, tr.rule(0)); err != nil {
					t.Fatal(err)
				}
				if c.dead {
					w.kill("w0")
				}
				if c.stopped {
					stop()
				}
				reading, end := context.WithTimeout(context.Background(), time.Hour)
				defer end()
				begin := time.Now()
				err := f.ReadParams(reading, 0, tr.first())
				switch took := time.Since(begin); {
				case !c.dead:
					if err != nil {
						t.Errorf("with its worker there: %v", err)
					}
				case !c.stopped:
					if !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("not stopped, without a worker: %v, want to wait for one", err)
					}
				case !errors.Is(err, cluster.ErrLost) || took > 5*cluster.DefaultLease:
					t.Errorf("stopped, without a worker: %v after %v, want ErrLost soon", err, took)
				}
			})
		})
	}
}

// TestTransport: a run of a transport that the coordinator lacks is refused, whatever others it has.
func TestTransport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, simnet.Faults{})
		defer w.finish()
		tr := w.addTraining("c-0")
		host := w.net.Host("c-0")
		defer host.Peers().Close()
		c := cluster.NewCoordinator(cluster.CoordinatorOptions{ID: "c-0", Bus: host.Bus(), Peers: []cluster.Peers{host.Peers()}, Log: w.log})
		ctx, stop := context.WithTimeout(context.Background(), time.Hour)
		defer stop()
		if r, err := c.Begin(ctx, cluster.RunOptions{Spec: tr.toy.Spec("run"), Transport: "pigeons"}); r != nil || !errors.Is(err, cluster.ErrJob) {
			t.Errorf("error is %v, want one that matches ErrJob", err)
		}
	})
}
