package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/operand"
)

// fetch asks for the second cache: the first has masks and leaves by then.
var fetch = routine{
	"fetch", "(bytes *byte, n int)", "asks for n bytes, 1 or more, that will be read.",
	func(a *asm) {
		at, n := a.param("bytes"), a.param("n")
		a.Label("line")
		a.PREFETCHT1(Mem{Base: at})
		a.ADDQ(Imm(64), at)
		a.SUBQ(Imm(64), n)
		a.JG(LabelRef("line"))
		a.RET()
	},
}

// keys maps the cells of one row.
var keys = routine{
	"keys256", "(dst *uint32, src *float32, n int)", "writes the keys of n numbers, a positive multiple of 8; see keysGeneric.",
	func(a *asm) {
		dst, src, n := a.param("dst"), a.param("src"), a.param("n")
		x := a.v(0)
		a.keyConstants()
		a.Label("vector")
		a.VMOVUPS(Mem{Base: src}, x)
		a.key(x)
		a.VMOVDQU(x, Mem{Base: dst})
		a.ADDQ(Imm(32), src)
		a.ADDQ(Imm(32), dst)
		a.SUBQ(Imm(8), n)
		a.JNZ(LabelRef("vector"))
		a.ret()
	},
}

// keyConstants sets the registers that key needs, the last four.
func (a *asm) keyConstants() {
	a.splat(1<<31, a.v(12))
	a.VPXOR(a.v(13), a.v(13), a.v(13))
}

// key maps numbers to integers in the same order. Negative numbers have all bits
// turned, others the sign alone; adding 0 first makes one zero of two.
func (a *asm) key(x vec) {
	top, zero, sign, missing := a.v(12), a.v(13), a.v(14), a.v(15)
	a.VADDPS(x, zero, x)
	a.VPSRAD(Imm(31), x, sign)
	a.VPOR(top, sign, sign)
	a.VCMPPS(Imm(3), x, x, missing)
	a.VPXOR(sign, x, x)
	a.VPOR(missing, x, x)
}

// quads makes columns of rows: four neighbouring cells of eight rows are four squares
// of numbers, which two exchanges transpose.
var quads = routine{
	"quads256", quadsSig, quadsDoc,
	func(a *asm) {
		row, stride, n, keys, three := a.param("cells"), a.param("stride"), a.param("n"), a.param("keys"), a.GP64()
		a.LEAQ(Mem{Base: stride, Index: stride, Scale: 2}, three)
		a.keyConstants()
		next := a.GP64()
		a.Label("rows")
		for half := range 2 {
			a.LEAQ(Mem{Base: row, Index: stride, Scale: 4}, next)
			for i := range 4 {
				a.VMOVUPS(rowAt(row, stride, three, i), a.v(i).AsX())
				a.VINSERTF128(Imm(1), rowAt(next, stride, three, i), a.v(i), a.v(i))
			}
			a.LEAQ(Mem{Base: next, Index: stride, Scale: 4}, row)
			a.square([4]vec{a.v(0), a.v(1), a.v(2), a.v(3)}, [4]vec{a.v(4), a.v(5), a.v(6), a.v(7)})
			for i := range 4 {
				a.key(a.v(i))
				a.VMOVDQU(a.v(i), Mem{Base: keys, Disp: 4*quadRows*i + 32*half})
			}
		}
		a.ADDQ(Imm(64), keys)
		a.SUBQ(Imm(16), n)
		a.JNZ(LabelRef("rows"))
		a.ret()
	},
}

const (
	quadRows = 128 // rows between the columns of a quad
	quadsSig = "(cells *float32, stride, n int, keys *uint32)"
	quadsDoc = "writes the keys of four neighbouring cells of n rows, a positive multiple of 16, that lie stride bytes apart; see quadsGeneric."
)

// rowAt is the memory of a row, 0 to 3, from base on.
func rowAt(base, stride, three gp, i int) Mem {
	switch i {
	case 0:
		return Mem{Base: base}
	case 3:
		return Mem{Base: base, Index: three, Scale: 1}
	}
	return Mem{Base: base, Index: stride, Scale: uint8(i)}
}

// square transposes the squares of four numbers that four vectors hold side by side,
// with four more vectors as memory.
func (a *asm) square(v, t [4]vec) {
	for i := range 2 {
		a.VUNPCKLPS(v[2*i+1], v[2*i], t[2*i])
		a.VUNPCKHPS(v[2*i+1], v[2*i], t[2*i+1])
	}
	for i := range 2 {
		a.VUNPCKLPD(t[2+i], t[i], v[2*i])
		a.VUNPCKHPD(t[2+i], t[i], v[2*i+1])
	}
}

// search counts the cuts that are not above a key, sixteen by one comparison of
// vectors, and with two levels sixteen more that the first count chose. The searches of
// neighbouring rows overlap: no branch depends on the data, and chains are short.
var search = routine{
	"search256", searchSig, "writes the ranks of n keys, 1 or more, by the table of nodeTable; steps are 4 or 8. See searchGeneric.",
	func(a *asm) {
		in, table, steps, out, n := a.param("keys"), a.param("table"), a.param("steps"), a.param("codes"), a.param("n")
		key, top := a.v(0), a.v(1)
		a.splat(1<<31, top)
		fetch := func() {
			a.VPBROADCASTD(Mem{Base: in}, key)
			a.VPXOR(top, key, key)
			a.ADDQ(Imm(4), in)
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
		a.CMPQ(steps, Imm(8))
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

const searchSig = "(keys, table *uint32, steps int, codes *byte, n int)"

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
