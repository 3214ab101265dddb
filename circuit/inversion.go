package circuit

import (
	"math"
	"math/rand/v2"
)

// leastTop is the probability of a mode below which a distribution is so wide, with a deviation of 4,000 and more, that a walk
// over its numbers would take too long: one of counts around 1e12 has a million steps.
const leastTop = 1e-4

// drawUnimodal draws a whole number from 0 to last of a distribution whose probabilities are log-concave: by inversion, walking
// from the mode outwards, in about as many steps as the standard deviation, or by rejection where these are many.
func drawUnimodal(mode, last float64, logProb func(x float64) float64, rng *rand.Rand) float64 {
	if top := logProb(mode); top < math.Log(leastTop) {
		return drawWide(mode, last, top, logProb, rng)
	}
	u := rng.Float64()
	for lo, hi := mode, mode+1; lo >= 0 || hi <= last; lo, hi = lo-1, hi+1 {
		below, above := 0.0, 0.0
		if lo >= 0 {
			if below = math.Exp(logProb(lo)); u < below {
				return lo
			}
			u -= below
		}
		if hi <= last {
			if above = math.Exp(logProb(hi)); u < above {
				return hi
			}
			u -= above
		}
		if below == 0 && above == 0 {
			break
		}
	}
	return mode // u was the mass that rounding lost
}

// drawWide is drawUnimodal by rejection, in about four tries: top is the log of the mode's probability p, and no number at a distance
// of x has more than p·min(1, e^(1 + p/2 - p·x)). L. Devroye, "A Simple Generator for Discrete Log-Concave Distributions", 1987.
func drawWide(mode, last, top float64, logProb func(x float64) float64, rng *rand.Rand) float64 {
	p := math.Exp(top)
	w := 1 + p/2
	for {
		x := w + rng.ExpFloat64() // the distance, times p: beyond the flat part of the bound, or in it
		if rng.Float64() < w/(1+w) {
			x = w * rng.Float64()
		}
		at := mode + math.Round(x/p)
		if rng.Uint64()&1 == 0 {
			at = mode - math.Round(x/p)
		}
		if at >= 0 && at <= last && math.Log(1-rng.Float64())+min(0, w-x) <= logProb(at)-top {
			return at
		}
	}
}
