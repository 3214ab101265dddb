package x86

import (
	"context"
	"errors"
	"math"
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
					for _, set := range sets() {
						if !sameAs(t, rng, m, set, Options{}, part[0], part[1], part[2]) {
							t.Fatalf("%s: %v by %v of %d", set, typ, layout, width)
						}
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
	for _, set := range sets() {
		t.Run(set, func(t *testing.T) { testTables(t, set) })
	}
}

func testTables(t *testing.T, set string) {
	for typ := simt.F32; typ < simt.Pred; typ++ {
		for _, n := range []int{1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 40, 64, 65, 70, 128, 129, 1000} {
			b := simt.NewBuilder("table")
			in, out := b.Input("i", simt.I32, simt.Columns, 1), b.Output("v", typ, simt.Columns, 2)
			bits := [2][]uint64{make([]uint64, n), make([]uint64, n)} // tables of one length may be read together
			for k, list := range bits {
				for i := range list {
					list[i] = uint64(i*37+1+k<<4) & (1<<typ.Bits() - 1)
				}
				b.Store(out, k, b.Gather(b.Table(typ, list), b.Load(in, 0)))
			}
			m := module(t, b)
			p, err := Compile(m, 1, set)
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
				for k, list := range bits {
					want := list[min(max(int(x), 0), n-1)]
					if g := simttest.ElementBits(got[0], k*len(index)+i); g != want {
						t.Errorf("%v, table %d of %d: element %d is %#x, want %#x", typ, k, n, x, g, want)
					}
				}
			}
			p.Free()
		}
	}
}

// TestTableTwice looks up twice in one table by one index, which lookups that are done together must not take for two tables.
func TestTableTwice(t *testing.T) {
	needCode(t)
	for _, typ := range []simt.Type{simt.F32, simt.F64} {
		for _, n := range []int{8, 70} {
			b := simt.NewBuilder("twice")
			in, out := b.Input("i", simt.I32, simt.Columns, 1), b.Output("v", typ, simt.Columns, 2)
			bits := make([]uint64, n)
			for i := range bits {
				bits[i] = uint64(i + 1)
			}
			table, index := b.Table(typ, bits), b.Load(in, 0)
			for k := range 2 {
				b.Store(out, k, b.Gather(table, index))
				b.Forget()
			}
			m := module(t, b)
			for _, set := range sets() {
				if !sameAs(t, rand.New(rand.NewPCG(1, 1)), m, set, Options{}, 40, 0, 40) || !sameAs(t, rand.New(rand.NewPCG(1, 1)), m, set, Options{Gathers: true}, 40, 0, 40) {
					t.Fatalf("%s, %v, %d elements", set, typ, n)
				}
			}
		}
	}
}

// TestSpans looks up by indices and converts numbers whose bounds are known: on both sides of a bound,
// through NaN, and where an integer has the bits of a float of another bound.
func TestSpans(t *testing.T) {
	needCode(t)
	for _, set := range sets() {
		t.Run(set, func(t *testing.T) { testSpans(t, set) })
	}
}

