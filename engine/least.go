package engine

import "math"

// leastNumber returns the smallest number from low to high at which reaches is true, high if it is so at none. It halves the
// count of floats between two numbers, not their distance. So it ends after 64 steps whatever the ends are, infinite ones
// included, and a number near 0 has all of its digits. If whole, reaches depends on the whole part of a number alone.
func leastNumber(low, high float64, whole bool, reaches func(x float64) bool) float64 {
	lo, hi := ordinal(low), ordinal(high)
	for lo < hi {
		mid := lo&hi + (lo^hi)>>1 // their mean; the sum may overflow
		x := floatAt(mid)
		if whole {
			x = math.Floor(x)
		}
		if reaches(x) {
			hi = ordinal(x)
		} else if lo = mid + 1; whole {
			lo = max(lo, ordinal(x+1))
		}
	}
	return floatAt(hi)
}

// ordinal returns the place of a number among all floats in their order, 0 for 0.
func ordinal(x float64) int64 {
	n := int64(math.Float64bits(math.Abs(x)))
	if x < 0 {
		return -n
	}
	return n
}

// floatAt returns the number at a place, as of ordinal.
func floatAt(n int64) float64 {
	if n < 0 {
		return -math.Float64frombits(uint64(-n))
	}
	return math.Float64frombits(uint64(n))
}
