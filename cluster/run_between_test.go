package cluster_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/cluster/simnet"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/em"
)

// TestLedBetween cuts a coordinator off in the middle of a step, while another one leads the same run and dies. When the first one has
// the lead once more it does the step: workers do not take its round for one of the past.
func TestLedBetween(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, simnet.Faults{MinDelay: time.Millisecond, MaxDelay: time.Millisecond})
		defer w.finish()
		w.pace = func(string) time.Duration { return 5 * time.Second }
		tr := w.addTraining("c-0")
		w.startWorker("w0")
		ctx, end := context.WithTimeout(t.Context(), time.Hour)
		defer end()
		r, f := w.leadHere(ctx, tr, cluster.RunOptions{}, 1)
		defer w.net.Host("c-0").Peers().Close()
		defer func() { _ = r.Close(context.WithoutCancel(ctx)) }()
		done := make(chan error, 1)
		go func() {
			_, err := f.Step(ctx, tr.rule(0))
			done <- err
		}()
		time.Sleep(time.Second)
		w.net.Isolate("c-0")

		host := w.net.Host("c-1")
		co := cluster.NewCoordinator(cluster.CoordinatorOptions{ID: "c-1", Bus: host.Bus(), Peers: []cluster.Peers{host.Peers()}, Log: w.log})
		between, err := co.Begin(ctx, cluster.RunOptions{Spec: tr.toy.Spec("run"), Transport: "memory"})
		if err != nil {
			t.Fatal(err)
		}
		valid, named := tr.sources()
		g := between.FlowsOf(ctx, tr.layout(), tr.rows, named)
		if err := g.WriteParams(ctx, 0, tr.first()); err != nil {
			t.Fatal(err)
		}
		if _, err := g.LogLikelihood(ctx, valid); err != nil {
			t.Fatal(err)
		}
		w.net.Crash("c-1")
		_ = between.Close(ctx)
		_ = host.Peers().Close()
		time.Sleep(2 * cluster.DefaultLease) // until its lead is over

		w.net.Rejoin("c-0")
		if err := <-done; err != nil {
			t.Errorf("the step: %v", err)
		}
	})
}

// TestBegunFurther wants a run that continues from a checkpoint to be as far as that before its first step.
func TestBegunFurther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, simnet.Faults{MinDelay: time.Millisecond, MaxDelay: time.Millisecond})
		defer w.finish()
		tr := w.addTraining("c-0")
		w.startWorker("w0")
		ctx, end := context.WithTimeout(t.Context(), time.Hour)
		defer end()
		r, f := w.leadHere(ctx, tr, cluster.RunOptions{}, 4)
		defer w.net.Host("c-0").Peers().Close()
		defer func() { _ = r.Close(context.WithoutCancel(ctx)) }()
		plan := em.Plan{Schedule: tr.schedule(), ShardRows: tr.shardRows, Epochs: 4, Start: dataset.Cursor{Epoch: 2}, Done: 7}
		if err := f.Begin(ctx, plan); err != nil {
			t.Fatal(err)
		}
		r.Update(func(s *cluster.RunStatus) {
			if s.Epoch != 2 || s.Step != 7 {
				t.Errorf("epoch %d, step %d; want 2 and 7", s.Epoch, s.Step)
			}
		})
	})
}