func testSpans(t *testing.T, set string) {
	table := func(b *simt.Builder) int { return b.Table(simt.I32, []uint64{10, 11, 12, 13, 14}) }
	f := func(b *simt.Builder, x float64) simt.Value { return b.Float(simt.F32, x) }
	for name, index := range map[string]func(b *simt.Builder, x simt.Value) simt.Value{
		"exact": func(b *simt.Builder, x simt.Value) simt.Value {
			return b.Convert(simt.I32, b.Binary(simt.Min, b.Binary(simt.Max, x, f(b, 0)), f(b, 4)))
		},
		"below": func(b *simt.Builder, x simt.Value) simt.Value {
			return b.Convert(simt.I32, b.Unary(simt.Floor, b.Binary(simt.Min, b.Binary(simt.Max, x, f(b, -0.5)), f(b, 4))))
		},
		"above": func(b *simt.Builder, x simt.Value) simt.Value {
			return b.Convert(simt.I32, b.Binary(simt.Min, b.Binary(simt.Max, x, f(b, 0)), f(b, 5)))
		},
		"NaN first": func(b *simt.Builder, x simt.Value) simt.Value {
			return b.Convert(simt.I32, b.Binary(simt.Max, f(b, 2), b.Binary(simt.Min, f(b, 3), x)))
		},
		"NaN bound": func(b *simt.Builder, x simt.Value) simt.Value {
			return b.Convert(simt.I32, b.Binary(simt.Max, x, b.Binary(simt.Min, x, f(b, 3))))
		},
		"NaN first of Min": func(b *simt.Builder, x simt.Value) simt.Value {
			x = b.Binary(simt.Min, b.Binary(simt.Min, f(b, 2), x), f(b, 1008))
			return b.Convert(simt.I32, b.Binary(simt.Max, x, f(b, 0)))
		},
		"NaN first of Max": func(b *simt.Builder, x simt.Value) simt.Value {
			x = b.Binary(simt.Max, b.Binary(simt.Max, f(b, 2), x), f(b, -3))
			return b.Convert(simt.I32, b.Binary(simt.Min, x, f(b, 4)))
		},
		"large": func(b *simt.Builder, x simt.Value) simt.Value {
			return b.Convert(simt.I32, b.Binary(simt.Min, b.Binary(simt.Max, x, f(b, 0)), f(b, 1<<31)))
		},
		"sum": func(b *simt.Builder, x simt.Value) simt.Value {
			i := b.Convert(simt.I32, b.Binary(simt.Min, b.Binary(simt.Max, x, f(b, -3)), f(b, 1)))
			return b.Sub(b.Add(i, b.Int(simt.I32, 3)), b.Int(simt.I32, 1))
		},
		"NaN below": func(b *simt.Builder, x simt.Value) simt.Value {
			return b.Sub(b.Convert(simt.I32, b.Binary(simt.Max, f(b, 2), b.Binary(simt.Min, f(b, 4), x))), b.Int(simt.I32, 2))
		},
		"NaN of a sum": func(b *simt.Builder, x simt.Value) simt.Value {
			i := b.Convert(simt.I32, b.Add(f(b, 1), b.Binary(simt.Max, f(b, 0), b.Binary(simt.Min, f(b, 3), x))))
			return b.Shift(simt.Shr, i, 29)
		},
		"difference": func(b *simt.Builder, x simt.Value) simt.Value {
			i := b.Convert(simt.I32, b.Binary(simt.Min, b.Binary(simt.Max, x, f(b, 0)), f(b, 4)))
			return b.Sub(i, b.Convert(simt.I32, b.Binary(simt.Min, b.Binary(simt.Max, b.Unary(simt.Neg, x), f(b, -300)), f(b, 1))))
		},
		"bits of a negative number": func(b *simt.Builder, x simt.Value) simt.Value {
			i := b.Convert(simt.I32, b.Binary(simt.Min, b.Binary(simt.Max, x, f(b, -3)), f(b, 4)))
			return b.Binary(simt.Or, i, b.Int(simt.I32, 2))
		},
		"shifted out": func(b *simt.Builder, x simt.Value) simt.Value {
			i := b.Convert(simt.I32, b.Binary(simt.Min, b.Binary(simt.Max, x, f(b, 0)), f(b, 4)))
			return b.Binary(simt.Or, b.Shift(simt.Shl, i, 30), b.Int(simt.I32, 3))
		},
		"wraps": func(b *simt.Builder, x simt.Value) simt.Value {
			i := b.Convert(simt.I32, b.Binary(simt.Min, b.Binary(simt.Max, x, f(b, 0)), f(b, 4)))
			return b.Add(i, b.Int(simt.I32, 1<<31-3))
		},
		"bits": func(b *simt.Builder, x simt.Value) simt.Value {
			i := b.Bitcast(simt.I32, f(b, 2))
			return b.Select(b.Binary(simt.Lt, x, f(b, 1)), i, b.Bits(simt.I32, 0x3F800000))
		},
		"bytes": func(b *simt.Builder, x simt.Value) simt.Value {
			return b.Convert(simt.I32, b.Convert(simt.U8, x))
		},
		"chosen": func(b *simt.Builder, x simt.Value) simt.Value {
			g := b.Gather(table(b), b.Convert(simt.I32, x))
			return b.Select(b.Binary(simt.Eq, x, x), b.Sub(g, b.Int(simt.I32, 10)), b.Int(simt.I32, -1))
		},
	} {
		b := simt.NewBuilder("span")
		in, out := b.Input("x", simt.F32, simt.Columns, 1), b.Output("y", simt.I32, simt.Columns, 1)
		wide := b.Output("z", simt.I64, simt.Columns, 3)
		x := b.Load(in, 0)
		i := index(b, x)
		b.Store(out, 0, b.Gather(table(b), i))
		y := b.Add(b.Binary(simt.Min, f(b, 1000), b.Binary(simt.Max, f(b, -1000), x)), f(b, 0.5))
		b.Store(wide, 0, b.Convert(simt.I64, b.Unary(simt.Floor, y)))
		b.Store(wide, 1, b.Convert(simt.I64, b.Convert(simt.F64, x)))
		b.Store(wide, 2, b.Convert(simt.I64, b.Binary(simt.Min, f(b, 4e9), b.Binary(simt.Max, f(b, -4e9), x)))) // beyond i32
		m := module(t, b)
		p, err := Compile(m, 1, set)
		if err != nil {
			t.Fatal(err)
		}
		run, err := simt.Compile(m, 1)
		if err != nil {
			t.Fatal(err)
		}
		nan := float32(math.NaN())
		rows := []float32{nan, 0, -0.1, -0.5, -1, -3, 0.9, 1, 3.9, 4, 4.1, 5, 6, 1e9, 1 << 31, -1 << 31, 1e20, -1e20, float32(math.Inf(1)), float32(math.Inf(-1))}
		n := len(rows)
		got, want := make([]int32, n), make([]int32, n)
		gotWide, wantWide := make([]int64, 3*n), make([]int64, 3*n)
		if err := errors.Join(p.Run(t.Context(), 0, n, []any{rows}, []any{got, gotWide}), run.Run(t.Context(), 0, n, []any{rows}, []any{want, wantWide})); err != nil {
			t.Fatal(err)
		}
		for r := range rows {
			if got[r] != want[r] || gotWide[r] != wantWide[r] || gotWide[n+r] != wantWide[n+r] || gotWide[2*n+r] != wantWide[2*n+r] {
				t.Errorf("%s: of %v %d, %d, %d, %d, want %d, %d, %d, %d", name, rows[r], got[r], gotWide[r], gotWide[n+r], gotWide[2*n+r], want[r], wantWide[r], wantWide[n+r], wantWide[2*n+r])
			}
		}
		p.Free()
	}
}

