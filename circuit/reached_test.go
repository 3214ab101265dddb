package circuit

import (
	"errors"
	"slices"
	"testing"
)

// TestReached takes nodes out that the root does not reach, one of which has the parameters of two that it reaches: these share them, and
// those of other nodes are not asked for.
func TestReached(t *testing.T) {
	leaf := Categorical{Categories: 3}
	g := &Graph{NumVars: 2, Root: 6, Nodes: []Node{
		{Kind: Input, Units: 2, Var: 1, Leaf: leaf}, // has the parameters of 1 and 3
		{Kind: Input, Units: 2, Var: 0, Leaf: leaf, Tie: TieTo(0)},
		{Kind: Sum, Units: 1, Children: []NodeID{0}},
		{Kind: Input, Units: 2, Var: 1, Leaf: leaf, Tie: TieTo(0)},
		{Kind: Product, Units: 2, Children: []NodeID{1, 3}},
		{Kind: Input, Units: 2, Var: 1, Leaf: leaf},
		{Kind: Sum, Units: 1, Children: []NodeID{4}},
	}}
	var asked []NodeID
	part, params := Reached(g, func(id NodeID, dst []float64) error {
		asked = append(asked, id)
		if id == 2 || id == 5 {
			return errors.New("open")
		}
		dst[0] = float64(10 + id)
		return nil
	})
	if err := Validate(part); err != nil {
		t.Fatal(err)
	}
	if n := len(part.Nodes); n != 4 || part.Root != 3 || part.Owner(1) != 0 || !slices.Equal(part.Nodes[2].Children, []NodeID{0, 1}) {
		t.Fatalf("%+v", part)
	}
	for i, want := range map[NodeID]float64{0: 10, 3: 16} {
		p := make([]float64, part.NumParams(i))
		if err := params(i, p); err != nil || p[0] != want {
			t.Errorf("node %d has %v, %v; want %v", i, p, err, want)
		}
	}
	if slices.Contains(asked, 2) || slices.Contains(asked, 5) {
		t.Errorf("asked for %v", asked)
	}
	if whole, _ := Reached(part, params); whole != part {
		t.Error("a graph of which the root reaches all is another one")
	}
}
