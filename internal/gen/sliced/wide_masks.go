package main

import (
	. "github.com/mmcloughlin/avo/operand"
)

const (
	nibblesSig = "(codes *byte, table *rowSet, halves int)"
	nibblesDoc = "writes the sets of rows by nibbles, of a whole block; see nibblesGeneric."
)

// nibblesWide finds the bit planes by a test for each bit.
var nibblesWide = routine{
	"nibbles512", nibblesSig, nibblesDoc,
	func(a *asm) {
		codes, table := a.param("codes"), a.param("table")
		// The planes go through the last sets of the table, which are written last.
		plane := func(b int) Mem { return Mem{Base: table, Disp: setBytes * (highSets + 8 + b)} }
		bits := a.wides(8)
		for b := range bits {
			w := uint32(0x01010101) << b
			bits[b] = a.all(w)
		}
		for q := range 8 {
			v := a.ZMM()
			a.VMOVDQU64(Mem{Base: codes, Disp: 64 * q}, v)
			for b := range bits {
				k, m := a.K(), plane(b)
				m.Disp += 8 * q
				a.VPTESTMB(bits[b], v, k)
				a.KMOVQ(k, m)
			}
		}
		planes := a.wides(8)
		for b, p := range planes {
			a.VMOVDQU64(plane(b), p)
		}
		a.sets(planes, table)
		a.ret()
	},
}

// nibblesVBMI finds the bit planes as indicesVBMI the bytes, the other way round.
var nibblesVBMI = routine{
	"nibblesVBMI", nibblesSig, nibblesDoc,
	func(a *asm) {
		codes, table := a.param("codes"), a.param("table")
		squares, transposer := a.squares(), a.transposer()
		v := a.wides(8)
		for q, x := range v {
			a.VMOVDQU64(Mem{Base: codes, Disp: 64 * q}, x)
			a.VGF2P8AFFINEQB(Imm(0), x, transposer, x)
			a.VGF2P8AFFINEQB(Imm(0), transposer, x, x) // the opposite order of bits
			a.VPERMB(x, squares, x)
		}
		a.sets(a.zip(v), table)
		a.ret()
	},
}

// sets writes the sets of a column's nibbles, as nibbles does.
func (a *asm) sets(planes []wide, table gp) {
	for _, nibble := range []struct{ bit, first int }{{4, 0}, {0, highSets}} {
		set := func(t int) Mem { return Mem{Base: table, Disp: setBytes * (nibble.first + t)} }
		p := planes[nibble.bit:][:4]
		ge := a.wides(8)
		a.VPTERNLOGD(Imm(0xff), ge[0], ge[0], ge[0])
		for k := range 3 {
			for t := range 1 << k {
				a.VPANDD(p[k], ge[t], ge[t+1<<k])
				a.VPORD(p[k], ge[t], ge[t])
			}
		}
		v := a.ZMM()
		for t := range 8 {
			a.VPANDD(p[3], ge[t], v)
			a.VMOVDQU64(v, set(t+8))
			a.VPORD(p[3], ge[t], v)
			a.VMOVDQU64(v, set(t))
		}
		if nibble.bit == 4 {
			a.VXORPS(v, v, v)
			a.VMOVDQU64(v, set(16))
		}
	}
}

// endsWide is ends with the sets of low nibbles in registers: an instruction and a store
// for each mask.
var endsWide = routine{
	"ends512", endsSig, endsDoc,
	func(a *asm) {
		highs, lows, list, n, not, masks, high := a.param("high"), a.param("low"), a.param("groups"), a.param("n"), a.param("not"), a.param("masks"), a.GP64()
		low, minus := a.wides(lowSets), a.ZMM()
		for i, v := range low {
			a.VMOVDQU64(Mem{Base: lows, Disp: setBytes * i}, v)
		}
		a.VMOVDQU64(Mem{Base: not}, minus)
		a.Label("group")
		same, above := a.ZMM(), a.ZMM()
		a.MOVL(Mem{Base: list}, high.As32())
		a.VPANDND(Mem{Base: highs, Index: high, Scale: 1}, minus, same)
		a.VPANDND(Mem{Base: highs, Index: high, Scale: 1, Disp: setBytes}, minus, above)
		for i, l := range low {
			v := a.copied(l)
			a.VPTERNLOGD(Imm(0xea), above, same, v) // v & same | above
			a.VMOVDQU64(v, Mem{Base: masks, Disp: setBytes * i})
		}
		a.ADDQ(Imm(4), list)
		a.ADDQ(U32(lowSets*setBytes), masks)
		a.DECQ(n)
		a.JNZ(LabelRef("group"))
		a.ret()
	},
}
