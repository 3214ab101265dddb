package circuit

import (
	"math"
	"testing"
)

// TestBelow compares distribution functions with integrals and sums of the densities.
func TestBelow(t *testing.T) {
	near := func(leaf Cumulative, p []float64, x, got, want float64) {
		t.Helper()
		if !(math.Abs(got-want) <= 1e-9) {
			t.Errorf("%s %v: the probability of numbers up to %v is %v, want %v", leaf.Name(), p, x, got, want)
		}
	}
	for _, rate := range []float64{1e-9, 0.3, 1, 7.5, 400, 1e5} {
		p, l := []float64{rate}, Poisson{}
		lo := math.Floor(max(0, rate-12*math.Sqrt(rate)-30))
		sum := 0.0
		near(l, p, lo-1, l.Below(p, lo-1), 0)
		for k := lo; k < rate+12*math.Sqrt(rate)+30; k++ {
			sum += math.Exp(l.LogProb(p, k))
			near(l, p, k, l.Below(p, k), sum)
			if next := l.Below(p, k+0.5); next != l.Below(p, k) {
				t.Errorf("poisson %v: %v up to %v and %v up to %v", p, l.Below(p, k), k, next, k+0.5)
			}
		}
	}
	for _, leaf := range []Cumulative{Gaussian{}, LogNormal{}} {
		for _, p := range [][]float64{{0, 1}, {-3, 0.2}, {2, 0.5}} {
			const parts = 4000
			lo, hi := p[0]-12*p[1], p[0]+12*p[1]
			at := func(y float64) (x, slope float64) {
				if leaf.Name() == "log-normal" {
					return math.Exp(y), math.Exp(y)
				}
				return y, 1
			}
			step, sum := (hi-lo)/parts, 0.0
			for k := range parts { // Simpson's rule between neighbours
				y := lo + float64(k)*step
				for i, w := range []float64{1, 4, 1} {
					x, slope := at(y + float64(i)*step/2)
					sum += w * step / 6 * slope * math.Exp(leaf.LogProb(p, x))
				}
				x, _ := at(y + step)
				near(leaf, p, x, leaf.Below(p, x), sum)
			}
		}
	}
	for _, leaf := range []Cumulative{Gaussian{}, LogNormal{}, Poisson{}} {
		p := []float64{2, 1}[:leaf.NumParams()]
		near(leaf, p, math.Inf(-1), leaf.Below(p, math.Inf(-1)), 0)
		near(leaf, p, math.Inf(1), leaf.Below(p, math.Inf(1)), 1)
		if leaf.Name() != "gaussian" {
			near(leaf, p, -1e-300, leaf.Below(p, -1e-300), 0)
		}
	}
}
