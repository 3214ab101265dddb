package codec

import (
	"math"

	"github.com/pce-engine/pce/circuit"
)

// masses writes the probabilities of a leaf's codes with parameters p to dst, up to a
// factor. They are those of circuit.Leaf.LogProb, computed so that every processor
// gets the same bits.
func masses(dst []float64, l circuit.Leaf, p []float64) error {
	switch l := l.(type) {
	case circuit.Binomial:
		binomial(dst, p[0])
	case circuit.DiscretisedLogistic:
		discretisedLogistic(dst, p[0], p[1])
	case circuit.Histogram:
		for i, q := range p {
			from, to := l.Edges[i], l.Edges[i+1]
			for x := from; x < to; x++ {
				dst[x] = q / float64(to-from)
			}
		}
	case circuit.Indicator:
		clear(dst)
		dst[l.Value] = 1
	default:
		if !circuit.ParamsAreTable(l) {
			return badModel("leaves of the family %s have no table that is the same on all processors", l.Name())
		}
		copy(dst, p)
	}
	return nil
}

// binomial goes from the mode in both directions by the ratio of neighbours,
// P(x+1)/P(x) = (n-x)/(x+1) · p/(1-p), so nothing overflows.
func binomial(dst []float64, p float64) {
	clear(dst)
	n := len(dst) - 1
	switch p {
	case 0:
		dst[0] = 1
		return
	case 1:
		dst[n] = 1
		return
	}
	mode := min(int(float64(n+1)*p), n)
	odds := p / (1 - p)
	dst[mode] = 1
	for x := mode; x < n; x++ {
		dst[x+1] = float64(float64(dst[x]*float64(n-x))/float64(x+1)) * odds
	}
	for x := mode; x > 0; x-- {
		dst[x-1] = float64(float64(dst[x]*float64(x))/float64(n-x+1)) / odds
	}
}

// discretisedLogistic uses S(b) - S(a) = (1 - e^(a-b)) / ((1 + e^a) · (1 + e^-b)) for
// the borders a and b of a code; the ends have one border.
func discretisedLogistic(dst []float64, mean, scale float64) {
	last := len(dst) - 1
	inner := 1 - exp(-1/scale)
	for x := range dst {
		at := float64(x) - mean
		mass := 1.0
		if x > 0 {
			mass /= 1 + exp((at-0.5)/scale)
		}
		if x < last {
			mass /= 1 + exp(-(at+0.5)/scale)
			if x > 0 {
				mass *= inner
			}
		}
		dst[x] = mass
	}
}

// Everything in this package that decides about a bit of a file computes with +, -, *
// and / of float64 alone, which IEEE 754 defines to the last bit. Go may join a product
// and a sum to one operation with one rounding, unless the product is converted
// explicitly: hence float64(a*b). math.Exp and its like differ between processors.

const (
	ln2High = 6.93147180369123816490e-01 // the first 33 bits of ln 2
	ln2Low  = 1.90821492927058770002e-10
	perLn2  = 1.44269504088896338700e+00
)

// exp returns e^x to a few units in the last place; 0 below -708, and 2^1023 above 709.
func exp(x float64) float64 {
	switch {
	case !(x >= -708):
		return 0
	case x > 709:
		return 0x1p1023
	}
	k := math.Floor(float64(x*perLn2) + 0.5)
	r := float64(x-float64(k*ln2High)) - float64(k*ln2Low) // |r| <= ln(2)/2
	sum := 1.0
	for n := 15.0; n > 0; n-- { // Σ rⁿ/n!, whose last term is below 2^-60
		sum = 1 + float64(float64(sum*r)/n)
	}
	return float64(sum * power2(int64(k)))
}

// power2 returns 2^k, and 0 for k below -1022. k is at most 1023.
func power2(k int64) float64 {
	if k < -1022 {
		return 0
	}
	return math.Float64frombits(uint64(k+1023) << 52)
}
