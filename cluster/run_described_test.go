package cluster_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/cluster/simnet"
	"github.com/pce-engine/pce/em"
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

// lossyBus loses the messages of a coordinator that lose chooses.
type lossyBus struct {
	cluster.Bus
	lose func(message []byte) bool
}

func (b *lossyBus) Send(to string, message []byte) error {
	if b.lose(message) {
		return nil
	}
	return b.Bus.Send(to, message)
}

// TestReadyForAnother has a coordinator lead a run once more with another description, where a worker that did not hear the end of the
// first attempt says that it is ready, and the order to load the second one is lost: it is ordered to load until it has loaded that one.
func TestReadyForAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, simnet.Faults{MinDelay: time.Millisecond, MaxDelay: time.Millisecond})
		defer w.finish()
		w.quick = true
		tr := w.addTraining("c-0")
		tr.steps = 1
		w.startWorker("w0")
		ctx, end := context.WithTimeout(t.Context(), time.Hour)
		defer end()
		host := w.net.Host("c-0")
		defer host.Peers().Close()
		var losing atomic.Int64 // orders to load
		bus := &lossyBus{host.Bus(), func(m []byte) bool {
			return bytes.Contains(m, []byte(`"kind":"release"`)) || bytes.Contains(m, []byte(`"kind":"prepare"`)) && losing.Add(-1) >= 0
		}}
		co := cluster.NewCoordinator(cluster.CoordinatorOptions{ID: "c-0", Bus: bus, Peers: []cluster.Peers{host.Peers()}, Log: w.log})
		for _, averages := range []bool{false, true} {
			if tr.toy.Averages = averages; averages {
				losing.Store(2) // the first, and that of the next tick
			}
			r, err := co.Begin(ctx, cluster.RunOptions{Spec: tr.toy.Spec("run"), Transport: "memory"})
			if err != nil {
				t.Fatal(err)
			}
			_, named := tr.sources()
			f := r.FlowsOf(ctx, tr.layout(), tr.rows, named)
			err = f.WriteParams(ctx, 0, tr.first())
			if err == nil {
				err = f.Begin(ctx, em.Plan{Schedule: tr.schedule(), ShardRows: tr.shardRows, Epochs: 1})
			}
			if err == nil {
				_, err = f.Step(ctx, tr.rule(0))
			}
			state := tr.first()
			if err == nil {
				err = f.ReadParams(ctx, 0, state)
			}
			if want, _, _ := tr.truth(); err != nil || !slices.Equal(state, want[:len(state)]) {
				t.Errorf("with averages %v: %v, %v; want %v", averages, state, err, want[:len(state)])
			}
			if err := r.Close(context.WithoutCancel(ctx)); err != nil {
				t.Error(err)
			}
		}
	})
}
