package engine_test

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/engine"
	"github.com/pce-engine/pce/kernels/tensor"
)

// TestImpossibleValues trains on rows of which some have a value outside of all bins, where the
// density is 0. They have that log-likelihood, and move no parameter: not those of their other
// columns either.
func TestImpossibleValues(t *testing.T) {
	g := &circuit.Graph{NumVars: 3, Nodes: []circuit.Node{
		{Kind: circuit.Input, Units: 2, Var: 0, Leaf: circuit.Categorical{Categories: 3}},
		{Kind: circuit.Input, Units: 2, Var: 1, Leaf: circuit.Gaussian{}},
		{Kind: circuit.Input, Units: 2, Var: 2, Leaf: circuit.Categorical{Categories: 3}},
		{Kind: circuit.Product, Units: 2, Children: []circuit.NodeID{0, 1, 2}},
		{Kind: circuit.Sum, Units: 1, Children: []circuit.NodeID{3}},
	}, Root: 4}
	params, err := reference.Init(g, 7, nil)
	if err != nil {
		t.Fatal(err)
	}
	schema := &dataset.Schema{Columns: []dataset.Column{
		{Kind: dataset.Continuous, Edges: []float64{0, 1, 3, 4}}, {Kind: dataset.Continuous}, {Categories: 3},
	}}
	batch := func(rows [][3]float32) *dataset.Batch {
		b := &dataset.Batch{Rows: len(rows), Columns: make([]dataset.Cells, 3)}
		for _, row := range rows {
			for v, x := range row {
				b.Columns[v].Values = append(b.Columns[v].Values, x)
			}
		}
		return b
	}
	possible := func(row [3]float32) bool { return !(row[0] < 0 || row[0] > 4) }
	none := float32(math.NaN())
	mixed := [][3]float32{{-1, 0, 0}, {0.5, 1, 2}, {5, -2, 1}, {9, 3, 1}, {4, 0.5, 0}, {none, -1, 1}, {4.5, none, 0}}
	some := slices.DeleteFunc(slices.Clone(mixed), func(row [3]float32) bool { return !possible(row) })
	lost := slices.DeleteFunc(slices.Clone(mixed), possible)
	rule := tensor.Rule{Step: 0.5, Pseudocount: 0.1}
	ctx := context.Background()
	train := func(fused bool, rows [][3]float32) (after []float32, ll []float64) {
		m := buildWith(t, g, params, engine.Options{Rows: 8, Train: true, Schema: schema})
		b, ll := batch(rows), make([]float64, len(rows))
		if fused {
			err = m.eng.Step(ctx, b, 0, len(rows), rule, ll)
		} else if len(rows) > 0 {
			err = m.eng.Accumulate(ctx, b, 0, len(rows), ll)
		}
		if err == nil && !fused {
			err = m.eng.Apply(ctx, rule)
		}
		after = make([]float32, m.eng.Program().NumParams)
		if err == nil {
			err = m.eng.ReadParams(ctx, 0, after)
		}
		if err != nil {
			t.Fatal(err)
		}
		return after, ll
	}
	nothing, _ := train(false, nil)
	for _, fused := range []bool{true, false} {
		want, of := train(fused, some)
		got, ll := train(fused, mixed)
		if !slices.Equal(got, want) {
			t.Errorf("fused %v: parameters %v, without impossible rows %v", fused, got, want)
		}
		for i, row := range mixed {
			l := math.Inf(-1)
			if possible(row) {
				l, of = of[0], of[1:]
			}
			if ll[i] != l {
				t.Errorf("fused %v: row %d has log-likelihood %v, want %v", fused, i, ll[i], l)
			}
		}
		if got, ll = train(fused, lost); !slices.Equal(got, nothing) || slices.Max(ll) != math.Inf(-1) {
			t.Errorf("fused %v: parameters %v after impossible rows alone, of log-likelihoods %v; after none %v", fused, got, ll, nothing)
		}
	}
}

// TestSampleImpossibleValues draws nothing for rows with a value where all leaves have nothing.
func TestSampleImpossibleValues(t *testing.T) {
	g := &circuit.Graph{NumVars: 4, Nodes: []circuit.Node{
		{Kind: circuit.Input, Units: 2, Var: 0, Leaf: circuit.Categorical{Categories: 3}},
		{Kind: circuit.Input, Units: 2, Var: 1, Leaf: circuit.Gaussian{}},
		{Kind: circuit.Input, Units: 2, Var: 2, Leaf: circuit.Categorical{Categories: 3}},
		{Kind: circuit.Input, Units: 2, Var: 3, Leaf: circuit.Categorical{Categories: 1}},
		{Kind: circuit.Product, Units: 2, Children: []circuit.NodeID{0, 1, 2, 3}},
		{Kind: circuit.Sum, Units: 1, Children: []circuit.NodeID{4}},
	}, Root: 5}
	schema := &dataset.Schema{Columns: []dataset.Column{
		{Kind: dataset.Continuous, Edges: []float64{0, 1, 3, 4}}, {Kind: dataset.Continuous}, {Categories: 3}, {Categories: 1},
	}}
	m := build(t, g, engine.Options{Rows: 4, Schema: schema})
	b := reference.Batch(schema, [][]float64{{-1, missing, missing, missing}, {0.5, missing, missing, missing}, {9, 1, missing, missing}, {missing, missing, missing, missing}, {4.5, missing, 1, missing}})
	given := reference.Batch(schema, [][]float64{{-1, missing, missing, missing}, {0.5, 0, 0, 0}, {9, 1, missing, missing}, {0, 0, 0, 0}, {4.5, missing, 1, missing}})
	if err := m.eng.Sample(t.Context(), b, 5, 0); err != nil {
		t.Fatal(err)
	}
	for v := range b.Columns {
		for r := range b.Rows {
			if got, want := b.Columns[v].IsMissing(r), given.Columns[v].IsMissing(r); got != want {
				t.Errorf("row %d, column %d is missing: %t, want %t", r, v, got, want)
			}
		}
	}
}
