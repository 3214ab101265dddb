package x86

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/pce-engine/pce/kernels/simt"
	"github.com/pce-engine/pce/kernels/simt/simttest"
)

// sum is a module that stores a + 1 of type t by a layout.
func sum(t testing.TB, typ simt.Type, layout simt.Layout, width int) *simt.Module {
	t.Helper()
	b := simt.NewBuilder("sum")
	in, out := b.Input("a", typ, layout, width), b.Output("b", typ, layout, width)
	for c := range width {
		v := b.Load(in, c)
		if c == 0 && (typ.Float() || typ.Integer()) {
			v = b.Add(v, b.Bits(typ, map[simt.Type]uint64{simt.F32: 0x3F800000, simt.F64: 0x3FF << 52}[typ]))
		}
		b.Store(out, c, v)
	}
	return module(t, b)
}

func module(t testing.TB, b *simt.Builder) *simt.Module {
	t.Helper()
	m, err := b.Module()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestColumns copies columns of every type in both layouts, for all counts of rows around a group and
// between calls, and looks at what lies beside the rows.
func TestColumns(t *testing.T) {
	needCode(t)
	for typ := simt.F32; typ < simt.Pred; typ++ {
		for _, layout := range []simt.Layout{simt.Rows, simt.Columns} {
			for _, width := range []int{1, 2, 3, 70} {
				m := sum(t, typ, layout, width)
				for _, part := range [][3]int{{1, 0, 1}, {4, 0, 4}, {5, 0, 5}, {9, 3, 6}, {12, 1, 12}, {13, 2, 13}, {40, 17, 17}, {300, 1, 299}} {
					rng := rand.New(rand.NewPCG(uint64(typ), uint64(width)))
					if !same(t, rng, m, part[0], part[1], part[2]) {
						t.Fatalf("%v by %v of %d", typ, layout, width)
					}
				}
			}
		}
	}
}

// TestTables looks up in tables of every type on both sides of the sizes that change the way, with
// indices inside and outside.
func TestTables(t *testing.T) {
	needCode(t)
	for typ := simt.F32; typ < simt.Pred; typ++ {
		for _, n := range []int{1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 1000} {
			b := simt.NewBuilder("table")
			in, out := b.Input("i", simt.I32, simt.Columns, 1), b.Output("v", typ, simt.Columns, 1)
			bits := make([]uint64, n)
			for i := range bits {
				bits[i] = uint64(i*37+1) & (1<<typ.Bits() - 1)
			}
			b.Store(out, 0, b.Gather(b.Table(typ, bits), b.Load(in, 0)))
			m := module(t, b)
			p, err := Compile(m, 1)
			if err != nil {
				t.Fatal(err)
			}
			var index []int32
			for i := -3; i < n+3; i++ {
				index = append(index, int32(i))
			}
			index = append(index, -1<<31, 1<<31-1)
			_, got := simttest.Buffers(rand.New(rand.NewPCG(1, 1)), m, len(index))
			if err := p.Run(t.Context(), 0, len(index), []any{index}, got); err != nil {
				t.Fatal(err)
			}
			for i, x := range index {
				want := bits[min(max(int(x), 0), n-1)]
				if g := simttest.ElementBits(got[0], i); g != want {
					t.Errorf("%v, table of %d: element %d is %#x, want %#x", typ, n, x, g, want)
				}
			}
			p.Free()
		}
	}
}

// TestPressure has more values at a time than registers: all are read again in another order.
func TestPressure(t *testing.T) {
	needCode(t)
	for _, n := range []int{14, 15, 16, 17, 40, 200} {
		b := simt.NewBuilder("pressure")
		in, out := b.Input("x", simt.F64, simt.Columns, n), b.Output("y", simt.F64, simt.Columns, 1)
		values := make([]simt.Value, n)
		for i := range values {
			values[i] = b.Load(in, i)
		}
		y := values[0]
		for i := range 3 * n {
			y = b.FMA(y, values[i*7%n], values[(i*11+3)%n])
			if i%5 == 0 { // none of the three ends here
				y = b.Add(y, b.FMA(values[i%n], values[(i+1)%n], values[(i+2)%n]))
			}
		}
		b.Store(out, 0, y)
		if !same(t, rand.New(rand.NewPCG(1, uint64(n))), module(t, b), 37, 0, 37) {
			t.Errorf("%d values", n)
		}
	}
}

// nested returns a module with loops within loops.
func nested(t testing.TB, depth, most int) *simt.Module {
	b := simt.NewBuilder("nested")
	out := b.Output("n", simt.I32, simt.Columns, 1)
	var turn func(depth int, n simt.Value) simt.Value
	turn = func(depth int, n simt.Value) simt.Value {
		if depth == 0 {
			return b.Add(n, b.Int(simt.I32, 1))
		}
		return b.Loop(most, []simt.Value{n}, func(v []simt.Value) ([]simt.Value, simt.Value) {
			return []simt.Value{turn(depth-1, v[0])}, b.Bits(simt.Pred, 1)
		})[0]
	}
	b.Store(out, 0, turn(depth, b.Int(simt.I32, 0)))
	return module(t, b)
}

// TestRefusals has modules without native code, and runs that are refused.
func TestRefusals(t *testing.T) {
	if _, err := Compile(&simt.Module{Name: "bad"}, 1); !errors.Is(err, simt.ErrModule) {
		t.Errorf("a bad module: %v, want simt.ErrModule", err)
	}
	if Path() == "" {
		if _, err := Compile(nested(t, 1, 1), 1); !errors.Is(err, ErrUnsupported) {
			t.Errorf("a machine without native code: %v, want ErrUnsupported", err)
		}
	}
	needCode(t)
	for _, c := range []struct {
		depth, most int
		ok          bool
	}{{1, 5, true}, {3, 20, true}, {1, simt.MaxTurns, false}, {12, 3, false}, {32, simt.MaxTurns, false}} {
		p, err := Compile(nested(t, c.depth, c.most), 1)
		if c.ok != (err == nil) || !c.ok && !(errors.Is(err, ErrUnsupported) && strings.Contains(err.Error(), "want at most")) {
			t.Errorf("%d loops of %d turns: %v", c.depth, c.most, err)
		}
		if err == nil {
			n := []int32{0, 0, 0}
			want := int32(1)
			for range c.depth {
				want *= int32(c.most)
			}
			if err := p.Run(t.Context(), 0, 3, nil, []any{n}); err != nil || n[0] != want || n[2] != want {
				t.Errorf("%d loops of %d turns: %v, %v, want %d", c.depth, c.most, n, err, want)
			}
		}
	}
	m := sum(t, simt.F32, simt.Columns, 2)
	p, err := Compile(m, 1)
	if err != nil {
		t.Fatal(err)
	}
	x, y := make([]float32, 20), make([]float32, 20)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Run(ended, 0, 10, []any{x}, []any{y}); !errors.Is(err, context.Canceled) {
		t.Errorf("an ended context: %v", err)
	}
	for what, err := range map[string]error{
		"too many rows":   p.Run(t.Context(), 0, 11, []any{x}, []any{y}),
		"rows backwards":  p.Run(t.Context(), 2, 1, []any{x}, []any{y}),
		"before the rows": p.Run(t.Context(), -1, 1, []any{x}, []any{y}),
		"another type":    p.Run(t.Context(), 0, 1, []any{y}, []any{make([]int32, 20)}),
		"no input":        p.Run(t.Context(), 0, 1, nil, []any{y}),
	} {
		if !errors.Is(err, simt.ErrModule) {
			t.Errorf("%s: %v, want simt.ErrModule", what, err)
		}
	}
	p.Free()
	p.Free()
}

// TestLargeCode has a module beyond the most instructions.
func TestLargeCode(t *testing.T) {
	needCode(t)
	if testing.Short() {
		t.Skip("hundreds of thousands of instructions")
	}
	b := simt.NewBuilder("large")
	in, out := b.Input("x", simt.F32, simt.Columns, 1), b.Output("y", simt.F32, simt.Columns, 1)
	x := b.Load(in, 0)
	y := x
	for i := range maxCost {
		y = b.Add(y, b.Float(simt.F32, float64(i%1000)))
	}
	b.Store(out, 0, y)
	if _, err := Compile(module(t, b), 1); !errors.Is(err, ErrUnsupported) {
		t.Errorf("%v, want ErrUnsupported", err)
	}
}
