package units

import (
	"errors"
	"fmt"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/format"
)

// Node is a node of one unit, as files list them.
type Node struct {
	Kind     circuit.Kind
	Children []int     // indices of the list
	Weights  []float64 // of a sum, by child
	Leaf     circuit.Leaf
	Var      int
	Params   []float64 // of the leaf
}

// NodeError says which node of a list is at fault.
type NodeError struct {
	Node int
	Err  error
}

func (e *NodeError) Error() string { return fmt.Sprintf("node %d: %v", e.Node, e.Err) }

// Unwrap returns the reason.
func (e *NodeError) Unwrap() error { return e.Err }

// The states of a node in the search from the root.
const (
	unseen uint8 = iota
	open         // some of its descendants are not done
	done
)

// Assemble makes a model over vars variables of a list of nodes, in any order. Cycles, nodes that
// the root does not reach, leaves and weights that are invalid and circuits that are not smooth
// or not decomposable are errors; those of one node are a NodeError. The model keeps the parameters.
// Its graph has the nodes children first, in the order in which a walk from the root leaves them.
func Assemble(nodes []Node, root, vars int) (*format.Model, error) {
	order, id, err := sorted(nodes, root)
	if err != nil {
		return nil, err
	}
	g := &circuit.Graph{NumVars: vars, Root: circuit.NodeID(len(order) - 1)}
	params := make([][]float64, len(order))
	for i, at := range order {
		n := &nodes[at]
		c := circuit.Node{Kind: n.Kind, Units: 1, Leaf: n.Leaf}
		switch n.Kind {
		case circuit.Input:
			err := n.Leaf.CheckSettings()
			if err == nil {
				err = n.Leaf.CheckParams(n.Params)
			}
			if err != nil {
				return nil, &NodeError{at, err}
			}
			c.Var, params[i] = n.Var, n.Params
		case circuit.Sum:
			if len(n.Weights) != len(n.Children) {
				return nil, &NodeError{at, fmt.Errorf("%d weights for %d children", len(n.Weights), len(n.Children))}
			}
			params[i] = n.Weights
		}
		for _, child := range n.Children {
			c.Children = append(c.Children, id[child])
		}
		g.Nodes = append(g.Nodes, c)
	}
	if err := circuit.Validate(g); err != nil {
		return nil, err
	}
	for i, at := range order {
		if len(params[i]) == 0 {
			continue
		}
		if err := circuit.CheckParams(g, circuit.NodeID(i), params[i]); err != nil {
			return nil, &NodeError{at, err}
		}
	}
	return format.NewModel(g, nil, format.Params{Float64: func(id circuit.NodeID, dst []float64) error {
		copy(dst, params[id])
		return nil
	}}), nil
}

// sorted returns the nodes children first, and the place of each in that order.
func sorted(nodes []Node, root int) (order []int, id []circuit.NodeID, err error) {
	type visit struct{ at, next int }
	state := make([]uint8, len(nodes))
	id = make([]circuit.NodeID, len(nodes))
	state[root] = open
	for stack := []visit{{at: root}}; len(stack) > 0; {
		top := &stack[len(stack)-1]
		children := nodes[top.at].Children
		if top.next == len(children) {
			state[top.at], id[top.at] = done, circuit.NodeID(len(order))
			order = append(order, top.at)
			stack = stack[:len(stack)-1]
			continue
		}
		c := children[top.next]
		top.next++
		switch state[c] {
		case unseen:
			state[c] = open
			stack = append(stack, visit{at: c})
		case open:
			return nil, nil, &NodeError{top.at, errors.New("the node is a descendant of itself; a network has no cycles")}
		}
	}
	for i := range nodes {
		if state[i] == unseen {
			return nil, nil, &NodeError{i, errors.New("the node is not reached from the root; take it out")}
		}
	}
	return order, id, nil
}
