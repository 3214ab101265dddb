package x86

import (
	"slices"

	"github.com/pce-engine/pce/kernels/x86/asm"
)

// The slots of what native code is called with, in bytes from its start.
const (
	argFrame    = 0
	argPool     = 8
	argRow      = 16 // of the first row, from where the pointers point
	argEnd      = 24
	argPointers = 32
)

// commutes lists the instructions whose operands may change places.
var commutes = map[*asm.Inst]bool{
	asm.AddPS: true, asm.AddPD: true, asm.MulPS: true, asm.MulPD: true, asm.And: true, asm.Or: true, asm.Xor: true,
	asm.AddD: true, asm.AddQ: true, asm.MulD: true, asm.MulWide: true, asm.MinD: true, asm.MaxD: true, asm.EqualD: true, asm.EqualQ: true,
}

// node encodes a node.
func (a *allocator) node(n *node) {
	switch n.kind {
	case compute:
		a.compute(n)
	case fma:
		a.fma(n)
	case fetch:
		a.fetch(n)
	case pointer:
		if a.points == (pointed{n.num, n.side, true}) {
			return
		}
		a.points = pointed{n.num, n.side, true}
		a.out.Load(ptrReg, asm.At(argsReg, argPointers+8*n.num))
		if n.side != 0 {
			a.out.Mul(tempReg, asm.G(rowReg), n.side)
			a.out.Add(ptrReg, asm.G(tempReg))
		}
	case variable:
		if n.first != never {
			a.slot[n.dst] = a.newSlot()
		}
	case pick:
		a.pick(n)
	case spread:
		a.spread(n)
	case scatter:
		a.scatter(n)
	case pair:
		a.pair(n)
	case patch:
		a.patch(n)
	case merge:
		a.merge(n)
	case gather:
		a.gather(n)
	case put:
		v := a.use(n.args[0], n.next[0])
		a.keep(n.dst, v, a.place(n.dst))
		a.drop(n.dst) // what it held is old
		a.ends(n)
		a.end(n.dst, n.first)
	default:
		a.control(n)
	}
}

// compute encodes an instruction, by the operands that it has.
func (a *allocator) compute(n *node) {
	var imm []byte
	if n.in.HasImm() {
		imm = []byte{n.imm}
	}
	x, y, z := n.args[0], n.args[1], n.args[2]
	if a.masks != nil && a.blend(n) {
		return
	}
	switch n.in.Form() {
	case asm.FormLoad:
		o := asm.M(n.at)
		if !n.hasAt {
			o = a.operand(n.in, x, n.next[0])
		}
		a.ends(n)
		a.vector(n.in, n.w, a.result(n), 0, o, imm...)
	case asm.FormStore:
		v := a.use(x, n.next[0])
		a.ends(n)
		if n.hasAt {
			a.vector(n.in, n.w, v, 0, asm.M(n.at), imm...)
			return
		}
		a.vector(n.in, n.w, v, 0, asm.R(a.result(n)), imm...)
	case asm.FormTwo:
		nx, ny := n.next[0], n.next[1]
		if y != none && commutes[n.in] && a.loc[x] < 0 && a.loc[y] >= 0 {
			x, y, nx, ny = y, x, ny, nx
		}
		v := a.use(x, nx)
		o := asm.M(n.at)
		if !n.hasAt {
			o = a.operand(n.in, y, ny)
		}
		a.ends(n)
		a.vector(n.in, n.w, a.result(n), v, o, imm...)
	case asm.FormShift:
		v := a.operand(asm.Move, x, n.next[0])
		if !v.IsReg() {
			v = asm.R(a.use(x, n.next[0]))
		}
		a.ends(n)
		a.vector(n.in, n.w, 0, a.result(n), v, imm...)
	case asm.FormBlend: // args: no, yes, mask
		v, mask := a.use(x, n.next[0]), a.use(z, n.next[2])
		o := a.operand(n.in, y, n.next[1])
		a.ends(n)
		a.vector(n.in, n.w, a.result(n), v, o, byte(mask)<<4)
	default:
		panic("BUG: x86: an instruction of another form")
	}
}

