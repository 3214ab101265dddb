package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/operand"
)

// indicesVBMI turns planes into one byte for each row: words of 64 rows side by side make
// squares of eight bytes and eight bits, and one instruction transposes a vector of each.
var indicesVBMI = routine{
	"indicesVBMI", "(planes *rowSet, index *byte, halves int)", "writes the byte of each row, of a whole block; see indicesGeneric.",
	func(a *asm) {
		planes, index := a.param("planes"), a.param("index")
		squares, transposer := a.squares(), a.transposer()
		v := a.wides(8)
		for i, x := range v {
			a.VMOVDQU64(Mem{Base: planes, Disp: setBytes * (7 - i)}, x)
		}
		for q, x := range a.zip(v) {
			a.VPERMB(x, squares, x)
			a.VGF2P8AFFINEQB(Imm(0), x, transposer, x)
			a.VMOVDQU64(x, Mem{Base: index, Disp: 64 * q})
		}
		a.ret()
	},
}

// addVBMI looks the four bytes of the leaves' values up, each in a table of bytes that
// lies in registers, and puts them side by side. A table has 64 bytes for each register:
// the bits of the index above the sixth say where a result is overwritten.
func addVBMI(height int) routine {
	return routine{
		fmt.Sprintf("add%dVBMI", height), "(index *byte, values, sums *float32, n int)",
		fmt.Sprintf("adds values of %d leaves, laid out by bytePlanes, to n sums, 1 or more; it reads and writes whole multiples of 64 rows. See addGeneric.", 1<<height),
		func(a *asm) {
			index, values, sums, n := a.param("index"), a.param("values"), a.param("sums"), a.param("n")
			count := 1 << (height - 6) // registers of a table
			var tables [4][]wide
			for b := range tables {
				tables[b] = a.wides(count)
				for i, t := range tables[b] {
					a.VMOVDQU64(Mem{Base: values, Disp: 64 * (b*count + i)}, t)
				}
			}
			// Unpacking bytes and then pairs takes four rows from each quarter of a vector, so the
			// quarters' words are exchanged first.
			order := a.ZMM()
			var lanes []uint32
			for i := range uint32(16) {
				lanes = append(lanes, i%4*4+i/4)
			}
			a.VMOVDQU64(a.constant("lanes", lanes...), order)
			a.Label("rows")
			at := a.ZMM()
			a.VPERMD(Mem{Base: index}, order, at)
			var bits [3]Op // where bit 6 is set, bit 7, and both
			if count > 1 {
				high := a.ZMM()
				a.VPADDB(at, at, high)
				k := a.K()
				a.VPMOVB2M(high, k)
				bits[0] = k
			}
			if count > 2 {
				k, both := a.K(), a.K()
				a.VPMOVB2M(at, k)
				a.KANDQ(k, bits[0], both)
				bits[1], bits[2] = k, both
			}
			bytes := a.wides(4)
			for b, t := range tables {
				a.VPERMB(t[0], at, bytes[b])
				for i := 1; i < count; i++ {
					a.VPERMB(t[i], at, bits[i-1], bytes[b])
				}
			}
			pairs := a.wides(4) // low halves of rows' values, their other rows, high halves
			for i := range 2 {
				a.VPUNPCKLBW(bytes[2*i+1], bytes[2*i], pairs[2*i])
				a.VPUNPCKHBW(bytes[2*i+1], bytes[2*i], pairs[2*i+1])
			}
			v := a.wides(4)
			for i := range 2 {
				a.VPUNPCKLWD(pairs[2+i], pairs[i], v[2*i])
				a.VPUNPCKHWD(pairs[2+i], pairs[i], v[2*i+1])
			}
			for i, x := range v {
				a.VADDPS(Mem{Base: sums, Disp: 64 * i}, x, x)
				a.VMOVUPS(x, Mem{Base: sums, Disp: 64 * i})
			}
			a.ADDQ(Imm(64), index)
			a.ADDQ(U32(256), sums)
			a.SUBQ(Imm(64), n)
			a.JG(LabelRef("rows"))
			a.ret()
		},
	}
}
