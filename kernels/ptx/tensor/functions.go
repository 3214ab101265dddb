package tensor

import (
	"math"

	"github.com/pce-engine/pce/kernels/ptx"
)

// Natural logarithm of 2 in two parts: the float64 next to it, and the rest.
const (
	ln2High = 0x1.62e42fefa39efp-1
	ln2Low  = math.Ln2 - 0x1.62e42fefa39efp-1
)

// wholeShift moves a float64 below 2^51 to where its last bit counts ones.
const wholeShift = 0x1.8p52

// poly returns c[0] + x·(c[1] + x·(…)) in float64, of at least two terms.
func (k *kernel) poly(x ptx.Value, c []float64) ptx.Value {
	p := k.FMA(x, c[len(c)-1], c[len(c)-2])
	for i := len(c) - 3; i >= 0; i-- {
		p = k.FMA(p, x, c[i])
	}
	return p
}

// expSeries holds 1/(i+first)! for i < n.
func expSeries(first, n int) []float64 {
	c := make([]float64, n)
	f := 1.0
	for i := 1; i < first+n; i++ {
		f *= float64(i)
		if i >= first {
			c[i-first] = 1 / f
		}
	}
	if first == 0 {
		c[0] = 1
	}
	return c
}

// log returns the natural logarithm of a normal float64 above 0, or of 0.
//
// With x = 2^e·(1+f), √½ < 1+f < √2 and s = f/(2+f) it is e·log 2 + 2·artanh s,
// and 2s = f - s·f keeps the digits of a small f.
func (k *kernel) log(x ptx.Value) ptx.Value {
	bits := x.As(ptx.S64)
	e := k.Shr(k.Sub(bits, int64(0x3fe6a09e667f3bcd)), 52)
	m := k.Sub(bits, k.Shl(e, 52)).As(ptx.F64)
	f := k.Sub(m, 1)
	s := k.Div(f, k.Add(f, 2))
	z := k.Mul(s, s)
	c := make([]float64, 10)
	for i := range c {
		c[i] = 2 / float64(2*i+3)
	}
	r := k.Mul(z, k.poly(z, c))
	y := k.Sub(f, k.Mul(s, k.Sub(f, r)))
	n := k.Cvt(ptx.F64, e, "rn")
	y = k.FMA(n, ln2High, k.FMA(n, ln2Low, y))
	return k.Select(k.Gt(x, 0), y, math.Inf(-1))
}

// log1p returns log(1+x) for -1 <= x: the logarithm of the rounded sum, and what
// rounding took from it.
func (k *kernel) log1p(x ptx.Value) ptx.Value {
	u := k.Add(x, 1)
	y := k.Add(k.log(u), k.Div(k.Sub(x, k.Sub(u, 1)), u))
	return k.Select(k.Gt(u, 0), y, math.Inf(-1))
}

// scaled returns 2^n·e^r for |r| < 0.35, where the low bits of whole hold n, and
// 0 unless kept.
func (k *kernel) scaled(r, whole, kept ptx.Value) ptx.Value {
	y := k.poly(r, expSeries(0, 14)).As(ptx.S64)
	y = k.Add(y, k.Shl(whole.As(ptx.S64), 52))
	return k.Select(kept, y.As(ptx.F64), 0.0)
}

// exp returns e^x for x <= 700, and 0 for what is less than normal numbers.
func (k *kernel) exp(x ptx.Value) ptx.Value {
	whole := k.FMA(x, math.Log2E, wholeShift)
	n := k.Sub(whole, wholeShift)
	r := k.FMA(n, -ln2Low, k.FMA(n, -ln2High, x))
	return k.scaled(r, whole, k.Gt(x, -708))
}

// exp2 returns 2^x for x <= 1000, and 0 for what is less than normal numbers.
func (k *kernel) exp2(x ptx.Value) ptx.Value {
	whole := k.Add(x, wholeShift)
	n := k.Sub(whole, wholeShift)
	return k.scaled(k.Mul(k.Sub(x, n), ln2High), whole, k.Gt(x, -1022))
}

// log1mexp returns log(1 - e^-a) for a > 0.
func (k *kernel) log1mexp(a ptx.Value) ptx.Value {
	// Near 0, 1 - e^-a = a·(1 - a/2 + a²/6 …) has all digits; beyond, e^-a has.
	near := k.Lt(a, math.Ln2)
	x := k.Neg(k.Min(a, math.Ln2))
	small := k.log(k.Mul(k.Neg(x), k.poly(x, expSeries(1, 18))))
	large := k.log1p(k.Neg(k.exp(k.Neg(a))))
	return k.Select(near, small, large)
}

// softplus returns log(1 + e^x).
func (k *kernel) softplus(x ptx.Value) ptx.Value {
	return k.Add(k.Max(x, 0), k.log1p(k.exp(k.Neg(k.Abs(x)))))
}

// logFactorial returns log n! of a whole number from 0, in float64: of products
// below 10, by Stirling's series from there on.
func (k *kernel) logFactorial(n ptx.Value) ptx.Value {
	product := k.Mov(ptx.F64, 1)
	for i := 2; i < 10; i++ {
		product = k.Mul(product, k.Select(k.Ge(n, i), k.Mov(ptx.F64, i), 1))
	}
	few := k.Lt(n, 10)
	l := k.log(k.Select(few, product, n))
	i := k.Rcp(k.Max(n, 1))
	tail := k.Mul(i, k.poly(k.Mul(i, i), []float64{
		1. / 12, -1. / 360, 1. / 1260, -1. / 1680, 1. / 1188, -691. / 360360, 1. / 156,
	}))
	tail = k.Add(tail, math.Log(2*math.Pi)/2)
	return k.Select(few, l, k.Add(k.Sub(k.Mul(k.Add(n, 0.5), l), n), tail))
}