// fma encodes a fused multiply-add. The result takes the register of an argument that ends here, or of
// a copy of the first.
func (a *allocator) fma(n *node) {
	add, multiply := asm.FMA231PD, asm.FMA213PD
	if n.in == asm.FMA213PS {
		add, multiply = asm.FMA231PS, asm.FMA213PS
	}
	x, y, z := n.args[0], n.args[1], n.args[2]
	nx, ny, nz := n.next[0], n.next[1], n.next[2]
	ends := func(r reg, next int32) bool { return a.loc[r] >= 0 && next == never && a.regs[r].pool < 0 }
	if a.loc[x] < 0 && a.loc[y] >= 0 || !ends(x, nx) && ends(y, ny) && !ends(z, nz) {
		x, y, nx, ny = y, x, ny, nx
	}
	if ends(z, nz) {
		d := a.use(z, nz)
		v := a.use(x, nx)
		o := a.operand(add, y, ny)
		a.vector(add, n.w, d, v, o)
		a.become(n, d)
		return
	}
	if ends(x, nx) {
		d := a.use(x, nx)
		v := a.use(y, ny)
		o := a.operand(multiply, z, nz)
		a.vector(multiply, n.w, d, v, o)
		a.become(n, d)
		return
	}
	v := a.use(y, ny)
	o := a.operand(multiply, z, nz)
	from := a.operand(asm.Move, x, nx)
	d := a.result(n) // a register of its own, as the arguments are locked
	a.copy(d, from)
	a.vector(multiply, n.w, d, v, o)
	a.ends(n)
}

// become gives the result of a node the register of an argument that ended.
func (a *allocator) become(n *node, d asm.Reg) {
	a.ends(n)
	a.file[d], a.loc[n.dst], a.next[n.dst] = n.dst, int8(d), n.first
}

// fetch encodes loads from a table by the indices of some lanes: of 16 bytes for lanes imm and imm + 2, of 8
// for lanes imm and imm + 1, of 4 for all. Indices are bytes in memory, n.side from one to the next, or they come from a register,
// or from memory where they are already: a load from what was just stored would wait. Those of 16 bytes are in units of 8, but for
// bytes.
func (a *allocator) fetch(n *node) {
	lane := a.lanesOf(n)
	a.ends(n)
	d := a.result(n)
	switch n.num {
	case 16:
		a.out.VEX(asm.Move, asm.X, d, 0, lane(n.imm))
		a.out.VEX(asm.Join, asm.Y, d, d, lane(n.imm+2), 1)
	case 8:
		a.out.VEX(asm.Load64, asm.X, d, 0, lane(n.imm))
		a.out.VEX(asm.InsertTop, asm.X, d, d, lane(n.imm+1))
	default:
		a.out.VEX(asm.Load32, asm.X, d, 0, lane(0))
		for i := uint8(1); i < 4; i++ {
			a.out.VEX(asm.Insert32, asm.X, d, d, lane(i), i)
		}
	}
}

// lanesOf returns where each lane's element of the table of a fetch is. Lanes are asked for in order.
func (a *allocator) lanesOf(n *node) func(lane uint8) asm.Operand {
	from := func(g asm.GPR) asm.Operand {
		return asm.M(asm.Mem{Base: poolReg, Index: uint8(g), Scale: uint8(min(n.num, 8)), Disp: n.table})
	}
	if n.hasAt {
		return func(i uint8) asm.Operand {
			at := n.at
			at.Disp += int32(i) * n.side
			if n.side == 1 && n.num != 16 { // two lanes at a time: loads from one word of memory wait for each other
				if i%2 == 0 {
					a.out.LoadWord(highReg, asm.M(at))
					a.out.LoadByte(tempReg, asm.G(highReg))
					return from(tempReg)
				}
				a.out.Shr(highReg, 8)
				return from(highReg)
			}
			a.out.LoadByte(tempReg, asm.M(at))
			if n.num == 16 {
				a.out.Add(tempReg, asm.G(tempReg))
			}
			return from(tempReg)
		}
	}
	r := n.args[0]
	a.points = pointed{} // indices are in its register
	if a.loc[r] < 0 {
		index := a.place(r)
		return func(i uint8) asm.Operand {
			a.out.LoadNarrow(tempReg, index.Shift(4*int32(i)))
			return from(tempReg)
		}
	}
	v := a.use(r, n.next[0])
	if n.num != 8 || n.imm == 0 {
		a.out.VEX(asm.ToGPR, asm.X, v, 0, asm.G(tempReg)) // lanes 0 and 1
	}
	if n.num != 8 || n.imm == 2 {
		a.out.VEX(asm.TopToGPR, asm.X, v, 0, asm.G(highReg), 1) // lanes 2 and 3
	}
	return func(i uint8) asm.Operand {
		g := tempReg
		if i >= 2 {
			g = highReg
		}
		if i&1 == 0 {
			a.out.MoveNarrow(ptrReg, g)
			return from(ptrReg)
		}
		a.out.Shr(g, 32)
		return from(g)
	}
}

