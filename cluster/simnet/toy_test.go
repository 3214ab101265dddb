package simnet

import (
	"bytes"
	"context"
	"errors"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/kernels/tensor"
	"github.com/pce-engine/pce/layers"
)

var (
	toySpec  = ToySpec{Params: 24, Owners: 6, Averages: true, Seed: 3}
	schedule = dataset.Schedule{Rows: 100, BatchRows: 50, Seed: 1}
	rule     = tensor.Rule{Step: 0.5, Anemone: &tensor.Anemone{Momentum: 0.9, Rows: 50}}
)

func load(t *testing.T, toy *Toy, spec ToySpec) cluster.Session {
	t.Helper()
	s, err := toy.Load(t.Context(), spec.Spec("run"), nil)
	ok(t, err)
	return s
}

func stateOf(t *testing.T, s cluster.Session) []float32 {
	t.Helper()
	l := s.Layout()
	state := make([]float32, l.Params+l.Averages)
	ok(t, s.ReadState(t.Context(), 0, state))
	return state
}

func flowsOf(t *testing.T, s cluster.Session) []int64 {
	t.Helper()
	flows := make([]int64, s.Layout().Flows)
	ok(t, s.ReadFlows(t.Context(), 0, flows))
	return flows
}

// TestToy divides steps between two sessions, each of which moves some owners,
// and compares with the reference.
func TestToy(t *testing.T) {
	for _, spec := range []ToySpec{toySpec, {Params: 21, Owners: 3}, {Params: 5, Owners: 5}} {
		ref, err := NewReference(spec)
		ok(t, err)
		a, b := load(t, &Toy{Worker: "a"}, spec), load(t, &Toy{Worker: "b"}, spec)
		first := ref.State()
		ctx, owners := t.Context(), len(a.Layout().Owners)
		for at := range 3 {
			step := cluster.Step{Schedule: schedule, At: dataset.Cursor{Epoch: 1, Step: at}}
			shards := dataset.Shards(50, 7)
			want := ref.Flows(step, shards)
			ll, rows, impossible := 0.0, 0, 0
			for i, shard := range shards {
				r, err := []cluster.Session{a, b}[(i*i+at)%2].Accumulate(ctx, step, shard)
				ok(t, err)
				ll, rows, impossible = ll+r.LogLikelihood, rows+r.Rows, impossible+r.Impossible
			}
			if ll != want.LogLikelihood || rows != want.Rows || impossible != want.Impossible || rows != 50 {
				t.Errorf("step %d: %v, %d rows, %d impossible; want %+v", at, ll, rows, impossible, want)
			}
			sum := flowsOf(t, a)
			for i, f := range flowsOf(t, b) {
				sum[i] += f
			}
			ok(t, a.WriteFlows(ctx, 0, sum))
			ok(t, b.WriteFlows(ctx, 0, sum))
			ref.Apply(rule)
			mid := owners / 2
			ok(t, a.Apply(ctx, rule, 0, mid))
			ok(t, b.Apply(ctx, rule, mid, owners))
			// Each takes the parts of the other over.
			for i, o := range a.Layout().Owners {
				from, to := a, b
				if i >= mid {
					from, to = b, a
				}
				all := slices.Clone(o.Params)
				for _, r := range o.Averages {
					if a.Layout().Averages > 0 {
						all = append(all, layers.Range{Lo: r.Lo + a.Layout().Params, Hi: r.Hi + a.Layout().Params})
					}
				}
				for _, r := range all {
					part := make([]float32, r.Len())
					ok(t, from.ReadState(ctx, r.Lo, part))
					ok(t, to.WriteState(ctx, r.Lo, part))
				}
			}
			clear(sum)
			ok(t, a.WriteFlows(ctx, 0, sum))
			ok(t, b.WriteFlows(ctx, 0, sum))
			if !slices.Equal(stateOf(t, a), ref.State()) || !slices.Equal(stateOf(t, b), ref.State()) {
				t.Fatalf("step %d: the state is not the reference's", at)
			}
		}
		last := ref.State()
		if first[0] != last[0] {
			t.Error("the place of nobody has moved")
		}
		for i := 1; i < int(a.Layout().Params); i++ {
			if first[i] == last[i] || !(last[i] >= 0 && last[i] < 1) {
				t.Errorf("parameter %d went from %v to %v", i, first[i], last[i])
			}
		}
		if r, err := a.LogLikelihood(ctx, "valid", dataset.Span{Lo: 3, Hi: 8}); err != nil || r != ref.LogLikelihood("valid", dataset.Span{Lo: 3, Hi: 8}) {
			t.Errorf("log-likelihood %+v, %v", r, err)
		}
		if r, err := a.Query(ctx, []byte("q")); err != nil || !bytes.Equal(r, ref.Query([]byte("q"))) || bytes.Equal(r, ref.Query([]byte("r"))) {
			t.Errorf("query %x, %v", r, err)
		}
		// A session that starts from the same state goes on alike.
		other, err := NewReference(spec)
		ok(t, err)
		other.SetState(last)
		if !slices.Equal(other.State(), last) {
			t.Error("SetState set another state")
		}
		ok(t, a.Close())
	}
}

