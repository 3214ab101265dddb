package codec

import (
	"github.com/pce-engine/pce/circuit"
)

// table holds the cumulative probabilities of an input: below[x-1][unit] is the unit's
// probability of the codes below x, for x of 1..codes-1. Those below 0 are 0, and those
// below codes are 1.
type table struct {
	below []float64
	units int
	codes int
}

// newTable makes the cumulative probabilities of a leaf's units, normalised, for all codes but
// the last. Units that give no code a probability are an error that matches ErrModel.
func newTable(l circuit.Leaf, units int, params []float32) (table, error) {
	t := table{units: units, codes: l.Codes()}
	t.below = make([]float64, (t.codes-1)*units)
	p := make([]float64, l.NumParams())
	mass := make([]float64, t.codes)
	for u := range units {
		for i := range p {
			p[i] = float64(params[u*len(p)+i])
		}
		if err := masses(mass, l, p); err != nil {
			return t, err
		}
		all := 0.0
		for _, x := range mass {
			all += x
		}
		if !(all > 0) {
			return t, badModel("%s leaf with parameters %v gives no code a probability", l.Name(), p[:min(len(p), 8)])
		}
		sum := 0.0
		for x, q := range mass[:t.codes-1] {
			sum += q
			t.below[x*units+u] = min(sum/all, 1)
		}
	}
	return t, nil
}

// row returns the probabilities of the codes below x, 0 < x < codes.
func (t *table) row(x int) []float64 { return t.below[(x-1)*t.units:][:t.units] }
