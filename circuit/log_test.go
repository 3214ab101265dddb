package circuit_test

import (
	"math"
	"testing"

	"github.com/pce-engine/pce/circuit"
)

// TestLog has numbers below and above the least normal one, and those whose logarithm is none.
func TestLog(t *testing.T) {
	for x, want := range map[float64]float64{
		5e-324: -744.4400719213812, 1e-310: -713.8013788281542, 2e-308: -708.5030614616061, 0x1p-1022: -708.3964185322641,
		1: 0, 0x1p1023: 709.0895657128241, 0: math.Inf(-1), math.Inf(1): math.Inf(1),
	} {
		if got := circuit.Log(x); !(got == want || math.Abs(got-want) <= 2e-13) {
			t.Errorf("log %v is %v, want %v", x, got, want)
		}
	}
	if got := circuit.Log(-1); !math.IsNaN(got) {
		t.Errorf("log -1 is %v, want NaN", got)
	}
	// What these have of a parameter or a number of 1e-310, whose logarithm is tiny.
	const tiny = -713.8013788281542
	for _, tt := range []struct {
		leaf    circuit.Leaf
		p       []float64
		x, want float64
	}{
		{circuit.Binomial{Trials: 3}, []float64{1e-310}, 1, math.Log(3) + tiny},
		{circuit.Binomial{Trials: 3}, []float64{1e-310}, 3, 3 * tiny},
		{circuit.Poisson{}, []float64{1e-310}, 1, tiny},
		{circuit.Poisson{}, []float64{1e-310}, 2, 2*tiny - math.Ln2},
		{circuit.Poisson{}, []float64{1e-308}, 40, 40*(math.Log(1e-300)+math.Log(1e-8)) - 110.32063971475740}, // log 40!
		{circuit.Gaussian{}, []float64{5, 1e-310}, 5, -tiny - math.Log(2*math.Pi)/2},
		{circuit.LogNormal{}, []float64{tiny, 1}, 1e-310, -tiny - math.Log(2*math.Pi)/2},
	} {
		if got := tt.leaf.LogProb(tt.p, tt.x); !(math.Abs(got-tt.want) <= 1e-12*math.Abs(tt.want)) {
			t.Errorf("%s with %v at %v is %v, want %v", tt.leaf.Name(), tt.p, tt.x, got, tt.want)
		}
	}
	p := []float64{1 - 5e-324, 5e-324}
	for _, l := range []circuit.Leaf{circuit.Categorical{Categories: 2}, circuit.Bernoulli{}, circuit.Histogram{Edges: []int{0, 1, 2}}, circuit.RealHistogram{Breaks: []float64{0, 1, 2}}} {
		if got := l.LogProb(p, 1); !(math.Abs(got+744.4400719213812) <= 2e-13) {
			t.Errorf("%s: the log of 5e-324 is %v", l.Name(), got)
		}
	}
}
