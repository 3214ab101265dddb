package cluster_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/cluster/simnet"
)

// TestOverEndsShards closes a run whose shard takes for ever: the worker ends it, and computes for the next run. It does so too where
// the word that the run is over was lost, as the next run has another name.
func TestOverEndsShards(t *testing.T) {
	for name, lost := range map[string]bool{"told": false, "not told": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 1, simnet.Faults{MinDelay: time.Millisecond, MaxDelay: time.Millisecond})
				defer w.finish()
				w.quick = true
				free := w.hang()
				tr := w.addTraining("c-0")
				w.startWorker("w0")
				ctx, end := context.WithTimeout(t.Context(), time.Hour)
				defer end()
				r, f := w.leadHere(ctx, tr, cluster.RunOptions{}, 1)
				defer w.net.Host("c-0").Peers().Close()
				step, stop := context.WithTimeout(ctx, time.Minute)
				defer stop()
				if _, err := f.Step(step, tr.rule(0)); !errors.Is(err, context.DeadlineExceeded) {
					t.Fatalf("the first step: %v", err)
				}
				free()
				if lost {
					w.net.Crash("c-0")
				}
				_ = r.Close(ctx)
				host := w.net.Host("c-1")
				defer host.Peers().Close()
				co := cluster.NewCoordinator(cluster.CoordinatorOptions{ID: "c-1", Bus: host.Bus(), Peers: []cluster.Peers{host.Peers()}, Log: w.log})
				r, err := co.Begin(ctx, cluster.RunOptions{Spec: tr.toy.Spec("next"), Transport: "memory"})
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = r.Close(context.WithoutCancel(ctx)) }()
				valid, named := tr.sources()
				f = r.FlowsOf(ctx, tr.layout(), tr.rows, named)
				err = f.WriteParams(ctx, 0, tr.first())
				if err == nil {
					_, err = f.LogLikelihood(ctx, valid)
				}
				if err != nil {
					t.Errorf("the next run: %v", err)
				}
			})
		})
	}
}
