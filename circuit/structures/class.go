package structures

import (
	"fmt"

	"github.com/pce-engine/pce/circuit"
)

// AddClass gives a circuit a class variable, the last one, so that it can be asked for the class of a row: its root, a
// sum, gets a unit for each of at least one class, and a new root adds the products of unit k with unit k of a new input
// of that many categories. It returns the input. Where its table is the identity, unit k is the density of class k alone
// and the weights of the new root are the shares of the classes. After an error the graph is as it was.
func AddClass(g *circuit.Graph, classes int) (input circuit.NodeID, err error) {
	if err := circuit.Validate(g); err != nil {
		return circuit.None, err
	}
	root := g.Root
	if int(root) != len(g.Nodes)-1 || g.Nodes[root].Kind != circuit.Sum {
		return circuit.None, fmt.Errorf("%w: node %d, the root of %d nodes, is not a sum that comes last, which is what a class is added to", ErrOptions, root, len(g.Nodes))
	}
	if g.Owner(root) != root || g.Nodes[root].Edges != nil {
		return circuit.None, fmt.Errorf("%w: the root has tied or sparse weights; a class needs weights of its own", ErrOptions)
	}
	if g.NumVars >= circuit.MaxVars {
		return circuit.None, fmt.Errorf("%w: %d variables; a class is one more, and %d is the most", ErrOptions, g.NumVars, circuit.MaxVars)
	}
	if classes < 1 || classes > maxLatents {
		return circuit.None, fmt.Errorf("%w: %d classes; choose 1 to %d", ErrOptions, classes, maxLatents)
	}
	g.Nodes[root].Units = classes
	g.Nodes = append(g.Nodes,
		circuit.Node{Kind: circuit.Input, Units: classes, Var: g.NumVars, Leaf: circuit.Categorical{Categories: classes}},
		circuit.Node{Kind: circuit.Product, Units: classes, Children: []circuit.NodeID{root, root + 1}},
		circuit.Node{Kind: circuit.Sum, Units: 1, Children: []circuit.NodeID{root + 2}})
	g.NumVars++
	g.Root = root + 3
	return root + 1, nil
}