// TestToyShowsMistakes does a step wrongly in each way.
func TestToyShowsMistakes(t *testing.T) {
	step := cluster.Step{Schedule: schedule}
	do := func(shards []dataset.Span, step cluster.Step, rule tensor.Rule, seed uint64) []float32 {
		spec := toySpec
		spec.Seed = seed
		ref, err := NewReference(spec)
		ok(t, err)
		ref.Flows(step, shards)
		ref.Apply(rule)
		return ref.State()
	}
	shards := dataset.Shards(50, 10)
	right := do(shards, step, rule, 3)
	if !slices.Equal(right, do([]dataset.Span{shards[4], shards[1], shards[0], shards[3], shards[2]}, step, rule, 3)) {
		t.Error("the order of shards shows")
	}
	norm, err := NewReference(toySpec)
	ok(t, err)
	norm.Flows(step, shards)
	for i := norm.model.layout.Params; i < norm.model.layout.Flows; i++ {
		norm.model.flows[i]++
	}
	norm.Apply(rule)
	later := step
	later.At.Step++
	for name, wrong := range map[string][]float32{
		"missing":   do(shards[1:], step, rule, 3),
		"twice":     do(append(shards, shards[0]), step, rule, 3),
		"rule":      do(shards, step, tensor.Rule{Step: 0.5}, 3),
		"step":      do(shards, later, rule, 3),
		"norm":      norm.State(),
		"parameter": do(shards, step, rule, 4),
	} {
		for _, o := range toySpec.layout().Owners {
			for _, r := range o.Params {
				if slices.Equal(wrong[r.Lo:r.Hi], right[r.Lo:r.Hi]) {
					t.Errorf("%s: parameters %v are right", name, r)
				}
			}
		}
	}
}

// TestToyFlowsPass checks the flows as the protocol does.
func TestToyFlowsPass(t *testing.T) {
	for fault, want := range map[ToyFault]bool{ToyFine: true, ToyNegative: false, ToyUnconserved: false} {
		s := load(t, &Toy{Fault: func(w ToyWork) ToyFault {
			if w.Rows.Lo == 10 {
				return fault
			}
			return ToyFine
		}}, toySpec)
		shards := dataset.Shards(50, 10)
		for _, shard := range shards {
			_, err := s.Accumulate(t.Context(), cluster.Step{Schedule: schedule}, shard)
			ok(t, err)
		}
		all := true
		flows := flowsOf(t, s)
		for _, o := range s.Layout().Owners {
			c := layers.NewFlowCheck(o)
			c.Add(0, flows)
			all = all && c.Err(len(shards)) == nil
		}
		if all != want {
			t.Errorf("fault %d: flows pass %v, want %v", fault, all, want)
		}
	}
}

func TestToyFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen []ToyWork
		toy := &Toy{Worker: "w", MinTime: time.Second, MaxTime: 3 * time.Second}
		toy.Fault = func(w ToyWork) ToyFault {
			seen = append(seen, w)
			switch {
			case w.Source == "nan" || w.Rows.Lo == 1:
				return ToyNaN
			case w.Rows.Lo == 2 || string(w.Request) == "fail":
				return ToyFails
			case w.Rows.Lo == 3:
				return ToyHangs
			}
			return ToyFine
		}
		s := load(t, toy, toySpec)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		start := time.Now()
		if r, err := s.Accumulate(ctx, cluster.Step{}, dataset.Span{Lo: 1, Hi: 2}); err != nil || !math.IsNaN(r.LogLikelihood) {
			t.Errorf("NaN: %+v, %v", r, err)
		}
		if took := time.Since(start); took < time.Second || took >= 3*time.Second {
			t.Errorf("a shard took %v", took)
		}
		if r, err := s.LogLikelihood(ctx, "nan", dataset.Span{}); err != nil || !math.IsNaN(r.LogLikelihood) {
			t.Errorf("NaN: %+v, %v", r, err)
		}
		before := flowsOf(t, s)
		if _, err := s.Accumulate(ctx, cluster.Step{}, dataset.Span{Lo: 2, Hi: 3}); !errors.Is(err, ErrToy) {
			t.Errorf("fails: %v", err)
		}
		if _, err := s.Query(ctx, []byte("fail")); !errors.Is(err, ErrToy) {
			t.Errorf("query fails: %v", err)
		}
		if _, err := s.Accumulate(ctx, cluster.Step{}, dataset.Span{Lo: 3, Hi: 4}); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Hour {
			t.Errorf("hangs: %v after %v", err, time.Since(start))
		}
		if !slices.Equal(before, flowsOf(t, s)) {
			t.Error("work that failed left flows")
		}
		if len(seen) != 5 || seen[0].Worker != "w" {
			t.Errorf("saw %+v", seen)
		}
	})
}

func TestToyRefuses(t *testing.T) {
	ctx := t.Context()
	for _, spec := range []ToySpec{{}, {Params: 7, Owners: 2}, {Params: 1, Owners: 2}, {Params: 1 << 40, Owners: 1}, {Params: -4, Owners: -2}} {
		if _, err := (&Toy{}).Load(ctx, spec.Spec("r"), nil); !errors.Is(err, cluster.ErrJob) {
			t.Errorf("%+v: %v", spec, err)
		}
		if _, err := NewReference(spec); !errors.Is(err, cluster.ErrJob) {
			t.Errorf("%+v: %v", spec, err)
		}
	}
	if _, err := (&Toy{}).Load(ctx, cluster.Spec{Body: []byte("{")}, nil); !errors.Is(err, cluster.ErrJob) {
		t.Errorf("damaged body: %v", err)
	}
	if _, err := (&Toy{LoadError: ErrToy}).Load(ctx, toySpec.Spec("r"), nil); !errors.Is(err, ErrToy) {
		t.Errorf("LoadError: %v", err)
	}
	elsewhere := toySpec.Spec("r")
	elsewhere.Path = "avx512"
	if _, err := (&Toy{}).Load(ctx, elsewhere, nil); err == nil || errors.Is(err, cluster.ErrJob) {
		t.Errorf("a path that it lacks: %v", err)
	}
	s := load(t, &Toy{}, toySpec)
	for _, err := range []error{
		s.ReadFlows(ctx, -1, nil),
		s.WriteFlows(ctx, 0, make([]int64, 32)),
		s.ReadState(ctx, math.MaxInt64, make([]float32, 1)),
		s.WriteState(ctx, 57, nil),
		s.Apply(ctx, rule, 3, 7),
		s.Apply(ctx, rule, 3, 2),
		s.Apply(ctx, rule, -1, 2),
	} {
		if !errors.Is(err, cluster.ErrCluster) {
			t.Errorf("out of range: %v", err)
		}
	}
}
