package main

import (
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// groupRows is how many rows walk together.
const groupRows = 8

// walk takes eight rows down from the top of a tree at the same time: each step waits for
// two loads. A leaf is its own child, so rows that have arrived wait for the others; every
// second step asks whether all have.
var walk = routine{
	"walk", "(nodes *uint64, starts *uint32, index *byte, groups *uint16, stride, n int, ends *uint32, sums *float32)",
	"leads n rows, a positive multiple of 8, from the top of a tree to its leaves; see walkGeneric.",
	func(a *asm) {
		// The parameters that each group needs once stay in memory.
		arg := func(name string, offset int) Mem { return NewParamAddr(name, offset) }
		starts, index, stride, n, ends, sums := arg("starts", 8), arg("index", 16), arg("stride", 32), arg("n", 40), arg("ends", 48), arg("sums", 56)
		nodes, group, t, d, moved := a.param("nodes"), a.param("groups"), a.GP64(), a.GP64(), a.GP64()
		var at [groupRows]gp
		a.Label("group")
		a.MOVQ(index, t)
		for i := range at {
			at[i] = a.GP64()
			a.MOVBLZX(Mem{Base: t, Disp: i}, at[i].As32())
		}
		a.ADDQ(Imm(groupRows), index)
		a.MOVQ(starts, t)
		for _, x := range at {
			a.MOVL(Mem{Base: t, Index: x, Scale: 4}, x.As32())
		}
		a.Label("step")
		a.XORL(moved.As32(), moved.As32())
		for step := range 2 {
			for i, x := range at {
				a.MOVWLZX(Mem{Base: nodes, Index: x, Scale: 8}, t.As32())
				a.MOVWLZX(Mem{Base: nodes, Index: x, Scale: 8, Disp: 2}, d.As32())
				a.MOVWLZX(Mem{Base: group, Index: t, Scale: 8, Disp: 2 * i}, t.As32())
				a.CMPL(Mem{Base: nodes, Index: x, Scale: 8, Disp: 4}, t.As32())
				a.ADCL(d.As32(), x.As32())
				if step == 1 {
					a.ORL(d.As32(), moved.As32())
				}
			}
		}
		a.TESTL(moved.As32(), moved.As32())
		a.JNZ(LabelRef("step"))
		a.MOVQ(ends, t)
		for i, x := range at {
			a.MOVL(x.As32(), Mem{Base: t, Disp: 4 * i})
		}
		a.ADDQ(Imm(4*groupRows), ends)
		a.MOVQ(sums, t)
		a.TESTQ(t, t)
		a.JZ(LabelRef("next"))
		for i, x := range at {
			v := a.XMM()
			a.VMOVSS(Mem{Base: nodes, Index: x, Scale: 8, Disp: 4}, v)
			a.VADDSS(Mem{Base: t, Disp: 4 * i}, v, v)
			a.VMOVSS(v, Mem{Base: t, Disp: 4 * i})
		}
		a.ADDQ(Imm(4*groupRows), sums)
		a.Label("next")
		a.ADDQ(stride, group)
		a.SUBQ(Imm(groupRows), n)
		a.JNZ(LabelRef("group"))
		a.RET()
	},
}

// ranks goes down the tree of a table's cuts with eight keys at the same time, for columns
// whose cuts do not fit in registers.
var ranks = routine{
	"ranks", "(keys, table *uint32, steps int, ranks *uint16, n int)",
	"writes the ranks of n keys, 1 or more; it reads and writes whole multiples of 8. See ranksGeneric.",
	func(a *asm) {
		keys, table, steps, out, n := a.param("keys"), a.param("table"), NewParamAddr("steps", 16), a.param("ranks"), NewParamAddr("n", 32)
		var at [groupRows]gp
		for i := range at {
			at[i] = a.GP64()
		}
		key, left := a.GP64(), a.GP64()
		a.Label("group")
		for _, x := range at {
			a.MOVL(U32(1), x.As32())
		}
		a.MOVQ(steps, left)
		a.Label("step")
		for i, x := range at {
			a.MOVL(Mem{Base: keys, Disp: 4 * i}, key.As32())
			a.CMPL(key.As32(), Mem{Base: table, Index: x, Scale: 4})
			a.ADCL(x.As32(), x.As32())
		}
		a.DECQ(left)
		a.JNZ(LabelRef("step"))
		// What never was below a cut is at 2^steps, and missing.
		a.MOVQ(steps, reg.RCX)
		none, last := key, a.GP64()
		a.MOVL(U32(1), none.As32())
		a.SHLQ(reg.CL, none)
		a.LEAL(Mem{Base: none, Index: none, Scale: 1, Disp: -1}, last.As32())
		a.DECL(none.As32())
		missing := left
		a.MOVL(U32(1<<16-1), missing.As32())
		for i, x := range at {
			a.XORL(last.As32(), x.As32())
			a.CMPL(x.As32(), none.As32())
			a.CMOVLEQ(missing.As32(), x.As32())
			a.MOVW(x.As16(), Mem{Base: out, Disp: 2 * i})
		}
		a.ADDQ(Imm(4*groupRows), keys)
		a.ADDQ(Imm(2*groupRows), out)
		a.SUBQ(Imm(groupRows), n)
		a.JG(LabelRef("group"))
		a.RET()
	},
}
