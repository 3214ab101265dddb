package learnspn

import (
	"fmt"

	"github.com/pce-engine/pce/circuit"
)

// assembler makes a graph of learned nodes. Indicators are shared: a code has one.
type assembler struct {
	g          circuit.Graph
	params     map[circuit.NodeID][]float32
	indicators map[[2]int]circuit.NodeID
	all        []variable
}

func (a *assembler) add(n circuit.Node, params []float64) circuit.NodeID {
	n.Units = 1
	id := circuit.NodeID(len(a.g.Nodes))
	a.g.Nodes = append(a.g.Nodes, n)
	if len(params) > 0 {
		narrow := make([]float32, len(params))
		for i, p := range params {
			narrow[i] = float32(p)
		}
		a.params[id] = narrow
	}
	return id
}

func (a *assembler) product(children []circuit.NodeID) circuit.NodeID {
	if len(children) == 1 {
		return children[0]
	}
	return a.add(circuit.Node{Kind: circuit.Product, Children: children}, nil)
}

func (a *assembler) leaf(v int, params []float64) circuit.NodeID {
	return a.add(circuit.Node{Kind: circuit.Input, Var: v, Leaf: a.all[v].leaf}, params)
}

func (a *assembler) indicator(v, code int) circuit.NodeID {
	key := [2]int{v, code}
	id, ok := a.indicators[key]
	if !ok {
		id = a.add(circuit.Node{Kind: circuit.Input, Var: v, Leaf: circuit.Indicator{Domain: a.all[v].domain, Value: code}}, nil)
		a.indicators[key] = id
	}
	return id
}

// node adds a learned node and all below it.
func (a *assembler) node(n *node) circuit.NodeID {
	switch n.kind {
	case leafNode:
		return a.leaf(n.v, n.params)
	case treeNode:
		return a.tree(n.tree)
	}
	children := make([]circuit.NodeID, len(n.children))
	for i, c := range n.children {
		children[i] = a.node(c)
	}
	if n.kind == productNode {
		return a.product(children)
	}
	return a.add(circuit.Node{Kind: circuit.Sum, Children: children}, n.weights)
}

// tree adds a Chow-Liu tree. A variable without children is a leaf for each state of its
// parent; one with children is, for each state of its parent, a deterministic sum over its
// codes of the code's indicator times what its children have for it.
func (a *assembler) tree(t *tree) circuit.NodeID {
	below := make([][][]circuit.NodeID, len(t.vars)) // [places][codes] factors
	for i, v := range t.vars {
		if t.inner[i] {
			below[i] = make([][]circuit.NodeID, a.all[v].domain)
			for c := range below[i] {
				below[i][c] = []circuit.NodeID{a.indicator(v, c)}
			}
		}
	}
	var roots []circuit.NodeID
	for at := len(t.order) - 1; at >= 0; at-- {
		i := t.order[at]
		var messages []circuit.NodeID // for each state of the parent
		if t.inner[i] {
			children := make([]circuit.NodeID, len(below[i]))
			for c, factors := range below[i] {
				children[c] = a.product(factors)
			}
			for _, row := range t.table[i] {
				messages = append(messages, a.add(circuit.Node{Kind: circuit.Sum, Children: children}, row))
			}
		} else {
			for _, q := range t.params[i] {
				messages = append(messages, a.leaf(t.vars[i], q))
			}
		}
		if p := t.parent[i]; p >= 0 {
			for c, m := range messages {
				below[p][c] = append(below[p][c], m)
			}
		} else {
			roots = append(roots, messages[0])
		}
	}
	return a.product(roots)
}

// assemble returns the graph of a learned circuit and its parameters. The root is a sum, as
// that of every structure is.
func assemble(all []variable, root *node) (*circuit.Graph, circuit.ParamFunc) {
	a := &assembler{params: map[circuit.NodeID][]float32{}, indicators: map[[2]int]circuit.NodeID{}, all: all}
	a.g.NumVars = len(all)
	a.g.Root = a.node(root)
	if a.g.Nodes[a.g.Root].Kind != circuit.Sum {
		a.g.Root = a.add(circuit.Node{Kind: circuit.Sum, Children: []circuit.NodeID{a.g.Root}}, []float64{1})
	}
	return &a.g, func(id circuit.NodeID, dst []float32) error {
		p := a.params[id] // nil for nodes that have none
		if len(p) != len(dst) {
			return fmt.Errorf("learnspn: node %d has %d parameters, and %d are asked for", id, len(p), len(dst))
		}
		copy(dst, p)
		return nil
	}
}
