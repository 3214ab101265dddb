package cuda_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/engine"
	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/kerneltest"
)

// sketch builds a circuit by hand.
type sketch struct {
	circuit.Graph
	units int
}

func (s *sketch) add(n circuit.Node) circuit.NodeID {
	if n.Units == 0 {
		n.Units = s.units
	}
	if n.TiedTo == 0 { // node 0 is an input that nothing is tied to
		n.TiedTo = circuit.None
	}
	s.Nodes = append(s.Nodes, n)
	s.Root = circuit.NodeID(len(s.Nodes) - 1)
	return s.Root
}

// input adds leaves of a new variable.
func (s *sketch) input(l circuit.Leaf) circuit.NodeID {
	s.NumVars++
	return s.add(circuit.Node{Kind: circuit.Input, Var: s.NumVars - 1, Leaf: l})
}

// twin adds leaves of a new variable with the parameters of others.
func (s *sketch) twin(of circuit.NodeID) circuit.NodeID {
	s.NumVars++
	return s.add(circuit.Node{Kind: circuit.Input, Var: s.NumVars - 1, Leaf: s.Nodes[of].Leaf, TiedTo: of})
}

func (s *sketch) product(children ...circuit.NodeID) circuit.NodeID {
	return s.add(circuit.Node{Kind: circuit.Product, Children: children})
}

func (s *sketch) sum(children ...circuit.NodeID) circuit.NodeID {
	return s.add(circuit.Node{Kind: circuit.Sum, Children: children})
}

// leaves is a circuit whose variables have leaves of every family, with tables of
// any size and without, and others that share their parameters.
func leaves(units int) *circuit.Graph {
	s := &sketch{units: units}
	s.input(circuit.Indicator{Domain: 3, Value: 1})
	var list []circuit.NodeID
	for _, l := range []circuit.Leaf{
		circuit.Categorical{Categories: 4}, circuit.Binomial{Trials: 4}, circuit.Histogram{Edges: []int{0, 2, 3, 6}},
		circuit.DiscretisedLogistic{Domain: 5}, circuit.Gaussian{MinSigma: 0.125}, circuit.Poisson{},
		circuit.Categorical{Categories: 270}, circuit.DiscretisedLogistic{Domain: 270},
	} {
		at := s.input(l)
		list = append(list, s.product(at, s.twin(at)))
	}
	second := s.add(circuit.Node{Kind: circuit.Input, Var: 0, Leaf: circuit.Categorical{Categories: 3}})
	for i := 1; i+1 < len(list); i += 2 {
		list = append(list, s.sum(s.product(list[i], list[i+1])))
	}
	s.add(circuit.Node{Kind: circuit.Sum, Units: 1, Children: []circuit.NodeID{
		s.product(append([]circuit.NodeID{0, list[0]}, list[8:]...)...),
		s.product(append([]circuit.NodeID{second, list[0]}, list[8:]...)...),
	}})
	_ = second
	return &s.Graph
}

var _ = fmt.Sprint
var _ = slices.Clone[[]int]

// harsh makes parameters that float32 cannot multiply: a leaf with a table
// favours one code by many powers of ten, some weights are 0.
func harsh(g *circuit.Graph, p reference.Params, rng *rand.Rand) {
	for id := range p {
		n := &g.Nodes[id]
		switch {
		case p[id] == nil:
		case n.Kind == circuit.Input:
			c, ok := n.Leaf.(circuit.Categorical)
			if !ok {
				continue
			}
			for u := range n.Units {
				q := p[id][u*c.Categories:][:c.Categories]
				for k := range q {
					q[k] = math.Pow(10, -37*rng.Float64())
				}
				q[(u+n.Var)%len(q)] = 1
			}
		}
	}
}

// job is a circuit on a device and one thing that is done with it.
type job struct {
	*kerneltest.Model
	name  string
	batch *dataset.Batch
	other *dataset.Batch // what the memory holds before
	run   func(ctx context.Context, m *kerneltest.Model, b *dataset.Batch, out *outcome) error
}

// outcome is all that a job reads back, in bits.
type outcome struct{ words []uint64 }

func add[T float32 | float64 | int64](o *outcome, s []T) {
	for _, x := range s {
		switch x := any(x).(type) {
		case float32:
			o.words = append(o.words, uint64(math.Float32bits(x)))
		case float64:
			o.words = append(o.words, math.Float64bits(x))
		case int64:
			o.words = append(o.words, uint64(x))
		}
	}
}

