package rtl

// The operators compute with the format of float64 for numbers that are not negative: results
// are rounded to nearest, ties to even, and a result below the least normal number is 0. No
// value reaches the largest finite number, which Compile makes sure of, so there are neither
// infinities nor NaN.

// minNormal is the least positive number of the format.
const minNormal = 0x1p-1022

// Multiply is the multiplier. A product that rounds to less than the least normal number with
// an exponent of any size is 0: hardware looks at the exponent after it has rounded.
func Multiply(a, b float64) float64 {
	p := a * b
	if p > minNormal {
		return p
	}
	// Near the least normal number float64 rounds to fewer digits. The smaller factor is below
	// 2^-510, so the scaled product is exact to the usual digits.
	const scale = 0x1p600
	if min(a, b)*scale*max(a, b) >= minNormal*scale {
		return minNormal
	}
	return 0
}

// Add is the adder.
func Add(a, b float64) float64 { return a + b }

// product is x times y, which compilation folds into tables and weights. Least knows only what is left of them, so a value other than 0
// that the format does not hold is noted.
func (d *Datapath) product(x, y float64) float64 {
	p := x * y
	d.lost = d.lost || p < minNormal && x > 0 && y > 0
	return p
}

// flush returns a constant as the format has it.
func flush(x float64) float64 {
	if x < minNormal {
		return 0
	}
	return x
}

// valueBits is the width of a number: float64 without its sign.
const valueBits = 63

// maxLog2 bounds the values of a datapath: no operation overflows below it.
const maxLog2 = 1023
