package x86

import "github.com/pce-engine/pce/kernels/x86/asm"

// Instructions that EVEX has under another name.
var renamed = map[*asm.Inst]*asm.Inst{
	asm.And: asm.AndD, asm.AndNot: asm.AndNotD, asm.Or: asm.OrD, asm.Xor: asm.XorD, asm.RoundPS: asm.RoundScalePS,
	asm.RoundPD: asm.RoundScalePD,
}

// Blends, which EVEX has by mask registers.
var blends = map[*asm.Inst]*asm.Inst{asm.BlendPS: asm.BlendMaskPS, asm.BlendPD: asm.BlendMaskPD}

// scratch is the mask register of gathers and scatters.
const scratch asm.Mask = 7

// vector encodes a vector instruction.
func (a *allocator) vector(in *asm.Inst, w asm.Width, reg, v asm.Reg, o asm.Operand, imm ...byte) {
	if other, ok := renamed[in]; ok && a.evex {
		in = other
	}
	if !a.evex || !in.HasEVEX() { // those on mask registers have VEX
		a.out.VEX(in, w, reg, v, o, imm...)
		return
	}
	a.out.EVEX(in, w, asm.Lanes{}, reg, v, o, imm...)
}

// blend encodes a blend by a mask register, and reports whether the node is one.
func (a *allocator) blend(n *node) bool {
	in := blends[n.in]
	if in == nil {
		return false
	}
	v, mask := a.use(n.args[0], n.next[0]), a.use(n.args[2], n.next[2])
	o := a.operand(in, n.args[1], n.next[1])
	a.ends(n)
	a.out.EVEX(in, n.w, asm.Lanes{Mask: asm.Mask(mask)}, a.result(n), v, o)
	return true
}

// any sets the condition Zero if a mask holds in no lane.
func (a *allocator) any(mask asm.Reg) {
	if a.masks != nil {
		a.out.VEX(a.masks.Test, asm.X, mask, 0, asm.R(mask))
		return
	}
	a.out.VEX(asm.Signs, a.short, asm.Reg(ptrReg), 0, asm.R(mask))
	a.out.Test(ptrReg)
}

// gather encodes loads of lanes from memory. The result's register is not that of the indices, which the instruction
// reads when the result is there in part.
func (a *allocator) gather(n *node) {
	index := a.use(n.args[0], n.next[0])
	d := a.result(n)
	at := n.at
	at.Index, at.Vector = uint8(index), true
	a.out.MaskOnes(scratch)
	a.out.EVEX(n.in, n.w, asm.Lanes{Mask: scratch}, d, 0, asm.M(at))
	a.ends(n)
}

// pair encodes a lookup in two vectors. The result is where the first one was.
func (a *allocator) pair(n *node) {
	index := a.use(n.args[0], n.next[0])
	high := a.operand(n.in, n.args[2], n.next[2])
	d := a.over(n, 1)
	a.vector(n.in, a.full, d, index, high)
}

// patch encodes a lookup of the lanes of a mask. The result is where that of the others was.
func (a *allocator) patch(n *node) {
	index, mask := a.use(n.args[1], n.next[1]), a.use(n.args[2], n.next[2])
	d := a.over(n, 0)
	a.out.EVEX(n.in, a.full, asm.Lanes{Mask: asm.Mask(mask)}, d, index, asm.At(poolReg, n.num))
}

// merge encodes a choice by bits. The result is where the first operand was.
func (a *allocator) merge(n *node) {
	const third = 0xE4 // of three bits: the first where the third is set, else the second
	v := a.use(n.args[1], n.next[1])
	mask := a.operand(asm.TernaryD, n.args[2], n.next[2])
	a.vector(asm.TernaryD, a.full, a.over(n, 0), v, mask, third)
}

// over gives the result of a node the register of argument k, if that is read only here, else a copy, and frees the arguments.
func (a *allocator) over(n *node, k int) asm.Reg {
	r := n.args[k]
	if a.loc[r] >= 0 && n.next[k] == never && r != n.args[(k+1)%3] && r != n.args[(k+2)%3] {
		d := a.use(r, never)
		place := a.loc[r]
		a.ends(n)
		a.file[place], a.loc[n.dst], a.next[n.dst] = n.dst, place, n.first
		return d
	}
	from := a.operand(asm.Move, r, n.next[k])
	d := a.result(n) // a register of its own, as the arguments are locked
	a.copy(d, from)
	a.ends(n)
	return d
}

// copy encodes a copy of a vector to a register.
func (a *allocator) copy(d asm.Reg, from asm.Operand) {
	if from.IsReg() {
		a.vector(asm.MoveTo, a.full, from.Reg(), 0, asm.R(d))
	} else {
		a.vector(asm.Move, a.full, d, 0, from)
	}
}
