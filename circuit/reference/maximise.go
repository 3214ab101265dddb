package reference

import (
	"fmt"
	"math"

	"github.com/pce-engine/pce/circuit"
)

// Maximise evaluates a row by maxima: a sum has the largest of its weights times its
// children, an input whose cell is missing its largest probability or density. It
// returns the log value of the root and the completion that gives it: from the root
// down, a sum picks its first edge of the largest product, an input its mode.
// Variables outside the scope stay missing.
//
// The completion has at least the returned log-likelihood. In a deterministic circuit
// it is the most probable one.
func (ev *Evaluator) Maximise(given []float64) ([]float64, float64, error) {
	values, err := ev.maxima(given, func(terms []float64) float64 {
		top := math.Inf(-1)
		for _, t := range terms {
			top = max(top, t)
		}
		return top
	})
	if err != nil {
		return nil, 0, err
	}
	top := values[ev.g.Root][0]
	if math.IsInf(top, -1) {
		return nil, 0, fmt.Errorf("%w: the observed cells have probability 0", ErrRow)
	}
	row := append([]float64{}, given...)
	var walk func(id circuit.NodeID, unit int)
	walk = func(id circuit.NodeID, unit int) {
		n := &ev.g.Nodes[id]
		switch n.Kind {
		case circuit.Input:
			if math.IsNaN(row[n.Var]) {
				row[n.Var] = n.Leaf.Mode(leafParams(ev.g, ev.p, id, unit))
			}
		case circuit.Product:
			for _, c := range n.Children {
				walk(c, unit)
			}
		case circuit.Sum:
			pick, best := edge{}, math.Inf(-1)
			for _, e := range ev.edges[id][unit] {
				if l := e.log + values[e.child][e.unit]; l > best {
					pick, best = e, l
				}
			}
			walk(pick.child, pick.unit)
		}
	}
	walk(ev.g.Root, 0)
	return row, top, nil
}

// Bound returns the log of a number that the probability of no completion of a row
// exceeds: the value of the root if every input whose cell is missing has its largest
// probability or density and sums are added up.
func (ev *Evaluator) Bound(given []float64) (float64, error) {
	values, err := ev.maxima(given, logSumExp)
	if err != nil {
		return 0, err
	}
	return values[ev.g.Root][0], nil
}

// maxima is Values with the largest log densities of inputs whose cells are missing,
// and with sums of log terms as given.
func (ev *Evaluator) maxima(row []float64, sum func([]float64) float64) ([][]float64, error) {
	return ev.evaluate(row, sum, func(_ int, l circuit.Leaf, p []float64) float64 { return l.LogProb(p, l.Mode(p)) })
}