// TestOneColumn stores at indices of an output of one column, in rows that take part and in all.
func TestOneColumn(t *testing.T) {
	needCode(t)
	for _, typ := range []simt.Type{simt.F32, simt.F64, simt.I32, simt.I64} {
		b := simt.NewBuilder("one column")
		in, out := b.Input("x", typ, simt.Rows, 1), b.Output("y", typ, simt.Rows, 1)
		some := b.Output("z", typ, simt.Rows, 1)
		x, index := b.Load(in, 0), b.Load(b.Input("i", simt.I32, simt.Columns, 1), 0)
		b.StoreAt(out, index, x)
		b.If(b.Binary(simt.Lt, index, b.Int(simt.I32, 3)), func() []simt.Value { b.StoreAt(some, index, x); return nil }, func() []simt.Value { return nil })
		m := module(t, b)
		for _, set := range sets() {
			if !sameAs(t, rand.New(rand.NewPCG(1, 9)), m, set, Options{}, 70, 3, 70) {
				t.Fatalf("%s: %v", set, typ)
			}
		}
	}
}

// TestConversions converts numbers of every type to every other one: those beside limits, and those
// that lie halfway between two results, or next to it. Results of less than 32 bits, for which there is code of AVX2 alone, are stored
// as they are there, and as i32 with AVX-512.
func TestConversions(t *testing.T) {
	needCode(t)
	for _, set := range sets() {
		t.Run(set, func(t *testing.T) { testConversions(t, set) })
	}
}

