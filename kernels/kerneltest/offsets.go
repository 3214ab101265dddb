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

// testOffsets trains Gaussian, Poisson and log-normal leaves far from 0, where the
// variance is a small difference of large statistics. A column near 0 owns leaves that
// one far from 0 shares.
func testOffsets(t *testing.T, open Open, _ Depth) {
	const offset = 1e4
	g, p := &circuit.Graph{NumVars: 5}, reference.Params{}
	input := func(v int, l circuit.Leaf, params ...float64) circuit.NodeID {
		g.Nodes = append(g.Nodes, circuit.Node{Kind: circuit.Input, Units: 3, Var: v, Leaf: l})
		p = append(p, params)
		return circuit.NodeID(len(g.Nodes) - 1)
	}
	a := input(0, circuit.Gaussian{}, offset-3, 1, offset, 2, offset+4, 1.5)
	b := input(1, circuit.Poisson{}, offset-100, offset, offset+150)
	logs := input(2, circuit.LogNormal{}, -70, 0.5, -68, 1, -66, 2) // of numbers near 2e-30
	owner := input(3, circuit.Gaussian{}, 0, offset, offset, offset, -offset, 2*offset)
	shared := input(4, circuit.Gaussian{})
	g.Nodes[shared].Tie = circuit.TieTo(owner)
	sum(g, &p, 1, []float64{0.25, 0.25, 0.5}, product(g, &p, a, b, logs, owner, shared))
	rng := rand.New(rand.NewPCG(16, 17))
	rows := make([][]float64, 200)
	ranges := make([]engine.Range, g.NumVars)
	for v := range ranges {
		ranges[v] = engine.Range{Min: math.Inf(1), Max: math.Inf(-1)}
	}
	for r := range rows {
		rows[r] = []float64{float64(float32(offset + 4*rng.NormFloat64())), offset + float64(rng.IntN(400)-200), float64(float32(math.Exp(-68 + 1.5*rng.NormFloat64())))}
		rows[r] = append(rows[r], float64(r%5)/100, offset*float64(r%7-3))
		if r%11 == 0 {
			rows[r][r%3] = math.NaN()
		}
		for v, x := range rows[r] {
			if x == x {
				ranges[v] = engine.Range{Min: min(ranges[v].Min, x), Max: max(ranges[v].Max, x)}
			}
		}
	}
	ctx := context.Background()
	batch := reference.Batch(reference.Schema(g), rows)
	for _, rule := range []tensor.Rule{{Step: 1}, {Step: 0.1, Pseudocount: 0.1}} {
		ll, want, err := oracle(g, p, rows, rule)
		if err != nil {
			t.Fatal(err)
		}
		for _, fused := range []bool{true, false} {
			dev := open(t)
			defer dev.Close()
			m := Build(t, dev, g, p, compile.DefaultOptions(), engine.Options{Rows: 200, Train: true, Ranges: ranges})
			got := make([]float64, len(rows))
			if fused {
				err = m.Engine.Step(ctx, batch, 0, len(rows), rule, got)
			} else if err = m.Engine.Accumulate(ctx, batch, 0, 90, got[:90]); err == nil {
				if err = m.Engine.Accumulate(ctx, batch, 90, 200, got[90:]); err == nil {
					err = m.Engine.Apply(ctx, rule)
				}
			}
			if err != nil {
				t.Fatal(err)
			}
			compareLL(t, rows, got, ll)
			params := m.Read(t)
			// Statistics are added up in float64 and rounded to 2^-40 of their range,
			// here 2^27 for the squares: 2^-14 a shard, far below 1e-4 of the variance
			// of tens of rows. Sums of squares in float32 would be off by several units.
			for u := range 3 {
				mean, sigma := float64(params[a][2*u]), float64(params[a][2*u+1])
				if !near(mean, want[a][2*u], 2e-3) || !near(sigma, want[a][2*u+1], 1e-4*want[a][2*u+1]) {
					t.Errorf("step %v: Gaussian %d is (%v, %v), want (%v, %v)", rule.Step, u, mean, sigma, want[a][2*u], want[a][2*u+1])
				}
				mean, sigma = float64(params[logs][2*u]), float64(params[logs][2*u+1])
				if !near(mean, want[logs][2*u], 1e-4) || !near(sigma, want[logs][2*u+1], 1e-4*want[logs][2*u+1]) {
					t.Errorf("step %v: log-normal %d is (%v, %v), want (%v, %v)", rule.Step, u, mean, sigma, want[logs][2*u], want[logs][2*u+1])
				}
				mean, sigma = float64(params[owner][2*u]), float64(params[owner][2*u+1])
				if !near(mean, want[owner][2*u], 1e-4*offset) || !near(sigma, want[owner][2*u+1], 1e-4*offset) {
					t.Errorf("step %v: shared Gaussian %d is (%v, %v), want (%v, %v)", rule.Step, u, mean, sigma, want[owner][2*u], want[owner][2*u+1])
				}
				if rate := float64(params[b][u]); !near(rate, want[b][u], 2e-3) {
					t.Errorf("step %v: Poisson %d has rate %v, want %v", rule.Step, u, rate, want[b][u])
				}
			}
		}
	}
}
