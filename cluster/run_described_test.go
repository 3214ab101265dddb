package cluster_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/cluster/simnet"
)

// TestDescribedAnew leads a run whose coordinator died without a word, under the same name and with the same model, but with another
// description: the worker ends the shard that it computes for the first one, and loads the run anew.
func TestDescribedAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, simnet.Faults{MinDelay: time.Millisecond, MaxDelay: time.Millisecond})
		defer w.finish()
		w.quick = true
		free := w.hang()
		tr := w.addTraining("c-0")
		tr.steps = 1
		w.startWorker("w0")
		ctx, end := context.WithTimeout(t.Context(), time.Hour)
		defer end()
		r, f := w.leadHere(ctx, tr, cluster.RunOptions{}, 1)
		short, stop := context.WithTimeout(ctx, time.Minute)
		defer stop()
		if _, err := f.Step(short, tr.rule(0)); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("the first step: %v", err)
		}
		free()
		host := w.net.Host("c-0")
		w.net.Crash("c-0")
		_ = r.Close(ctx)
		_ = host.Peers().Close()

		tr.toy.Averages = true
		r, f = w.leadHere(ctx, tr, cluster.RunOptions{}, 1)
		defer w.net.Host("c-0").Peers().Close()
		defer func() { _ = r.Close(context.WithoutCancel(ctx)) }()
		_, err := f.Step(ctx, tr.rule(0))
		state, want := tr.first(), []float32(nil)
		if err == nil {
			err = f.ReadParams(ctx, 0, state)
		}
		if want, _, _ = tr.truth(); err != nil || !slices.Equal(state, want[:len(state)]) {
			t.Errorf("the second run comes to %v, %v; want %v", state, err, want[:len(state)])
		}
	})
}
