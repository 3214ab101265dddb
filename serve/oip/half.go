package oip

import "math"

// HalfFloat returns the number that 16 bits of FP16 encode.
func HalfFloat(h uint16) float64 {
	sign, exp, frac := 1.0, int(h>>10&0x1f), float64(h&0x3ff)
	if h>>15 != 0 {
		sign = -1
	}
	switch exp {
	case 0:
		return sign * math.Ldexp(frac, -24)
	case 0x1f:
		if frac != 0 {
			return math.NaN()
		}
		return math.Inf(int(sign))
	}
	return sign * math.Ldexp(1024+frac, exp-25)
}

// halfBits rounds to the nearest FP16, ties to even.
func halfBits(x float64) uint16 {
	sign := uint16(0)
	if math.Signbit(x) {
		sign = 1 << 15
	}
	a := math.Abs(x)
	switch {
	case a != a:
		return 0x7e00
	case a >= 65520: // half a step beyond the largest number
		return sign | 0x7c00
	case a < math.Ldexp(1, -14): // subnormal: multiples of 2^-24; 1024 of them carry into the exponent
		return sign | uint16(math.RoundToEven(math.Ldexp(a, 24)))
	}
	exp := math.Ilogb(a)
	steps := uint16(math.RoundToEven(math.Ldexp(a, 10-exp))) // 1024 to 2048
	return sign | (uint16(exp+15)<<10 + steps - 1024)
}

// BFloat returns the number that 16 bits of BF16 encode.
func BFloat(b uint16) float64 { return float64(math.Float32frombits(uint32(b) << 16)) }

// bfloatBits rounds to the nearest BF16, ties to even.
func bfloatBits(x float64) uint16 {
	if x != x {
		return 0x7fc0
	}
	y := float32(x)
	b := math.Float32bits(y)
	// A number that float32 lacks is rounded to the odd one beside it, never a tie here, so
	// that it is rounded once. What is beyond the largest float32 rounds to infinity as it is.
	if wide := float64(y); wide != x && !math.IsInf(wide, 0) && b&1 == 0 {
		if math.Abs(wide) > math.Abs(x) {
			b--
		} else {
			b++
		}
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}
