package circuit

import (
	"math"
	"math/rand/v2"
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

// TestDrawOfWideCounts draws counts whose deviation is up to a million, looking at few of them, as their distribution has it. By
// walking from the mode, each draw looked at as many as that.
func TestDrawOfWideCounts(t *testing.T) {
	const draws = 20000
	rng := rand.New(rand.NewPCG(11, 3))
	for _, rate := range []float64{2e7, 1e10, maxRate} {
		l, p, looks := Poisson{}, []float64{rate}, 0
		var mean, square, inner, tail float64
		for range draws {
			x := drawUnimodal(l.Mode(p), math.MaxFloat64, func(x float64) float64 {
				if looks++; looks > 10*draws {
					t.Fatalf("rate %v: %d counts looked at for less than %d draws", rate, looks, draws)
				}
				return l.LogProb(p, x)
			}, rng)
			if x != math.Trunc(x) {
				t.Fatalf("rate %v: drew %v", rate, x)
			}
			z := (x - rate) / math.Sqrt(rate)
			mean, square = mean+z/draws, square+z*z/draws
			if math.Abs(z) < 0.5 {
				inner += 1. / draws
			}
			if z > 2 {
				tail += 1. / draws
			}
		}
		for _, tc := range []struct {
			what             string
			got, want, sigma float64
		}{
			{"mean", mean, 0, 1},
			{"square", square, 1, math.Sqrt2},
			{"share within half a deviation", inner, 0.382925, 0.486},
			{"share beyond two", tail, 0.022750, 0.149},
		} {
			if !(math.Abs(tc.got-tc.want) <= 5*tc.sigma/math.Sqrt(draws)) {
				t.Errorf("rate %v: %s of distances in deviations %v, want %v", rate, tc.what, tc.got, tc.want)
			}
		}
	}
}

// TestDrawWide compares the shares of numbers that are drawn by rejection with their probabilities, where these are few, so that the
// bound of rejection is tight, and where the mode is at an end.
func TestDrawWide(t *testing.T) {
	const draws = 100000
	rng := rand.New(rand.NewPCG(5, 8))
	for _, tc := range []struct {
		leaf interface {
			Leaf
			Mode(p []float64) float64
		}
		p    float64
		last float64
	}{
		{Poisson{}, 0.01, math.MaxFloat64}, {Poisson{}, 0.9, math.MaxFloat64}, {Poisson{}, 7.5, math.MaxFloat64},
		{Binomial{Trials: 1}, 0.5, 1}, {Binomial{Trials: 5}, 0.999, 5}, {Binomial{Trials: 9}, 0.4, 9},
	} {
		p := []float64{tc.p}
		logProb := func(x float64) float64 { return tc.leaf.LogProb(p, x) }
		counts, mode := make([]float64, 60), tc.leaf.Mode(p)
		for range draws {
			counts[int(drawWide(mode, tc.last, logProb(mode), logProb, rng))]++
		}
		for x, n := range counts {
			if float64(x) > tc.last {
				continue
			}
			share := math.Exp(logProb(float64(x)))
			if want := draws * share; !(math.Abs(n-want) <= 5*math.Sqrt(want*(1-share))+1) {
				t.Errorf("%s %v: %v drew %v times of %d, want about %v", tc.leaf.Name(), tc.p, x, n, draws, want)
			}
		}
	}
}
