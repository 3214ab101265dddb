package x86

import (
	"encoding/binary"
	"fmt"

	"github.com/pce-engine/pce/kernels/simt"
	"github.com/pce-engine/pce/kernels/x86/asm"
)

// column names elements that a pointer of the arguments points to: a column of a parameter that lies
// by columns, or all of one that lies by rows.
type column struct {
	output bool
	param  int
	col    int
}

// lowering makes nodes of a module's instructions.
//
// A vector register has a value of all lanes: f64 and i64 in 64 bits for each, f32 and i32 in 32, u8 and u16 widened
// to 32 bits with zeros, a pred as 32 bits that are all set or all clear unless it is in a mask register. Where a register has values of 64 bits, those of
// 32 are in its lower half, and what is behind them is anything.
type lowering struct {
	*code
	shape
	*group            // that instructions are lowered for
	turn     []*group // of a turn of the loop over rows; see groups
	m        *simt.Module
	mask     reg // the lanes that take part; none: all
	columns  []column
	pointers map[column]int32
	spans    []span // of values, and whether they have one
	bounded  []bool
	room     int               // for nodes of a group: about how many there are
	contents map[int]span      // of tables
	whole    map[column]byteOf // columns of bytes of all groups of a turn, and where those of the first one are; see lowbyte.go
	picks    map[reg]byteOf
	columnOf map[simt.Value]column // columns of bytes, of which values are the elements
}

// wide reports whether values of the type take 64 bits.
func wide(t simt.Type) bool { return t == simt.F64 || t == simt.I64 }

// width is the size of a value of the type.
func (s shape) width(t simt.Type) asm.Width {
	if wide(t) {
		return s.full
	}
	return s.short
}

// splat returns a constant whose lanes have the given bits.
func (l *lowering) splat(t simt.Type, bits uint64) reg {
	if wide(t) {
		return l.splat64(bits)
	}
	return l.splat32(uint32(bits))
}

func (l *lowering) splat64(bits uint64) reg {
	var b []byte
	if l.evex {
		return l.element(element{bits: bits, size: 8})
	}
	for range l.bytes / 8 {
		b = binary.LittleEndian.AppendUint64(b, bits)
	}
	return l.constant(b)
}

func (l *lowering) splat32(bits uint32) reg {
	if l.evex {
		return l.element(element{bits: uint64(bits), size: 4})
	}
	return l.splat64(uint64(bits)<<32 | uint64(bits))
}

// ones returns lanes of 32 bits that are all set, and those of a pred that holds.
func (l *lowering) ones() reg { return l.splat32(0xFFFFFFFF) }

// always returns a pred that holds everywhere.
func (l *lowering) always() reg { return l.pred(true) }

func (l *lowering) pred(holds bool) reg {
	bits := uint32(0)
	if holds {
		bits = 0xFFFFFFFF
	}
	if l.masks == nil {
		return l.splat32(bits)
	}
	return l.element(element{uint64(bits), 4, true})
}

// zero returns zeros of any type.
func (l *lowering) zero() reg { return l.splat32(0) }

// instr lowers an instruction.
func (l *lowering) instr(in *simt.Instr) {
	var args [3]reg
	var t simt.Type
	for i := range in.Op.Args() {
		args[i] = l.val[in.Args[i]]
		t = l.m.Types[in.Args[i]]
	}
	out := simt.Pred
	if in.Out != simt.None {
		out = l.m.Types[in.Out]
	}
	var v reg
	switch in.Op {
	case simt.Const:
		v = l.splat(out, in.Imm)
		if out == simt.Pred {
			v = l.pred(in.Imm != 0)
		}
	case simt.Load:
		p := l.m.Inputs[in.Ref]
		if low, ok := l.ofTurn(p, in.Ref, int(in.Imm)); ok {
			l.low[in.Out], v = low, l.lowByte(low)
		} else if low, ok := l.column(p, in.Ref, int(in.Imm)); ok {
			l.low[in.Out], v = low, l.lowByte(low)
		} else if v = l.load(false, p, in.Ref, int(in.Imm)); l.evex && p.Type == simt.U8 {
			l.low[in.Out] = v
		}
		if p.Type == simt.U8 {
			l.columnOf[in.Out] = column{false, in.Ref, int(in.Imm)}
		}
	case simt.Store:
		l.store(in, t, args[0])
		return
	case simt.LoadAt:
		v = l.loadAt(false, in.Ref, l.clamp(l.m.Inputs[in.Ref].Width-1, in.Args[0]))
	case simt.StoreAt:
		l.storeColumn(in, t, args[1])
		return
	case simt.Gather:
		v = l.lookup(in)
	case simt.If:
		l.branch(in.If, args[0])
		return
	case simt.Loop:
		l.loop(in.Loop)
		return
	case simt.Select:
		v = l.choose(out, args[0], args[1], args[2])
	case simt.Convert:
		v = l.convert(t, out, in.Args[0])
		if c, ok := l.columnOf[in.Args[0]]; ok && out == simt.I32 {
			l.columnOf[in.Out] = c
		}
	case simt.Bitcast:
		v = args[0]
	case simt.Eq, simt.Ne, simt.Lt, simt.Le:
		v = l.compare(in.Op, t, args[0], args[1])
	case simt.Shl, simt.Shr, simt.Sar:
		v = l.shift(in.Op, t, args[0], uint8(in.Imm))
	default:
		v = l.arithmetic(in.Op, t, args)
	}
	l.val[in.Out] = v
	l.bound(in, out)
	l.lowBytes(in)
}