func testConversions(t *testing.T, set string) {
	var integers []uint64
	for k := range 64 {
		for _, low := range []int{k, k - 10, k - 23, k - 24, k - 25, k - 52, k - 53, k - 54} {
			half := uint64(0)
			if low >= 0 && low < k {
				half = 1 << low
			}
			for d := -2; d <= 2; d++ {
				x := 1<<k + half + uint64(d)
				integers = append(integers, x, -x)
				if low > 0 {
					integers = append(integers, x+half<<1, -(x + half<<1))
				}
			}
		}
	}
	for from := simt.F32; from < simt.Pred; from++ {
		b := simt.NewBuilder("convert")
		in := b.Input("x", simt.I64, simt.Columns, 1)
		x := b.Load(in, 0)
		double := b.Bitcast(simt.F64, x)
		sources := []simt.Value{b.Convert(from, x), b.Convert(from, double)}
		if from.Float() { // numbers of the size of integers, and others
			sources = append(sources, b.FMA(b.Convert(from, x), b.Float(from, 0.5), b.Float(from, 0.5)))
		}
		for to := simt.F32; to < simt.Pred; to++ {
			if to == from {
				continue
			}
			stored := to
			if to.Bits() < 32 && set == avx512.name {
				stored = simt.I32
			}
			out := b.Output("to_"+to.String(), stored, simt.Columns, len(sources))
			for i, s := range sources {
				b.Store(out, i, b.Convert(stored, b.Convert(to, s)))
			}
		}
		m := module(t, b)
		p, err := Compile(m, 1, set)
		if err != nil {
			t.Fatal(err)
		}
		if p.Path() != set {
			t.Errorf("%v: code of %s, want %s", from, p.Path(), set)
		}
		run, err := simt.Compile(m, 1)
		if err != nil {
			t.Fatal(err)
		}
		rows := make([]int64, 0, 2*len(integers))
		for _, x := range integers {
			rows = append(rows, int64(x), int64(math.Float64bits(float64(int64(x)))), int64(math.Float64bits(float64(int64(x))/4)))
		}
		for _, f := range []float64{0, math.Copysign(0, -1), math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat32, math.MaxFloat64, 5e-324, 1e-40, 254.9, 255.5, 65535.5, -0.9} {
			rows = append(rows, int64(math.Float64bits(f)), int64(math.Float64bits(-f)))
		}
		rng := rand.New(rand.NewPCG(1, 1))
		_, got := simttest.Buffers(rng, m, len(rows))
		_, want := simttest.Buffers(rng, m, len(rows))
		if err := errors.Join(p.Run(t.Context(), 0, len(rows), []any{rows}, got), run.Run(t.Context(), 0, len(rows), []any{rows}, want)); err != nil {
			t.Fatal(err)
		}
		for i := range want {
			for k := range len(rows) * len(sources) {
				if g, w := simttest.ElementBits(got[i], k), simttest.ElementBits(want[i], k); g != w {
					t.Fatalf("%v %s, of the bits %#x: %#x, want %#x", from, m.Outputs[i].Name, uint64(rows[k%len(rows)]), g, w)
				}
			}
		}
		p.Free()
	}
}

// TestManyConstants reads more constants than a register has within reach of a byte: in straight code, in a block that no row takes and in one that
// rows take several times, and behind them, new ones and those that were read before.
func TestManyConstants(t *testing.T) {
	needCode(t)
	for _, typ := range []simt.Type{simt.F32, simt.F64} {
		for _, set := range sets() {
			if !sameAs(t, rand.New(rand.NewPCG(1, 7)), manyConstants(t, typ), set, Options{}, 100, 0, 100) {
				t.Fatalf("%s: constants of %v", set, typ)
			}
		}
	}
}

