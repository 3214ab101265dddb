package engine_test

import (
	"context"
	"math"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/circuit/structures"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/engine"
	"github.com/pce-engine/pce/kernels/cpu"
	cputensor "github.com/pce-engine/pce/kernels/cpu/tensor"
)

// model is a circuit with an engine and the oracle.
type model struct {
	graph  *circuit.Graph
	params reference.Params
	ref    *reference.Evaluator
	prog   *compile.Result
	eng    *engine.Engine
}

// build opens a circuit with random parameters on the CPU.
func build(t testing.TB, g *circuit.Graph, o engine.Options) *model {
	t.Helper()
	params, err := reference.Init(g, 7, nil)
	if err != nil {
		t.Fatal(err)
	}
	return buildWith(t, g, params, o)
}

func buildWith(t testing.TB, g *circuit.Graph, params reference.Params, o engine.Options) *model {
	t.Helper()
	return buildCompiled(t, g, params, compile.DefaultOptions(), o)
}

func buildCompiled(t testing.TB, g *circuit.Graph, params reference.Params, co compile.Options, o engine.Options) *model {
	t.Helper()
	ref, err := reference.New(g, params)
	if err != nil {
		t.Fatal(err)
	}
	r, err := compile.Compile(g, co)
	if err != nil {
		t.Fatal(err)
	}
	dev, err := cputensor.Open(cpu.Options{Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	eng, err := engine.New(ctx, dev, r.Program, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { eng.Close() })
	for i := range r.Map.Len() {
		offset, n := r.Map.Region(i)
		region := make([]float32, n)
		canonical := make([]float32, g.NumParams(r.Map.Node(i)))
		if len(canonical) > 0 {
			if err := params.Read(r.Map.Node(i), canonical); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.Map.Pack(i, canonical, region); err != nil {
			t.Fatal(err)
		}
		if err := eng.WriteParams(ctx, offset, region); err != nil {
			t.Fatal(err)
		}
	}
	return &model{g, params, ref, r, eng}
}

func (m *model) batch(rows [][]float64) *dataset.Batch {
	return reference.Batch(reference.Schema(m.graph), rows)
}

// structured yields one small circuit of each structure over discrete variables.
func structured(t testing.TB, do func(name string, g *circuit.Graph)) {
	t.Helper()
	leaf := func(int) circuit.Leaf { return circuit.Categorical{Categories: 3} }
	tree, err := structures.GridTree(2, 3, 1)
	if err != nil {
		t.Fatal(err)
	}
	pd := structures.DefaultPD()
	pd.Shape, pd.SplitInterval, pd.Latents, pd.Leaf = [3]int{2, 3, 1}, 1, 5, leaf
	rat := structures.DefaultRATSPN()
	rat.Vars, rat.Depth, rat.Latents, rat.Leaf = 6, 2, 5, leaf
	for _, s := range []struct {
		name string
		make func() (*circuit.Graph, error)
	}{
		{"hclt", func() (*circuit.Graph, error) {
			return structures.HCLT(tree, structures.HCLTOptions{Latents: 5, Leaf: leaf})
		}},
		{"hmm tied", func() (*circuit.Graph, error) {
			return structures.HMM(structures.HMMOptions{Length: 6, Latents: 5, Tied: true, Leaf: leaf})
		}},
		{"pd", func() (*circuit.Graph, error) { return structures.PD(pd) }},
		{"rat-spn", func() (*circuit.Graph, error) { return structures.RATSPN(rat) }},
	} {
		g, err := s.make()
		if err != nil {
			t.Fatal(err)
		}
		do(s.name, g)
	}
}

// near is false for NaN.
func near(got, want, tol float64) bool { return got == want || math.Abs(got-want) <= tol }

var missing = math.NaN()
