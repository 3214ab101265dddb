package scalar_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/pce-engine/pce/kernels/ptx/scalar"
	"github.com/pce-engine/pce/kernels/simt"
)

// dense makes a module of blocks of sums: each of a number of sums over the values of the block before, of float32 or float64,
// with tiles in between, products that begin a sum or constants or values that it is added to, and a block within a branch.
func dense(t testing.TB, rng *rand.Rand, v simt.Type, widths ...int) *simt.Module {
	t.Helper()
	b := simt.NewBuilder("dense")
	x, out := b.Input("x", v, simt.Rows, widths[0]), b.Output("y", v, simt.Columns, widths[len(widths)-1])
	number := func() simt.Value { return b.Float(v, rng.NormFloat64()) }
	var values []simt.Value
	for i := range widths[0] {
		values = append(values, b.Mul(b.Load(x, i), b.Load(x, (i+1)%widths[0])))
	}
	sums := func(values, firsts []simt.Value, width, start int) []simt.Value {
		list := make([]simt.Value, width)
		const tile = 5
		for lo := 0; lo < width; lo += tile {
			for k, x := range values {
				for i := lo; i < min(lo+tile, width); i++ {
					switch {
					case k > 0:
						list[i] = b.FMA(x, number(), list[i])
					case start == 0:
						list[i] = b.Mul(x, number())
					case start == 1:
						list[i] = b.FMA(x, number(), number())
					default:
						list[i] = b.FMA(x, number(), firsts[i%len(firsts)])
					}
				}
			}
		}
		return list
	}
	for k, width := range widths[1:] {
		if values = sums(values, values, width, k%3); k%3 == 1 { // more of it where a number is large
			p := b.Binary(simt.Lt, b.Float(v, 0.5), values[0])
			held := values
			values = b.If(p, func() []simt.Value { return sums(held[:min(len(held), 30)], held, width, 2) }, func() []simt.Value { return held })
		}
		for i := range values { // no number grows without end
			values[i] = b.Binary(simt.Max, b.Binary(simt.Min, values[i], b.Float(v, 2)), b.Float(v, -2))
		}
	}
	for i, y := range values {
		b.Store(out, i, y)
	}
	m, err := b.Module()
	check(t, err)
	return m
}

// TestRoll compares loops over tables of weights with the interpreter, for widths that turns divide and others that they do
// not, sums too long for registers, and parts of all sizes.
func TestRoll(t *testing.T) {
	for k, widths := range [][]int{{9, 46, 46, 46, 10}, {20, 8, 16, 8, 8, 17}, {130, 13, 47, 9, 3, 12}, {5, 100, 21, 33}} {
		if testing.Short() && k > 0 {
			continue
		}
		for _, v := range []simt.Type{simt.F32, simt.F64} {
			rng := rand.New(rand.NewPCG(uint64(k), uint64(v)))
			m := dense(t, rng, v, widths...)
			for _, o := range []scalar.Options{{Roll: scalar.Always}, {Roll: scalar.Always, Part: 40, Threads: 32, Major: 9}, {Roll: scalar.Always, Part: 1000, Staging: scalar.Always}} {
				p, err := scalar.Lower(m, o)
				check(t, err)
				if !strings.Contains(string(p.Text.Text()), "ld.global.nc.v") {
					t.Errorf("%v of %v, parts of %d: no loop over weights", widths, v, o.Part)
				}
				if !same(t, rng, open(t, o, uint64(k)), m, 61, 70) {
					t.Fatalf("%v of %v, parts of %d", widths, v, o.Part)
				}
			}
		}
	}
}

// TestRollShort lets the text of a large dense module shrink by loops, and keeps modules straight that are small.
func TestRollShort(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	count := func(m *simt.Module, o scalar.Options) (n int) {
		p, err := scalar.Lower(m, o)
		check(t, err)
		for _, k := range p.Text.Kernels {
			n += len(k.Body)
		}
		return n
	}
	wide := make([]int, 50)
	for i := range wide {
		wide[i] = 46
	}
	large, small := dense(t, rng, simt.F32, wide...), dense(t, rng, simt.F32, 46, 46, 46)
	if straight, short := count(large, scalar.Options{Roll: scalar.Never}), count(large, scalar.Options{}); short > straight/2 {
		t.Errorf("%d instructions with loops, %d without; want half at most", short, straight)
	}
	if straight, auto := count(small, scalar.Options{Roll: scalar.Never}), count(small, scalar.Options{}); auto != straight {
		t.Errorf("a small module has %d instructions, straight %d", auto, straight)
	}
	if _, err := scalar.Lower(small, scalar.Options{Roll: 3}); err == nil {
		t.Error("loops of kind 3 are taken")
	}
}