// params adds the parameters.
func (o *outcome) params(ctx context.Context, m *kerneltest.Model) error {
	p := make([]float32, m.Result.Program.NumParams)
	err := m.Engine.ReadParams(ctx, 0, p)
	add(o, p)
	return err
}

var rule = kernels.Rule{Step: 0.7, Pseudocount: 0.05}

// works are what is done with a circuit.
var works = []struct {
	name string
	run  func(ctx context.Context, m *kerneltest.Model, b *dataset.Batch, out *outcome) error
}{
	{"step", func(ctx context.Context, m *kerneltest.Model, b *dataset.Batch, out *outcome) error {
		ll := make([]float64, b.Rows)
		if err := m.Engine.Step(ctx, b, 0, b.Rows, rule, ll); err != nil {
			return err
		}
		add(out, ll)
		return out.params(ctx, m)
	}},
	{"shards", func(ctx context.Context, m *kerneltest.Model, b *dataset.Batch, out *outcome) error {
		if err := shards(ctx, m, b, out); err != nil {
			return err
		}
		if err := m.Engine.Apply(ctx, rule); err != nil {
			return err
		}
		return out.params(ctx, m)
	}},
	{"anemone", func(ctx context.Context, m *kerneltest.Model, b *dataset.Batch, out *outcome) error {
		r := rule
		r.Anemone = &kernels.Anemone{Momentum: 0.75, Rows: b.Rows}
		for range 2 {
			if err := shards(ctx, m, b, out); err != nil {
				return err
			}
			if err := m.Engine.Apply(ctx, r); err != nil {
				return err
			}
			r.Anemone = &kernels.Anemone{Momentum: 0.75, Rows: b.Rows, Weight: r.Anemone.Next()}
		}
		averages := make([]float32, m.Result.Program.AverageLen())
		if err := m.Engine.ReadAverages(ctx, 0, averages); err != nil {
			return err
		}
		add(out, averages)
		return out.params(ctx, m)
	}},
	{"visits", func(ctx context.Context, m *kerneltest.Model, _ *dataset.Batch, out *outcome) error {
		visits := make([]float32, m.Result.Program.VisitLen())
		err := m.Engine.TopDown(ctx, visits)
		add(out, visits)
		return err
	}},
}

// shards adds flows up in two parts.
func shards(ctx context.Context, m *kerneltest.Model, b *dataset.Batch, out *outcome) error {
	ll := make([]float64, b.Rows)
	cut := b.Rows / 3
	if err := m.Engine.Accumulate(ctx, b, cut, b.Rows, ll[cut:]); err != nil {
		return err
	}
	if err := m.Engine.Accumulate(ctx, b, 0, cut, ll); err != nil {
		return err
	}
	flows := make([]int64, m.Result.Program.FlowLen())
	err := m.Engine.ReadFlows(ctx, 0, flows)
	add(out, ll)
	add(out, flows)
	return err
}

// models builds the circuits of the workload for blocks of a size.
func models(t *testing.T, dev kernels.Device, block int) (list []job) {
	t.Helper()
	units := map[int]int{1: 3, 8: 11, 32: 37}[block]
	rng := rand.New(rand.NewPCG(31, uint64(block)))
	build := func(name string, g *circuit.Graph, extreme bool, rows int) {
		p, err := reference.Init(g, 3, nil)
		if err != nil {
			t.Fatal(name, err)
		}
		if extreme {
			harsh(g, p, rng)
		}
		schema := reference.Schema(g)
		co := compile.DefaultOptions()
		co.BlockSize = block
		list = append(list, job{
			name:  name,
			Model: kerneltest.Build(t, dev, g, p, co, engine.Options{Rows: 70, Train: true}),
			batch: reference.Batch(schema, reference.RandomRows(g, rng, rows, 0.1)),
			other: reference.Batch(schema, reference.RandomRows(g, rng, rows, 0.1)),
		})
	}
	build("leaves", leaves(units), false, 20)
	for seed := range uint64(2) {
		g := reference.Random(rand.New(rand.NewPCG(seed, 5)), reference.RandomOptions{Vars: 6, MaxUnits: units, MaxNodes: 20})
		build(fmt.Sprintf("random %d", seed), g, false, 70)
		build(fmt.Sprintf("harsh %d", seed), g, true, 30)
	}
	return list
}
