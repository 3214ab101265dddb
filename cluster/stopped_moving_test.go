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
	"github.com/pce-engine/pce/dataset"
)

// TestStoppedInStep stops a run of one worker at any moment of a step. The parameters are there afterwards: those of before if
// the step was given up, else those that came of it.
func TestStoppedInStep(t *testing.T) {
	ends := map[bool]int{}
	for after := time.Duration(0); after < 40*time.Millisecond; after += time.Millisecond / 2 {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 1, simnet.Faults{MinDelay: time.Millisecond, MaxDelay: time.Millisecond})
			defer w.finish()
			w.quick = true
			tr := w.addTraining("c-0")
			w.startWorker("w0")
			ctx, stop := context.WithCancel(context.Background())
			defer stop()
			r, f := w.leadHere(ctx, tr, cluster.RunOptions{}, 2)
			defer w.net.Host("c-0").Peers().Close()
			defer func() { _ = r.Close(context.WithoutCancel(ctx)) }()
			ref, err := simnet.NewReference(tr.toy)
			if err != nil {
				t.Fatal(err)
			}
			ref.SetState(tr.first())
			move := func(step int) {
				res := ref.Flows(cluster.Step{Schedule: tr.schedule(), At: dataset.Cursor{Epoch: step}}, dataset.Shards(tr.rows, tr.shardRows))
				ref.Apply(tr.moves(step, res))
			}
			if _, err := f.Step(ctx, tr.rule(0)); err != nil {
				t.Fatal(err)
			}
			move(0)
			time.AfterFunc(after, stop)
			_, err = f.Step(ctx, tr.rule(1))
			if err == nil {
				move(1)
			} else if !errors.Is(err, context.Canceled) {
				t.Errorf("stopped after %v: the step ends with %v", after, err)
			}
			ends[err == nil]++
			state := tr.first()
			if failed := f.ReadParams(context.Background(), 0, state); failed != nil || !slices.Equal(state, ref.State()) {
				t.Errorf("stopped after %v, the step ended with %v: the parameters are %v, %v", after, err, state, failed)
			}
		})
	}
	if ends[true] == 0 || ends[false] == 0 {
		t.Errorf("%d steps counted, %d were given up; want some of both", ends[true], ends[false])
	}
}
