package kerneltest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/engine"
	"github.com/pce-engine/pce/kernels/tensor"
)

// testSingles takes steps with circuits whose nodes are one unit each, as learned circuits are,
// on as many rows as fill vectors of 8, 16 and 32 lanes, and one row less and more.
func testSingles(t *testing.T, open Open, _ Depth) {
	counts := []int{1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 65, 130}
	if testing.Short() {
		counts = []int{1, 9, 33}
	}
	for _, tc := range []struct {
		name  string
		graph func(rng *rand.Rand) (*circuit.Graph, reference.Params)
	}{
		{"selections", selections},
		{"long products", longProducts},
	} {
		for _, n := range counts {
			t.Run(fmt.Sprintf("%s rows=%d", tc.name, n), func(t *testing.T) {
				rng := rand.New(rand.NewPCG(uint64(n), 41))
				g, p := tc.graph(rng)
				rows := reference.RandomRows(g, rng, n, 0.15)
				rule := tensor.Rule{Step: 0.7, Pseudocount: 0.05}
				want, after, err := oracle(g, p, rows, rule)
				must(t, err)
				dev := open(t)
				defer dev.Close()
				m := Build(t, dev, g, p, (&randomCase{size: 1}).options(), engine.Options{Rows: 130, Train: true})
				ll := make([]float64, n)
				must(t, m.Engine.Step(context.Background(), reference.Batch(reference.Schema(g), rows), 0, n, rule, ll))
				compareLL(t, rows, ll, want)
				compareParams(t, tc.name, g, m.Read(t), after)
			})
		}
	}
}

// selections is a mixture of two chains in which each variable depends on the one before: sums
// over indicators that read the same products, and rows that are impossible below one of them.
func selections(rng *rand.Rand) (*circuit.Graph, reference.Params) {
	const vars = 9
	g, p := &circuit.Graph{NumVars: vars}, reference.Params{}
	chain := func(codes int) circuit.NodeID {
		var below []circuit.NodeID // for each code of the variable above
		for v := range vars {
			var operands []circuit.NodeID
			for c := range codes {
				id := circuit.NodeID(len(g.Nodes))
				g.Nodes = append(g.Nodes, circuit.Node{Kind: circuit.Input, Units: 1, Var: v, Leaf: circuit.Indicator{Domain: 3, Value: c}})
				p = append(p, nil)
				if v > 0 {
					id = product(g, &p, id, below[c])
				}
				operands = append(operands, id)
			}
			below = nil
			states := codes
			if v == vars-1 {
				states = 1
			}
			for range states {
				weights := make([]float64, codes)
				rest := 1.0
				for c := range codes - 1 {
					weights[c] = rest * rng.Float64()
					rest -= weights[c]
				}
				weights[codes-1] = rest
				below = append(below, sum(g, &p, 1, weights, operands...))
			}
		}
		return below[0]
	}
	a, b := chain(3), chain(3)
	sum(g, &p, 1, []float64{0.75, 0.25}, a, b)
	return g, p
}

// longProducts is a mixture of products of 240 leaves, of few codes and of many. Most
// probabilities are just below a power of two: no float32 holds the product of their mantissas.
func longProducts(rng *rand.Rand) (*circuit.Graph, reference.Params) {
	const vars = 240
	g, p := &circuit.Graph{NumVars: vars}, reference.Params{}
	var products []circuit.NodeID
	for range 3 {
		var leaves []circuit.NodeID
		for v := range vars {
			codes := 2 + v%4
			q, rest := make([]float64, codes), 1.0
			for c := range q[1:] {
				q[c] = 0.25 - 0.001*rng.Float64()
				rest -= q[c]
			}
			q[codes-1] = rest
			if codes == 5 {
				q[0], q[4] = q[0]/2, q[4]+q[0]/2
			}
			leaves = append(leaves, circuit.NodeID(len(g.Nodes)))
			g.Nodes = append(g.Nodes, circuit.Node{Kind: circuit.Input, Units: 1, Var: v, Leaf: circuit.Categorical{Categories: codes}})
			p = append(p, q)
		}
		products = append(products, product(g, &p, leaves...))
	}
	sum(g, &p, 1, []float64{0.5, 0.25, 0.25}, products...)
	return g, p
}
