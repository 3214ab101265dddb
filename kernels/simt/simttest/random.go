package simttest

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pce-engine/pce/kernels/simt"
)

var types = []simt.Type{simt.F32, simt.F64, simt.I32, simt.I64, simt.U8, simt.U16}

// generator draws a program. Values in scope are kept by type.
type generator struct {
	rng    *rand.Rand
	b      *simt.Builder
	values [][]simt.Value
	out    map[simt.Type]int // outputs
	tables []simt.Type
	left   int         // instructions to come
	types  []simt.Type // of elements
	every  []simt.Type // these and pred
}

// Random returns a random program of about size instructions, with an output of every type.
func Random(t testing.TB, rng *rand.Rand, size int) *simt.Module {
	t.Helper()
	g := &generator{rng: rng, b: simt.NewBuilder("random"), left: size, types: types}
	return g.module(t, func(typ simt.Type) {
		g.b.Input("in_"+typ.String(), typ, simt.Layout(rng.IntN(2)), 1+rng.IntN(3))
		g.out[typ] = g.b.Output("out_"+typ.String(), typ, simt.Layout(rng.IntN(2)), 2)
	})
}

// Short is Random without values of 64 bits, with outputs of f32 and i32 alone, and with wide rows.
func Short(t testing.TB, rng *rand.Rand, size int) *simt.Module {
	t.Helper()
	return numbers(t, rng, size, []simt.Type{simt.F32, simt.I32, simt.U8, simt.U16})
}

// Numbers is Random without outputs of less than 32 bits, and with wide rows.
func Numbers(t testing.TB, rng *rand.Rand, size int) *simt.Module {
	t.Helper()
	return numbers(t, rng, size, types)
}

func numbers(t testing.TB, rng *rand.Rand, size int, types []simt.Type) *simt.Module {
	t.Helper()
	g := &generator{rng: rng, b: simt.NewBuilder("random"), left: size, types: types}
	return g.module(t, func(typ simt.Type) {
		g.b.Input("in_"+typ.String(), typ, simt.Layout(rng.IntN(2)), 4+rng.IntN(40))
		if typ.Bits() >= 32 {
			g.out[typ] = g.b.Output("out_"+typ.String(), typ, simt.Layout(rng.IntN(2)), 2)
		}
	})
}

