package main

import (
	. "github.com/mmcloughlin/avo/operand"
)

// Sets in the table of a column's nibbles.
const (
	highSets = 17 // codes whose high nibble is at least 0..16
	lowSets  = 16 // codes whose low nibble is at least 0..15
)

// nibbles makes, of the eight bit planes of a block's codes, the sets of rows whose high
// or low nibble is at least each number: a bit above t bits of a number decides alone,
// or hands down to the comparison of the bits below it.
var nibbles = routine{
	"nibbles256", "(codes *byte, table *rowSet, halves int)", "writes the sets of rows by nibbles; see nibblesGeneric.",
	func(a *asm) {
		codes, table := a.param("codes"), a.param("table")
		// The planes go through the last sets of the table, which are written last.
		plane := func(b int) Mem { return Mem{Base: table, Disp: setBytes * (highSets + 8 + b)} }
		a.halves(func() {
			a.planes(codes, plane)
			for _, nibble := range []struct{ bit, first int }{{4, 0}, {0, highSets}} {
				set := func(t int) Mem { return Mem{Base: table, Disp: setBytes * (nibble.first + t)} }
				p := [4]vec{a.v(8), a.v(9), a.v(10), a.v(11)}
				for k := range p {
					a.VMOVDQU(plane(nibble.bit+k), p[k])
				}
				ge := func(t int) vec { return a.v(t) }
				a.VPCMPEQB(ge(0), ge(0), ge(0))
				for k := range 3 {
					for t := range 1 << k {
						a.VPAND(p[k], ge(t), ge(t+1<<k))
						a.VPOR(p[k], ge(t), ge(t))
					}
				}
				for t := range 8 {
					a.VPAND(p[3], ge(t), a.v(12))
					a.VMOVDQU(a.v(12), set(t+8))
					a.VPOR(p[3], ge(t), a.v(12))
					a.VMOVDQU(a.v(12), set(t))
				}
				if nibble.bit == 4 {
					a.VPXOR(a.v(12), a.v(12), a.v(12))
					a.VMOVDQU(a.v(12), set(16))
				}
			}
		}, table)
		a.ret()
	},
}

// planes writes the bit planes of the codes of a vector of rows and advances codes.
func (a *asm) planes(codes gp, plane func(b int) Mem) {
	for i := range 8 {
		v, word := a.v(i), a.GP32()
		a.VMOVDQU(Mem{Base: codes}, v)
		a.ADDQ(Imm(32), codes)
		for b := 7; b >= 0; b-- {
			m := plane(b)
			m.Disp += 4 * i
			a.VPMOVMSKB(v, word)
			a.MOVL(word, m)
			if b > 0 {
				a.VPADDB(v, v, v)
			}
		}
	}
}

// ends joins nibbles: a code is at least an end if its high nibble is above the end's,
// or at least the end's with a low nibble that is at least the end's.
var ends = routine{
	"ends256", "(table *rowSet, ends *uint32, n int, not, masks *rowSet, halves int)", "writes n masks, 1 or more; see endsGeneric.",
	func(a *asm) {
		table, not, masks := a.param("table"), a.param("not"), a.param("masks")
		a.halves(func() {
			list, n, to := a.param("ends"), a.param("n"), a.GP64()
			a.MOVQ(masks, to)
			minus := a.v(1)
			a.VMOVDQU(Mem{Base: not}, minus)
			high, low := a.GP64(), a.GP64()
			a.Label("end")
			a.MOVWLZX(Mem{Base: list}, high.As32())
			a.MOVWLZX(Mem{Base: list, Disp: 2}, low.As32())
			v := a.v(0)
			a.VMOVDQU(Mem{Base: table, Index: high, Scale: 1}, v)
			a.VPAND(Mem{Base: table, Index: low, Scale: 1}, v, v)
			a.VPOR(Mem{Base: table, Index: high, Scale: 1, Disp: setBytes}, v, v)
			a.VPANDN(v, minus, v)
			a.VMOVDQU(v, Mem{Base: to})
			a.ADDQ(Imm(4), list)
			a.ADDQ(Imm(setBytes), to)
			a.DECQ(n)
			a.JNZ(LabelRef("end"))
		}, table, not, masks)
		a.ret()
	},
}