// pointTo appends a pointer to a column and returns where the element of a lane is from there, and the
// distance of rows in bytes.
func (l *lowering) pointTo(output bool, p simt.Param, ref, col int) (at asm.Mem, step int32) {
	size := int32(p.Type.Bits() / 8)
	key := column{output, ref, col}
	if p.Layout == simt.Rows {
		key.col = 0
	}
	k, ok := l.pointers[key]
	if !ok {
		k = int32(len(l.columns))
		l.pointers[key] = k
		l.columns = append(l.columns, key)
	}
	at = asm.Mem{Base: ptrReg, Index: uint8(rowReg), Scale: uint8(size)}
	step = size
	n := node{kind: pointer, num: k}
	if p.Layout == simt.Rows && p.Width > 1 {
		step = size * int32(p.Width)
		at = asm.Mem{Base: ptrReg, Disp: int32(col) * size}
		n.side = step
	}
	at.Disp += l.first * step
	l.add(n)
	return at, step
}

// load returns the elements of a column.
func (l *lowering) load(output bool, p simt.Param, ref, col int) reg {
	together := p.Layout == simt.Columns || p.Width == 1
	if !together && l.evex {
		return l.strided(p, output, ref, col)
	}
	at, step := l.pointTo(output, p, ref, col)
	next := func() asm.Mem { m := at; at.Disp += step; return m }
	switch {
	case together && wide(p.Type):
		return l.opAt(asm.Move, l.full, 0, at)
	case together && p.Type == simt.U8:
		return l.opAt(asm.BToD, l.short, 0, at)
	case together && p.Type == simt.U16:
		return l.opAt(asm.WToD, l.short, 0, at)
	case together:
		return l.opAt(asm.Move, l.short, 0, at)
	case wide(p.Type):
		low := l.opAt(asm.Load64, asm.X, 0, next())
		low = l.opAt(asm.Insert64, asm.X, 1, next(), low)
		high := l.opAt(asm.Load64, asm.X, 0, next())
		high = l.opAt(asm.Insert64, asm.X, 1, next(), high)
		return l.opImm(asm.Join, asm.Y, 1, low, high)
	case p.Type == simt.U8, p.Type == simt.U16:
		in, each := asm.Insert8, uint8(4)
		if p.Type == simt.U16 {
			in, each = asm.Insert16, 2
		}
		return l.fromQuads(func(int) reg {
			v := l.zero()
			for lane := range uint8(4) {
				v = l.opAt(in, asm.X, each*lane, next(), v)
			}
			return v
		})
	}
	return l.each32(next)
}

// each32 loads 32 bits for each lane, from where next says.
func (l *lowering) each32(next func() asm.Mem) reg {
	return l.fromQuads(func(int) reg {
		v := l.opAt(asm.Load32, asm.X, 0, next())
		for lane := uint8(1); lane < 4; lane++ {
			v = l.opAt(asm.Insert32, asm.X, lane, next(), v)
		}
		return v
	})
}

// quads returns registers of four lanes each, those of a value of 32-bit lanes. Instructions that move single
// lanes reach no more of a register.
func (l *lowering) quads(v reg) []reg {
	if l.short == asm.X {
		return []reg{v}
	}
	return []reg{v, l.opImm(asm.Upper, asm.Y, 1, v)}
}

// fromQuads returns a value of which make returns four lanes at a time.
func (l *lowering) fromQuads(make func(quad int) reg) reg {
	v := make(0)
	if l.short == asm.X {
		return v
	}
	return l.opImm(asm.Join, asm.Y, 1, v, make(1))
}