// pick encodes loads from rows at the pointer, of each lane at its own index: of 4 bytes for all lanes, of 8 for lanes imm
// and imm + 1. n.side is the distance of rows.
func (a *allocator) pick(n *node) {
	lane := a.elements(n)
	a.ends(n)
	d := a.result(n)
	if n.num == 8 {
		a.out.VEX(asm.Load64, asm.X, d, 0, lane(n.imm))
		a.out.VEX(asm.InsertTop, asm.X, d, d, lane(n.imm+1))
		return
	}
	a.out.VEX(asm.Load32, asm.X, d, 0, lane(0))
	for i := uint8(1); i < 4; i++ {
		a.out.VEX(asm.Insert32, asm.X, d, d, lane(i), i)
	}
}

// elements returns where each lane's element is in its row, by the indices args[0]. Lanes are asked for in order: those of an
// odd number use up a register.
func (a *allocator) elements(n *node) func(lane uint8) asm.Operand {
	v := a.use(n.args[0], n.next[0])
	if n.num != 8 || n.imm == 0 {
		a.out.VEX(asm.ToGPR, asm.X, v, 0, asm.G(tempReg)) // lanes 0 and 1
	}
	if n.num != 8 || n.imm == 2 {
		a.out.VEX(asm.TopToGPR, asm.X, v, 0, asm.G(highReg), 1) // lanes 2 and 3
	}
	return func(i uint8) asm.Operand {
		g := tempReg
		if i >= 2 {
			g = highReg
		}
		if i&1 != 0 {
			a.out.Shr(g, 32)
		}
		a.out.MoveNarrow(indexReg, g)
		m := n.at
		m.Index, m.Scale = uint8(indexReg), uint8(n.num)
		m.Disp += int32(i) * n.side
		return asm.M(m)
	}
}

// spread encodes stores of lanes to rows at the pointer, of each at its own index, as pick loads them.
func (a *allocator) spread(n *node) {
	lane := a.elements(n)
	v := a.use(n.args[1], n.next[1])
	in, lanes := asm.Extract32, uint8(4)
	if n.num == 8 {
		in, lanes = asm.Extract64, 2
	}
	for i := range lanes {
		a.out.VEX(in, asm.X, v, 0, lane(n.imm+i), i)
	}
	a.ends(n)
}

// scatter encodes stores of the lanes of a mask, or of all. The instruction clears the mask, as a gather does.
func (a *allocator) scatter(n *node) {
	index, v := a.use(n.args[0], n.next[0]), a.use(n.args[1], n.next[1])
	if n.args[2] == none {
		a.out.MaskOnes(scratch)
	} else {
		a.out.VEX(a.masks.Move, asm.X, asm.Reg(scratch), 0, asm.R(a.use(n.args[2], n.next[2])))
	}
	at := n.at
	at.Index, at.Vector = uint8(index), true
	a.out.EVEX(n.in, n.w, asm.Lanes{Mask: scratch}, v, 0, asm.M(at))
	a.ends(n)
}

// machine is the machine code of a module.
type machine struct {
	bytes []byte
	frame int // bytes
}

// encode makes the machine code of a whole module: a loop over groups of rows, after one over several at a time if there
// are nodes for it.
func encode(c lowered) machine {
	a := newAllocator(c.code, c.shape)
	o := &a.out
	o.Load(frameReg, asm.At(argsReg, argFrame))
	o.Load(poolReg, asm.At(argsReg, argPool))
	o.Load(rowReg, asm.At(argsReg, argRow))
	o.Load(endReg, asm.At(argsReg, argEnd))
	end := o.Label()
	if c.several != nil {
		// More rows than that, less one, are left where there are enough for a turn.
		rows := int8(c.groups * c.lanes)
		next := o.Label()
		room := func() {
			o.Address(tempReg, asm.At(rowReg, int32(rows)-1))
			o.Cmp(tempReg, asm.G(endReg))
		}
		top := o.Label()
		room()
		o.JumpIf(asm.Below, top)
		o.Jump(next)
		o.Here(top)
		a.again = near
		a.body(c.several)
		a.again = 0
		o.AddImm(rowReg, rows)
		room()
		o.JumpIf(asm.Below, top)
		o.Here(next)
		o.Cmp(rowReg, asm.G(endReg))
		o.JumpIf(asm.Zero, end)
	}
	top := o.Label()
	o.Here(top)
	a.body(c.one)
	o.AddImm(rowReg, int8(c.lanes))
	o.Cmp(rowReg, asm.G(endReg))
	o.JumpIf(asm.Below, top)
	o.Here(end)
	o.VZeroUpper()
	o.Ret()
	return machine{slices.Clone(o.Bytes()), int(a.frame)}
}

// body encodes a turn of the loop over rows.
func (a *allocator) body(b *block) {
	a.window, a.far, a.points = -1, -1, pointed{}
	a.emit(b)
}
