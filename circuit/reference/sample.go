package reference

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/pce-engine/pce/circuit"
)

// Sample fills the missing cells of a row with a draw from their distribution
// given the observed ones. It walks from the root down: a sum picks one edge
// with probability proportional to its flow. Variables outside the circuit's
// scope stay missing.
func (ev *Evaluator) Sample(given []float64, rng *rand.Rand) ([]float64, error) {
	values, err := ev.Values(given)
	if err != nil {
		return nil, err
	}
	if math.IsInf(values[ev.g.Root][0], -1) {
		return nil, fmt.Errorf("%w: the observed cells have probability 0", ErrRow)
	}
	row := append([]float64{}, given...)
	var walk func(id circuit.NodeID, unit int)
	walk = func(id circuit.NodeID, unit int) {
		n := &ev.g.Nodes[id]
		switch n.Kind {
		case circuit.Input:
			if math.IsNaN(row[n.Var]) {
				row[n.Var] = n.Leaf.Sample(leafParams(ev.g, ev.p, id, unit), rng)
			}
		case circuit.Product:
			for _, c := range n.Children {
				walk(c, unit)
			}
		case circuit.Sum:
			u := rng.Float64()
			var pick edge
			for _, e := range ev.edges[id][unit] {
				share := math.Exp(e.log + values[e.child][e.unit] - values[id][unit])
				if share > 0 {
					pick = e
					if u < share {
						break
					}
					u -= share
				}
			}
			walk(pick.child, pick.unit)
		}
	}
	walk(ev.g.Root, 0)
	return row, nil
}
