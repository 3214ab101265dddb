package reference

import (
	"math"

	"github.com/pce-engine/pce/circuit"
)

// Flows are expected counts, summed over rows.
type Flows struct {
	Rows          int     // rows of positive probability
	Impossible    int     // rows of probability 0, which have no flows
	LogLikelihood float64 // sum over the rows of positive probability

	Nodes  [][]float64 // [node][unit]
	Params [][]float64 // [sum][weight in canonical order], pooled at the owner of tied parameters; else nil

	// Leaf statistics, pooled at the owner of tied parameters; nil for other nodes.
	Stats   [][]float64 // [input][unit × NumStats]: Σ flow·T(x) over observed cells
	Weights [][]float64 // [input][unit]: Σ flow over observed cells
}

// NewFlows returns zero flows of a valid graph.
func NewFlows(g *circuit.Graph) *Flows {
	n := len(g.Nodes)
	f := &Flows{Nodes: make([][]float64, n), Params: make([][]float64, n), Stats: make([][]float64, n), Weights: make([][]float64, n)}
	for i := range g.Nodes {
		node, id := &g.Nodes[i], circuit.NodeID(i)
		f.Nodes[i] = make([]float64, node.Units)
		if g.Owner(id) != id {
			continue
		}
		switch node.Kind {
		case circuit.Input:
			f.Stats[i] = make([]float64, node.Units*node.Leaf.NumStats())
			f.Weights[i] = make([]float64, node.Units)
		case circuit.Sum:
			f.Params[i] = make([]float64, g.NumParams(id))
		}
	}
	return f
}

// Flows returns the flows of some rows.
func (ev *Evaluator) Flows(rows [][]float64) (*Flows, error) {
	f := NewFlows(ev.g)
	for _, row := range rows {
		if err := ev.addFlows(f, row); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// addFlows adds one row: a flow of 1 starts at the root, a product passes its
// flow to each child, a sum divides it by the children's share of its value.
func (ev *Evaluator) addFlows(f *Flows, row []float64) error {
	values, err := ev.Values(row)
	if err != nil {
		return err
	}
	root := ev.g.Root
	if math.IsInf(values[root][0], -1) {
		f.Impossible++
		return nil
	}
	f.Rows++
	f.LogLikelihood += values[root][0]
	flow := ev.units()
	flow[root][0] = 1
	for i := int(root); i >= 0; i-- {
		n, id := &ev.g.Nodes[i], circuit.NodeID(i)
		own := ev.g.Owner(id)
		for u := range n.Units {
			here := flow[i][u]
			if here == 0 {
				continue
			}
			f.Nodes[i][u] += here
			switch n.Kind {
			case circuit.Input:
				if x := row[n.Var]; !math.IsNaN(x) {
					t := make([]float64, n.Leaf.NumStats())
					n.Leaf.Stats(x, t)
					for k, v := range t {
						f.Stats[own][u*len(t)+k] += here * v
					}
					f.Weights[own][u] += here
				}
			case circuit.Product:
				for _, c := range n.Children {
					flow[c][u] += here
				}
			case circuit.Sum:
				for _, e := range ev.edges[i][u] {
					share := here * math.Exp(e.log+values[e.child][e.unit]-values[i][u])
					flow[e.child][e.unit] += share
					f.Params[own][e.param] += share
				}
			}
		}
	}
	return nil
}
