package scalar_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/ptx"
	"github.com/pce-engine/pce/kernels/ptx/scalar"
	"github.com/pce-engine/pce/kernels/simt"
	"github.com/pce-engine/pce/kernels/simt/simttest"
)

var elements = []simt.Type{simt.F32, simt.F64, simt.I32, simt.I64, simt.U8, simt.U16}

// edges are numbers around which conversions, comparisons and arithmetic change.
func edges(t simt.Type) []uint64 {
	var all []uint64
	if !t.Float() {
		for _, x := range []int64{0, 1, 2, 3, 127, 128, 255, 256, 32767, 32768, 65535, 65536, 1<<24 - 1, 1 << 24, 1<<24 + 1, 1<<31 - 1, 1 << 31, 1<<53 + 1, 1<<62 + 1, math.MaxInt64, math.MinInt64} {
			for _, y := range []int64{x, -x} {
				all = append(all, uint64(y)<<(64-t.Bits())>>(64-t.Bits()))
			}
		}
		return all
	}
	for _, x := range []float64{0, 0.5, 0.999, 1, 1.5, 2, 2.5, 254.9, 255, 255.1, 256, 65535, 65535.5, 65536, 0x1p23, 0x1p24 + 1, 0x1p31 - 1, 0x1p31, 0x1p52 + 0.5, 0x1p62, 0x1p63, 0x1p64, math.MaxFloat32, 1e300,
		math.Inf(1), math.NaN(), 0x1p-126, 0x1p-127, 0x1p-149, 0x1p-150, 0x1p-1022, 0x1p-1074, 0x1.000001p0, 0x1.0000010000001p0} {
		all = append(all, simt.FloatBits(t, x), simt.FloatBits(t, -x))
	}
	return all
}

// inputs makes columns of elements of a type from edges: every pair of two, and a third one at random.
func inputs(rng *rand.Rand, t simt.Type) (columns []any, rows int) {
	list := edges(t)
	rows = len(list) * len(list)
	bits := [3][]uint64{make([]uint64, rows), make([]uint64, rows), make([]uint64, rows)}
	for i := range rows {
		bits[0][i], bits[1][i], bits[2][i] = list[i/len(list)], list[i%len(list)], list[rng.IntN(len(list))]
	}
	for _, b := range bits {
		columns = append(columns, simttest.Slice(t, b))
	}
	return columns, rows
}

// TestOperations computes every operation on every type for all pairs of numbers at which something
// changes, with registers and with constants.
func TestOperations(t *testing.T) {
	d := open(t, scalar.Options{}, 0)
	for _, typ := range elements {
		rng := rand.New(rand.NewPCG(uint64(typ), 1))
		columns, rows := inputs(rng, typ)
		b := simt.NewBuilder("operations")
		var args [3]simt.Value
		for i := range args {
			args[i] = b.Load(b.Input(fmt.Sprint("in", i), typ, simt.Columns, 1), 0)
		}
		outputs := 0
		out := func(v simt.Value) {
			if b.TypeOf(v) == simt.Pred {
				v = b.Select(v, b.Bits(simt.U8, 1), b.Bits(simt.U8, 0))
			}
			b.Store(b.Output(fmt.Sprint("out", outputs), b.TypeOf(v), simt.Columns, 1), 0, v)
			outputs++
		}
		two := b.Bits(typ, edges(typ)[4])
		pairs := [][2]simt.Value{{args[0], args[1]}, {args[0], two}, {two, args[1]}, {two, b.Bits(typ, edges(typ)[3])}}
		for _, x := range pairs {
			var ops []simt.Op
			switch {
			case typ.Float():
				ops = []simt.Op{simt.Add, simt.Sub, simt.Mul, simt.Div, simt.Min, simt.Max}
			case typ.Integer():
				ops = []simt.Op{simt.Add, simt.Sub, simt.Mul, simt.Min, simt.Max, simt.And, simt.Or, simt.Xor}
			}
			for _, op := range append(ops, simt.Eq, simt.Ne, simt.Lt, simt.Le) {
				out(b.Binary(op, x[0], x[1]))
			}
			lt, eq := b.Binary(simt.Lt, x[0], x[1]), b.Binary(simt.Eq, x[0], x[1])
			for _, op := range []simt.Op{simt.And, simt.Or, simt.Xor} {
				out(b.Binary(op, lt, eq))
			}
			out(b.Unary(simt.Not, lt))
			out(b.Select(lt, x[0], x[1]))
			out(b.Select(b.Bits(simt.Pred, 1), x[0], x[1]))
			out(b.Select(lt, eq, b.Bits(simt.Pred, 1)))
		}
		for _, x := range []simt.Value{args[0], two} {
			switch {
			case typ.Float():
				out(b.Unary(simt.Neg, x))
				out(b.Unary(simt.Abs, x))
				out(b.Unary(simt.Floor, x))
				out(b.FMA(x, args[1], args[2]))
				out(b.FMA(args[1], x, two))
				y := b.Select(b.Binary(simt.Eq, x, x), x, b.Float(typ, 0)) // the bits of a NaN are not said
				out(b.Bitcast(map[simt.Type]simt.Type{simt.F32: simt.I32, simt.F64: simt.I64}[typ], y))
			case typ.Integer():
				out(b.Unary(simt.Not, x))
				for _, by := range []int{0, 1, 7, typ.Bits() - 1} {
					for _, op := range []simt.Op{simt.Shl, simt.Shr, simt.Sar} {
						out(b.Shift(op, x, by))
					}
				}
				out(b.Bitcast(map[simt.Type]simt.Type{simt.I32: simt.F32, simt.I64: simt.F64}[typ], x))
			}
			for _, to := range elements {
				if to == typ {
					continue
				}
				narrow := b.Convert(to, x)
				out(narrow)
				if to == simt.U8 || to == simt.U16 { // all bits of the register count
					out(b.Convert(simt.I64, narrow))
				}
			}
		}
		m, err := b.Module()
		check(t, err)
		if !compare(t, d, 1, m, columns, rows, rows) {
			t.Fatalf("%v", typ)
		}
	}
}

