package kerneltest

import (
	"context"
	"math"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/engine"
	"github.com/pce-engine/pce/kernels/tensor"
)

// extremeCases are circuits whose values float32 cannot hold side by side.
var extremeCases = []struct {
	name string
	make func() (*circuit.Graph, reference.Params)
	log  bool // must be recomputed in log space
}{
	{"opposed", func() (*circuit.Graph, reference.Params) { return opposed(4) }, true},
	{"far apart", func() (*circuit.Graph, reference.Params) { return opposed(24) }, true},
	{"star", star, false},
	{"banded", banded, true},
	{"zeros", zeros, true},
}

// testExtremes checks log-likelihoods and training of extreme circuits.
func testExtremes(t *testing.T, open Open, _ Depth) {
	for _, tc := range extremeCases {
		t.Run(tc.name, func(t *testing.T) {
			g, p := tc.make()
			dev := open(t)
			defer dev.Close()
			ctx := context.Background()
			rows := allRows(g)
			rule := tensor.Rule{Step: 1, Pseudocount: 0.01}
			want, after, err := oracle(g, p, rows, rule)
			if err != nil {
				t.Fatal(err)
			}
			m := Build(t, dev, g, p, compile.DefaultOptions(), engine.Options{Rows: 64, Train: true})
			ll := make([]float64, len(rows))
			batch := reference.Batch(reference.Schema(g), rows)
			if err := m.Engine.LogLikelihood(ctx, batch, ll); err != nil {
				t.Fatal(err)
			}
			compareLL(t, rows, ll, want)
			if got := m.Engine.Recomputed() > 0; got != tc.log {
				t.Errorf("%d values recomputed in log space; want some: %v", m.Engine.Recomputed(), tc.log)
			}
			if err := m.Engine.Step(ctx, batch, 0, len(rows), rule, ll); err != nil {
				t.Fatal(err)
			}
			compareParams(t, tc.name, g, m.Read(t), after)
		})
	}
	t.Run("training far down", func(t *testing.T) { testFarDown(t, open) })
}

// testFarDown takes small steps from values near e^-5000, each compared with the
// oracle from the same parameters.
func testFarDown(t *testing.T, open Open) {
	g, p := star()
	dev := open(t)
	defer dev.Close()
	ctx := context.Background()
	rows := allRows(g)
	batch := reference.Batch(reference.Schema(g), rows)
	rule := tensor.Rule{Step: 0.001, Pseudocount: 0.01}
	m := Build(t, dev, g, p, compile.DefaultOptions(), engine.Options{Rows: 8, Train: true})
	ll := make([]float64, len(rows))
	for step := range 5 {
		want, after, err := oracle(g, p, rows, rule)
		if err != nil {
			t.Fatal(err)
		}
		if !(want[3] < -4000) && step == 0 {
			t.Fatalf("the row of ones has log-likelihood %v; want one far down", want[3])
		}
		if err := m.Engine.Step(ctx, batch, 0, len(rows), rule, ll); err != nil {
			t.Fatal(err)
		}
		compareLL(t, rows, ll, want)
		got := m.Read(t)
		compareParams(t, "star", g, got, after)
		if p, err = reference.FromFloat32(g, got); err != nil {
			t.Fatal(err)
		}
	}
}

// allRows lists a few rows of a small discrete circuit: constant ones and
// alternating ones.
func allRows(g *circuit.Graph) [][]float64 {
	var rows [][]float64
	for k := range 4 {
		row := make([]float64, g.NumVars)
		for v := range row {
			row[v] = float64(k >> (v % 2) & 1)
		}
		rows = append(rows, row)
	}
	missing := make([]float64, g.NumVars)
	for v := range missing {
		missing[v] = math.NaN()
	}
	return append(rows, missing)
}

func leaves(g *circuit.Graph, p *reference.Params, v int, ones ...float64) circuit.NodeID {
	id := circuit.NodeID(len(g.Nodes))
	g.Nodes = append(g.Nodes, circuit.Node{Kind: circuit.Input, Units: len(ones), Var: v, Leaf: circuit.Categorical{Categories: 2}})
	var q []float64
	for _, x := range ones {
		q = append(q, 1-x, x)
	}
	*p = append(*p, q)
	return id
}