func manyConstants(t *testing.T, typ simt.Type) *simt.Module {
	b := simt.NewBuilder("constants")
	x := b.Load(b.Input("x", typ, simt.Columns, 1), 0)
	out := b.Output("y", typ, simt.Columns, 1)
	next := 0
	chain := func(v simt.Value, from, n int) simt.Value {
		for k := range n {
			number := func(x float64) simt.Value { return b.Float(typ, x/1024) }
			two := b.FMA(number(float64(from+k)+0.25), x, number(float64(from+k)+0.5))
			v = b.Add(b.FMA(number(float64(from+k)), x, v), two)
		}
		next = max(next, from+n)
		return v
	}
	v := chain(x, 0, 300)
	v = b.If(b.Binary(simt.Lt, x, x), func() []simt.Value {
		return []simt.Value{chain(v, next, 300)}
	}, func() []simt.Value { return []simt.Value{chain(v, 10, 20)} })[0]
	v = chain(v, next-10, 300)
	v = b.Loop(3, []simt.Value{v}, func(carried []simt.Value) ([]simt.Value, simt.Value) {
		first := chain(carried[0], next-10, 20)
		return []simt.Value{chain(first, next, 300)}, b.Binary(simt.Eq, x, x)
	})[0]
	b.Store(out, 0, chain(v, next-10, 200))
	return module(t, b)
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
	if _, err := Compile(&simt.Module{Name: "bad"}, 1, Path()); !errors.Is(err, simt.ErrModule) {
		t.Errorf("a bad module: %v, want simt.ErrModule", err)
	}
	if Path() == "" {
		if _, err := Compile(nested(t, 1, 1), 1, Path()); !errors.Is(err, ErrUnsupported) {
			t.Errorf("a machine without native code: %v, want ErrUnsupported", err)
		}
	}
	needCode(t)
	for _, c := range []struct {
		depth, most int
		ok          bool
	}{{1, 5, true}, {3, 20, true}, {1, simt.MaxTurns, false}, {12, 3, false}, {32, simt.MaxTurns, false}} {
		p, err := Compile(nested(t, c.depth, c.most), 1, Path())
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
	p, err := Compile(m, 1, Path())
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

// TestLargeCode has a module of more instructions than a call may take, which becomes parts, and a branch of as many, which
// cannot be divided.
func TestLargeCode(t *testing.T) {
	needCode(t)
	if testing.Short() {
		t.Skip("hundreds of thousands of instructions")
	}
	for _, within := range []bool{false, true} {
		b := simt.NewBuilder("large")
		in, out := b.Input("x", simt.F32, simt.Columns, 1), b.Output("y", simt.F32, simt.Columns, 1)
		x := b.Load(in, 0)
		long := func() []simt.Value {
			y := x
			for i := range maxCost {
				y = b.Add(y, b.Float(simt.F32, float64(i%1000)))
			}
			return []simt.Value{y}
		}
		if within {
			list := b.If(b.Binary(simt.Lt, x, b.Float(simt.F32, 3)), long, func() []simt.Value { return []simt.Value{x} })
			b.Store(out, 0, list[0])
			if _, err := Compile(module(t, b), 1, Path()); !errors.Is(err, ErrUnsupported) {
				t.Errorf("%v, want ErrUnsupported", err)
			}
			continue
		}
		b.Store(out, 0, long()[0])
		m := module(t, b)
		p, err := Compile(m, 1, Path())
		if err != nil {
			t.Fatal(err)
		}
		p.Free()
		if n, _, crossings := p.Parts(); n < maxCost/DefaultPart || crossings != n-1 {
			t.Errorf("%d parts, between which %d values cross", n, crossings)
		}
		if !same(t, rand.New(rand.NewPCG(1, 1)), m, 40, 0, 40) {
			t.Error("native code differs")
		}
	}
}

// TestPool has tables that take more room than code can address, and as much as it can.
func TestPool(t *testing.T) {
	needCode(t)
	defer func(n int) { maxPool = n }(maxPool)
	most := maxPool
	for _, set := range sets() {
		b := simt.NewBuilder("tables")
		in, out := b.Input("i", simt.I32, simt.Columns, 1), b.Output("v", simt.F64, simt.Columns, 2)
		for k := range 2 {
			bits := make([]uint64, 5000)
			for i := range bits {
				bits[i] = uint64(i + k)
			}
			b.Store(out, k, b.Gather(b.Table(simt.F64, bits), b.Load(in, 0)))
		}
		m := module(t, b)
		p, err := Compile(m, 1, set)
		if err != nil {
			t.Fatal(err)
		}
		maxPool = len(p.parts[0].pool)
		p.Free()
		if !sameAs(t, rand.New(rand.NewPCG(1, 1)), m, set, Options{}, 40, 0, 40) {
			t.Errorf("%s: %d bytes of tables and constants", set, maxPool)
		}
		maxPool--
		if _, err := Compile(m, 1, set); !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "tables and constants of") {
			t.Errorf("%s: tables and constants of a byte too many: %v, want ErrUnsupported", set, err)
		}
		maxPool = most
	}
}
