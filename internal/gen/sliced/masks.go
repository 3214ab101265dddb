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
	"ends256", endsSig, endsDoc,
	func(a *asm) {
		highs, lows, not, masks := a.param("high"), a.param("low"), a.param("not"), a.param("masks")
		a.halves(func() {
			list, n, to, high := a.param("groups"), a.param("n"), a.GP64(), a.GP64()
			a.MOVQ(masks, to)
			minus, same, above, v := a.v(0), a.v(1), a.v(2), a.v(3)
			a.VMOVDQU(Mem{Base: not}, minus)
			a.Label("group")
			a.MOVL(Mem{Base: list}, high.As32())
			a.VPANDN(Mem{Base: highs, Index: high, Scale: 1}, minus, same)
			a.VPANDN(Mem{Base: highs, Index: high, Scale: 1, Disp: setBytes}, minus, above)
			for i := range lowSets {
				a.VPAND(Mem{Base: lows, Disp: setBytes * i}, same, v)
				a.VPOR(above, v, v)
				a.VMOVDQU(v, Mem{Base: to, Disp: setBytes * i})
			}
			a.ADDQ(Imm(4), list)
			a.ADDQ(U32(lowSets*setBytes), to)
			a.DECQ(n)
			a.JNZ(LabelRef("group"))
		}, highs, lows, not, masks)
		a.ret()
	},
}

const (
	endsSig = "(high, low *rowSet, groups *uint32, n int, not, masks *rowSet, halves int)"
	endsDoc = "writes the masks of n groups of ends, 1 or more; see endsGeneric."
)
