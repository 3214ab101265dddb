package simt

import "math"

// Expansions of functions into operations that every back end computes to the same bit:
// sums are formed by FMA alone, in a fixed order.

// Exp2Error and Log2Error bound the relative errors of Exp2 and Log2 in units of the last
// place of the result, subnormal results of Exp2 excepted, which are within one unit of
// theirs.
const (
	Exp2Error = 1
	Log2Error = 4
)

// floatForm is what the expansions need to know of f32 or f64.
type floatForm struct {
	bits     Type // the integer of as many bits
	mantissa int
	bias     int64
	lo, hi   float64 // beyond them 2^x is 0 or infinite
	exp      int     // terms of its polynomial
	round    float64 // a number near it has its whole part in the lowest bits of the mantissa
}

func formOf(t Type) floatForm {
	if t == F32 {
		return floatForm{I32, 23, 127, -160, 130, 7, 0x1.8p23}
	}
	return floatForm{I64, 52, 1023, -1090, 1030, 12, 0x1.8p52}
}

// exp2 returns the terms of 2^r for |r| <= 1/2: those of Taylor's series, of which one after the other, from the last, is replaced
// by the polynomial of lesser degree that is nearest to it. T(2r) with Chebyshev's T of degree d, divided by its first coefficient,
// is the smallest polynomial that starts with r^d.
func (f *floatForm) exp2() []float64 {
	const more = 6 // terms that count
	c := make([]float64, f.exp+more)
	c[0] = 1
	for i := 1; i < len(c); i++ {
		c[i] = c[i-1] * math.Ln2 / float64(i)
	}
	for d := len(c) - 1; d >= f.exp; d-- {
		less, t := []float64{1}, []float64{0, 1} // T of degree 0 and 1
		for len(t) <= d {
			next := make([]float64, len(t)+1)
			for i, x := range t {
				next[i+1] = 2 * x
			}
			for i, x := range less {
				next[i] -= x
			}
			less, t = t, next
		}
		for i := range d {
			c[i] -= c[d] * math.Ldexp(t[i]/t[d], i-d)
		}
	}
	return c[:f.exp]
}

// power returns 2^k for an integer k within the range of exponents.
func (b *Builder) power(t Type, k Value) Value {
	f := formOf(t)
	return b.Bitcast(t, b.Shift(Shl, b.Add(k, b.Int(f.bits, f.bias)), f.mantissa))
}

// Exp2 returns 2^x. It is 0 or infinite beyond the range of the type, and NaN of a NaN.
//
// x is cut to k + r with |r| <= 1/2; 2^r is a polynomial, and 2^k is multiplied in two steps, as a subnormal result takes two.
func (b *Builder) Exp2(x Value) Value {
	t := b.TypeOf(x)
	f := formOf(t)
	x = b.Binary(Min, b.Float(t, f.hi), x)
	x = b.Binary(Max, b.Float(t, f.lo), x)
	shifted, r := b.cut(&f, x)
	p := b.polynomial(t, r, f.exp2())
	k := b.Sub(b.Bitcast(f.bits, shifted), b.Int(f.bits, int64(FloatBits(t, f.round))))
	half := b.Shift(Sar, k, 1)
	return b.Mul(b.Mul(p, b.power(t, half)), b.power(t, b.Sub(k, half)))
}

// cut returns x = k + r with |r| <= 1/2, and k as shifted - f.round, whose lowest bits are those of the integer k.
func (b *Builder) cut(f *floatForm, x Value) (shifted, r Value) {
	round := b.Float(b.TypeOf(x), f.round)
	shifted = b.Add(x, round)
	return shifted, b.Sub(x, b.Sub(shifted, round))
}

// Exp2Normal returns 2^x for x of at most 1, with the error of Exp2. It is the least normal number doubled where 2^x
// is less than that, and any number of a NaN.
func (b *Builder) Exp2Normal(x Value) Value {
	t := b.TypeOf(x)
	f := formOf(t)
	shifted, r := b.cut(&f, b.Binary(Max, b.Float(t, float64(2-f.bias)), x))
	p := b.polynomial(t, r, f.exp2())
	k := b.Shift(Shl, b.Bitcast(f.bits, shifted), f.mantissa)
	return b.Bitcast(t, b.Add(b.Bitcast(f.bits, p), k))
}

