package structures

import (
	"fmt"
	"slices"

	"github.com/pce-engine/pce/circuit"
)

// AddClass makes a circuit one of rows and their class, which becomes its variable number variable; those from there on
// move up by one. Each of at least one class gets a root of its own: a sum over what the root read, with weights of its
// own, times the indicator of the class. A new root adds these products, and its weights are the shares of the classes.
// All that is below the roots is shared. After an error the graph is as it was.
func AddClass(g *circuit.Graph, variable, classes int) error {
	if err := circuit.Validate(g); err != nil {
		return err
	}
	root := int(g.Root)
	if root != len(g.Nodes)-1 || g.Nodes[root].Kind != circuit.Sum {
		return fmt.Errorf("%w: node %d, the root of %d nodes, is not a sum that comes last, which is what a class is added to", ErrOptions, root, len(g.Nodes))
	}
	if g.Owner(g.Root) != g.Root || g.Nodes[root].Edges != nil {
		return fmt.Errorf("%w: the root has tied or sparse weights; a class needs weights of its own", ErrOptions)
	}
	if variable < 0 || variable > g.NumVars {
		return fmt.Errorf("%w: a class as variable %d of %d", ErrOptions, variable, g.NumVars+1)
	}
	if g.NumVars >= circuit.MaxVars {
		return fmt.Errorf("%w: %d variables; a class is one more, and %d is the most", ErrOptions, g.NumVars, circuit.MaxVars)
	}
	if classes < 1 || classes > maxLatents {
		return fmt.Errorf("%w: %d classes; choose 1 to %d", ErrOptions, classes, maxLatents)
	}
	for i := range g.Nodes {
		if n := &g.Nodes[i]; n.Kind == circuit.Input && n.Var >= variable {
			n.Var++
		}
	}
	g.NumVars++
	add := func(n circuit.Node) circuit.NodeID {
		n.Units = 1
		g.Nodes = append(g.Nodes, n)
		return circuit.NodeID(len(g.Nodes) - 1)
	}
	products := make([]circuit.NodeID, classes)
	for k := range products {
		density := g.Root
		if k > 0 {
			density = add(circuit.Node{Kind: circuit.Sum, Children: slices.Clone(g.Nodes[root].Children)})
		}
		is := add(circuit.Node{Kind: circuit.Input, Var: variable, Leaf: circuit.Indicator{Domain: classes, Value: k}})
		products[k] = add(circuit.Node{Kind: circuit.Product, Children: []circuit.NodeID{density, is}})
	}
	g.Root = add(circuit.Node{Kind: circuit.Sum, Children: products})
	return nil
}
