package lanes

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// TestFusedMultiplyAdd compares with sums of big numbers, rounded once: numbers with
// few bits and near exponents, so that ties and subnormals come up.
func TestFusedMultiplyAdd(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	number := func(low, high int) float32 {
		m := random.Uint32() >> random.IntN(25) &^ (1<<random.IntN(24) - 1)
		x := math.Ldexp(float64(m), low+random.IntN(high-low))
		if random.IntN(2) == 0 {
			x = -x
		}
		return float32(x)
	}
	var d, a, b, c Narrow
	wrong, ties := 0, 0
	for range 20000 {
		low := -80 + 60*random.IntN(2)
		for i := range a {
			x, y := number(low, low+6), number(low, low+6)
			z := number(2*low-20, 2*low+30)
			a[i], b[i], c[i] = math.Float32bits(x), math.Float32bits(y), math.Float32bits(z)
		}
		fma32(&d, &a, &b, &c)
		for i := range d {
			x, y, z := math.Float32frombits(a[i]), math.Float32frombits(b[i]), math.Float32frombits(c[i])
			exact := new(big.Float).SetPrec(400).Mul(big.NewFloat(float64(x)), big.NewFloat(float64(y)))
			exact.Add(exact, big.NewFloat(float64(z)))
			want, _ := exact.Float32()
			if float32(float64(x)*float64(y)+float64(z)) != want {
				ties++
			}
			if got := math.Float32frombits(d[i]); got != want && !(got == 0 && want == 0) {
				if wrong++; wrong < 5 {
					t.Errorf("%g·%g + %g is %g, want %g", x, y, z, got, want)
				}
			}
		}
	}
	if ties < 10 {
		t.Errorf("only %d sums in which rounding twice goes wrong: the test looks at the wrong numbers", ties)
	}
}

// TestHalves compares conversions to f16 with a search for the nearest.
func TestHalves(t *testing.T) {
	for h := range 0x7c00 {
		x := Half(uint16(h))
		if got := toHalf(x, nearest); got != uint16(h) {
			t.Fatalf("f16 %#x becomes %#x", h, got)
		}
		if got := singleToHalf(math.Float32bits(float32(-x))); got != uint32(h)|0x8000 {
			t.Fatalf("f16 -%#x becomes %#x", h, got)
		}
		// Between this one and the next, at a tie and beside it.
		next := Half(uint16(h + 1))
		if h == 0x7bff {
			next = 65536
		}
		tie := (x + next) / 2
		for _, c := range []struct {
			x  float64
			by [4]int // nearest, towards zero, down, up: 1 for the next
		}{
			{x: math.Nextafter(tie, 0), by: [4]int{0, 0, 0, 1}},
			{x: tie, by: [4]int{h & 1, 0, 0, 1}},
			{x: math.Nextafter(tie, 1e9), by: [4]int{1, 0, 0, 1}},
		} {
			for r, more := range c.by {
				if got := toHalf(c.x, rounding(r)); got != uint16(h+more) {
					t.Fatalf("%g rounded to f16 by %d is %#x, want %#x", c.x, r, got, h+more)
				}
			}
		}
		if got := singleToHalf(math.Float32bits(float32(tie))); got != uint32(h+h&1) {
			t.Fatalf("%g rounded to f16 is %#x", tie, got)
		}
	}
}