// Exponent returns the exponent of a finite number that is not negative and less than 2^100, k = floor(log2 x), as
// a number of x's type, and 2^-k. For 0 and subnormal numbers k is that of the largest subnormal numbers.
func (b *Builder) Exponent(x Value) (k, scale Value) {
	t := b.TypeOf(x)
	f := formOf(t)
	biased := b.Shift(Shr, b.Bitcast(f.bits, x), f.mantissa)
	k = b.Convert(t, b.Sub(biased, b.Int(f.bits, f.bias)))
	return k, b.Bitcast(t, b.Shift(Shl, b.Sub(b.Int(f.bits, 2*f.bias), biased), f.mantissa))
}

// polynomial returns Σ c[i]·x^i by Horner's rule.
func (b *Builder) polynomial(t Type, x Value, c []float64) Value {
	p := b.Float(t, c[len(c)-1])
	for i := len(c) - 2; i >= 0; i-- {
		p = b.FMA(p, x, b.Float(t, c[i]))
	}
	return p
}

// Log2 returns the logarithm of x·2^power to base 2, which need not be in range itself: -Inf of 0, NaN of a negative number or a NaN.
func (b *Builder) Log2(x Value, power int) Value {
	t := b.TypeOf(x)
	f := formOf(t)
	zero, inf := b.Float(t, 0), b.Float(t, math.Inf(1))
	tiny := b.Binary(Lt, x, b.Float(t, math.Ldexp(1, int(1-f.bias))))
	lift := f.mantissa + 2
	y := b.Select(tiny, b.Mul(x, b.Float(t, math.Ldexp(1, lift))), x)
	shift := b.Select(tiny, b.Float(t, float64(power-lift)), b.Float(t, float64(power)))
	y = b.log2(y, shift)
	y = b.Select(b.Binary(Eq, x, inf), inf, y)
	y = b.Select(b.Binary(Eq, x, zero), b.Float(t, math.Inf(-1)), y)
	return b.Select(b.Binary(Le, zero, x), y, b.Float(t, math.NaN()))
}

// Log2Normal is Log2 of a finite number that is positive and not subnormal. Of 0 and of subnormal numbers it is one
// that is less than that of the least normal number, of any other some number.
func (b *Builder) Log2Normal(x Value, power int) Value {
	if power == 0 {
		return b.log2(x, None)
	}
	return b.log2(x, b.Float(b.TypeOf(x), float64(power)))
}

// log2 returns the logarithm of a normal number, and shift added unless it is None.
//
// x is m·2^e with m between √½ and √2, and d = m-1 is exact.
func (b *Builder) log2(x, shift Value) Value {
	t := b.TypeOf(x)
	f := formOf(t)
	bits := b.Bitcast(f.bits, x)
	// The exponent of x/√½ is e: subtracting the bits of √½ borrows from it below.
	root := int64(FloatBits(t, math.Sqrt2/2))
	off := b.Sub(bits, b.Int(f.bits, root))
	exponent := b.Binary(And, off, b.Int(f.bits, -1<<f.mantissa)) // times 2^mantissa, which a float is exactly
	m := b.Bitcast(t, b.Sub(bits, exponent))
	one := b.Float(t, 1)
	d := b.Sub(m, one)
	e, unit := b.Convert(t, exponent), b.Float(t, math.Ldexp(1, -f.mantissa))
	if shift == None {
		e = b.Mul(e, unit)
	} else {
		e = b.FMA(e, unit, shift)
	}
	if t == F32 {
		return b.FMA(d, b.polynomial(t, d, log2Terms[:]), e)
	}
	// log2 m = 2/ln 2 · artanh(s) with s = (m-1)/(m+1), an odd series in s.
	s := b.Binary(Div, d, b.Add(m, one))
	var c [11]float64
	for i := range c {
		c[i] = 2 / math.Ln2 / float64(2*i+1)
	}
	p := b.polynomial(t, b.Mul(s, s), c[:])
	return b.FMA(s, p, e)
}

// log2Terms is the polynomial p for which the largest relative error of d·p(d) as log2(1+d) is least, 4.1e-9,
// for d between √½-1 and √2-1. A division, which the series would take, is as long as eight of its terms on
// processors with AVX-512.
var log2Terms = [10]float64{
	1.442695041, -0.7213473515, 0.4808982411, -0.3606966494, 0.288567408,
	-0.2396174031, 0.2046006258, -0.191062764, 0.1861749287, -0.1099494903,
}
