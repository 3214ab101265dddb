package scalar

import (
	"math"

	"github.com/pce-engine/pce/kernels/ptx"
	"github.com/pce-engine/pce/kernels/simt"
)

// inner makes the instructions of a block within the body.
func (g *generator) inner(b simt.Block) {
	for i := range b {
		g.instr(&b[i])
	}
}

// instr makes an instruction, whose operands are there.
func (g *generator) instr(in *simt.Instr) {
	switch in.Op {
	case simt.Const:
		g.set(in.Out, literal(g.m.Types[in.Out], in.Imm))
	case simt.Load:
		q := &g.m.Inputs[in.Ref]
		if s := g.o.Spread; s != nil && (in.Ref == s.First || in.Ref == s.End || in.Ref == s.Sums) {
			g.set(in.Out, g.spread(in.Ref, q.Type))
			return
		}
		if s := g.o.Share; s != nil && in.Ref == s.Thread {
			g.set(in.Out, g.member)
			return
		} else if s != nil && in.Ref == s.Sums {
			g.set(in.Out, literal(q.Type, simt.FloatBits(q.Type, math.Copysign(0, -1))))
			return
		}
		g.set(in.Out, g.read(q.Type, g.columns[0][in.Ref], q, int(in.Imm)))
	case simt.Store:
		q := &g.m.Outputs[in.Ref]
		at, offset := g.element(g.columns[1][in.Ref], q, int(in.Imm))
		if g.o.Share != nil {
			g.keepPartial(int(in.Imm), g.o.Threads, g.use(in.Args[0]))
			return
		}
		if g.o.Spread != nil {
			g.Red("add", typeOf(q.Type), at, offset, g.use(in.Args[0]))
			return
		}
		g.write(q.Type, at, offset, in.Args[0])
	case simt.LoadAt:
		q, from := &g.m.Inputs[in.Ref], g.columns[0][in.Ref]
		at, offset := g.chosen(from.row, in.Args[0], q.Width, q.Type)
		g.set(in.Out, g.Builder.Load(inMemory(q.Type), at, offset))
	case simt.StoreAt:
		q := &g.m.Outputs[in.Ref]
		at, offset := g.chosen(g.columns[1][in.Ref].row, in.Args[0], q.Width, q.Type)
		g.write(q.Type, at, offset, in.Args[1])
	case simt.Gather:
		g.set(in.Out, g.lookup(in))
	case simt.If:
		g.branch(in)
	case simt.Loop:
		if r := g.cuts.rolledOf(in); r != nil {
			g.turns(r)
			return
		}
		g.loop(in.Loop)
	case simt.Select:
		g.set(in.Out, g.choose(in))
	case simt.Convert:
		g.set(in.Out, g.convert(g.m.Types[in.Out], g.m.Types[in.Args[0]], g.reg(in.Args[0])))
	case simt.Bitcast:
		g.set(in.Out, g.reg(in.Args[0]).As(typeOf(g.m.Types[in.Out])))
	default:
		g.set(in.Out, g.arithmetic(in))
	}
}

// spread returns what a block reads of an input that Options.Spread replaces.
func (g *generator) spread(input int, t simt.Type) any {
	s := g.o.Spread
	switch input {
	case s.First:
		return g.first
	case s.End:
		return g.Builder.Min(g.Builder.Add(g.first, s.Step), s.Total)
	}
	return literal(t, simt.FloatBits(t, math.Copysign(0, -1)))
}

// element returns where an element of a column is: an address and a distance from it.
func (g *generator) element(p place, q *simt.Param, column int) (ptx.Value, int) {
	size := q.Type.Bits() / 8
	switch {
	case q.Layout == simt.Rows:
		return p.row, column * size
	case column == 0:
		return p.row, 0
	}
	return g.MadWide(p.step, column, p.row), 0
}

func (g *generator) read(t simt.Type, p place, q *simt.Param, column int) ptx.Value {
	at, offset := g.element(p, q, column)
	return g.Builder.Load(inMemory(t), at, offset)
}

