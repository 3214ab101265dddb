package simt

import "math"

// Expansions of functions into operations that every back end computes to the same bit:
// sums are formed by FMA alone, in a fixed order.

// These bound the relative errors of Exp2, of natural logarithms and of those to base 2, in units of the last
// place of the result, subnormal results of Exp2 excepted, which are within one unit of
// theirs.
const (
	Exp2Error = 1
	LogError  = 2
	Log2Error = 3
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

// Log returns the natural logarithm of x·2^power, which need not be in range itself: -Inf of 0, NaN of a negative number or a NaN.
func (b *Builder) Log(x Value, power int) Value {
	t := b.TypeOf(x)
	f := formOf(t)
	zero, inf := b.Float(t, 0), b.Float(t, math.Inf(1))
	tiny := b.Binary(Lt, x, b.Float(t, math.Ldexp(1, int(1-f.bias))))
	lift := f.mantissa + 2
	y := b.Select(tiny, b.Mul(x, b.Float(t, math.Ldexp(1, lift))), x)
	d, k := b.decompose(y, 0)
	k = b.FMA(k, b.Float(t, math.Ldexp(1, -f.mantissa)), b.Select(tiny, b.Float(t, float64(power-lift)), b.Float(t, float64(power))))
	y = b.FMA(d, b.Mul(d, b.series(d, 1)), b.FMA(k, b.Float(t, math.Ln2), d))
	y = b.Select(b.Binary(Eq, x, inf), inf, y)
	y = b.Select(b.Binary(Eq, x, zero), b.Float(t, math.Inf(-1)), y)
	return b.Select(b.Binary(Le, zero, x), y, b.Float(t, math.NaN()))
}

// LogNormal is Log of a finite number that is positive and not subnormal, where 2^power and 2^(-power-1) are such numbers too. Of 0 and of subnormal
// numbers it is one that is less than that of the least normal number, of any other some number.
func (b *Builder) LogNormal(x Value, power int) Value {
	t := b.TypeOf(x)
	d, k := b.decompose(x, power)
	return b.FMA(d, b.Mul(d, b.series(d, 1)), b.FMA(k, b.Float(t, math.Ldexp(math.Ln2, -formOf(t).mantissa)), d))
}

// Log2Normal is the logarithm to base 2 of such a number.
func (b *Builder) Log2Normal(x Value) Value {
	t := b.TypeOf(x)
	d, k := b.decompose(x, 0)
	p := b.FMA(d, b.series(d, 1/math.Ln2), b.Float(t, 1/math.Ln2))
	return b.FMA(d, p, b.Mul(k, b.Float(t, math.Ldexp(1, -formOf(t).mantissa))))
}

// decompose returns d and k·2^mantissa for a normal number x = (1+d)·2^(k-power), with 1+d between √½ and √2. Both are exact.
func (b *Builder) decompose(x Value, power int) (d, k Value) {
	t := b.TypeOf(x)
	f := formOf(t)
	bits := b.Bitcast(f.bits, x)
	// The exponent of x/√½ is k: subtracting the bits of √½ borrows from it below.
	root := int64(FloatBits(t, math.Ldexp(math.Sqrt2/2, -power)))
	k = b.Binary(And, b.Sub(bits, b.Int(f.bits, root)), b.Int(f.bits, -1<<f.mantissa))
	m := b.Bitcast(t, b.Sub(bits, k)) // (1+d)/2^power
	if power == 0 {
		return b.Sub(m, b.Float(t, 1)), b.Convert(t, k)
	}
	return b.FMA(m, b.Float(t, math.Ldexp(1, power)), b.Float(t, -1)), b.Convert(t, k)
}

// series returns the polynomial s for which the largest relative error of d + d²·s(d) as the natural logarithm of 1+d, for d between √½-1
// and √2-1, is least, times a factor. It is 3.0e-8, and 5.0e-17 of f64. Half as many terms in d/(2+d) take longer, as a
// division is as long as eight to sixteen of them on processors with AVX-512.
func (b *Builder) series(d Value, factor float64) Value {
	t := b.TypeOf(d)
	if t == F32 {
		return b.polynomial(t, d, times(factor, -0.499999916063530580919, 0.333339502213794294423, -0.250017552594339667663, 0.199620721494184012818,
			-0.165705080411398250527, 0.149179733126436245121, -0.14307522561479727889, 0.0873484492472734254613))
	}
	// Each of so many terms would wait for the one before it, so the even and the odd ones are apart.
	even := times(factor, -0.499999999999999733269, -0.25000000000012364327, -0.166666666662675036673, -0.124999998297222637341, -0.1000001818953568833,
		-0.0833255199501841780991, -0.0716026132914396029464, -0.06041116391244960295, -0.0678707258050690600158, -0.0283005158320338201877)
	odd := times(factor, 0.333333333333280944208, 0.200000000017417758139, 0.142857140871653146389, 0.111111220183321686045, 0.0909058328873909521045,
		0.0769771074464771414711, 0.0662160729471745551353, 0.0597352878031415146571, 0.0632513971178396514188)
	square := b.Mul(d, d)
	return b.FMA(b.polynomial(t, square, odd), d, b.polynomial(t, square, even))
}

// times multiplies numbers by a factor.
func times(factor float64, c ...float64) []float64 {
	for i := range c {
		c[i] *= factor
	}
	return c
}
