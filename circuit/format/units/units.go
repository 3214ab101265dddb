// Package units takes a circuit apart into its units, for writers of formats whose nodes are one
// unit each.
//
// # Shapes and units
//
// A node of n units becomes n nodes. A product's unit has one unit of each child; a sum's has
// those of all children that its edges name, with a weight each.
//
// # Errors
//
// Of reads an error of a model's parameters is returned as it is.
//
// # Source
//
// The package is pce's own.
package units

import (
	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/format"
)

// Unit is a unit of a node.
type Unit struct {
	Node circuit.NodeID
	U    int
}

// Circuit is a circuit as units. It must not be changed.
type Circuit struct {
	Graph  *circuit.Graph
	Params [][]float64 // of the nodes that own some which the root needs
	first  []int       // number of a node's first unit
}

// Of reads the parameters of a model and returns its circuit. Those that the root does not need may be left open.
func Of(m *format.Model) (*Circuit, error) {
	c := &Circuit{Graph: m.Graph, Params: make([][]float64, len(m.Graph.Nodes)), first: make([]int, len(m.Graph.Nodes))}
	needed := make([]bool, len(m.Graph.Nodes)) // parameters, by owners
	for i, used := range circuit.Reachable(m.Graph) {
		if used {
			needed[m.Graph.Owner(circuit.NodeID(i))] = true
		}
	}
	next := 0
	for i := range c.Graph.Nodes {
		id := circuit.NodeID(i)
		c.first[i] = next
		next += c.Graph.Nodes[i].Units
		if needed[i] && c.Graph.OwnsParams(id) {
			c.Params[i] = make([]float64, c.Graph.NumParams(id))
			if err := m.Params64(id, c.Params[i]); err != nil {
				return nil, err
			}
		}
	}
	return c, nil
}

// Root is the unit that the circuit's value is of.
func (c *Circuit) Root() Unit { return Unit{c.Graph.Root, 0} }

// Number is the number of a unit, counted from 0 in the order of the nodes.
func (c *Circuit) Number(x Unit) int { return c.first[x.Node] + x.U }

// Leaf returns the family, parameters and variable of a unit of an input.
func (c *Circuit) Leaf(x Unit) (l circuit.Leaf, params []float64, variable int) {
	n := &c.Graph.Nodes[x.Node]
	if size := n.Leaf.NumParams(); size > 0 {
		params = c.Params[c.Graph.Owner(x.Node)][x.U*size : (x.U+1)*size]
	}
	return n.Leaf, params, n.Var
}

// Children returns the operands of a unit of a sum or product, and the weights of a sum's.
func (c *Circuit) Children(x Unit) (list []Unit, weights []float64) {
	n := &c.Graph.Nodes[x.Node]
	if n.Kind == circuit.Product {
		for _, child := range n.Children {
			list = append(list, Unit{child, x.U})
		}
		return list, nil
	}
	var columns []Unit
	for _, child := range n.Children {
		for u := range c.Graph.Nodes[child].Units {
			columns = append(columns, Unit{child, u})
		}
	}
	theta := c.Params[c.Graph.Owner(x.Node)]
	if n.Edges == nil {
		return columns, theta[x.U*len(columns) : (x.U+1)*len(columns)]
	}
	e := n.Edges
	for k, pair := range e.Pairs {
		if r := x.U - int(pair[0])*e.Rows; r >= 0 && r < e.Rows {
			for col := range e.Cols {
				if at := (k*e.Rows+r)*e.Cols + col; e.Has(at) {
					list, weights = append(list, columns[int(pair[1])*e.Cols+col]), append(weights, theta[at])
				}
			}
		}
	}
	return list, weights
}

// Order returns the units that the root needs, children first.
func (c *Circuit) Order() []Unit {
	var order []Unit
	seen := map[Unit]bool{c.Root(): true}
	type visit struct {
		x        Unit
		children []Unit
		next     int
	}
	enter := func(x Unit) visit {
		v := visit{x: x}
		if c.Graph.Nodes[x.Node].Kind != circuit.Input {
			v.children, _ = c.Children(x)
		}
		return v
	}
	for stack := []visit{enter(c.Root())}; len(stack) > 0; {
		top := &stack[len(stack)-1]
		if top.next == len(top.children) {
			order = append(order, top.x)
			stack = stack[:len(stack)-1]
			continue
		}
		child := top.children[top.next]
		top.next++
		if !seen[child] {
			seen[child] = true
			stack = append(stack, enter(child))
		}
	}
	return order
}
