package elementary

import (
	"math"
	"math/big"
	"testing"
)

// exact returns exp(x) of a finite x: the power of the series of a small part of x.
func exact(x float64) float64 {
	const doublings = 20
	small := new(big.Float).SetPrec(300).SetFloat64(math.Ldexp(x, -doublings))
	sum, term := big.NewFloat(1).SetPrec(300), big.NewFloat(1).SetPrec(300)
	for i := 1; i <= 30; i++ {
		term.Quo(term.Mul(term, small), big.NewFloat(float64(i)))
		sum.Add(sum, term)
	}
	for range doublings {
		sum.Mul(sum, sum)
	}
	y, _ := sum.Float64()
	return y
}

// TestExp compares with the exact value up to the largest number and from there, and wants the bits of math.Exp below.
func TestExp(t *testing.T) {
	const last = 709.782712893384 // whose exp is finite, that of the next number is not
	for i := range 1000 {
		x := 709 + (last-709)*float64(i)/999
		if got, want := Exp(x), exact(x); !(math.Abs(got/want-1) <= 1e-15) {
			t.Errorf("exp(%v) is %v, want %v", x, got, want)
		}
	}
	for _, x := range []float64{math.Nextafter(last, 710), 709.79, 710, 1e300, math.Inf(1)} {
		if got := Exp(x); !math.IsInf(got, 1) {
			t.Errorf("exp(%v) is %v, want +Inf", x, got)
		}
	}
	for _, x := range []float64{-1e300, -745, -709.7, -1, 0, 1, 709, math.Inf(-1), math.NaN()} {
		if got, want := Exp(x), math.Exp(x); math.Float64bits(got) != math.Float64bits(want) {
			t.Errorf("exp(%v) is %v, want %v", x, got, want)
		}
	}
}
