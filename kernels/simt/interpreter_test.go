package simt_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/pce-engine/pce/kernels/simt"
	"github.com/pce-engine/pce/kernels/simt/simttest"
)

// scalar computes one lane of a module, value by value and in the plainest way: what the
// interpreter is tested against.
type scalar struct {
	m       *simt.Module
	v       []uint64 // bits
	in, out []any
	row     int
}

func (s *scalar) float(t simt.Type, bits uint64) float64 {
	if t == simt.F32 {
		return float64(math.Float32frombits(uint32(bits)))
	}
	return math.Float64frombits(bits)
}

func (s *scalar) signed(t simt.Type, bits uint64) int64 {
	switch t {
	case simt.I32:
		return int64(int32(bits))
	case simt.I64:
		return int64(bits)
	}
	return int64(bits) // u8 and u16
}

func (s *scalar) integer(t simt.Type, x int64) uint64 {
	if t.Bits() == 64 {
		return uint64(x)
	}
	return uint64(x) & (1<<t.Bits() - 1)
}

func truth(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// fma is x·y + z, rounded once to type t, by rational numbers.
func fma(t simt.Type, x, y, z float64) float64 {
	if d := x*y*0 + z*0; d != d { // infinite or NaN
		if math.IsInf(z, 0) && !math.IsInf(x, 0) && !math.IsInf(y, 0) && x == x && y == y { // x·y may overflow here and not there
			return z
		}
		return x*y + z
	}
	p := new(big.Float).SetPrec(2200).Mul(big.NewFloat(x), big.NewFloat(y))
	p.SetPrec(4400).Add(p, big.NewFloat(z))
	if p.Sign() == 0 {
		return x*y + z
	}
	if t == simt.F32 {
		f, _ := p.Float32()
		return float64(f)
	}
	f, _ := p.Float64()
	return f
}

func (s *scalar) block(b simt.Block) {
	for i := range b {
		s.instr(&b[i])
	}
}

func (s *scalar) instr(in *simt.Instr) {
	m := s.m
	var t simt.Type
	var a [3]uint64
	for i := range in.Op.Args() {
		a[i] = s.v[in.Args[i]]
		t = m.Types[in.Args[i]]
	}
	place := func(p *simt.Param, buffer any) int {
		n := length(buffer) / p.Width
		if p.Layout == simt.Rows {
			return s.row*p.Width + int(in.Imm)
		}
		return int(in.Imm)*n + s.row
	}
	switch in.Op {
	case simt.If:
		block, yield := in.If.Then, in.If.ThenYield
		if a[0] == 0 {
			block, yield = in.If.Else, in.If.ElseYield
		}
		s.block(block)
		for i, v := range yield {
			s.v[in.If.Results[i]] = s.v[v]
		}
		return
	case simt.Loop:
		l := in.Loop
		for i, v := range l.Init {
			s.v[l.Carried[i]] = s.v[v]
		}
		for range l.Most {
			s.block(l.Body)
			next := make([]uint64, len(l.Next))
			for i, v := range l.Next {
				next[i] = s.v[v]
			}
			for i, v := range l.Carried {
				s.v[v] = next[i]
			}
			if s.v[l.Continue] == 0 {
				break
			}
		}
		for i, v := range l.Carried {
			s.v[l.Results[i]] = s.v[v]
		}
		return
	case simt.Store, simt.StoreAt:
		p := &m.Outputs[in.Ref]
		at := place(p, s.out[in.Ref])
		if in.Op == simt.StoreAt {
			at = s.row*p.Width + int(min(max(int64(int32(a[0])), 0), int64(p.Width-1)))
			a[0] = a[1]
		}
		switch out := s.out[in.Ref].(type) {
		case []float32:
			out[at] = math.Float32frombits(uint32(a[0]))
		case []float64:
			out[at] = math.Float64frombits(a[0])
		case []int32:
			out[at] = int32(a[0])
		case []int64:
			out[at] = int64(a[0])
		case []uint8:
			out[at] = uint8(a[0])
		case []uint16:
			out[at] = uint16(a[0])
		}
		return
	}
	to := m.Types[in.Out]
	var r uint64
	switch in.Op {
	case simt.Const:
		r = in.Imm
	case simt.Load:
		r = rawBits(s.in[in.Ref], place(&m.Inputs[in.Ref], s.in[in.Ref]))
	case simt.LoadAt:
		w := m.Inputs[in.Ref].Width
		r = rawBits(s.in[in.Ref], s.row*w+int(min(max(s.signed(t, a[0]), 0), int64(w-1))))
	case simt.Gather:
		table := m.Tables[in.Ref].Bits
		r = table[min(max(s.signed(t, a[0]), 0), int64(len(table)-1))]
	case simt.Select:
		r = a[2]
		if a[0] == 1 {
			r = a[1]
		}
	case simt.Bitcast:
		r = a[0]
	case simt.Shl:
		r = s.integer(to, s.signed(t, a[0])<<in.Imm)
	case simt.Shr:
		r = a[0] >> in.Imm
	case simt.Sar:
		r = s.integer(to, s.signed(t, a[0])>>in.Imm)
	case simt.And:
		r = a[0] & a[1]
	case simt.Or:
		r = a[0] | a[1]
	case simt.Xor:
		r = a[0] ^ a[1]
	case simt.Not:
		r = ^a[0]
		if n := to.Bits(); n < 64 {
			r &= 1<<n - 1
		}
	case simt.Convert:
		r = s.convert(t, to, a[0])
	default:
		if t.Float() {
			x, y, z := s.float(t, a[0]), s.float(t, a[1]), s.float(t, a[2])
			if in.Op >= simt.Eq {
				r = truth(map[simt.Op]bool{simt.Eq: x == y, simt.Ne: x != y, simt.Lt: x < y, simt.Le: x <= y}[in.Op])
				break
			}
			r = simt.FloatBits(to, map[simt.Op]func() float64{ // of f32: float64 rounded to it is the same, twice the digits and more
				simt.Add: func() float64 { return x + y }, simt.Sub: func() float64 { return x - y },
				simt.Mul: func() float64 { return x * y }, simt.Div: func() float64 { return x / y },
				simt.FMA: func() float64 { return fma(t, x, y, z) },
				simt.Neg: func() float64 { return -x }, simt.Abs: func() float64 { return math.Abs(x) },
				simt.Floor: func() float64 { return math.Floor(x) },
				simt.Min: func() float64 {
					if x < y {
						return x
					}
					return y
				},
				simt.Max: func() float64 {
					if x > y {
						return x
					}
					return y
				},
			}[in.Op]())
			break
		}
		x, y := s.signed(t, a[0]), s.signed(t, a[1])
		if in.Op >= simt.Eq {
			r = truth(map[simt.Op]bool{simt.Eq: x == y, simt.Ne: x != y, simt.Lt: x < y, simt.Le: x <= y}[in.Op])
			break
		}
		r = s.integer(to, map[simt.Op]int64{simt.Add: x + y, simt.Sub: x - y, simt.Mul: x * y, simt.Min: min(x, y), simt.Max: max(x, y)}[in.Op])
	}
	s.v[in.Out] = r
}

func (s *scalar) convert(t, to simt.Type, a uint64) uint64 {
	switch {
	case t.Float() && to.Float():
		return simt.FloatBits(to, s.float(t, a))
	case to == simt.F32:
		return uint64(math.Float32bits(float32(s.signed(t, a))))
	case to.Float():
		return simt.FloatBits(to, float64(s.signed(t, a)))
	case !t.Float():
		return s.integer(to, s.signed(t, a))
	}
	x := s.float(t, a)
	lo, hi := new(big.Int), new(big.Int)
	hi.Lsh(big.NewInt(1), uint(to.Bits()))
	if to.Integer() {
		hi.Rsh(hi, 1)
		lo.Neg(hi)
	}
	hi.Sub(hi, big.NewInt(1))
	n := new(big.Int)
	switch {
	case x != x:
	case math.IsInf(x, 1):
		n = hi
	case math.IsInf(x, -1):
		n = lo
	default:
		big.NewFloat(x).Int(n)
		if n.Cmp(lo) < 0 {
			n = lo
		}
		if n.Cmp(hi) > 0 {
			n = hi
		}
	}
	if n.IsInt64() {
		return s.integer(to, n.Int64())
	}
	return n.Uint64()
}

func rawBits(s any, i int) uint64 {
	switch s := s.(type) {
	case []float32:
		return uint64(math.Float32bits(s[i]))
	case []float64:
		return math.Float64bits(s[i])
	}
	return simttest.ElementBits(s, i)
}

func length(s any) int {
	switch s := s.(type) {
	case []float32:
		return len(s)
	case []float64:
		return len(s)
	case []int32:
		return len(s)
	case []int64:
		return len(s)
	case []uint8:
		return len(s)
	}
	return len(s.([]uint16))
}

// TestInterpreterAgainstScalar runs random programs in blocks and lane by lane.
func TestInterpreterAgainstScalar(t *testing.T) {
	programs := 400
	if testing.Short() {
		programs = 60
	}
	for seed := range programs {
		rng := rand.New(rand.NewPCG(uint64(seed), 1))
		m := simttest.Random(t, rng, 5+rng.IntN(60))
		rows := []int{1, 2, 255, 256, 257, 300}[seed%6]
		if seed%6 > 1 && seed%12 > 5 {
			rows = 3
		}
		in, out := simttest.Buffers(rng, m, rows)
		_, want := simttest.Buffers(rng, m, rows)
		p, err := simt.Compile(m, 1)
		if err != nil {
			t.Fatal(err)
		}
		cut := rng.IntN(rows + 1)
		for _, part := range [][2]int{{cut, rows}, {0, cut}} {
			if err := p.Run(t.Context(), part[0], part[1], in, out); err != nil {
				t.Fatal(err)
			}
		}
		s := &scalar{m: m, v: make([]uint64, len(m.Types)), in: in, out: want}
		for s.row = range rows {
			s.block(m.Body)
		}
		for k := range out {
			for i := range length(out[k]) {
				if got, want := simttest.ElementBits(out[k], i), simttest.ElementBits(want[k], i); got != want {
					t.Fatalf("seed %d: output %d, element %d is %#x, want %#x\n%s", seed, k, i, got, want, m.Text())
				}
			}
		}
	}
}

// TestLoopContinuesByCarried has loops that continue by a carried value, which is that of the turn
// and not the next one.
func TestLoopContinuesByCarried(t *testing.T) {
	for _, c := range []struct{ first, then bool }{{true, false}, {false, true}, {true, true}} {
		b := simt.NewBuilder("loop")
		out := b.Output("turns", simt.I32, simt.Columns, 1)
		bit := func(x bool) simt.Value {
			if x {
				return b.Bits(simt.Pred, 1)
			}
			return b.Bits(simt.Pred, 0)
		}
		r := b.Loop(5, []simt.Value{bit(c.first), b.Int(simt.I32, 0)}, func(v []simt.Value) (next []simt.Value, more simt.Value) {
			return []simt.Value{bit(c.then), b.Add(v[1], b.Int(simt.I32, 1))}, v[0]
		})
		b.Store(out, 0, r[1])
		m, err := b.Module()
		if err != nil {
			t.Fatal(err)
		}
		run, err := simt.Compile(m, 1)
		if err != nil {
			t.Fatal(err)
		}
		turns := []int32{0}
		if err := run.Run(t.Context(), 0, 1, nil, []any{turns}); err != nil {
			t.Fatal(err)
		}
		want := int32(1) // the second turn is the first to read then
		if c.first {
			want = 2
			if c.then {
				want = 5
			}
		}
		if turns[0] != want {
			t.Errorf("first %v, then %v: %d turns, want %d", c.first, c.then, turns[0], want)
		}
	}
}

// TestRunRefuses: buffers that do not fit, and a context that has ended.
func TestRunRefuses(t *testing.T) {
	m, err := simt.Parse("module \"m\"\ninput x f32 columns 2\noutput y f32 rows 1\n%0 = load x 1\nstore y 0 %0\n")
	if err != nil {
		t.Fatal(err)
	}
	p, err := simt.Compile(m, 1)
	if err != nil {
		t.Fatal(err)
	}
	x, y := make([]float32, 8), make([]float32, 4)
	x[7] = 5
	if err := p.Run(t.Context(), 0, 4, []any{x}, []any{y}); err != nil || y[3] != 5 {
		t.Errorf("%v, %v", y, err)
	}
	for what, err := range map[string]error{
		"short input":  p.Run(t.Context(), 0, 4, []any{x[:7]}, []any{y}),
		"short output": p.Run(t.Context(), 0, 4, []any{x}, []any{y[:3]}),
		"type":         p.Run(t.Context(), 0, 4, []any{[]float64{1, 2, 3, 4, 5, 6, 7, 8}}, []any{y}),
		"no output":    p.Run(t.Context(), 0, 4, []any{x}, nil),
		"lo":           p.Run(t.Context(), -1, 4, []any{x}, []any{y}),
		"hi":           p.Run(t.Context(), 2, 1, []any{x}, []any{y}),
		"nil":          p.Run(t.Context(), 0, 1, []any{nil}, []any{y}),
	} {
		if !errors.Is(err, simt.ErrModule) {
			t.Errorf("%s: %v, want ErrModule", what, err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Run(ended, 0, 4, []any{x}, []any{y}); !errors.Is(err, context.Canceled) {
		t.Errorf("an ended context: %v", err)
	}
	if err := p.Run(ended, 4, 4, []any{x}, []any{y}); err != nil {
		t.Errorf("no rows: %v", err)
	}
}

// BenchmarkInterpreter runs a product of eight table lookups.
func BenchmarkInterpreter(b *testing.B) {
	for _, typ := range []simt.Type{simt.F32, simt.F64} {
		b.Run(fmt.Sprint(typ), func(b *testing.B) {
			bb := simt.NewBuilder("bench")
			in := bb.Input("x", simt.I32, simt.Columns, 8)
			out := bb.Output("y", typ, simt.Columns, 1)
			p := bb.Float(typ, 1)
			table := bb.FloatTable(typ, []float64{0.25, 0.5, 0.25, 1})
			for i := range 8 {
				p = bb.Mul(p, bb.Gather(table, bb.Load(in, i)))
			}
			bb.Store(out, 0, p)
			m, err := bb.Module()
			if err != nil {
				b.Fatal(err)
			}
			run, err := simt.Compile(m, 1)
			if err != nil {
				b.Fatal(err)
			}
			const rows = 4096
			ins, outs := simttest.Buffers(rand.New(rand.NewPCG(1, 1)), m, rows)
			for b.Loop() {
				if err := run.Run(b.Context(), 0, rows, ins, outs); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)*rows/b.Elapsed().Seconds()/1e6, "Mrows/s")
		})
	}
}

// TestLargeFrames wants a module of very many constants to take blocks of fewer rows: at 256 of each its frame would have 82 MB.
func TestLargeFrames(t *testing.T) {
	const terms, rows = 40_000, 300
	b := simt.NewBuilder("large")
	in, out := b.Input("x", simt.F64, simt.Columns, 1), b.Output("y", simt.F64, simt.Columns, 1)
	x, sum := b.Load(in, 0), b.Float(simt.F64, 0)
	for k := range terms {
		sum = b.Add(sum, b.Mul(x, b.Float(simt.F64, float64(k+1))))
	}
	b.Store(out, 0, sum)
	m, err := b.Module()
	if err != nil {
		t.Fatal(err)
	}
	run, err := simt.Compile(m, 1)
	if err != nil {
		t.Fatal(err)
	}
	if bytes := run.Bytes(); bytes > 16<<20 || bytes < 4<<20 {
		t.Errorf("a frame has %d bytes", bytes)
	}
	cells, sums := make([]float64, rows), make([]float64, rows)
	for r := range cells {
		cells[r] = float64(r)
	}
	if err := run.Run(t.Context(), 0, rows, []any{cells}, []any{sums}); err != nil {
		t.Fatal(err)
	}
	for r, y := range sums {
		if want := float64(r) * terms * (terms + 1) / 2; y != want {
			t.Fatalf("row %d is %v, want %v", r, y, want)
		}
	}
}
