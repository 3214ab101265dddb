package x86

import "github.com/pce-engine/pce/kernels/x86/asm"

// Instructions that EVEX has under another name.
var renamed = map[*asm.Inst]*asm.Inst{
	asm.And: asm.AndD, asm.AndNot: asm.AndNotD, asm.Or: asm.OrD, asm.Xor: asm.XorD, asm.RoundPS: asm.RoundScalePS,
}

// Comparisons, which with EVEX fill a mask register. The predicate is that of the instruction; none: it is
// the node's.
var masks = map[*asm.Inst]struct {
	in   *asm.Inst
	how  uint8
	none bool
}{
	asm.ComparePS: {in: asm.MaskPS, none: true},
	asm.EqualD:    {in: asm.MaskD, how: 0},
	asm.GreaterD:  {in: asm.MaskD, how: 6},
}

// scratch is the mask register that instructions of a node use among themselves.
const scratch asm.Mask = 1

// vector encodes a vector instruction.
func (a *allocator) vector(in *asm.Inst, w asm.Width, reg, v asm.Reg, o asm.Operand, imm ...byte) {
	if !a.evex {
		a.out.VEX(in, w, reg, v, o, imm...)
		return
	}
	if other, ok := renamed[in]; ok {
		in = other
	}
	a.out.EVEX(in, w, asm.Lanes{}, reg, v, o, imm...)
}

// masked encodes a comparison or a blend by way of a mask register, and reports whether the node is one.
func (a *allocator) masked(n *node) bool {
	compare, ok := masks[n.in]
	if ok {
		v := a.use(n.args[0], n.next[0])
		o := a.operand(compare.in, n.args[1], n.next[1])
		how := n.imm
		if !compare.none {
			how = compare.how
		}
		a.ends(n)
		a.out.EVEX(compare.in, n.w, asm.Lanes{}, asm.Reg(scratch), v, o, how)
		a.out.EVEX(asm.MaskToD, n.w, asm.Lanes{}, a.result(n), 0, asm.R(asm.Reg(scratch)))
		return true
	}
	if n.in != asm.BlendPS {
		return false
	}
	v, mask := a.use(n.args[0], n.next[0]), a.use(n.args[2], n.next[2])
	o := a.operand(asm.BlendMaskPS, n.args[1], n.next[1])
	a.ends(n)
	a.out.EVEX(asm.DToMask, n.w, asm.Lanes{}, asm.Reg(scratch), 0, asm.R(mask))
	a.out.EVEX(asm.BlendMaskPS, n.w, asm.Lanes{Mask: scratch}, a.result(n), v, o)
	return true
}

// any sets the condition Zero if a mask of 32 bits holds in no lane.
func (a *allocator) any(mask asm.Reg) {
	if !a.evex {
		a.out.VEX(asm.Signs, a.short, asm.Reg(ptrReg), 0, asm.R(mask))
		a.out.Test(ptrReg)
		return
	}
	a.out.EVEX(asm.DToMask, asm.Z, asm.Lanes{}, asm.Reg(scratch), 0, asm.R(mask))
	a.out.MaskTest(scratch)
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
		a.out.EVEX(asm.GatherPS, a.full, asm.Lanes{Mask: scratch}, d, 0, asm.M(at))
	}
	a.ends(n)
}