// loadAt returns elements of the columns at indices, of a parameter by rows. The pointer comes just before each node
// that reads it, as its register is the next node's alone.
func (l *lowering) loadAt(output bool, ref int, index reg) reg {
	p := &l.m.Inputs
	if output {
		p = &l.m.Outputs
	}
	q := (*p)[ref]
	if q.Width == 1 {
		return l.load(output, q, ref, 0)
	}
	size := q.Type.Bits() / 8
	if l.evex {
		distance := l.distance(&q, index)
		at, _ := l.pointTo(output, q, ref, 0)
		at.Scale = uint8(size)
		return l.value(node{kind: gather, in: byBits(q.Type, asm.GatherPS, asm.GatherPD), w: l.width(q.Type), hasAt: true, at: at, args: [3]reg{distance}})
	}
	lanes := func(quad int, index reg, first uint8) reg {
		at, step := l.pointTo(output, q, ref, 0)
		at.Disp += 4 * int32(quad) * step
		return l.value(node{kind: pick, num: int32(size), imm: first, hasAt: true, at: at, side: step, args: [3]reg{index}})
	}
	if size == 4 {
		quads := l.quads(index)
		return l.fromQuads(func(quad int) reg { return lanes(quad, quads[quad], 0) })
	}
	return l.opImm(asm.Join, asm.Y, 1, lanes(0, index, 0), lanes(0, index, 2))
}

// distance returns how far elements at indices of their rows are from the first row, in elements.
func (l *lowering) distance(p *simt.Param, index reg) reg {
	rows := l.multiples(p.Width)
	return l.op(asm.AddD, l.short, index, l.vector(rows))
}

// storeColumn writes elements of the columns at indices, of an output by rows.
func (l *lowering) storeColumn(in *simt.Instr, t simt.Type, v reg) {
	p := &l.m.Outputs[in.Ref]
	index := l.clamp(p.Width-1, in.Args[0])
	if p.Width == 1 {
		l.store(&simt.Instr{Op: simt.Store, Ref: in.Ref}, t, v)
		return
	}
	size := t.Bits() / 8
	if l.evex {
		distance := l.distance(p, index)
		at, _ := l.pointTo(true, *p, in.Ref, 0)
		at.Scale = uint8(size)
		l.scatter(t, at, distance, v)
		return
	}
	if l.mask != none {
		v = l.choose(t, l.mask, v, l.loadAt(true, in.Ref, index))
	}
	lanes := func(quad int, index reg, first uint8, v reg) {
		at, step := l.pointTo(true, *p, in.Ref, 0)
		at.Disp += 4 * int32(quad) * step
		l.add(node{kind: spread, num: int32(size), imm: first, hasAt: true, at: at, side: step, args: [3]reg{index, v}})
	}
	if size == 4 {
		indices := l.quads(index)
		for k, four := range l.quads(v) {
			lanes(k, indices[k], 0, four)
		}
		return
	}
	high := l.opImm(asm.Upper, asm.Y, 1, v)
	lanes(0, index, 0, v)
	lanes(0, index, 2, high)
}

// store writes a column; where a mask is on, the other lanes get what is there already.
func (l *lowering) store(in *simt.Instr, t simt.Type, v reg) {
	p := l.m.Outputs[in.Ref]
	together := p.Layout == simt.Columns || p.Width == 1
	if !together && l.evex {
		at, step := l.pointTo(true, p, in.Ref, int(in.Imm))
		at.Scale = 1
		l.scatter(t, at, l.vector(l.multiples(int(step))), v)
		return
	}
	if l.mask != none {
		v = l.choose(t, l.mask, v, l.load(true, p, in.Ref, int(in.Imm)))
	}
	switch { // before the pointer, as its register is the next node's alone
	case wide(t) && !together:
		high := l.opImm(asm.Upper, asm.Y, 1, v)
		at, step := l.pointTo(true, p, in.Ref, int(in.Imm))
		for lane := range uint8(l.lanes) {
			l.storeAt(asm.Extract64, asm.X, lane&1, at, []reg{v, high}[lane/2])
			at.Disp += step
		}
		return
	case together && t != simt.U16 && t != simt.U8:
		at, _ := l.pointTo(true, p, in.Ref, int(in.Imm))
		l.storeAt(asm.MoveTo, l.width(t), 0, at, v)
		return
	}
	quads := l.quads(v)
	if together {
		l.storePacked(p, in, t, quads)
		return
	}
	inst, each := asm.Extract32, uint8(1)
	switch t {
	case simt.U16:
		inst, each = asm.Extract16, 2
	case simt.U8:
		inst, each = asm.Extract8, 4
	}
	at, step := l.pointTo(true, p, in.Ref, int(in.Imm))
	for lane := range l.lanes {
		l.storeAt(inst, asm.X, each*uint8(lane%4), at, quads[lane/4])
		at.Disp += step
	}
}

