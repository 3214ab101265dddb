package circuit

import (
	"math"
	"testing"
)

// TestPoissonOfLargeRates compares log masses with those at a whole rate, which are -log(2π·rate)/2 - 1/(12·rate) + 1/(360·rate³)
// by Stirling's series, and with products of the ratios of neighbours from there.
func TestPoissonOfLargeRates(t *testing.T) {
	for _, rate := range []float64{40, 1e3, 1e6, 1e10, 1e11, maxRate} {
		p, reach := []float64{rate}, math.Floor(min(rate/2, 1e6))
		top := -math.Log(2*math.Pi*rate)/2 - 1/(12*rate) + 1/(360*rate*rate*rate)
		below, above := top, top
		for k := range int(reach) {
			j := float64(k)
			below, above = below+math.Log1p(-j/rate), above-math.Log1p((j+1)/rate)
			if k%97 != 0 && j < reach-1 {
				continue
			}
			for x, want := range map[float64]float64{rate: top, rate - j - 1: below, rate + j + 1: above} {
				if got := (Poisson{}).LogProb(p, x); !(math.Abs(got-want) <= 1e-9*max(1, math.Abs(want))) {
					t.Fatalf("%v of rate %v has %v, want %v", x, rate, got, want)
				}
			}
		}
	}
	// Where the forms meet, both are exact.
	for _, x := range []float64{31, 32, 33, 170} {
		for _, rate := range []float64{1e-6, 1, 32, 50, 1e4} {
			f, _ := math.Lgamma(x + 1)
			want := x*math.Log(rate) - rate - f
			if got := (Poisson{}).LogProb([]float64{rate}, x); !(math.Abs(got-want) <= 1e-13*max(math.Abs(want), f+rate)) {
				t.Errorf("%v of rate %v has %v, want %v", x, rate, got, want)
			}
		}
	}
}
