package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/operand"
)

// keys maps numbers to integers in the same order. Negative numbers have all bits
// turned, others the sign alone; adding 0 first makes one zero of two.
var keys = routine{
	"keys256", "(dst *uint32, src *float32, n int)", "writes the keys of n numbers, a positive multiple of 8; see keysGeneric.",
	func(a *asm) {
		dst, src, n := a.param("dst"), a.param("src"), a.param("n")
		top, zero, x, sign, missing := a.v(0), a.v(1), a.v(2), a.v(3), a.v(4)
		a.splat(1<<31, top)
		a.VPXOR(zero, zero, zero)
		a.Label("vector")
		a.VADDPS(Mem{Base: src}, zero, x)
		a.VPSRAD(Imm(31), x, sign)
		a.VPOR(top, sign, sign)
		a.VCMPPS(Imm(3), x, x, missing)
		a.VPXOR(sign, x, x)
		a.VPOR(missing, x, x)
		a.VMOVDQU(x, Mem{Base: dst})
		a.ADDQ(Imm(32), src)
		a.ADDQ(Imm(32), dst)
		a.SUBQ(Imm(8), n)
		a.JNZ(LabelRef("vector"))
		a.ret()
	},
}

// search counts the cuts that are not above a key, sixteen by one comparison of
// vectors, and with two levels sixteen more that the first count chose. The searches of
// neighbouring rows overlap: no branch depends on the data, and chains are short.
var search = routine{
	"search256", "(keys *uint32, stride int, table *int32, levels int, codes *byte, n int)",
	"writes the ranks of n keys, 1 or more, that lie stride bytes apart; see searchGeneric.",
	func(a *asm) {
		in, stride, table, levels, out, n := a.param("keys"), a.param("stride"), a.param("table"), a.param("levels"), a.param("codes"), a.param("n")
		key, top := a.v(0), a.v(1)
		a.splat(1<<31, top)
		fetch := func() {
			a.VPBROADCASTD(Mem{Base: in}, key)
			a.VPXOR(top, key, key)
			a.ADDQ(stride, in)
		}
		// twice returns two times how many of sixteen numbers are below the key.
		twice := func(m Mem) gp {
			r, x, y := a.GP64(), a.v(2), a.v(3)
			a.VPCMPGTD(m, key, x)
			m.Disp += 32
			a.VPCMPGTD(m, key, y)
			a.VPACKSSDW(y, x, x)
			a.VPMOVMSKB(x, r.As32())
			a.POPCNTL(r.As32(), r.As32())
			return r
		}
		next := func(code gp, loop string) {
			a.MOVB(code.As8(), Mem{Base: out})
			a.INCQ(out)
			a.DECQ(n)
			a.JNZ(LabelRef(loop))
			a.ret()
		}
		a.CMPQ(levels, Imm(2))
		a.JEQ(LabelRef("two"))
		a.Label("one")
		fetch()
		r := twice(Mem{Base: table})
		a.SHRL(Imm(1), r.As32())
		a.DECL(r.As32())
		next(r, "one")
		a.Label("two")
		fetch()
		high := twice(Mem{Base: table})
		a.SHLQ(Imm(5), high) // 64 bytes for each node, of which the first is that of the count 1
		low := twice(Mem{Base: table, Index: high, Scale: 1})
		a.SHRL(Imm(1), low.As32())
		a.SHRL(Imm(2), high.As32())
		a.LEAL(Mem{Base: low, Index: high, Scale: 1, Disp: -17}, low.As32())
		next(low, "two")
	},
}

// together is how many trees a row goes down at the same time: each step waits for two
// loads, so one tree alone would leave the processor idle.
const together = 8

// descend walks down complete trees for one row.
func descend(depth int) routine {
	return routine{
		fmt.Sprint("descend", depth), "(keys *uint32, nodes *uint64, trees int, leaves *uint32)",
		fmt.Sprintf("writes the leaf that a row reaches in each of so many trees, a positive multiple of %d, of depth %d; see descendGeneric.", together, depth),
		func(a *asm) {
			keys, nodes, left, key := a.param("keys"), a.param("nodes"), a.GP64(), a.GP64()
			size := 8 << depth
			var at [together]gp
			for i := range at {
				at[i] = a.GP64()
			}
			a.Label("trees")
			for i := range at {
				a.MOVL(U32(1), at[i].As32())
			}
			a.MOVL(U32(uint32(depth)), left.As32())
			a.Label("level")
			for i, x := range at {
				a.MOVL(Mem{Base: nodes, Index: x, Scale: 8, Disp: i * size}, key.As32())
				a.MOVL(Mem{Base: keys, Index: key, Scale: 4}, key.As32())
				a.CMPL(Mem{Base: nodes, Index: x, Scale: 8, Disp: i*size + 4}, key.As32())
				a.ADCL(x.As32(), x.As32())
			}
			a.DECL(left.As32())
			a.JNZ(LabelRef("level"))
			a.MOVQ(NewParamAddr("leaves", 24), left)
			for i, x := range at {
				a.SUBL(U32(uint32(1)<<depth), x.As32())
				a.MOVL(x.As32(), Mem{Base: left, Disp: 4 * i})
			}
			a.ADDQ(Imm(4*together), NewParamAddr("leaves", 24))
			a.ADDQ(U32(uint32(together*size)), nodes)
			a.SUBQ(Imm(together), NewParamAddr("trees", 16))
			a.JNZ(LabelRef("trees"))
			a.RET()
		},
	}
}
