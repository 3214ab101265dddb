package rtl

import (
	"fmt"
	"math"

	"github.com/pce-engine/pce/circuit"
)

// maxOperands bounds the operands of a circuit as single units: far more than any device has
// operators for.
const maxOperands = 1 << 20

// unit is one unit of a node: an operation on numbers. Its operands are earlier units.
type unit struct {
	kind    circuit.Kind
	args    []int32
	weights []float64 // of a sum, none of them 0
	readers int       // operands that are this unit, and one for the root

	// Of an input.
	variable int
	leaf     circuit.Leaf
	params   []float64
}

// at is the density or mass of an input at x, as circuit/reference has it.
func (u *unit) at(x float64) float64 {
	switch l := u.leaf.(type) {
	case circuit.RealHistogram:
		if i := l.Bin(x); i >= 0 {
			return max(u.params[i], l.Floor)
		}
		return l.Floor
	default:
		if circuit.ParamsAreTable(l) {
			return u.params[int(x)]
		}
		return math.Exp(l.LogProb(u.params, x))
	}
}

// importGraph returns the units that the root needs, operands first; the root is the last one.
// A sum keeps the order of its operands; weights of 0 go.
func importGraph(g *circuit.Graph, params circuit.ParamFunc64) ([]unit, error) {
	if err := circuit.Validate(g); err != nil {
		return nil, err
	}
	needed := circuit.Reachable(g)
	numbers := make([][]int32, len(g.Nodes)) // the unit of each unit of a node
	load := circuit.Parameters(g, params)
	var units []unit
	operands := 0
	for i := range g.Nodes {
		id, n := circuit.NodeID(i), &g.Nodes[i]
		if !needed[i] {
			continue
		}
		p, err := load(id)
		if err != nil {
			return nil, err
		}
		var columns []int32
		for _, child := range n.Children {
			columns = append(columns, numbers[child]...)
		}
		if operands += n.Units + len(columns) + g.NumParams(id); operands > maxOperands {
			return nil, fmt.Errorf("%w: more than %d operands; no device holds them", ErrFit, maxOperands)
		}
		first := len(units)
		for u := range n.Units {
			numbers[i] = append(numbers[i], int32(len(units)))
			x := unit{kind: n.Kind, variable: n.Var, leaf: n.Leaf}
			switch n.Kind {
			case circuit.Input:
				size := n.Leaf.NumParams()
				x.params = p[u*size : (u+1)*size]
			case circuit.Product:
				for _, child := range n.Children {
					x.args = append(x.args, numbers[child][u])
				}
			}
			units = append(units, x)
		}
		if n.Kind == circuit.Sum {
			g.EachWeight(id, func(u, column, param int) {
				if x := &units[first+u]; p[param] > 0 {
					x.args, x.weights = append(x.args, columns[column]), append(x.weights, p[param])
				}
			})
		}
	}
	return prune(units, numbers[g.Root][0]), nil
}

// prune drops the units that the root does not read and counts the readers of the others.
func prune(units []unit, root int32) []unit {
	units[root].readers = 1
	for i := root; i >= 0; i-- {
		if units[i].readers > 0 {
			for _, a := range units[i].args {
				units[a].readers++
			}
		}
	}
	to := make([]int32, root+1)
	var kept []unit
	for i := range units[:root+1] {
		u := &units[i]
		if u.readers == 0 {
			continue
		}
		for k, a := range u.args {
			u.args[k] = to[a]
		}
		to[i] = int32(len(kept))
		kept = append(kept, *u)
	}
	return kept
}
