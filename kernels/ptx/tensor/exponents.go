package tensor

import (
	"math"

	"github.com/pce-engine/pce/kernels/ptx"
)

// Exponents lie between Lost and Most, so that the difference of any two is an S32.
// Sums stop at both ends. A value whose exponent is Lost is not told from 0: Lost
// plus any exponent is Lost again. none is the exponent of a zero, below all others.
const (
	Lost = -3 << 29
	Most = 1<<29 - 1
	none = math.MinInt32
)

// exponentSum adds up the exponents of the factors of a product.
type exponentSum struct{ sum, least ptx.Value } // S32; least is the smallest of all terms and sums

// start returns to an empty sum.
func (k *kernel) start(e exponentSum) {
	k.Set(e.sum, 0)
	k.Set(e.least, 0)
}

// addTo adds an exponent, as memory has it.
func (k *kernel) addTo(e exponentSum, exp ptx.Value) {
	k.Into(e.sum).AddSat(e.sum, exp)
	k.Into(e.least).Min(e.least, k.Min(e.sum, exp))
}

// settle returns the exponent that a sum has come to.
func (k *kernel) settle(e exponentSum) ptx.Value {
	return k.Select(k.Le(e.least, Lost), Lost, k.Min(e.sum, Most))
}

// addExponents returns the exponent of a product of two values, given theirs.
func (k *kernel) addExponents(x, y ptx.Value) ptx.Value {
	sum := k.AddSat(x, y)
	return k.Select(k.Le(k.Min(k.Min(x, y), sum), Lost), Lost, k.Min(sum, Most))
}