func (g *generator) write(t simt.Type, at ptx.Value, offset int, v simt.Value) {
	x := g.use(v)
	if r, ok := x.(ptx.Value); ok && t == simt.U16 { // stores of 16 bits want a register of 16
		x = g.Cvt(ptx.U16, r)
	}
	g.Builder.Store(inMemory(t), at, offset, x)
}

// clamp returns an index into n elements: a number, or a register.
func (g *generator) clamp(v simt.Value, n int) any {
	if x, ok := g.use(v).(int64); ok {
		return min(max(x, 0), int64(n-1))
	}
	if n == 1 {
		return int64(0)
	}
	return g.Min(g.Max(g.use(v), 0), n-1).As(ptx.U32)
}

// chosen returns where the element with an index is among n that follow each other.
func (g *generator) chosen(from ptx.Value, index simt.Value, n int, t simt.Type) (ptx.Value, int) {
	size := t.Bits() / 8
	switch x := g.clamp(index, n).(type) {
	case int64:
		return from, int(x) * size
	default:
		return g.At(from, x, size), 0
	}
}

// cascades reports whether lookups in a table are cascades of selections. A read clamps its index,
// finds an address and loads, which four instructions do; where the lanes of a warp read different
// lines of 128 bytes, the load takes as many turns, each as long as four instructions. A selection
// takes a comparison and a move for each 32 bits.
func (g *generator) cascades(table int) bool {
	t := &g.m.Tables[table]
	n, words := len(t.Bits), (t.Type.Bits()+31)/32
	if g.o.Pages != nil { // elements are not known
		return false
	}
	if g.o.Cascade != 0 {
		return n <= g.o.Cascade
	}
	lines := min(32, (n*t.Type.Bits()/8+127)/128)
	return (n-1)*(1+words) <= 4+4*lines
}

// lookup returns an element of a table. An index below the table finds the first element, one
// above it the last, in a cascade as by clamping.
func (g *generator) lookup(in *simt.Instr) any {
	t := &g.m.Tables[in.Ref]
	_, known := g.use(in.Args[0]).(int64)
	if !g.cascades(in.Ref) {
		n := len(t.Bits)
		if g.o.Pages != nil {
			n /= g.o.Pages.Count
		}
		at, offset := g.chosen(g.tables, in.Args[0], n, t.Type)
		if g.o.Shared {
			return g.Builder.Load(inMemory(t.Type), at, g.offsets[in.Ref]+offset)
		}
		return g.Builder.Load(inMemory(t.Type), at, g.offsets[in.Ref]+offset, "nc")
	}
	if known || len(t.Bits) == 1 {
		return literal(t.Type, t.Bits[g.clamp(in.Args[0], len(t.Bits)).(int64)])
	}
	index := g.reg(in.Args[0])
	last := any(literal(t.Type, t.Bits[0]))
	for i := 1; i < len(t.Bits); i++ {
		if t.Bits[i] == t.Bits[i-1] {
			continue
		}
		x := literal(t.Type, t.Bits[i])
		if _, ok := last.(ptx.Value); !ok {
			last = g.Mov(typeOf(t.Type), last)
		}
		last = g.Builder.Select(g.Ge(index, i), x, last)
	}
	return last
}

// choose returns the second operand where the first one holds, else the third.
func (g *generator) choose(in *simt.Instr) ptx.Value {
	p := g.reg(in.Args[0])
	if g.m.Types[in.Out] == simt.Pred {
		return g.Or(g.And(p, g.reg(in.Args[1])), g.And(g.Not(p), g.reg(in.Args[2])))
	}
	x, y := g.pair(in.Args[1], in.Args[2])
	return g.Builder.Select(p, x, y)
}

// pair returns two operands of which one is a register, as the builder takes their type from it.
func (g *generator) pair(a, b simt.Value) (x, y any) {
	x, y = g.use(a), g.use(b)
	if _, ok := y.(ptx.Value); !ok {
		x = g.reg(a)
	}
	return x, y
}

