package tensor

import (
	"math"
	"testing"
)

// TestAbove compares numbers and exponents of tables with the values that they encode, at both
// ends of a mantissa, where 2 with one exponent is 1 with the next.
func TestAbove(t *testing.T) {
	type number struct{ m, e float32 }
	list := []number{{0, 0}, {1e-30, 0}, {0.5, 0}}
	for _, m := range []float32{1, math.Nextafter32(1, 2), 1.5, math.Nextafter32(2, 1), 2} {
		for _, e := range []float32{-1 << 27, -300, -3, -2, -1, 0} {
			list = append(list, number{m, e})
		}
	}
	log := func(n number) float64 { return math.Log2(float64(n.m)) + float64(n.e) }
	for _, a := range list {
		for _, b := range list {
			if a.e != 0 && b.m < 1 && b.m > 0 || b.e != 0 && a.m < 1 && a.m > 0 {
				continue // a table has exponents for all of its numbers or none
			}
			if got, want := above(a.m, a.e, b.m, b.e), log(a) > log(b); got != want {
				t.Errorf("%v is above %v: %v, want %v", a, b, got, want)
			}
		}
	}
}
