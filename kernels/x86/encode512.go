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

// lookup encodes a lookup in two vectors, or a gather. The result's register is not that of the indices,
// which both read when the result is there in part.
func (a *allocator) lookup(n *node) {
	index := a.use(n.args[0], n.next[0])
	d := a.result(n)
	if n.kind == pair {
		low, high := asm.At(poolReg, n.num), asm.At(poolReg, n.num+a.bytes)
		if n.hasAt {
			low, high = asm.M(n.at), asm.M(n.at).Shift(n.num)
		}
		a.vector(asm.Move, a.full, d, 0, low)
		a.vector(n.in, a.full, d, index, high)
	} else {
		at := n.at
		at.Index, at.Vector = uint8(index), true
		a.out.MaskOnes(scratch)
		a.out.EVEX(n.in, n.w, asm.Lanes{Mask: scratch}, d, 0, asm.M(at))
	}
	a.ends(n)
}
