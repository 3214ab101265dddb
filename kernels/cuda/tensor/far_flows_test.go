package tensor_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/engine"
	"github.com/pce-engine/pce/kernels/kerneltest"
	"github.com/pce-engine/pce/kernels/tensor"
)

// TestFarFlows takes a step on rows of which some have two or three cells far from all units, and wants the weights that float64
// gives. A log of such a cell leaves a float no digits for a weight, and a row must count once all the same.
func TestFarFlows(t *testing.T) {
	for _, units := range []int{1, 2, 5, 32} { // 32 are flows of patches, fewer those of tiles
		t.Run(fmt.Sprint(units), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, uint64(units)))
			g := &circuit.Graph{NumVars: 4}
			var p reference.Params
			add := func(n circuit.Node, params []float64) circuit.NodeID {
				g.Nodes, p = append(g.Nodes, n), append(p, params)
				return circuit.NodeID(len(g.Nodes) - 1)
			}
			leaf := func(v int) circuit.NodeID {
				var params []float64
				for range units {
					params = append(params, float64(float32(rng.NormFloat64())), float64(float32(0.01+0.02*rng.Float64())))
				}
				return add(circuit.Node{Kind: circuit.Input, Units: units, Var: v, Leaf: circuit.Gaussian{}}, params)
			}
			sum := func(n int, of ...circuit.NodeID) circuit.NodeID {
				var params []float64
				for range n {
					w := make([]float64, units*len(of))
					for i := range w {
						w[i] = float64(float32(1 / float64(len(w))))
					}
					params = append(params, w...)
				}
				return add(circuit.Node{Kind: circuit.Sum, Units: n, Children: of}, params)
			}
			product := func(of ...circuit.NodeID) circuit.NodeID {
				return add(circuit.Node{Kind: circuit.Product, Units: units, Children: of}, nil)
			}
			inner := sum(units, product(leaf(0), leaf(1), leaf(2)), product(leaf(0), leaf(1), leaf(2)))
			other := sum(units, product(leaf(0), leaf(1), leaf(2)))
			g.Root = sum(1, product(inner, leaf(3)), product(other, leaf(3)))
			var rows [][]float64
			for i := range 40 {
				row := make([]float64, 4)
				for v := range row {
					if row[v] = rng.NormFloat64(); i%3 > 0 && v < 3 && v != i%4 {
						row[v] *= 200
					}
					row[v] = float64(float32(row[v]))
				}
				rows = append(rows, row)
			}
			ev, err := reference.New(g, p)
			if err != nil {
				t.Fatal(err)
			}
			flows, err := ev.Flows(rows)
			if err != nil {
				t.Fatal(err)
			}
			want := ev.EM(flows, reference.Step{Size: 1, Pseudocount: 0.01})
			dev := emulated(asHopper)(t)
			defer dev.Close()
			m := kerneltest.Build(t, dev, g, p, compile.DefaultOptions(), engine.Options{Rows: 64, Train: true, Ranges: []engine.Range{{Min: -1e3, Max: 1e3}, {Min: -1e3, Max: 1e3}, {Min: -1e3, Max: 1e3}, {Min: -1e3, Max: 1e3}}})
			defer m.Engine.Close()
			ll := make([]float64, len(rows))
			batch := reference.Batch(reference.Schema(g), rows)
			if err := m.Engine.Step(context.Background(), batch, 0, len(rows), tensor.Rule{Step: 1, Pseudocount: 0.01}, ll); err != nil {
				t.Fatal(err)
			}
			got := m.Read(t)
			for id := range g.Nodes {
				if g.Nodes[id].Kind != circuit.Sum {
					continue
				}
				for i, x := range got[id] {
					if !(math.Abs(float64(x)-want[id][i]) < 1e-3) {
						t.Fatalf("weight %d of node %d is %v, want %v", i, id, x, want[id][i])
					}
				}
			}
		})
	}
}
