package xgboost

import (
	"encoding/binary"
	"math"
	"math/bits"
	"strconv"
)

// parse32 rounds a decimal fraction to float32 once, and reads whole numbers exactly
// as float64 has them. Beyond the range of float32 it gives an infinity.
func parse32(text string) (float64, error) {
	if x, err := strconv.ParseInt(text, 10, 53); err == nil {
		return float64(x), nil
	}
	x, err := strconv.ParseFloat(text, 32)
	if err != nil && !math.IsInf(x, 0) {
		return 0, err
	}
	return x, nil
}

var powers = [...]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22}

// decimal reads a number of a usual form fast and exactly, and returns how many bytes of text
// it has, 0 for all other forms. Up to 15 digits times or over a power of ten up to 10^22 is one
// operation on exact float64 numbers, so the result is rounded once. Rounding it to
// float32 is the same as rounding the decimal, unless it lies half-way between two
// float32 numbers.
func decimal(text []byte) (x float64, n int) {
	i, negative := 0, false
	if i < len(text) && text[i] == '-' {
		negative = true
		i++
	}
	mantissa, exponent, start := uint64(0), 0, i
	for ; i < len(text) && text[i]-'0' <= 9; i++ {
		mantissa = 10*mantissa + uint64(text[i]-'0')
	}
	digits, whole := i-start, true
	if digits > 0 && i < len(text) && text[i] == '.' {
		i++
		point := i
		for ; i < len(text) && text[i]-'0' <= 9; i++ {
			mantissa = 10*mantissa + uint64(text[i]-'0')
		}
		digits, exponent, whole = digits+i-point, point-i, false
	}
	if digits == 0 || digits > 15 {
		return 0, 0
	}
	if i < len(text) && (text[i] == 'e' || text[i] == 'E') {
		whole = false
		i++
		minus := false
		if i < len(text) && (text[i] == '-' || text[i] == '+') {
			minus = text[i] == '-'
			i++
		}
		e, from := 0, i
		for ; i < len(text) && text[i] >= '0' && text[i] <= '9' && i-from < 4; i++ {
			e = 10*e + int(text[i]-'0')
		}
		if i == from {
			return 0, 0
		}
		if minus {
			e = -e
		}
		exponent += e
	}
	if exponent > 22 || exponent < -22 {
		return 0, 0
	}
	x = float64(mantissa)
	if exponent < 0 {
		x /= powers[-exponent]
	} else {
		x *= powers[exponent]
	}
	if negative {
		x = -x
	}
	if whole {
		return x, i
	}
	if x = single(x); x != x {
		return 0, 0
	}
	return x, i
}

// single rounds a decimal that was rounded to float64 to float32. It returns NaN where that may differ from rounding the decimal.
func single(x float64) float64 {
	const half = 1 << 28 // of the 29 bits that float64 has more
	if bits := math.Float64bits(x); bits&(1<<29-1) == half || math.Abs(x) < 0x1p-126 && x != 0 || math.Abs(x) > math.MaxFloat32 {
		return math.NaN()
	}
	return float64(float32(x))
}

// usualBytes is what usual looks at: a sign, a digit, a point, eight digits, and an exponent.
const usualBytes = 24

// scales has what a number of up to 10 digits is multiplied with and then divided by for an exponent of -22 to 22, at 22 more.
// One of the two is 1, so that the product is rounded once, and no branch depends on the exponent.
var scales = func() (s [2*len(powers) - 1][2]float64) {
	for e, p := range powers {
		s[len(powers)-1+e] = [2]float64{p, 1}
		s[len(powers)-1-e] = [2]float64{1, p}
	}
	return s
}()

// usual reads a number in the two forms that nearly all have, whole with up to 7 digits and d.ddddE-dd with up to 8 behind the point,
// if a comma or the end of the list follows, and returns how many bytes it has, 0 for all others. Eight digits are read at once: how many
// there are in a number cannot be predicted, and a branch that is predicted wrongly costs as much as the whole. dotted is
// whether to try the second form first; it is set to the form that was found.
func usual(text []byte, dotted *bool) (x float64, n int) {
	if len(text) < usualBytes {
		return 0, 0
	}
	if !*dotted {
		if x, n = usualWhole(text); n > 0 {
			return x, n
		}
	}
	x, n = usualFraction(text)
	if *dotted = n > 0; n == 0 {
		x, n = usualWhole(text)
	}
	return x, n
}

// digits returns the number that the first digits of eight bytes are, and how many they are.
func digits(text []byte) (x uint64, n int) {
	t := binary.LittleEndian.Uint64(text) ^ 0x3030303030303030 // digits become 0 to 9
	other := (t + 0x7676767676767676 | t) & 0x8080808080808080 // the first bit is right, and behind it carries may set some
	n = bits.TrailingZeros64(other) / 8
	t <<= uint(64-8*n) & 127 // zeros in front; none for no digits
	t = t*10 + t>>8
	t = t & 0x00ff00ff00ff00ff
	t = t*100 + t>>16
	t = t & 0x0000ffff0000ffff
	t = t*10000 + t>>32
	return t & 0xffffffff, n
}

// minus returns 1 if text begins with it.
func minus(text []byte) int {
	if text[0] == '-' {
		return 1
	}
	return 0
}

// signed returns x or, for 1, -x.
func signed(x float64, minus int) float64 {
	return math.Float64frombits(math.Float64bits(x) | uint64(minus)<<63)
}

func usualWhole(text []byte) (x float64, n int) {
	m := minus(text)
	whole, n := digits(text[m:])
	if n == 0 || n == 8 || text[m+n] != ',' && text[m+n] != ']' {
		return 0, 0
	}
	return signed(float64(whole), m), m + n
}

func usualFraction(text []byte) (x float64, n int) {
	m := minus(text)
	first := uint64(text[m] - '0')
	if first > 9 || text[m+1] != '.' {
		return 0, 0
	}
	rest, n := digits(text[m+2:])
	if n == 0 {
		return 0, 0
	}
	exponent := -n
	at := m + 2 + n
	if text[at] == 'E' {
		negative := minus(text[at+1:])
		e, k := digits(text[at+1+negative:])
		if k == 0 || k > 2 {
			return 0, 0
		}
		at += 1 + negative + k
		exponent += (int(e) ^ -negative) + negative
	}
	if text[at] != ',' && text[at] != ']' || exponent > 22 || exponent < -22 {
		return 0, 0
	}
	scale := &scales[exponent+22]
	x = float64(first*tens[n]+rest) * scale[0] / scale[1]
	if x = single(x); x != x {
		return 0, 0
	}
	return signed(x, m), at
}

// tens are powers of ten.
var tens = [...]uint64{1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000}
