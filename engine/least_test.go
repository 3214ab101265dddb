package engine

import (
	"math"
	"testing"
)

// TestLeastNumber looks for numbers of all sizes between ends of all sizes, and wants exactly these in few steps.
func TestLeastNumber(t *testing.T) {
	inf := math.Inf(1)
	numbers := []float64{-inf, -math.MaxFloat64, -1e60, -3, -1e-300, -math.SmallestNonzeroFloat64, 0, math.SmallestNonzeroFloat64, 1e-300, 0.1, 1, 3, 1 << 53, 1e60, math.MaxFloat64, inf}
	for i, low := range numbers {
		for k, high := range numbers[i:] {
			for j, want := range numbers {
				for _, whole := range []bool{false, true} {
					if whole && want != math.Trunc(want) {
						continue
					}
					steps := 0
					got := leastNumber(low, high, whole, func(x float64) bool { steps++; return x >= want })
					if want := numbers[min(max(j, i), i+k)]; !(got == want || whole && want != math.Trunc(want) && got == math.Floor(want)) || steps > 64 {
						t.Errorf("from %v to %v: %v after %d steps, want %v (whole: %v)", low, high, got, steps, want, whole)
					}
				}
			}
		}
	}
	for x := range 40 { // steps within a whole number are left out
		steps := 0
		if got := leastNumber(-inf, inf, true, func(y float64) bool { steps++; return y >= float64(x) }); got != float64(x) || steps > 24 {
			t.Errorf("%v after %d steps, want %v after few", got, steps, x)
		}
	}
}