// TestColumns copies columns of every type in both layouts, for rows on both sides of a block.
func TestColumns(t *testing.T) {
	for _, staging := range []scalar.Choice{scalar.Never, scalar.Always} {
		d := open(t, scalar.Options{Threads: 64, Staging: staging}, 1)
		for _, typ := range elements {
			for _, layout := range []simt.Layout{simt.Rows, simt.Columns} {
				for _, width := range []int{1, 2, 33} {
					b := simt.NewBuilder("columns")
					in, out := b.Input("a", typ, layout, width), b.Output("b", typ, simt.Layout(1-layout), width)
					for c := range width {
						b.Store(out, width-1-c, b.Load(in, c))
					}
					m, err := b.Module()
					check(t, err)
					for _, rows := range []int{1, 63, 64, 65, 130} {
						rng := rand.New(rand.NewPCG(uint64(typ), uint64(rows)))
						if !same(t, rng, d, m, rows, rows+2) {
							t.Fatalf("%v by %v of %d, staging %d", typ, layout, width, staging)
						}
					}
				}
			}
		}
	}
}

// TestTables looks up in tables of every type, by cascades and in memory, with indices inside and
// outside, in registers and as constants.
func TestTables(t *testing.T) {
	for _, o := range []scalar.Options{{Cascade: -1}, {}, {Cascade: 256}, {Cascade: -1, Shared: true}} {
		d := open(t, o, 0)
		for _, typ := range elements {
			for _, n := range []int{1, 2, 5, 6, 200} {
				b := simt.NewBuilder("table")
				in := b.Input("i", simt.I32, simt.Columns, 1)
				bits := make([]uint64, n)
				for i := range bits {
					bits[i] = uint64(i/2*37+1) & (1<<typ.Bits() - 1) // pairs are equal
				}
				table := b.Table(typ, bits)
				b.Table(simt.U8, []uint64{1, 2, 3}) // so that the next one is not aligned by itself
				second := b.Table(typ, append(bits, 9))
				out := b.Output("v", typ, simt.Columns, 4)
				b.Store(out, 0, b.Gather(table, b.Load(in, 0)))
				b.Store(out, 1, b.Gather(second, b.Load(in, 0)))
				b.Store(out, 2, b.Gather(table, b.Int(simt.I32, int64(n)-1)))
				b.Store(out, 3, b.Gather(table, b.Int(simt.I32, -4)))
				m, err := b.Module()
				check(t, err)
				index := []int32{-1 << 31, 1<<31 - 1}
				for i := -3; i < n+3; i++ {
					index = append(index, int32(i))
				}
				if !compare(t, d, 1, m, []any{index}, len(index), len(index)) {
					t.Fatalf("%v, table of %d, %+v", typ, n, o)
				}
			}
		}
	}
}

