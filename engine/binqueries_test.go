package engine_test

import (
	"math"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/engine"
)

// TestBinQueries compares moments and covariances of two columns with bins, and the draws of one of them, with those of a
// mixture of two products of histograms.
func TestBinQueries(t *testing.T) {
	g := &circuit.Graph{NumVars: 2, Nodes: []circuit.Node{
		{Kind: circuit.Input, Units: 2, Var: 0, Leaf: circuit.Categorical{Categories: 3}},
		{Kind: circuit.Input, Units: 2, Var: 1, Leaf: circuit.Categorical{Categories: 2}},
		{Kind: circuit.Product, Units: 2, Children: []circuit.NodeID{0, 1}},
		{Kind: circuit.Sum, Units: 1, Children: []circuit.NodeID{2}},
	}, Root: 3}
	params := reference.Params{{0.5, 0.25, 0.25, 0, 0.25, 0.75}, {0.75, 0.25, 0.125, 0.875}, nil, {0.25, 0.75}}
	edges := [2][]float64{{10, 20, 24, 40}, {-1, 0, 8}}
	schema := &dataset.Schema{Columns: []dataset.Column{
		{Kind: dataset.Continuous, Offset: 12, Scale: 4, Edges: edges[0]}, {Kind: dataset.Continuous, Edges: edges[1]},
	}}
	m := buildWith(t, g, params, engine.Options{Rows: 4, Queries: true, Schema: schema})
	var mean, square [2]float64
	cross := 0.0
	for k, w := range params[3] {
		var of [2]float64
		for v := range of {
			bins := len(edges[v]) - 1
			for c, p := range params[v][k*bins:][:bins] {
				lo, hi := edges[v][c], edges[v][c+1]
				of[v] += p * (lo + hi) / 2
				square[v] += w * p * (lo*lo + lo*hi + hi*hi) / 3
			}
			mean[v] += w * of[v]
		}
		cross += w * of[0] * of[1]
	}
	const rows = 2000
	empty := func(rows int) *dataset.Batch {
		b := dataset.NewBatch(schema, rows)
		for v := range b.Columns {
			for r := range rows {
				b.Columns[v].Values[r] = float32(math.NaN())
			}
		}
		return b
	}
	moments, cov := make([]float64, 4), make([]float64, 4)
	if err := m.eng.Moments(t.Context(), empty(1), moments); err != nil {
		t.Fatal(err)
	}
	if err := m.eng.Covariance(t.Context(), empty(1), []int{0, 1}, cov); err != nil {
		t.Fatal(err)
	}
	between := cross - mean[0]*mean[1]
	for v := range mean {
		if variance := square[v] - mean[v]*mean[v]; !near(moments[v], mean[v], 1e-4) || !near(moments[2+v], variance, 1e-3) || !near(cov[3*v], variance, 1e-3) {
			t.Errorf("column %d has moments %v and covariances %v, want the mean %v and the variance %v", v, moments, cov, mean[v], variance)
		}
	}
	if !near(cov[1], between, 1e-3) || cov[1] != cov[2] {
		t.Errorf("covariances %v, want %v between the columns", cov, between)
	}
	b := empty(rows)
	if err := m.eng.Sample(t.Context(), b, 3, 0); err != nil {
		t.Fatal(err)
	}
	// The share of draws that lie in each quarter of a bin is a quarter of the bin's.
	for v := range edges {
		for c := range len(edges[v]) - 1 {
			lo, width := edges[v][c], (edges[v][c+1]-edges[v][c])/4
			mass := 0.0
			for k, w := range params[3] {
				mass += w * params[v][k*(len(edges[v])-1)+c]
			}
			for q := range 4 {
				n := 0
				for _, x := range b.Columns[v].Values {
					if d := (schema.Columns[v].Number(x) - lo) / width; d >= float64(q) && d < float64(q+1) {
						n++
					}
				}
				if p := mass / 4; !(math.Abs(float64(n)-rows*p) <= 5*math.Sqrt(rows*p)) {
					t.Errorf("column %d: %d draws lie in quarter %d of bin %d, want about %v", v, n, q, c, rows*p)
				}
			}
		}
	}
}

// TestNarrowBinCompletions completes rows of columns whose bins are so narrow that float64 has no room for densities: they are those of
// wide bins, and log-likelihoods and their bounds are larger by the logarithm of what the widths are divided by.
func TestNarrowBinCompletions(t *testing.T) {
	const scale, logScale = 1e-310, -713.8013788281542
	g := &circuit.Graph{NumVars: 2, Nodes: []circuit.Node{
		{Kind: circuit.Input, Units: 2, Var: 0, Leaf: circuit.Categorical{Categories: 3}},
		{Kind: circuit.Input, Units: 2, Var: 1, Leaf: circuit.Categorical{Categories: 2}},
		{Kind: circuit.Product, Units: 2, Children: []circuit.NodeID{0, 1}},
		{Kind: circuit.Sum, Units: 1, Children: []circuit.NodeID{2}},
	}, Root: 3}
	missing := float32(math.NaN())
	var lls, bounds [2][]float64
	var cells [2][]float32
	for i, unit := range []float64{1, scale} {
		schema := &dataset.Schema{Columns: []dataset.Column{
			{Kind: dataset.Continuous, Offset: 12 * unit, Scale: 4 * unit, Edges: []float64{10 * unit, 20 * unit, 24 * unit, 40 * unit}},
			{Kind: dataset.Continuous, Scale: unit, Edges: []float64{-unit, 0, 8 * unit}},
		}}
		m := buildSoft(t, g, 8, engine.Options{Rows: 16, Queries: true, Schema: schema})
		within, err := schema.Columns[0].RangeEvidence(11*unit, 30*unit)
		if err != nil {
			t.Fatal(err)
		}
		b := dataset.NewBatch(schema, 3)
		copy(b.Columns[0].Values, []float32{missing, missing, missing})
		copy(b.Columns[1].Values, []float32{missing, missing, 1})
		b.Columns[0].Soft = dataset.SoftCells{Of: []uint32{0, 1, 0}, List: []*dataset.Evidence{within}}
		lls[i], bounds[i] = make([]float64, 3), make([]float64, 3)
		if err := m.eng.MPE(t.Context(), b, engine.MPEOptions{Candidates: 4, Beam: 4, Sweeps: 10, Search: 100}, lls[i], bounds[i]); err != nil {
			t.Fatal(err)
		}
		cells[i] = append(append(cells[i], b.Columns[0].Values...), b.Columns[1].Values...)
	}
	for r := range lls[0] {
		if !near(lls[1][r]-lls[0][r], -2*logScale, 1e-4) || !near(bounds[1][r]-bounds[0][r], -2*logScale, 1e-4) {
			t.Errorf("row %d has %v and the bound %v, of wide bins %v and %v", r, lls[1][r], bounds[1][r], lls[0][r], bounds[0][r])
		}
	}
	for i, x := range cells[0] {
		if !near(float64(cells[1][i]), float64(x), 1e-6) {
			t.Errorf("cells are %v, of wide bins %v", cells[1], cells[0])
			break
		}
	}
}
