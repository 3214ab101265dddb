package x86

import (
	"math/rand/v2"
	"testing"

	"github.com/pce-engine/pce/kernels/simt"
)

// network is a module without branches, as those of circuits: columns of bytes, whose places are limited and looked up in
// tables of classes, tables of numbers of a type, by classes of one column and of two, products and sums.
func network(t testing.TB, rng *rand.Rand, typ simt.Type, layout simt.Layout, width int) *simt.Module {
	t.Helper()
	b := simt.NewBuilder("network")
	in, out := b.Input("x", simt.U8, layout, width), b.Output("y", typ, simt.Layout(rng.IntN(2)), 1+rng.IntN(2))
	sizes := []int{2, 3, 4, 5, 6, 7, 8, 8, 9, 15, 16, 17, 24, 25, 31, 32, 33, 47, 48, 49, 64, 65, 90, 128, 129, 200}
	classesOf := func(places, n int) int {
		bits := make([]uint64, places)
		for i := range bits {
			bits[i] = uint64(rng.IntN(n))
		}
		return b.Table(simt.I32, bits)
	}
	numbers := func(n int) int {
		bits := make([]float64, n)
		for i := range bits {
			bits[i] = 0.5 + rng.Float64()
		}
		return b.FloatTable(typ, bits)
	}
	product, sum := b.Float(typ, 1), b.Float(typ, 0)
	last, classes := simt.None, 0
	for range 3 + rng.IntN(30) {
		place := b.Binary(simt.And, b.Add(b.Convert(simt.I32, b.Load(in, rng.IntN(width))), b.Int(simt.I32, 1)), b.Int(simt.I32, 255))
		if rng.IntN(8) == 0 { // numbers beyond bytes are not those of their low bytes
			place = b.Binary(simt.Min, b.Add(place, b.Int(simt.I32, 200)), b.Int(simt.I32, 240))
		}
		n := sizes[rng.IntN(len(sizes))]
		if places := []int{64, 128, 256}[rng.IntN(3)]; rng.IntN(4) > 0 {
			if places < 256 {
				place = b.Binary(simt.Min, place, b.Int(simt.I32, int64(places-1)))
			}
			place = b.Gather(classesOf(places, n), place)
		} else {
			n = 256
		}
		if rng.IntN(6) == 0 { // bits that do not fit a byte are not those of the next group
			place = b.Binary(simt.And, b.Shift(simt.Shl, place, 3), b.Int(simt.I32, 255))
			place, n = b.Binary(simt.Min, place, b.Int(simt.I32, 63)), 64
		}
		leaf := b.Gather(numbers(n), place)
		if last != simt.None && classes <= 8 && n <= 8 && rng.IntN(2) == 0 {
			leaf = b.Gather(numbers(64), b.Binary(simt.Or, last, b.Shift(simt.Shl, place, 3)))
		}
		last, classes = place, n
		if product = b.Mul(product, leaf); rng.IntN(3) == 0 {
			sum = b.FMA(product, b.Float(typ, rng.Float64()), sum)
		}
	}
	b.Store(out, 0, b.Add(sum, product))
	return module(t, b)
}

// TestTurns compares code that takes several groups of rows at a time with the interpreter, for counts of rows around those of
// a turn.
func TestTurns(t *testing.T) {
	needCode(t)
	if Path() != avx512.name {
		t.Skip("SKIPPED: wants AVX-512 with VBMI")
	}
	programs := 80
	if testing.Short() {
		programs = 16
	}
	for seed := range programs {
		rng := rand.New(rand.NewPCG(uint64(seed), 7))
		typ, layout := simt.F32, simt.Layout(seed/2%2)
		if seed%2 == 1 {
			typ = simt.F64
		}
		m := network(t, rng, typ, layout, []int{1, 4, 5, 8, 9, 16, 40}[rng.IntN(7)])
		for _, groups := range []int{0, 1, 2, 4} {
			o := Options{Groups: groups, Gathers: seed%16 == 0}
			for _, rows := range []int{15, 16, 31, 32, 33, 63, 64, 65, 70 + rng.IntN(200)} {
				lo := rng.IntN(3)
				if !sameAs(t, rng, m, avx512.name, o, rows+lo+1, lo, lo+rows) {
					t.Fatalf("seed %d, %+v, %d rows:\n%s", seed, o, rows, m.Text())
				}
			}
		}
	}
}