// TestLoops runs loops whose carried values change places, that end by a carried value, and that end
// after their most turns, within others.
func TestLoops(t *testing.T) {
	d := open(t, scalar.Options{}, 0)
	for _, most := range []int{1, 2, 7} {
		b := simt.NewBuilder("loops")
		in, out := b.Input("x", simt.I32, simt.Columns, 1), b.Output("y", simt.I32, simt.Columns, 5)
		x := b.Load(in, 0)
		one, zero := b.Int(simt.I32, 1), b.Int(simt.I32, 0)
		yes := b.Bits(simt.Pred, 1)
		// Two values change places, a third one sees the float of the first before it changes.
		swap := b.Loop(most, []simt.Value{x, one, b.Float(simt.F32, 0)}, func(now []simt.Value) ([]simt.Value, simt.Value) {
			return []simt.Value{now[1], b.Add(now[0], one), b.Bitcast(simt.F32, now[0])}, yes
		})
		// The lane continues by a carried pred, which changes.
		down := b.Loop(most, []simt.Value{x, yes, zero}, func(now []simt.Value) ([]simt.Value, simt.Value) {
			left := b.Sub(now[0], one)
			return []simt.Value{left, b.Binary(simt.Lt, zero, left), b.Add(now[2], one)}, now[1]
		})
		nested := b.Loop(3, []simt.Value{zero}, func(now []simt.Value) ([]simt.Value, simt.Value) {
			r := b.Loop(most, []simt.Value{now[0], x}, func(in []simt.Value) ([]simt.Value, simt.Value) {
				return []simt.Value{b.Add(in[0], in[1]), now[0]}, b.Binary(simt.Le, in[0], x)
			})
			return []simt.Value{r[0]}, b.Binary(simt.Ne, r[1], one)
		})
		for i, v := range []simt.Value{swap[0], swap[1], b.Bitcast(simt.I32, swap[2]), down[2], nested[0]} {
			b.Store(out, i, v)
		}
		m, err := b.Module()
		check(t, err)
		var column []int32
		for i := range 70 {
			column = append(column, int32(i%9-2))
		}
		if !compare(t, d, 1, m, []any{column}, len(column), len(column)) {
			t.Fatalf("%d turns", most)
		}
	}
}

// TestInPlace writes outputs over inputs, before and after other columns are read: in one kernel and
// in parts, which read inputs again only where nothing has been stored before.
func TestInPlace(t *testing.T) {
	for _, part := range []int{0, 16} {
		d := open(t, scalar.Options{Part: part}, 0)
		b := simt.NewBuilder("in place")
		in, out := b.Input("x", simt.F32, simt.Rows, 3), b.Output("y", simt.F32, simt.Rows, 3)
		x, y := b.Load(in, 0), b.Load(in, 1)
		sum := b.Add(x, y)
		for range 30 {
			sum = b.FMA(sum, x, y)
		}
		b.Store(out, 0, sum)
		for range 30 {
			sum = b.FMA(sum, x, y) // x is the element that was read, not what lies there now
		}
		b.Store(out, 1, b.Add(sum, b.Load(in, 2)))
		m, err := b.Module()
		check(t, err)
		const rows = 70
		xs := make([]float32, 3*rows)
		for i := range xs {
			xs[i] = float32(i%7) / 8
		}
		want := append([]float32(nil), xs...)
		run, err := simt.Compile(m, 1)
		check(t, err)
		check(t, run.Run(t.Context(), 0, rows, []any{want}, []any{want}))
		p, err := kernels.LoadAs[kernels.CodeProgram](t.Context(), d, m)
		check(t, err)
		buffers := upload(t, d, []any{xs})
		check(t, p.Run(t.Context(), rows, buffers, buffers))
		check(t, d.Read(t.Context(), xs, buffers[0], 0))
		for i := range xs {
			if xs[i] != want[i] {
				t.Fatalf("parts of %d: element %d is %v, want %v", part, i, xs[i], want[i])
			}
		}
	}
}

// TestText looks at what the kernels say: fused and rounded operations alone, no numbers flushed to
// zero, nothing that two prints of a module would tell apart.
func TestText(t *testing.T) {
	b := simt.NewBuilder("text")
	in, out := b.Input("x", simt.F32, simt.Columns, 2), b.Output("y", simt.F32, simt.Columns, 1)
	b.Store(out, 0, b.Exp2(b.Log(b.Add(b.Mul(b.Load(in, 0), b.Load(in, 1)), b.Load(in, 1)), 0)))
	m, err := b.Module()
	check(t, err)
	for major, want := range map[int]string{8: ".version 7.0\n.target sm_80\n", 9: ".version 7.8\n.target sm_90\n"} {
		p, err := scalar.Lower(m, scalar.Options{Major: major})
		check(t, err)
		text := string(p.Text.Text())
		check(t, p.Text.Verify())
		parsed, err := ptx.Parse([]byte(text))
		check(t, err)
		if again := string(parsed.Text()); again != text {
			t.Error("text that is parsed and printed again is another")
		}
		if !strings.HasPrefix(text, want) || strings.Contains(text, "ftz") || strings.Contains(text, "approx") || !strings.Contains(text, "mul.rn.f32") || !strings.Contains(text, "fma.rn.f32") {
			t.Errorf("the text for %d.0:\n%s", major, text)
		}
	}
}

