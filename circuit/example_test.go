package circuit_test

import (
	"fmt"

	"github.com/pce-engine/pce/circuit"
)

// A mixture of two pairs of coins: inputs, a product and a sum, each a block of
// units.
func ExampleValidate() {
	g := &circuit.Graph{NumVars: 2, Root: 3, Nodes: []circuit.Node{
		{Kind: circuit.Input, Units: 2, Var: 0, Leaf: circuit.Bernoulli{}},
		{Kind: circuit.Input, Units: 2, Var: 1, Leaf: circuit.Bernoulli{}},
		{Kind: circuit.Product, Units: 2, Children: []circuit.NodeID{0, 1}},
		{Kind: circuit.Sum, Units: 1, Children: []circuit.NodeID{2}},
	}}
	fmt.Println(circuit.Validate(g))
	s := circuit.Count(g)
	fmt.Println(s.Nodes(), "nodes,", s.Edges(), "edges,", s.Params(), "parameters")

	g.Nodes[2].Children = []circuit.NodeID{0, 0}
	fmt.Println(circuit.Validate(g))
	// Output:
	// <nil>
	// 5 nodes, 6 edges, 10 parameters
	// circuit: bad graph: product node 2 is not decomposable: child 0 has variables [0] and shares one with an earlier child; give the children of a product disjoint scopes
}
