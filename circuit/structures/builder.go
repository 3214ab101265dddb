package structures

import (
	"fmt"

	"github.com/pce-engine/pce/circuit"
)

// Limits that keep a slip in a config from filling the memory.
const (
	maxLatents    = 1 << 20
	maxNodes      = 1 << 22
	maxEdgeBlocks = 1 << 26
)

// Leaf gives the leaf distribution of variable v, counted from 0. It is called when the graph
// is built; the families may differ between variables.
type Leaf func(v int) circuit.Leaf

// builder appends nodes to a graph, children before parents, and keeps the
// first error.
type builder struct {
	g      circuit.Graph
	units  int // of every node but the root
	leaf   Leaf
	err    error
	blocks int // edge blocks so far
}

// newBuilder checks what all structures have in common. Nodes is the number of
// nodes that the structure will have, or more.
func newBuilder(what string, vars, latents int, leaf Leaf, nodes float64) (*builder, error) {
	switch {
	case vars < 1:
		return nil, fmt.Errorf("%w: %s over %d variables; at least 1 is needed", ErrOptions, what, vars)
	case latents < 1 || latents > maxLatents:
		return nil, fmt.Errorf("%w: %s with %d latents; choose 1 to %d", ErrOptions, what, latents, maxLatents)
	case leaf == nil:
		return nil, fmt.Errorf("%w: %s has no leaf distribution; set Leaf", ErrOptions, what)
	case nodes > maxNodes:
		return nil, fmt.Errorf("%w: %s of about %.3g nodes, more than %d; choose a coarser structure",
			ErrOptions, what, nodes, maxNodes)
	}
	b := &builder{units: latents, leaf: leaf}
	b.g.NumVars = vars
	b.g.Nodes = make([]circuit.Node, 0, int(nodes))
	return b, nil
}

func (b *builder) add(n circuit.Node) circuit.NodeID {
	b.g.Nodes = append(b.g.Nodes, n)
	return circuit.NodeID(len(b.g.Nodes) - 1)
}

// input adds an input node over variable v.
func (b *builder) input(v int) circuit.NodeID {
	l := b.leaf(v)
	if l == nil && b.err == nil {
		b.err = fmt.Errorf("%w: variable %d has no leaf distribution; Leaf returned nil", ErrOptions, v)
	}
	return b.add(circuit.Node{Kind: circuit.Input, Units: b.units, Var: v, Leaf: l})
}

// inputs adds the input nodes of all variables; node v is variable v.
func (b *builder) inputs() {
	for v := range b.g.NumVars {
		b.input(v)
	}
}

// product adds a product. The product of one node is the node itself. The
// builder keeps children.
func (b *builder) product(children ...circuit.NodeID) circuit.NodeID {
	if len(children) == 1 {
		return children[0]
	}
	return b.add(circuit.Node{Kind: circuit.Product, Units: b.units, Children: children})
}

// sum adds a dense sum. The builder keeps children.
func (b *builder) sum(children ...circuit.NodeID) circuit.NodeID {
	return b.add(circuit.Node{Kind: circuit.Sum, Units: b.units, Children: children})
}

// root adds the dense sum of one unit that ends the graph, and returns it.
func (b *builder) root(children ...circuit.NodeID) (*circuit.Graph, error) {
	b.g.Root = b.add(circuit.Node{Kind: circuit.Sum, Units: 1, Children: children})
	if b.err != nil {
		return nil, b.err
	}
	return &b.g, nil
}