// vector returns a constant, whose bytes may be fewer than those of a register.
func (l *lowering) vector(b []byte) reg {
	return l.constant(append(b, make([]byte, max(0, int(l.bytes)-len(b)))...))
}

// multiples returns the multiples of a distance, one for each lane.
func (l *lowering) multiples(of int) []byte {
	var b []byte
	for lane := range l.lanes {
		b = binary.LittleEndian.AppendUint32(b, uint32(lane*of))
	}
	return b
}

// scatter writes the lanes that take part at distances from the pointer, in units of at.Scale.
func (l *lowering) scatter(t simt.Type, at asm.Mem, distance, v reg) {
	l.add(node{kind: scatter, in: byBits(t, asm.ScatterPS, asm.ScatterPD), w: l.width(t), hasAt: true, at: at, args: [3]reg{distance, v, l.mask}})
}

// byBits returns the instruction for values of 32 bits or 64.
func byBits(t simt.Type, short, long *asm.Inst) *asm.Inst {
	if wide(t) {
		return long
	}
	return short
}

// variableOf returns a variable for values of a type.
func (l *lowering) variableOf(t simt.Type) reg { return l.variable(t == simt.Pred && l.masks != nil) }

// storePacked writes elements of 8 or 16 bits that lie together, of four lanes at a time.
func (l *lowering) storePacked(p simt.Param, in *simt.Instr, t simt.Type, quads []reg) {
	inst := asm.Store32
	for k, v := range quads {
		if t == simt.U16 {
			inst, quads[k] = asm.Store64, l.op(asm.PackW, asm.X, v, v)
		} else {
			quads[k] = l.op(asm.ShuffB, asm.X, v, l.splat32(0x0C080400))
		}
	}
	at, step := l.pointTo(true, p, in.Ref, int(in.Imm))
	for _, v := range quads {
		l.storeAt(inst, asm.X, 0, at, v)
		at.Disp += 4 * step
	}
}

// branch runs each block if a lane takes it. Results have places that the blocks fill, the second one
// for its lanes alone.
func (l *lowering) branch(br *simt.Branch, condition reg) {
	outer := l.mask
	yes := condition
	no := l.logic(simt.Not, condition, none)
	if outer != none {
		yes = l.logic(simt.And, condition, outer)
		no = l.without(outer, condition)
	}
	results := make([]reg, len(br.Results))
	for i := range results {
		results[i] = l.variableOf(l.m.Types[br.Results[i]])
		l.val[br.Results[i]] = results[i]
	}
	l.guarded(yes, br.Then, func() {
		for i, v := range br.ThenYield {
			l.put(results[i], l.val[v])
		}
	})
	l.guarded(no, br.Else, func() {
		for i, v := range br.ElseYield {
			l.put(results[i], l.choose(l.m.Types[v], no, l.val[v], results[i]))
		}
	})
	l.mask = outer
}

// guarded lowers a block that runs if a mask holds in any lane, and for its lanes.
func (l *lowering) guarded(mask reg, b simt.Block, yield func()) {
	l.mask = mask
	l.enter()
	l.block(b)
	yield()
	body, cost := l.leave()
	l.add(node{kind: guard, args: [3]reg{mask}, body: body})
	l.cost[len(l.cost)-1] += cost
}

// loop runs turns while a lane continues. The carried values and the lanes that take part have places
// that each turn fills at its end; as their new values are computed before the first is put, they may be
// each other's.
func (l *lowering) loop(lp *simt.Repeat) {
	outer := l.mask
	active := l.variableOf(simt.Pred)
	places := make([]reg, len(lp.Init))
	for i, v := range lp.Init {
		places[i] = l.variableOf(l.m.Types[v])
		l.put(places[i], l.val[v])
		l.val[lp.Carried[i]], l.val[lp.Results[i]] = places[i], places[i]
	}
	if outer == none {
		l.put(active, l.always())
	} else {
		l.put(active, outer)
	}
	l.mask = active
	l.enter()
	l.block(lp.Body)
	next := make([]reg, len(places))
	for i, v := range lp.Next {
		next[i] = l.choose(l.m.Types[v], active, l.val[v], places[i])
	}
	more := l.logic(simt.And, active, l.val[lp.Continue])
	for i, v := range next {
		l.put(places[i], v)
	}
	l.put(active, more)
	body, cost := l.leave()
	l.add(node{kind: loop, args: [3]reg{active}, num: int32(lp.Most), body: body})
	const turn = 6 // the instructions of a turn itself
	l.cost[len(l.cost)-1] += min(cost+turn, maxCost+1) * int64(lp.Most)
	l.mask = outer
}

func unknown(op simt.Op, t simt.Type) string {
	return fmt.Sprintf("BUG: x86: %v of %v", op, t)
}