// arithmetic makes an operation whose operands have one type.
func (g *generator) arithmetic(in *simt.Instr) ptx.Value {
	t := g.m.Types[in.Args[0]]
	switch in.Op.Args() {
	case 1:
		return g.unary(in, t, g.reg(in.Args[0]))
	case 3:
		return g.Builder.FMA(g.reg(in.Args[0]), g.use(in.Args[1]), g.use(in.Args[2]))
	}
	if t == simt.Pred {
		return g.binary(in.Op, t, g.reg(in.Args[0]), g.reg(in.Args[1]))
	}
	x, y := g.pair(in.Args[0], in.Args[1])
	return g.binary(in.Op, t, x, y)
}

func (g *generator) unary(in *simt.Instr, t simt.Type, x ptx.Value) ptx.Value {
	switch in.Op {
	case simt.Neg:
		return g.Builder.Neg(x)
	case simt.Abs:
		return g.Builder.Abs(x)
	case simt.Floor:
		return g.Cvt(x.Type, x, "rmi")
	case simt.Not:
		return g.Builder.Not(x)
	case simt.Shl:
		return g.Builder.Shl(x, int(in.Imm))
	case simt.Sar:
		return g.Builder.Shr(x, int(in.Imm))
	}
	bits := map[simt.Type]ptx.Type{simt.I32: ptx.U32, simt.I64: ptx.U64}[t]
	return g.Builder.Shr(x.As(bits), int(in.Imm)).As(x.Type)
}

// binary makes an operation of two operands. Min and Max of floats are selections, as cards return
// the number where one operand is NaN and order zeros by their signs.
func (g *generator) binary(op simt.Op, t simt.Type, x, y any) ptx.Value {
	b := g.Builder
	switch op {
	case simt.Add:
		return b.Add(x, y)
	case simt.Sub:
		return b.Sub(x, y)
	case simt.Mul:
		return b.Mul(x, y)
	case simt.Div:
		return b.Div(x, y)
	case simt.Min:
		if t.Float() {
			return b.Select(b.Lt(x, y), x, y)
		}
		return b.Min(x, y)
	case simt.Max:
		if t.Float() {
			return b.Select(b.Gt(x, y), x, y)
		}
		return b.Max(x, y)
	case simt.And:
		return b.And(x, y)
	case simt.Or:
		return b.Or(x, y)
	case simt.Xor:
		return b.Xor(x, y)
	case simt.Eq:
		return b.Eq(x, y)
	case simt.Ne:
		if t.Float() {
			return b.NotEq(x, y)
		}
		return b.Ne(x, y)
	case simt.Lt:
		return b.Lt(x, y)
	}
	return b.Le(x, y)
}

// convert returns x as another type. Cards saturate as simt does; of a NaN they make 0 only where
// neither side has 64 bits.
func (g *generator) convert(to, from simt.Type, x ptx.Value) ptx.Value {
	switch {
	case from.Float() && to.Float():
		if to == simt.F64 {
			return g.Cvt(ptx.F64, x)
		}
		return g.Cvt(ptx.F32, x, "rn")
	case from.Float():
		t := ptx.S32
		if to == simt.I64 {
			t = ptx.S64
		}
		v := g.Cvt(t, x, "rzi")
		if from == simt.F64 || to == simt.I64 {
			v = g.Builder.Select(g.IsNaN(x), 0, v)
		}
		if to.Integer() {
			return v
		}
		return g.Builder.Min(g.Builder.Max(v, 0), 1<<to.Bits()-1).As(ptx.U32)
	case to.Float():
		return g.Cvt(typeOf(to), x, "rn")
	case to == simt.I64: // with the sign of i32, with zeros for u8 and u16
		return g.Cvt(ptx.S64, x)
	}
	if from == simt.I64 {
		x = g.Cvt(ptx.U32, x.As(ptx.U64))
	}
	if to == simt.I32 {
		return x.As(ptx.S32)
	}
	if from.Integer() || to.Bits() < from.Bits() {
		return g.Builder.And(x.As(ptx.U32), 1<<to.Bits()-1)
	}
	return x.As(ptx.U32)
}
