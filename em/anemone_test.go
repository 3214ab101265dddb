package em_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/em"
	"github.com/pce-engine/pce/kernels/cpu"
	"github.com/pce-engine/pce/kernels/tensor"
)

// TestAnemoneTrajectory compares 20 steps of two sizes, in two phases, with the
// rule in float64, and the log-likelihoods seen on the way.
func TestAnemoneTrajectory(t *testing.T) {
	phases := []em.Phase{
		{Rule: em.Anemone, Epochs: 3, StepSize: em.Schedule{{em.Linear, 1, 0.6, 0.2}}, Momentum: 0.9, Pseudocount: 1e-6},
		{Rule: em.Anemone, Epochs: 1, StepSize: em.Schedule{{em.Cosine, 1, 0.2, 0.05}}, Momentum: 0.5, Pseudocount: 1e-3},
	}
	for name, g := range structured(t) {
		for i, batch := range []int{40, 100} { // one shard a step; several
			if testing.Short() && i != len(g.Nodes)%2 {
				continue
			}
			t.Run(fmt.Sprintf("%s/batch=%d", name, batch), func(t *testing.T) {
				m := newModel(t, g, clustered(g, 2, batch*5-7, 0.1))
				o := em.Options{Phases: append([]em.Phase{}, phases...), Seed: 9, ShardRows: 40}
				for i := range o.Phases {
					o.Phases[i].BatchRows = batch
				}
				var seen []float64
				o.OnEpoch = func(x em.Metrics) { seen = append(seen, x.TrainLL) }
				_, got := m.run(t, cpu.Options{}, o)

				p, epoch, want := m.start, 0, make([]float64, 4)
				for _, phase := range phases {
					run := reference.Anemone{Momentum: phase.Momentum}
					steps := int64(5 * phase.Epochs)
					for k := range steps {
						if k%5 == 0 && k > 0 {
							epoch++
						}
						order := dataset.Order(9, epoch, len(m.rows))
						var rows [][]float64
						for _, r := range stepRows(order, batch, int(k%5)) {
							rows = append(rows, m.rows[r])
						}
						ev, err := reference.New(g, p)
						if err != nil {
							t.Fatal(err)
						}
						f, err := ev.Flows(rows)
						if err != nil {
							t.Fatal(err)
						}
						want[epoch] += f.LogLikelihood / float64(len(m.rows))
						p = run.Step(ev, f, len(rows), reference.Step{Size: phase.StepSize.At(k, steps), Pseudocount: phase.Pseudocount})
					}
					epoch++
				}
				for i, w := range want { // as in TestTrajectory
					if !(math.Abs(seen[i]-w) <= 2e-5*max(1, math.Abs(w))) {
						t.Errorf("epoch %d: train_ll %v, want %v", i+1, seen[i], w)
					}
				}
				// As in TestTrajectory.
				compareParams(t, m, got, p, 1e-4)
			})
		}
	}
}

// TestAnemoneImpossible trains on rows of which some are impossible under the model, and wants the parameters of a run without
// these: averages are over the rows that have counts.
func TestAnemoneImpossible(t *testing.T) {
	g := &circuit.Graph{NumVars: 2, Root: 3, Nodes: []circuit.Node{
		{Kind: circuit.Input, Units: 2, Var: 0, Leaf: circuit.Categorical{Categories: 3}},
		{Kind: circuit.Input, Units: 2, Var: 1, Leaf: circuit.Gaussian{}},
		{Kind: circuit.Product, Units: 2, Children: []circuit.NodeID{0, 1}},
		{Kind: circuit.Sum, Units: 1, Children: []circuit.NodeID{2}},
	}}
	rng := rand.New(rand.NewPCG(3, 3))
	var possible, all [][]float64
	for i := range 300 {
		row := []float64{float64(rng.IntN(2)), rng.NormFloat64()}
		possible, all = append(possible, row), append(all, row)
		if i%100 < 50 { // more in some steps than in others
			all = append(all, []float64{2, rng.NormFloat64()})
		}
	}
	start := func(rows [][]float64) *model {
		m := newModel(t, g, rows)
		copy(m.start[0], []float64{0.5, 0.5, 0, 0.4, 0.6, 0})
		return m
	}
	o := em.Options{Phases: []em.Phase{{
		Rule: em.Anemone, Epochs: 3, BatchRows: 512, Momentum: 0.5, Pseudocount: 1e-6, StepSize: em.Schedule{{em.Constant, 1, 0.4, 0.4}},
	}}, ShardRows: 128}
	_, want := start(possible).run(t, cpu.Options{}, o)
	_, got := start(all).run(t, cpu.Options{}, o)
	for i, w := range want {
		if !(math.Abs(float64(got[i]-w)) <= 1e-5) {
			t.Errorf("parameter %d is %v, without impossible rows %v", i, got[i], w)
		}
	}
	// None is possible at first, and later steps have what there is.
	o.Phases[0].BatchRows, o.ShardRows = 1, 1
	if _, got = start([][]float64{{2, 0}, {2, 1}, {0, 1}}).run(t, cpu.Options{}, o); slices.ContainsFunc(got, func(x float32) bool { return x != x }) {
		t.Errorf("parameters %v after steps without a possible row", got)
	}
}

