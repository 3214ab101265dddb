package micro

import "unsafe"

// Exponents of rows lie between Lost and Most, so that the difference of any two is
// an int32. Sums stop at both ends. A value whose exponent is Lost is not told
// from 0: Lost plus any exponent is Lost again.
const (
	Lost = -3 << 29
	Most = 1<<29 - 1
)

// AddExponents returns the exponent of a product of values with the exponents a
// and b.
func AddExponents(a, b int32) int32 {
	if a == Lost || b == Lost {
		return Lost
	}
	return int32(min(max(int64(a)+int64(b), Lost), Most))
}

// Exponent returns the exponent of a value of about 2^e, whatever e is but NaN.
func Exponent(e float64) int32 { return int32(min(max(e, Lost), Most)) }

func genericAddExponents(dst, src *int32, n int) {
	d := unsafe.Slice(dst, n)
	for i, v := range unsafe.Slice(src, n) {
		d[i] = AddExponents(d[i], v)
	}
}
