package reference

import (
	"fmt"
	"iter"
	"math"

	"github.com/pce-engine/pce/circuit"
)

// maxStates bounds how many rows States yields.
const maxStates = 1 << 24

// States yields every completion of the missing cells of a row, for circuits
// whose missing variables have small finite domains; all states if every cell
// is missing. Variables outside the scope stay missing. The yielded slice is
// used again.
func States(g *circuit.Graph, given []float64) (iter.Seq[[]float64], error) {
	if len(given) != g.NumVars {
		return nil, fmt.Errorf("%w: %d cells; want %d", ErrRow, len(given), g.NumVars)
	}
	domains := circuit.Domains(g)
	var open []int
	states := 1
	for v, codes := range domains {
		if codes < 0 || !math.IsNaN(given[v]) {
			continue
		}
		if codes == 0 {
			return nil, fmt.Errorf("%w: variable %d is not finite", ErrDomain, v)
		}
		if states *= codes; states > maxStates {
			return nil, fmt.Errorf("%w: more than %d; fix some variables", ErrDomain, maxStates)
		}
		open = append(open, v)
	}
	return func(yield func([]float64) bool) {
		row := append([]float64{}, given...)
		for s := range states {
			for _, v := range open {
				row[v] = float64(s % domains[v])
				s /= domains[v]
			}
			if !yield(row) {
				return
			}
		}
	}, nil
}

// MissingRow returns a row of missing cells.
func MissingRow(vars int) []float64 {
	row := make([]float64, vars)
	for v := range row {
		row[v] = math.NaN()
	}
	return row
}

// Mass sums the probabilities of all completions of a row; 1 if all its cells
// are missing and the circuit is normalised.
func (ev *Evaluator) Mass(given []float64) (float64, error) {
	states, err := States(ev.g, given)
	if err != nil {
		return 0, err
	}
	mass := 0.0
	for row := range states {
		ll, err := ev.LogLikelihood(row)
		if err != nil {
			return 0, err
		}
		mass += math.Exp(ll)
	}
	return mass, nil
}