// module draws the program; params adds the input and the output of a type.
func (g *generator) module(t testing.TB, params func(simt.Type)) *simt.Module {
	t.Helper()
	rng := g.rng
	g.values, g.out, g.every = make([][]simt.Value, 7), map[simt.Type]int{}, append(g.types[:len(g.types):len(g.types)], simt.Pred)
	for _, typ := range g.types {
		params(typ)
	}
	for range 4 {
		typ := g.types[rng.IntN(len(g.types))]
		bits := make([]uint64, 1+rng.IntN([]int{9, 140}[rng.IntN(4)/3]))
		for i := range bits {
			bits[i] = Bits(rng, typ)
		}
		if g.b.Table(typ, bits) == len(g.tables) { // else it equals an earlier one
			g.tables = append(g.tables, typ)
		}
	}
	for i := range g.types { // so that every type has a value
		g.add(g.b.Load(i, 0))
		g.add(g.b.Load(i, g.b.InputWidth(i)-1))
	}
	g.add(g.b.Binary(simt.Lt, g.pick(simt.F32), g.pick(simt.F32)))
	g.block(0)
	for _, typ := range g.types {
		if out, ok := g.out[typ]; ok {
			g.b.Store(out, 0, g.pick(typ))
		}
	}
	m, err := g.b.Module()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func (g *generator) add(v simt.Value) { t := g.b.TypeOf(v); g.values[t] = append(g.values[t], v) }

func (g *generator) pick(t simt.Type) simt.Value {
	list := g.values[t]
	if n := len(list); n > 4 && g.rng.IntN(2) == 0 {
		list = list[n-4:]
	}
	return list[g.rng.IntN(len(list))]
}

// of draws one of some types, of those that the program has.
func (g *generator) of(list ...simt.Type) simt.Type {
	list = slices.DeleteFunc(list, func(t simt.Type) bool { return !slices.Contains(g.every, t) })
	return list[g.rng.IntN(len(list))]
}

func (g *generator) block(depth int) {
	for n := 1 + g.rng.IntN(12); (depth == 0 || n > 0) && g.left > 0; n-- {
		g.left--
		g.instr(depth)
	}
}

// scope draws instructions whose values end with them, and returns some values.
func (g *generator) scope(depth int, results []simt.Type) []simt.Value {
	kept := make([]int, len(g.values))
	for t, list := range g.values {
		kept[t] = len(list)
	}
	g.block(depth)
	out := make([]simt.Value, len(results))
	for i, t := range results {
		out[i] = g.pick(t)
	}
	for t := range g.values {
		g.values[t] = g.values[t][:kept[t]]
	}
	return out
}

func (g *generator) instr(depth int) {
	numbers := g.of(simt.F32, simt.F64, simt.I32, simt.I64)
	floats := g.of(simt.F32, simt.F64)
	integers := g.of(simt.I32, simt.I64)
	logical := g.of(simt.I32, simt.I64, simt.Pred)
	any := g.types[g.rng.IntN(len(g.types))]
	b := g.b
	op := func(ops ...simt.Op) simt.Op { return ops[g.rng.IntN(len(ops))] }
	switch k := g.rng.IntN(20); {
	case k < 4:
		g.add(b.Binary(op(simt.Add, simt.Sub, simt.Mul, simt.Min, simt.Max), g.pick(numbers), g.pick(numbers)))
	case k == 4:
		g.add(b.Binary(simt.Div, g.pick(floats), g.pick(floats)))
	case k == 5:
		g.add(b.FMA(g.pick(floats), g.pick(floats), g.pick(floats)))
	case k == 6:
		g.add(b.Unary(op(simt.Neg, simt.Abs, simt.Floor), g.pick(floats)))
	case k == 7:
		g.add(b.Binary(op(simt.And, simt.Or, simt.Xor), g.pick(logical), g.pick(logical)))
	case k == 8:
		g.add(b.Unary(simt.Not, g.pick(logical)))
	case k == 9:
		g.add(b.Shift(op(simt.Shl, simt.Shr, simt.Sar), g.pick(integers), g.rng.IntN(integers.Bits())))
	case k < 12:
		g.add(b.Binary(op(simt.Eq, simt.Ne, simt.Lt, simt.Le), g.pick(any), g.pick(any)))
	case k == 12:
		t := g.every[g.rng.IntN(len(g.every))]
		g.add(b.Select(g.pick(simt.Pred), g.pick(t), g.pick(t)))
	case k == 13:
		g.add(b.Convert(g.types[g.rng.IntN(len(g.types))], g.pick(any)))
	case k == 14:
		from := numbers
		to := map[simt.Type]simt.Type{simt.F32: simt.I32, simt.F64: simt.I64, simt.I32: simt.F32, simt.I64: simt.F64}[from]
		x := g.pick(from)
		if from.Float() { // the bits of a NaN are not said
			x = b.Select(b.Binary(simt.Eq, x, x), x, b.Float(from, 0))
		}
		g.add(b.Bitcast(to, x))
	case k == 15 && g.rng.IntN(3) == 0:
		if i := g.rng.IntN(len(g.types)); b.InputRows(i) && (g.types[i].Float() || g.types[i].Integer()) {
			g.add(b.LoadAt(i, g.pick(simt.I32)))
		}
	case k == 15:
		g.add(b.Gather(g.rng.IntN(len(g.tables)), g.pick(simt.I32)))
	case k == 16:
		t := g.every[g.rng.IntN(len(g.every))]
		bits := uint64(g.rng.IntN(2))
		if t != simt.Pred {
			bits = Bits(g.rng, t)
		}
		g.add(b.Bits(t, bits))
	case k == 17:
		t := g.types[g.rng.IntN(len(g.types))]
		if out, ok := g.out[t]; ok && b.OutputRows(out) && (t.Float() || t.Integer()) && g.rng.IntN(2) == 0 {
			b.StoreAt(out, g.pick(simt.I32), g.pick(t))
		} else if ok {
			b.Store(out, 1, g.pick(t))
		}
	case k == 18 && g.rng.IntN(2) == 0:
		i := g.rng.IntN(len(g.types))
		g.add(b.Load(i, g.rng.IntN(b.InputWidth(i))))
	case depth >= 3:
	case k == 18:
		results := make([]simt.Type, g.rng.IntN(3))
		for i := range results {
			results[i] = g.every[g.rng.IntN(len(g.every))]
		}
		for _, v := range b.If(g.pick(simt.Pred),
			func() []simt.Value { return g.scope(depth+1, results) },
			func() []simt.Value { return g.scope(depth+1, results) }) {
			g.add(v)
		}
	default:
		carried := make([]simt.Type, g.rng.IntN(4))
		init := make([]simt.Value, len(carried))
		for i := range carried {
			carried[i] = g.every[g.rng.IntN(len(g.every))]
			init[i] = g.pick(carried[i])
		}
		for _, v := range b.Loop(1+g.rng.IntN(4), init, func(now []simt.Value) ([]simt.Value, simt.Value) {
			lengths := make([]int, len(g.values))
			for t, list := range g.values {
				lengths[t] = len(list)
			}
			for _, v := range now {
				g.add(v)
			}
			all := g.scope(depth+1, append([]simt.Type{simt.Pred}, carried...))
			for t := range g.values {
				g.values[t] = g.values[t][:lengths[t]]
			}
			return all[1:], all[0]
		}) {
			g.add(v)
		}
	}
}

// Bits draws the bits of an element: often an extreme one, or a small number.
func Bits(rng *rand.Rand, t simt.Type) uint64 {
	if t.Float() {
		x := (rng.Float64() - 0.5) * math.Ldexp(1, rng.IntN(12))
		switch rng.IntN(12) {
		case 0:
			x = []float64{0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN(), 1, -1}[rng.IntN(7)]
		case 1: // a subnormal, or near the largest number
			x = math.Ldexp(x, []int{-140, -1060, 120, 1010}[rng.IntN(4)])
		}
		return simt.FloatBits(t, x)
	}
	switch rng.IntN(4) {
	case 0:
		return rng.Uint64() >> (64 - t.Bits())
	case 1:
		return uint64(1) << rng.IntN(t.Bits())
	case 2:
		return math.MaxUint64 >> (64 - t.Bits())
	}
	return uint64(rng.IntN(16))
}

// Buffers returns slices for the inputs of a module, with random elements for that many rows,
// and for its outputs, with zeros.
func Buffers(rng *rand.Rand, m *simt.Module, rows int) (in, out []any) {
	for i, list := range [][]simt.Param{m.Inputs, m.Outputs} {
		for _, p := range list {
			bits := make([]uint64, p.Width*rows)
			if i == 0 {
				for k := range bits {
					bits[k] = Bits(rng, p.Type)
				}
				in = append(in, Slice(p.Type, bits))
			} else {
				out = append(out, Slice(p.Type, bits))
			}
		}
	}
	return in, out
}

// Slice returns the elements that have some bits.
func Slice(t simt.Type, bits []uint64) any {
	switch t {
	case simt.F32:
		return convert(bits, func(b uint64) float32 { return math.Float32frombits(uint32(b)) })
	case simt.F64:
		return convert(bits, math.Float64frombits)
	case simt.I32:
		return convert(bits, func(b uint64) int32 { return int32(b) })
	case simt.I64:
		return convert(bits, func(b uint64) int64 { return int64(b) })
	case simt.U8:
		return convert(bits, func(b uint64) uint8 { return uint8(b) })
	}
	return convert(bits, func(b uint64) uint16 { return uint16(b) })
}

func convert[T any](bits []uint64, f func(uint64) T) []T {
	s := make([]T, len(bits))
	for i, b := range bits {
		s[i] = f(b)
	}
	return s
}

// ElementBits returns the bits of an element of a slice; every NaN as one.
func ElementBits(s any, i int) uint64 {
	switch s := s.(type) {
	case []float32:
		if s[i] != s[i] {
			return math.MaxUint64
		}
		return uint64(math.Float32bits(s[i]))
	case []float64:
		if s[i] != s[i] {
			return math.MaxUint64
		}
		return math.Float64bits(s[i])
	case []int32:
		return uint64(uint32(s[i]))
	case []int64:
		return uint64(s[i])
	case []uint8:
		return uint64(s[i])
	}
	return uint64(s.([]uint16)[i])
}
