package kerneltest

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/circuit/structures"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/engine"
	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/tensor"
)

// leastFinite is the log-likelihood down to which every device answers with a
// finite number. Below it the answer is that of the reference or -Inf.
const leastFinite = -1e9

// Outliers checks rows whose cells lie far from everything that a model knows:
// their log-likelihoods, what they do to training, samples that fill them up, and queries.
func Outliers(t *testing.T, open Open) {
	for _, tc := range outlierCases(t) {
		t.Run(tc.name, func(t *testing.T) {
			rows := outlierRows(tc.graph.NumVars)
			t.Run("loglikelihood", func(t *testing.T) { testOutlierLogs(t, open, tc, rows) })
			t.Run("training", func(t *testing.T) { testOutlierTraining(t, open, tc, rows) })
			t.Run("samples", func(t *testing.T) {
				c := &randomCase{graph: tc.graph, params: tc.params}
				newReplay(t, open, c, gaps(rand.New(rand.NewPCG(5, 6)), rows, 0.3), 4, 0).check(t)
			})
			t.Run("queries", func(t *testing.T) {
				c := &randomCase{graph: tc.graph, params: tc.params}
				some := gaps(rand.New(rand.NewPCG(7, 8)), rows, 0.3)
				checkPosteriors(t, open, c, some)
				checkMaximise(t, open, c, some)
			})
		})
	}
}

// outlierCase is a circuit over continuous variables near 0.
type outlierCase struct {
	name   string
	graph  *circuit.Graph
	params reference.Params
}

// outlierCases are circuits in which exponents meet in every way: products of
// two, of three and of many factors, sums of one operand and of several, and
// products that are stored.
func outlierCases(t *testing.T) []outlierCase {
	t.Helper()
	tree, err := structures.GridTree(3, 3, 1)
	if err != nil {
		t.Fatal(err)
	}
	hclt, err := structures.HCLT(tree, structures.HCLTOptions{Latents: 5, Leaf: func(int) circuit.Leaf { return circuit.Gaussian{} }})
	if err != nil {
		t.Fatal(err)
	}
	list := []outlierCase{{"tree", hclt, initial(t, hclt)}}
	add := func(name string, vars int, build func(g *circuit.Graph, p *reference.Params)) {
		g, p := &circuit.Graph{NumVars: vars}, reference.Params{}
		build(g, &p)
		list = append(list, outlierCase{name, g, p})
	}
	normals := func(g *circuit.Graph, p *reference.Params, sigma float64) (ids []circuit.NodeID) {
		for v := range g.NumVars {
			ids = append(ids, normal(g, p, v, 0, sigma, 0.5, 1.25*sigma, -0.25, 0.75*sigma))
		}
		return ids
	}
	add("star", 24, func(g *circuit.Graph, p *reference.Params) {
		sum(g, p, 1, []float64{0.25, 0.25, 0.5}, product(g, p, normals(g, p, 1)...))
	})
	// One operand may be lost, or both, or float32 cannot tell how far one is above
	// the other; the narrow ones have positive log densities.
	add("mixture", 6, func(g *circuit.Graph, p *reference.Params) {
		sum(g, p, 1, []float64{0.2, 0.1, 0.1, 0.1, 0.1, 0.2, 0.1, 0.05, 0.05},
			product(g, p, normals(g, p, 1)...), product(g, p, normals(g, p, 1e-30)...), product(g, p, normals(g, p, 1000)...))
	})
	add("stored", 8, func(g *circuit.Graph, p *reference.Params) {
		ids := normals(g, p, 1)
		shared := product(g, p, ids[:5]...)
		var tops []circuit.NodeID
		for i := range 2 {
			w := []float64{0.5, 0.25, 0.25, 0.125, 0.75, 0.125, 0.3, 0.3, 0.4}
			s := sum(g, p, 3, w, product(g, p, shared, normal(g, p, 5, float64(i), 1, 0, 1, 1, 1)))
			tops = append(tops, product(g, p, s, ids[6], normal(g, p, 7, 0, 1, float64(-i), 2, 0, 3)))
		}
		sum(g, p, 1, []float64{0.1, 0.2, 0.2, 0.3, 0.1, 0.1}, tops...)
	})
	return list
}

// normal adds Gaussian leaves with the given means and standard deviations, in turn.
func normal(g *circuit.Graph, p *reference.Params, v int, params ...float64) circuit.NodeID {
	g.Nodes = append(g.Nodes, circuit.Node{Kind: circuit.Input, Units: len(params) / 2, Var: v, Leaf: circuit.Gaussian{}})
	*p = append(*p, params)
	return circuit.NodeID(len(g.Nodes) - 1)
}

