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
	"github.com/pce-engine/pce/em"
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
			host := w.net.Host("c-0")
			defer host.Peers().Close()
			co := cluster.NewCoordinator(cluster.CoordinatorOptions{ID: "c-0", Bus: host.Bus(), Peers: []cluster.Peers{host.Peers()}, Log: w.log})
			ctx, stop := context.WithCancel(context.Background())
			defer stop()
			r, err := co.Begin(ctx, cluster.RunOptions{Spec: tr.toy.Spec("run"), Transport: "memory"})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = r.Close(context.WithoutCancel(ctx)) }()
			_, named := tr.sources()
			f := r.FlowsOf(ctx, tr.layout(), tr.rows, named)
			plan := em.Plan{Schedule: tr.schedule(), ShardRows: tr.shardRows, Epochs: 2}
			if err := errors.Join(f.WriteParams(ctx, 0, tr.first()), f.Begin(ctx, plan)); err != nil {
				t.Fatal(err)
			}
			ref, err := simnet.NewReference(tr.toy)
			if err != nil {
				t.Fatal(err)
			}
			ref.SetState(tr.first())
			move := func(step int) {
				ref.Flows(cluster.Step{Schedule: tr.schedule(), At: dataset.Cursor{Epoch: step}}, dataset.Shards(tr.rows, tr.shardRows))
				ref.Apply(tr.rule(step))
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
