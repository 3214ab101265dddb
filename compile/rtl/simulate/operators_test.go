package simulate_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pce-engine/pce/compile/rtl"
	"github.com/pce-engine/pce/compile/rtl/simulate"
	"github.com/pce-engine/pce/compile/rtl/verilog"
)

// pairs are operands of both operators: numbers with long runs of ones and zeros, whose results
// lie on and beside ties, products around the least normal number, exponents at every distance
// that the adder shifts by, and 0.
func pairs(count int) (list [][2]float64) {
	rng := rand.New(rand.NewPCG(1, 2))
	fraction := func() uint64 {
		f := rng.Uint64() >> 12
		switch rng.IntN(5) {
		case 0:
			f = 0
		case 1:
			f = 1<<52 - 1
		case 2:
			f &= uint64(math.MaxUint64) << rng.IntN(53)
		case 3:
			f |= 1<<rng.IntN(53) - 1
		}
		return f & (1<<52 - 1)
	}
	for len(list) < count {
		e := 1 + rng.IntN(1500)
		other := min(max(e+rng.IntN(130)-65, 1), 1500)
		if rng.IntN(3) == 0 { // a product near 2^-1022
			other = min(max(1022-e+rng.IntN(4), 1), 1500)
		}
		p := [2]float64{math.Float64frombits(uint64(e)<<52 | fraction()), math.Float64frombits(uint64(other)<<52 | fraction())}
		if rng.IntN(50) == 0 {
			p[rng.IntN(2)] = 0
		}
		if p[0]*p[1] < 0x1p1023 {
			list = append(list, p)
		}
	}
	// Products that round up to the least normal number in float64's own format, and stay below it
	// where the exponent is free.
	for range 250 {
		a := math.Float64frombits(1022<<52 | fraction())
		b := math.Nextafter(0x1p-1022/a, 1)
		list = append(list, [2]float64{a, b}, [2]float64{a, 0x1p-1022 / a})
	}
	return list
}

// TestOperators compares both operators with the Go model, with fewer, as many and more stages
// than they have steps.
func TestOperators(t *testing.T) {
	sim := tool(t, simulate.Icarus)
	list := pairs(1_500)
	list = append(list[:1_500:1_500], list[len(list)-500:]...)
	var text strings.Builder
	flushed, least := 0, 0
	for _, p := range list {
		fmt.Fprintf(&text, "%016x%016x\n", math.Float64bits(p[0]), math.Float64bits(p[1]))
		switch q := rtl.Multiply(p[0], p[1]); {
		case q == 0 && p[0] > 0 && p[1] > 0:
			flushed++
		case q == 0x1p-1022:
			least++
		}
	}
	if flushed < 50 || least < 10 {
		t.Errorf("%d products are flushed and %d are the least normal number; the pairs say little", flushed, least)
	}
	depths := [][2]int{{6, 13}, {1, 1}, {4, 7}, {9, 30}}
	if testing.Short() {
		depths = depths[:1]
	}
	for _, stages := range depths {
		dir := t.TempDir()
		command, err := simulate.Build(t.Context(), sim, dir, "tb_operators", verilog.Operators(stages[0], stages[1]))
		if err != nil {
			t.Fatal(err)
		}
		in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
		if err := os.WriteFile(in, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := simulate.Command(t.Context(), append(command, "+rows="+in, "+out="+out)); err != nil {
			t.Fatal(err)
		}
		got, err := simulate.Words(out)
		if err != nil || len(got) != 2*len(list) {
			t.Fatalf("%d results, %v; want %d", len(got), err, 2*len(list))
		}
		for i, p := range list {
			if want := rtl.Multiply(p[0], p[1]); got[2*i] != math.Float64bits(want) {
				t.Fatalf("stages %v: %x · %x = %x, want %x", stages, math.Float64bits(p[0]), math.Float64bits(p[1]), got[2*i], math.Float64bits(want))
			}
			if want := rtl.Add(p[0], p[1]); got[2*i+1] != math.Float64bits(want) {
				t.Fatalf("stages %v: %x + %x = %x, want %x", stages, math.Float64bits(p[0]), math.Float64bits(p[1]), got[2*i+1], math.Float64bits(want))
			}
		}
	}
}