// outlierRows are rows with one cell, two and all cells from 10^3 to 10^30 sigma
// away. Sums of two to nine cells at 21,000 sigma pass -2^31 powers of two.
func outlierRows(vars int) (rows [][]float64) {
	rng := rand.New(rand.NewPCG(3, 4))
	row := func() []float64 {
		row := make([]float64, vars)
		for v := range row {
			row[v] = float64(float32(rng.NormFloat64()))
		}
		rows = append(rows, row)
		return row
	}
	row()
	for i, far := range []float64{1e3, 1e4, 3e4, 4e4, 4.3e4, 4.6e4, 5.4e4, 5.5e4, 6e4, 1e5, -999999, 1e7, 1e9, 1e15, 1e19, 1e30, math.MaxFloat32} {
		row()[i%vars] = float64(float32(far))
		two := row()
		two[i%vars], two[(i+2)%vars] = float64(float32(-far)), float64(float32(far/2))
		for v := range row() {
			rows[len(rows)-1][v] = float64(float32(far))
		}
	}
	for n := 1; n <= vars; n++ {
		some := row()
		for v := range n {
			some[v] = 2.1e4
		}
	}
	return rows
}

// testOutlierLogs compares log-likelihoods with the reference.
func testOutlierLogs(t *testing.T, open Open, tc outlierCase, rows [][]float64) {
	ev, err := reference.New(tc.graph, tc.params)
	if err != nil {
		t.Fatal(err)
	}
	dev := open(t)
	defer dev.Close()
	m := Build(t, dev, tc.graph, tc.params, compile.DefaultOptions(), engine.Options{Rows: 64})
	got := make([]float64, len(rows))
	if err := m.Engine.LogLikelihood(context.Background(), reference.Batch(reference.Schema(tc.graph), rows), got); err != nil {
		t.Fatal(err)
	}
	far := 0
	for r, row := range rows {
		want, err := ev.LogLikelihood(row)
		if err != nil {
			t.Fatal(err)
		}
		lost := want < leastFinite && math.IsInf(got[r], -1)
		if !lost && !near(got[r], want, 1e-5*max(1, math.Abs(want))) {
			t.Errorf("row %d: log-likelihood %v, want %v (%v)", r, got[r], want, row)
		}
		if want < leastFinite {
			far++
		}
	}
	if far == 0 || far == len(rows) {
		t.Errorf("%d of %d rows are below %g; want some, not all", far, len(rows), leastFinite)
	}
}

// testOutlierTraining takes a step on rows of which some have no likelihood that a
// device could hold. These change no parameter.
func testOutlierTraining(t *testing.T, open Open, tc outlierCase, rows [][]float64) {
	ctx := context.Background()
	rule := tensor.Rule{Step: 0.5, Pseudocount: 0.1}
	ranges := make([]engine.Range, tc.graph.NumVars)
	ll := make([]float64, len(rows))
	load := func() (*Model, kernels.Device) {
		dev := open(t)
		return Build(t, dev, tc.graph, tc.params, compile.DefaultOptions(), engine.Options{Rows: 128, Train: true, Ranges: ranges}), dev
	}
	m, dev := load()
	defer dev.Close()
	if err := m.Engine.LogLikelihood(ctx, reference.Batch(reference.Schema(tc.graph), rows), ll); err != nil {
		t.Fatal(err)
	}
	var kept [][]float64
	for r, l := range ll {
		if math.IsInf(l, -1) {
			continue
		}
		kept = append(kept, rows[r])
		for v, x := range rows[r] {
			ranges[v] = engine.Range{Min: min(ranges[v].Min, x), Max: max(ranges[v].Max, x)}
		}
	}
	if len(kept) == 0 || len(kept) == len(rows) {
		t.Fatalf("%d of %d rows have a likelihood; want some, not all", len(kept), len(rows))
	}
	step := func(rows [][]float64) [][]float32 {
		m, dev := load()
		defer dev.Close()
		if err := m.Engine.Step(ctx, reference.Batch(reference.Schema(tc.graph), rows), 0, len(rows), rule, ll[:len(rows)]); err != nil {
			t.Fatal(err)
		}
		return m.Read(t)
	}
	all := step(rows)
	want := make(reference.Params, len(all))
	for id, params := range step(kept) {
		for _, x := range params {
			want[id] = append(want[id], float64(x))
		}
	}
	for id, params := range all {
		for i, x := range params {
			if !(math.Abs(float64(x)) <= math.MaxFloat32) {
				t.Errorf("node %d parameter %d is %v after a step", id, i, x)
			}
		}
	}
	compareParams(t, "with rows without a likelihood", tc.graph, all, want)
}
