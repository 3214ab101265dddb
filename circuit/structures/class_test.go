package structures

import (
	"errors"
	"slices"
	"testing"

	"github.com/pce-engine/pce/circuit"
)

// TestAddClass gives a network three classes, and refuses what has no root of its own for each.
func TestAddClass(t *testing.T) {
	o := DefaultRATSPN()
	o.Vars, o.Latents, o.Depth, o.Leaf = 8, 3, 2, func(int) circuit.Leaf { return circuit.Gaussian{} }
	network := func() *circuit.Graph {
		g, err := RATSPN(o)
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	g := network()
	old := g.Root
	input, err := AddClass(g, 3)
	if err != nil {
		t.Fatal(err)
	}
	if err := circuit.Validate(g); err != nil {
		t.Fatal(err)
	}
	leaf, product := &g.Nodes[input], &g.Nodes[g.Nodes[g.Root].Children[0]]
	if leaf.Var != 8 || leaf.Units != 3 || leaf.Leaf.Codes() != 3 || g.NumVars != 9 {
		t.Errorf("the class is %+v of %d variables", leaf, g.NumVars)
	}
	if g.Nodes[old].Units != 3 || g.Nodes[g.Root].Units != 1 || !slices.Equal(product.Children, []circuit.NodeID{old, input}) {
		t.Errorf("the roots have %d units, %+v", g.Nodes[old].Units, product)
	}
	for name, spoil := range map[string]func(g *circuit.Graph){
		"a product as the root": func(g *circuit.Graph) {
			g.Nodes = append(g.Nodes, circuit.Node{Kind: circuit.Product, Units: 1, Children: []circuit.NodeID{g.Root}})
			g.Root++
		},
		"nodes behind the root": func(g *circuit.Graph) {
			g.Nodes = append(g.Nodes, circuit.Node{Kind: circuit.Sum, Units: 1, Children: []circuit.NodeID{g.Root - 1}})
		},
		"a sparse root": func(g *circuit.Graph) {
			g.Nodes[g.Root].Edges = &circuit.Edges{Rows: 1, Cols: 1, Pairs: [][2]int32{{0, 0}}}
		},
		"no root": func(g *circuit.Graph) { g.Root = 1000 },
	} {
		g := network()
		spoil(g)
		before := len(g.Nodes)
		if _, err := AddClass(g, 3); err == nil || len(g.Nodes) != before || g.NumVars != 8 {
			t.Errorf("%s: %v, %d nodes where there were %d", name, err, len(g.Nodes), before)
		}
	}
	for _, classes := range []int{-1, 0, maxLatents + 1} {
		if _, err := AddClass(network(), classes); !errors.Is(err, ErrOptions) {
			t.Errorf("%d classes: %v", classes, err)
		}
	}
}
