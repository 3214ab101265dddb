package engine

import (
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/layers"
)

// TestStepped asks which numbers completions of histograms may be: whole ones where every unit that counts is of whole breaks, and no
// end of a range that has nothing else of its bin.
func TestStepped(t *testing.T) {
	whole := unit{family: layers.Family(circuit.RealHistogram{Breaks: []float64{0, 1, 2}})}
	fraction := unit{family: layers.Family(circuit.RealHistogram{Breaks: []float64{0, 0.5, 2}})}
	to := func(low, high float64) *softCell { return &softCell{low: low, high: high} }
	for _, test := range []struct {
		name    string
		units   []unit
		weights []float32
		x       float64
		limit   *softCell
		want    bool
	}{
		{"whole", []unit{whole}, []float32{1}, 1, nil, true},
		{"between", []unit{whole}, []float32{1}, 0.5, nil, false},
		{"between, of both kinds", []unit{whole, fraction}, []float32{1, 1}, 0.75, nil, true},
		{"between, of both in the other order", []unit{fraction, whole}, []float32{1, 1}, 0.75, nil, true},
		{"between, of one without a weight", []unit{whole, fraction}, []float32{1, 0}, 0.75, nil, false},
		{"in a range", []unit{fraction}, []float32{1}, 0.4, to(0, 0.5), true},
		{"at its end", []unit{fraction}, []float32{1}, 0.5, to(0, 0.5), false},
		{"at its start", []unit{fraction}, []float32{1}, 0.5, to(0.5, 1), true},
	} {
		s := steppedUnits(test.weights, test.units)
		if got := s.take(test.x, test.limit); got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}