// TestOptions refuses options that no card has, and modules that are not verified.
func TestOptions(t *testing.T) {
	b := simt.NewBuilder("options")
	b.Store(b.Output("y", simt.I32, simt.Columns, 1), 0, b.Int(simt.I32, 1))
	m, err := b.Module()
	check(t, err)
	for _, o := range []scalar.Options{{Threads: 31}, {Threads: 16}, {Threads: 96}, {Threads: 1024}, {Cascade: -2}, {Cascade: 257}, {Staging: 3}, {Part: 15}, {Part: -1}, {MaxScratch: -1}, {Major: 7}} {
		if _, err := scalar.Lower(m, o); !errors.Is(err, scalar.ErrOptions) {
			t.Errorf("%+v: %v, want ErrOptions", o, err)
		}
	}
	large := simt.NewBuilder("large")
	table := make([]uint64, 48<<10)
	table[1] = 1
	large.Store(large.Output("y", simt.U8, simt.Columns, 1), 0, large.Gather(large.Table(simt.U8, table), large.Load(large.Input("x", simt.I32, simt.Columns, 1), 0)))
	if m, err = large.Module(); err != nil {
		t.Fatal(err)
	}
	if _, err := scalar.Lower(m, scalar.Options{Shared: true}); err != nil {
		t.Errorf("tables of 48 KiB in shared memory: %v", err)
	}
	large.Table(simt.U8, []uint64{1})
	if m, err = large.Module(); err != nil {
		t.Fatal(err)
	}
	if _, err := scalar.Lower(m, scalar.Options{Shared: true}); !errors.Is(err, scalar.ErrOptions) {
		t.Errorf("more than 48 KiB of tables in shared memory: %v, want ErrOptions", err)
	}
	if _, err := scalar.Lower(&simt.Module{Body: simt.Block{{Op: simt.Load}}}, scalar.Options{}); !errors.Is(err, simt.ErrModule) {
		t.Errorf("a module that is not verified: %v, want ErrModule", err)
	}
}

// TestSpread lets several threads have a row, each with a range of numbers that it adds up, and refuses ranges that there
// cannot be.
func TestSpread(t *testing.T) {
	b := simt.NewBuilder("spread")
	sums, first, end := b.Input("sums", simt.F64, simt.Columns, 2), b.Input("first", simt.I32, simt.Columns, 1), b.Input("end", simt.I32, simt.Columns, 1)
	out := b.Output("total", simt.F64, simt.Columns, 2)
	one, last := b.Int(simt.I32, 1), b.Load(end, 0)
	result := b.Loop(100, []simt.Value{b.Load(first, 0), b.Load(sums, 0)}, func(now []simt.Value) ([]simt.Value, simt.Value) {
		next := b.Add(now[0], one)
		return []simt.Value{next, b.Add(now[1], b.Convert(simt.F64, now[0]))}, b.Binary(simt.Lt, next, last)
	})
	b.Store(out, 0, result[1])
	b.Store(out, 1, b.Load(sums, 1)) // adds nothing
	m, err := b.Module()
	check(t, err)
	const rows = 70
	for _, step := range []int{1, 3, 7, 20, 21} {
		d := open(t, scalar.Options{Threads: 32, Spread: &scalar.Spread{First: 1, End: 2, Sums: 0, Step: step, Total: 20}}, 2)
		p, err := kernels.LoadAs[kernels.CodeProgram](t.Context(), d, m)
		check(t, err)
		total := make([]float64, 2*rows)
		for i := range total {
			total[i] = float64(i)
		}
		buffers := upload(t, d, []any{total, make([]int32, rows), make([]int32, rows)})
		check(t, p.Run(t.Context(), rows-1, buffers, buffers[:1]))
		check(t, d.Read(t.Context(), total, buffers[0], 0))
		for i, x := range total {
			want := float64(i)
			if i < rows-1 {
				want += 190 // 0 to 19
			}
			if x != want {
				t.Fatalf("ranges of %d: element %d is %v, want %v", step, i, x, want)
			}
		}
		p.Free()
	}
	for _, s := range []scalar.Spread{{First: 0, End: 2, Sums: 1, Step: 1, Total: 1}, {First: 1, End: 3, Step: 1, Total: 1}, {First: 1, End: 2, Sums: -1, Step: 1, Total: 1}, {First: 1, End: 2, Total: 1}, {First: 1, End: 2, Step: 1}, {First: 1, End: 2, Step: 1, Total: 1 << 16}} {
		if _, err := scalar.Lower(m, scalar.Options{Spread: &s}); !errors.Is(err, scalar.ErrOptions) {
			t.Errorf("%+v: %v, want ErrOptions", s, err)
		}
	}
}