func product(g *circuit.Graph, p *reference.Params, cs ...circuit.NodeID) circuit.NodeID {
	id := circuit.NodeID(len(g.Nodes))
	g.Nodes = append(g.Nodes, circuit.Node{Kind: circuit.Product, Units: g.Nodes[cs[0]].Units, Children: cs})
	*p = append(*p, nil)
	return id
}

func sum(g *circuit.Graph, p *reference.Params, units int, w []float64, cs ...circuit.NodeID) circuit.NodeID {
	id := circuit.NodeID(len(g.Nodes))
	g.Nodes = append(g.Nodes, circuit.Node{Kind: circuit.Sum, Units: units, Children: cs})
	*p = append(*p, w)
	g.Root = id
	return id
}

// opposed multiplies (1, tiny) by (tiny, 1), each of half leaves: both products are far
// below what either factor's scale lets through. Stacked, no pair of float32 holds
// them; of 24 leaves, no float64. Each factor is a mixture of two, which the last two
// variables tell apart.
func opposed(half int) (*circuit.Graph, reference.Params) {
	g, p := &circuit.Graph{NumVars: 2*half + 2}, reference.Params{}
	const tiny = 1e-28
	part := func(first, last int, mark float64, ones ...float64) circuit.NodeID {
		list := []circuit.NodeID{leaves(g, &p, last, mark, mark)}
		for v := range half {
			list = append(list, leaves(g, &p, first+v, ones...))
		}
		return product(g, &p, list...)
	}
	mix := []float64{0.4, 0, 0.6, 0, 0, 0.4, 0, 0.6}
	sa := sum(g, &p, 2, mix, part(0, 2*half, 0.1, 1-0x1p-20, tiny), part(0, 2*half, 0.9, 1-0x1p-20, tiny))
	sb := sum(g, &p, 2, mix, part(half, 2*half+1, 0.2, tiny, 1-0x1p-20), part(half, 2*half+1, 0.7, tiny, 1-0x1p-20))
	sum(g, &p, 1, []float64{0.25, 0.75}, product(g, &p, sa, sb))
	return g, p
}

// star multiplies 783 factors, to a value near e^-5000.
func star() (*circuit.Graph, reference.Params) {
	g, p := &circuit.Graph{NumVars: 783}, reference.Params{}
	var cs []circuit.NodeID
	for v := range g.NumVars {
		cs = append(cs, leaves(g, &p, v, 0.001+1e-5*float64(v%7), 0.0015, 0.0017))
	}
	sum(g, &p, 1, []float64{0.2, 0.3, 0.5}, product(g, &p, cs...))
	return g, p
}

// banded is a chain whose weights are zero off two diagonals and whose leaves
// are nearly deterministic.
func banded() (*circuit.Graph, reference.Params) {
	g, p := &circuit.Graph{NumVars: 6}, reference.Params{}
	const k = 5
	var below circuit.NodeID = circuit.None
	for v := range g.NumVars {
		ones := make([]float64, k)
		for u := range ones {
			ones[u] = []float64{1e-36, 1 - 0x1p-20}[u%2]
		}
		x := leaves(g, &p, v, ones...)
		op := x
		if below != circuit.None {
			op = product(g, &p, x, below)
		}
		units := k
		if v == g.NumVars-1 {
			units = 1
		}
		w := make([]float64, units*k)
		for i := range units {
			w[i*k+i], w[i*k+(i+1)%k] = 0.9, 0.1
		}
		below = sum(g, &p, units, w, op)
		e := &circuit.Edges{Rows: units, Cols: k, Pairs: [][2]int32{{0, 0}}, Mask: make([]uint64, 1)}
		for i, x := range w {
			if x > 0 {
				e.Mask[0] |= 1 << i
			}
		}
		g.Nodes[below].Edges = e
	}
	return g, p
}

// zeros is banded without the masks: its zeros are only seen in the weights.
func zeros() (*circuit.Graph, reference.Params) {
	g, p := banded()
	for i := range g.Nodes {
		g.Nodes[i].Edges = nil
	}
	return g, p
}