// TestAnemoneOfEarlierVersions resumes a run that an earlier version began, whose averaged statistics are in other units, and wants
// averages to begin anew, as with other rows.
func TestAnemoneOfEarlierVersions(t *testing.T) {
	g := &circuit.Graph{NumVars: 1, Root: 1, Nodes: []circuit.Node{
		{Kind: circuit.Input, Units: 2, Leaf: circuit.Gaussian{}},
		{Kind: circuit.Sum, Units: 1, Children: []circuit.NodeID{0}},
	}}
	rng := rand.New(rand.NewPCG(5, 5))
	var rows [][]float64
	for range 200 {
		rows = append(rows, []float64{0.1 * rng.NormFloat64()})
	}
	j := &job{model: newModel(t, g, rows)}
	phase := em.Phase{Rule: em.Anemone, BatchRows: 50, Momentum: 0.9, Pseudocount: 1e-6, StepSize: em.Schedule{{em.Constant, 1, 0.4, 0.4}}}
	resumed := func(earlier bool, rowsNow string) []float32 {
		dir := t.TempDir()
		of := func(epochs int, rows string) func(o *em.Options) {
			return func(o *em.Options) {
				p := phase
				p.Epochs = epochs
				o.Phases, o.AllowChanges, o.Fingerprint = []em.Phase{p}, true, []em.Fact{{Name: em.TrainRowsFact, Value: rows}}
			}
		}
		j.opts.Phases = []em.Phase{phase}
		tr, flows := j.trainer(t, dir, j.model.table, of(2, "some"))
		if earlier {
			tr.OfEarlierVersion()
		}
		if _, err := tr.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		flows.Close()
		_, params, err := j.try(t, t.Context(), dir, j.model.table, of(3, rowsNow))
		if err != nil {
			t.Fatal(err)
		}
		return params
	}
	kept, anew := resumed(false, "some"), resumed(false, "others")
	if got := resumed(true, "some"); !sameBits(got, anew) || sameBits(got, kept) {
		t.Errorf("parameters %v after a run of an earlier version, with other rows %v, with averages that are kept %v", got, anew, kept)
	}
}

// TestAnemoneShardsInAnyOrder adds the shards of the windows in other orders, on
// other numbers of threads, and wants the same bits after some updates.
func TestAnemoneShardsInAnyOrder(t *testing.T) {
	ctx := context.Background()
	for name, g := range structured(t) {
		m := newModel(t, g, clustered(g, 4, 230, 0.1))
		batch := reference.Batch(reference.Schema(g), m.rows)
		shards := dataset.Shards(len(m.rows), 32)
		ll := make([]float64, 32)
		var want []float32
		for try := range 4 {
			rng := rand.New(rand.NewPCG(uint64(try), 1))
			eng := m.engine(t, cpu.Options{Threads: 1 + try%3}, 32)
			rule := tensor.Anemone{Momentum: 0.8, Rows: len(m.rows)}
			for range 3 {
				for _, s := range rng.Perm(len(shards)) {
					if err := eng.Accumulate(ctx, batch, shards[s].Lo, shards[s].Hi, ll); err != nil {
						t.Fatal(err)
					}
				}
				if err := eng.Apply(ctx, tensor.Rule{Step: 0.4, Pseudocount: 1e-6, Anemone: &rule}); err != nil {
					t.Fatal(err)
				}
				rule.Weight = rule.Next()
			}
			got := make([]float32, eng.Program().NumParams)
			if err := eng.ReadParams(ctx, 0, got); err != nil {
				t.Fatal(err)
			}
			if want == nil {
				want = got
			} else if !sameBits(want, got) {
				t.Errorf("%s: another order gives other bits: %s", name, firstDifference(want, got))
			}
		}
	}
}
