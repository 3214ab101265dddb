package circuit_test

import (
	"errors"
	"testing"

	"github.com/pce-engine/pce/circuit"
)

// TestDeterministicUnder: a sum over two products of histograms is deterministic where a variable has no code with mass in both,
// and where a weight is 0.
func TestDeterministicUnder(t *testing.T) {
	leaf := circuit.Histogram{Edges: []int{0, 1, 2, 3}}
	g := &circuit.Graph{NumVars: 2, Root: 3, Nodes: []circuit.Node{
		{Kind: circuit.Input, Units: 2, Var: 0, Leaf: leaf},
		{Kind: circuit.Input, Units: 2, Var: 1, Leaf: leaf},
		{Kind: circuit.Product, Units: 2, Children: []circuit.NodeID{0, 1}},
		{Kind: circuit.Sum, Units: 1, Children: []circuit.NodeID{2}},
	}}
	if err := circuit.Validate(g); err != nil {
		t.Fatal(err)
	}
	same, third := []float32{0.5, 0.5, 0, 0.5, 0.5, 0}, float32(1)/3
	for name, x := range map[string]struct {
		first, second, weights []float32
		want                   bool
	}{
		"apart in the first":  {[]float32{1, 0, 0, 0, 0.5, 0.5}, same, []float32{0.5, 0.5}, true},
		"apart in the second": {same, []float32{0, 1, 0, 0.5, 0, 0.5}, []float32{0.5, 0.5}, true},
		"one code in common":  {[]float32{0.5, 0.5, 0, 0, 0.5, 0.5}, same, []float32{0.5, 0.5}, false},
		"no zeros":            {[]float32{third, third, third, third, third, third}, same, []float32{0.5, 0.5}, false},
		"one child":           {same, same, []float32{1, 0}, true},
	} {
		all := [][]float32{x.first, x.second, nil, x.weights}
		got, err := circuit.DeterministicUnder(g, func(id circuit.NodeID, dst []float32) error {
			if copy(dst, all[id]) != len(dst) {
				t.Errorf("%s: %d parameters of node %d", name, len(dst), id)
			}
			return nil
		})
		if err != nil || got != x.want {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	wrong := errors.New("no parameters")
	g = &circuit.Graph{NumVars: 1, Root: 2, Nodes: []circuit.Node{
		{Kind: circuit.Input, Units: 1, Leaf: leaf}, {Kind: circuit.Input, Units: 1, Leaf: leaf},
		{Kind: circuit.Sum, Units: 1, Children: []circuit.NodeID{0, 1}},
	}}
	for failing := range g.Nodes {
		if _, err := circuit.DeterministicUnder(g, func(id circuit.NodeID, dst []float32) error {
			if int(id) == failing {
				return wrong
			}
			copy(dst, same)
			return nil
		}); !errors.Is(err, wrong) {
			t.Errorf("error %v, want that of the parameters of node %d", err, failing)
		}
	}
}

// TestDeterministicUnderSums compares sums with inputs and products, in both orders, and inputs of domains of unlike sizes.
func TestDeterministicUnderSums(t *testing.T) {
	leaf := circuit.Histogram{Edges: []int{0, 1, 2, 3}}
	in := func(v int, l circuit.Leaf) circuit.Node {
		return circuit.Node{Kind: circuit.Input, Units: 1, Var: v, Leaf: l}
	}
	node := func(k circuit.Kind, children ...circuit.NodeID) circuit.Node {
		return circuit.Node{Kind: k, Units: 1, Children: children}
	}
	half, one := []float32{0.5, 0.5}, []float32{1}
	first, second, third, last := []float32{1, 0, 0}, []float32{0, 1, 0}, []float32{0, 0, 1}, []float32{0, 0.5, 0.5}
	for name, x := range map[string]struct {
		nodes  []circuit.Node
		params [][]float32
		want   bool
	}{
		"a sum and an input":           {[]circuit.Node{in(0, leaf), in(0, leaf), in(0, leaf), node(circuit.Sum, 0, 1), node(circuit.Sum, 3, 2)}, [][]float32{first, second, third, half, half}, true},
		"an input and a sum":           {[]circuit.Node{in(0, leaf), in(0, leaf), in(0, leaf), node(circuit.Sum, 0, 1), node(circuit.Sum, 2, 3)}, [][]float32{first, second, third, half, half}, true},
		"a sum that overlaps an input": {[]circuit.Node{in(0, leaf), in(0, leaf), in(0, leaf), node(circuit.Sum, 0, 1), node(circuit.Sum, 3, 2)}, [][]float32{first, second, last, half, half}, false},
		"an input that overlaps a sum": {[]circuit.Node{in(0, leaf), in(0, leaf), in(0, leaf), node(circuit.Sum, 0, 1), node(circuit.Sum, 2, 3)}, [][]float32{first, second, last, half, half}, false},
		"two sums":                     {[]circuit.Node{in(0, leaf), in(0, leaf), node(circuit.Sum, 0), node(circuit.Sum, 1), node(circuit.Sum, 2, 3)}, [][]float32{first, last, one, one, half}, true},
		"a sum and a product":          {[]circuit.Node{in(0, leaf), in(0, leaf), node(circuit.Sum, 0), node(circuit.Product, 1), node(circuit.Sum, 2, 3)}, [][]float32{first, last, one, nil, half}, true},
		"a product and a sum":          {[]circuit.Node{in(0, leaf), in(0, leaf), node(circuit.Sum, 0), node(circuit.Product, 1), node(circuit.Sum, 3, 2)}, [][]float32{first, last, one, nil, half}, true},
		"unlike domains":               {[]circuit.Node{in(0, circuit.Categorical{Categories: 100}), in(0, leaf), node(circuit.Sum, 0, 1)}, [][]float32{append(make([]float32, 99), 1), first, half}, false},
	} {
		g := &circuit.Graph{NumVars: 1, Root: circuit.NodeID(len(x.nodes) - 1), Nodes: x.nodes}
		got, err := circuit.DeterministicUnder(g, func(id circuit.NodeID, dst []float32) error {
			copy(dst, x.params[id])
			return nil
		})
		if err != nil || got != x.want {
			t.Errorf("%s: %v, %v; want %v", name, got, err, x.want)
		}
		wrong := errors.New("no parameters")
		for failing := range x.nodes {
			if _, err := circuit.DeterministicUnder(g, func(id circuit.NodeID, dst []float32) error {
				copy(dst, x.params[id])
				if int(id) == failing {
					return wrong
				}
				return nil
			}); x.params[failing] != nil && x.want && !errors.Is(err, wrong) {
				t.Errorf("%s: error %v, want that of the parameters of node %d", name, err, failing)
			}
		}
	}
}
