package circuit

import "math"

// Log is math.Log, whose assembly for amd64 takes every positive number below the least normal one for about that one: of the
// least subnormal number it is off by 35. Probabilities that were imported as float64 may be that small.
func Log(x float64) float64 {
	const least, digits = 0x1p-1022, 52
	if x > 0 && x < least {
		return math.Log(math.Ldexp(x, digits)) - digits*math.Ln2
	}
	return math.Log(x)
}
