package reference

import (
	"fmt"
	"math"

	"github.com/pce-engine/pce/circuit"
)

// Evaluator evaluates one circuit with one set of parameters, which must not be written to while
// it is in use. It is safe for concurrent use.
type Evaluator struct {
	g     *circuit.Graph
	p     Params
	edges [][][]edge // [node][unit]: the weights of sums that exist
}

// edge is one weight of a sum unit.
type edge struct {
	child circuit.NodeID
	unit  int     // unit of the child
	param int     // place in canonical order
	log   float64 // of the weight
}

// New checks graph and parameters, p by node, and returns an evaluator of both, which keeps p
// and does not change it. Errors match circuit.ErrGraph or circuit.ErrLeaf.
func New(g *circuit.Graph, p Params) (*Evaluator, error) {
	if err := circuit.Validate(g); err != nil {
		return nil, err
	}
	if len(p) != len(g.Nodes) {
		return nil, fmt.Errorf("%w: parameters of %d nodes for %d nodes; pass one slice for each", circuit.ErrGraph, len(p), len(g.Nodes))
	}
	ev := &Evaluator{g: g, p: p, edges: make([][][]edge, len(g.Nodes))}
	for i := range g.Nodes {
		id := circuit.NodeID(i)
		if g.OwnsParams(id) {
			if err := circuit.CheckParams(g, id, p[i]); err != nil {
				return nil, err
			}
		}
		if g.Nodes[i].Kind == circuit.Sum {
			ev.edges[i] = edgesOf(g, id, p[g.Owner(id)])
		}
	}
	return ev, nil
}

// edgesOf lists the weights of a sum that exist, unit by unit, each with its child, the child's
// unit, its place among the sum's parameters and its logarithm. Dense and block-sparse sums look
// alike to the evaluator from here on.
func edgesOf(g *circuit.Graph, id circuit.NodeID, theta []float64) [][]edge {
	n := &g.Nodes[id]
	var columns []edge // child and unit of every column
	for _, c := range n.Children {
		for u := range g.Nodes[c].Units {
			columns = append(columns, edge{child: c, unit: u})
		}
	}
	list := make([][]edge, n.Units)
	g.EachWeight(id, func(unit, column, param int) {
		e := columns[column]
		e.param, e.log = param, circuit.Log(theta[param])
		list[unit] = append(list[unit], e)
	})
	return list
}

// leafParams returns the parameters of one unit of an input.
func leafParams(g *circuit.Graph, p Params, id circuit.NodeID, unit int) []float64 {
	n := g.Nodes[id].Leaf.NumParams()
	if n == 0 {
		return nil
	}
	return p[g.Owner(id)][unit*n : (unit+1)*n]
}

// CheckRow returns an error that matches ErrRow if a row is none of the circuit.
func (ev *Evaluator) CheckRow(row []float64) error {
	if len(row) != ev.g.NumVars {
		return fmt.Errorf("%w: %d cells; want %d", ErrRow, len(row), ev.g.NumVars)
	}
	taken, refusal := make([]bool, len(row)), make([]error, len(row)) // by a leaf, and of the last leaf
	for i := range ev.g.Nodes {
		if n := &ev.g.Nodes[i]; n.Kind == circuit.Input && !taken[n.Var] && !math.IsNaN(row[n.Var]) {
			refusal[n.Var] = n.Leaf.Check(row[n.Var])
			taken[n.Var] = refusal[n.Var] == nil
		}
	}
	for v, err := range refusal {
		if err != nil {
			return fmt.Errorf("%w: variable %d: %w", ErrRow, v, err)
		}
	}
	return nil
}

// LogLikelihood returns the log density of a row's observed cells.
func (ev *Evaluator) LogLikelihood(row []float64) (float64, error) {
	values, err := ev.Values(row)
	if err != nil {
		return 0, err
	}
	return values[ev.g.Root][0], nil
}

// Values returns the log value of every unit of every node: [node][unit].
func (ev *Evaluator) Values(row []float64) ([][]float64, error) {
	return ev.evaluate(row, logSumExp, func(int, circuit.Leaf, []float64) float64 { return 0 })
}

// evaluate returns the log value of every unit, given how sums join the logs of
// their terms and what a leaf of a variable has where its cell is missing.
func (ev *Evaluator) evaluate(row []float64, sum func([]float64) float64, missing func(int, circuit.Leaf, []float64) float64) ([][]float64, error) {
	if err := ev.CheckRow(row); err != nil {
		return nil, err
	}
	values := ev.units()
	var terms []float64
	for i := range ev.g.Nodes {
		id := circuit.NodeID(i)
		n := &ev.g.Nodes[i]
		for u := range n.Units {
			switch n.Kind {
			case circuit.Input:
				if p, x := leafParams(ev.g, ev.p, id, u), row[n.Var]; math.IsNaN(x) {
					values[i][u] = missing(n.Var, n.Leaf, p)
				} else {
					values[i][u] = n.Leaf.LogProb(p, x)
				}
			case circuit.Product:
				for _, c := range n.Children {
					values[i][u] += values[c][u]
				}
			case circuit.Sum:
				terms = terms[:0]
				for _, e := range ev.edges[i][u] {
					terms = append(terms, e.log+values[e.child][e.unit])
				}
				values[i][u] = sum(terms)
			}
		}
	}
	return values, nil
}

// units returns a zero for every unit of every node.
func (ev *Evaluator) units() [][]float64 {
	total := 0
	for i := range ev.g.Nodes {
		total += ev.g.Nodes[i].Units
	}
	all, list := make([]float64, total), make([][]float64, len(ev.g.Nodes))
	for i := range list {
		n := ev.g.Nodes[i].Units
		list[i], all = all[:n:n], all[n:]
	}
	return list
}

// logSumExp is log Σ e^x; -Inf if all terms are.
func logSumExp(x []float64) float64 {
	top := math.Inf(-1)
	for _, v := range x {
		top = max(top, v)
	}
	if math.IsInf(top, 0) {
		return top
	}
	sum := 0.0
	for _, v := range x {
		if v == top {
			sum++ // e^0 of the largest term, without its calculation
		} else {
			sum += math.Exp(v - top)
		}
	}
	return top + math.Log(sum)
}
