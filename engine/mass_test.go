package engine_test

import (
	"math"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/engine"
	"github.com/pce-engine/pce/kernels/tensor"
)

// TestTablesKeepTheirMass trains tables with small steps, of which roundings take a share, and wants their masses to stay 1: with several
// units and with single ones, and with many codes and few.
func TestTablesKeepTheirMass(t *testing.T) {
	steps := 20000
	if testing.Short() {
		steps = 6000
	}
	for _, units := range []int{1, 3} {
		for _, codes := range []int{3, 2500} {
			n := steps
			if codes > 3 {
				n /= 10
			}
			g := &circuit.Graph{NumVars: 2, Root: 3, Nodes: []circuit.Node{
				{Kind: circuit.Input, Units: units, Var: 0, Leaf: circuit.Categorical{Categories: codes}},
				{Kind: circuit.Input, Units: units, Var: 1, Leaf: circuit.Categorical{Categories: 3}},
				{Kind: circuit.Product, Units: units, Children: []circuit.NodeID{0, 1}},
				{Kind: circuit.Sum, Units: 1, Children: []circuit.NodeID{2}},
			}}
			params, err := reference.Init(g, 7, nil)
			if err != nil {
				t.Fatal(err)
			}
			m := buildWith(t, g, params, engine.Options{Rows: 4, Train: true})
			b, ll := m.batch([][]float64{{0, 1}, {1, 2}, {2, 0}, {0, 0}}), make([]float64, 4)
			for range n {
				if err := m.eng.Step(t.Context(), b, 0, 4, tensor.Rule{Step: 167.5 * 0x1p-24, Pseudocount: 0.1}, ll); err != nil {
					t.Fatal(err)
				}
			}
			for i := range m.prog.Map.Len() {
				at, size := m.prog.Map.Region(i)
				id := m.prog.Map.Node(i)
				region, got := make([]float32, size), make([]float32, g.NumParams(id))
				if err := m.eng.ReadParams(t.Context(), at, region); err != nil {
					t.Fatal(err)
				}
				if err := m.prog.Map.Unpack(i, region, got); err != nil {
					t.Fatal(err)
				}
				of := g.Nodes[id].Units
				for u := range of {
					mass := 0.0
					for _, p := range got[u*len(got)/of:][:len(got)/of] {
						mass += float64(p)
					}
					if !(math.Abs(mass-1) <= 4e-5) {
						t.Errorf("%d units of %d codes: unit %d of node %d has the mass %v", units, codes, u, id, mass)
					}
				}
			}
		}
	}
}
