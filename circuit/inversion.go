package circuit

import (
	"math"
	"math/rand/v2"
)

// drawUnimodal draws a whole number from 0 to last by inversion, walking from
// the mode outwards: about as many steps as the standard deviation.
func drawUnimodal(mode, last float64, logProb func(x float64) float64, rng *rand.Rand) float64 {
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
