package kerneltest

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/engine"
	"github.com/pce-engine/pce/kernels/tensor"
)

// testFarLeaves evaluates, trains and samples leaves whose probabilities lie far
// below float32's range, and below those of other units: what one factor makes tiny
// another brings back.
func testFarLeaves(t *testing.T, open Open, depth Depth) {
	latents, rows := 5, 24
	if depth == Full {
		latents, rows = 33, 70
	}
	rng := rand.New(rand.NewPCG(61, 62))
	for _, family := range []circuit.Leaf{
		circuit.Binomial{Trials: 255}, circuit.Binomial{Trials: 5000}, circuit.DiscretisedLogistic{Domain: 256, MinScale: 0.01},
	} {
		for _, s := range structuredOver(t, latents, family) {
			t.Run(family.Name()+" "+s.name, func(t *testing.T) {
				data := append(correlatedRows(rng, 16, family.Codes(), rows), reference.RandomRows(s.graph, rng, rows/2, 0.2)...)
				checkFar(t, open, s.graph, initial(t, s.graph), data, 1e-5)
			})
		}
	}
	t.Run("functions", func(t *testing.T) {
		g, p := opposedNormals()
		var data [][]float64
		for i := range 40 {
			row := make([]float64, g.NumVars)
			for v := range row {
				row[v] = float64(float32(rng.NormFloat64()))
			}
			row[i%g.NumVars] = float64(float32(14 + rng.Float64()))
			if i%5 == 4 {
				row[(i+2)%g.NumVars] = math.NaN()
			}
			data = append(data, row)
		}
		checkFar(t, open, g, p, data, 1e-5)
	})
	t.Run("certain", func(t *testing.T) {
		g, p := &circuit.Graph{NumVars: 2}, reference.Params{}
		var xs []circuit.NodeID
		for v := range 2 {
			g.Nodes = append(g.Nodes, circuit.Node{Kind: circuit.Input, Units: 4, Var: v, Leaf: circuit.Binomial{Trials: 100}})
			p = append(p, []float64{0, 1, 1e-30, 0.5})
			xs = append(xs, circuit.NodeID(v))
		}
		sum(g, &p, 1, []float64{0.2, 0.3, 0.4, 0.1}, product(g, &p, xs...))
		checkFar(t, open, g, p, [][]float64{{0, 0}, {100, 100}, {0, 100}, {100, 1}, {50, 99}, {1, 1}, {math.NaN(), 3}}, 1e-5)
	})
}

// opposedNormals is a mixture over eight variables in which a first component is far
// off in one variable and near in the others, and the rest are a little off in all.
func opposedNormals() (*circuit.Graph, reference.Params) {
	g, p := &circuit.Graph{NumVars: 8}, reference.Params{}
	var xs []circuit.NodeID
	for v := range g.NumVars {
		xs = append(xs, normal(g, &p, v, 0, 1, 10, 1, -9, 1.5))
	}
	sum(g, &p, 1, []float64{0.5, 0.25, 0.25}, product(g, &p, xs...))
	return g, p
}

// checkFar compares log-likelihoods and a step with the reference, to a relative
// tolerance of log-likelihoods, and draws samples again.
func checkFar(t *testing.T, open Open, g *circuit.Graph, p reference.Params, rows [][]float64, tol float64) {
	t.Helper()
	ctx := context.Background()
	rule := tensor.Rule{Step: 0.7, Pseudocount: 0.1}
	dev := open(t)
	defer dev.Close()
	want, after, err := oracle(g, p, rows, rule)
	if err != nil {
		t.Fatal(err)
	}
	ranges := make([]engine.Range, g.NumVars)
	for v := range ranges {
		ranges[v] = engine.Range{Min: -16, Max: 16}
	}
	m := Build(t, dev, g, p, compile.DefaultOptions(), engine.Options{Rows: 128, Train: true, Ranges: ranges})
	ll := make([]float64, len(rows))
	if err := m.Engine.Step(ctx, reference.Batch(reference.Schema(g), rows), 0, len(rows), rule, ll); err != nil {
		t.Fatal(err)
	}
	for r := range rows {
		if !near(ll[r], want[r], tol*max(1, math.Abs(want[r]))) {
			t.Errorf("row %d: log-likelihood %v, want %v (%v)", r, ll[r], want[r], rows[r])
		}
	}
	compareParams(t, "step", g, m.Read(t), after)
	newReplay(t, open, &randomCase{graph: g, params: p}, gaps(rand.New(rand.NewPCG(7, 8)), rows, 0.4), 5, 0).check(t)
}
