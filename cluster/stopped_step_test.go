package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/cluster/simnet"
)

// TestStoppedInSlowStep stops a run in the middle of a step whose shards take seconds, of one worker and of two: the parameters are
// those of before the step, and the run lives on until it is closed.
func TestStoppedInSlowStep(t *testing.T) {
	for workers := 1; workers <= 2; workers++ {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 1, simnet.Faults{MinDelay: time.Millisecond, MaxDelay: time.Millisecond})
			defer w.finish()
			w.pace = func(string) time.Duration { return 3 * time.Second }
			tr := w.addTraining("c-0")
			tr.rows = 320
			for i := range workers {
				w.startWorker(fmt.Sprintf("w%d", i))
			}
			ctx, stop := context.WithCancel(context.Background())
			defer stop()
			r, f := w.leadHere(ctx, tr, cluster.RunOptions{Workers: workers}, 1)
			defer w.net.Host("c-0").Peers().Close()
			time.AfterFunc(10*time.Second, stop)
			if _, err := f.Step(ctx, tr.rule(0)); !errors.Is(err, context.Canceled) {
				t.Errorf("%d workers: the step ends with %v", workers, err)
			}
			time.Sleep(time.Minute) // a checkpoint on a slow disk
			state := make([]float32, len(tr.first()))
			if err := f.ReadParams(context.Background(), 0, state); err != nil || !slices.Equal(state, tr.first()) {
				t.Errorf("%d workers: the parameters are %v, %v", workers, state, err)
			}
			if err := r.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
}
