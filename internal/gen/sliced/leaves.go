package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// indices turns planes into one byte for each row: bytes of the planes side by side
// make eight rows' bits a square, which three exchanges of its halves transpose.
var indices = routine{
	"indices256", "(planes *rowSet, index *byte, halves int)", "writes the byte of each row; see indicesGeneric.",
	func(a *asm) {
		planes, index := a.param("planes"), a.param("index")
		v := func(i int) vec { return a.v(i) }
		a.halves(func() {
			for i := range 8 {
				a.VMOVDQU(Mem{Base: planes, Disp: setBytes * i}, v(i))
			}
			// Bytes, pairs and words of planes side by side. Each of the three passes puts the low
			// halves of two vectors into the first and the high ones into the second, within
			// 128 bits.
			type pair struct{ x, y int }
			zip := func(p pair, low, high func(x, y, to vec)) {
				high(v(p.x), v(p.y), v(8))
				low(v(p.x), v(p.y), v(p.x))
				a.VMOVDQA(v(8), v(p.y))
			}
			b := func(x, y, to vec) { a.VPUNPCKLBW(y, x, to) }
			bh := func(x, y, to vec) { a.VPUNPCKHBW(y, x, to) }
			w := func(x, y, to vec) { a.VPUNPCKLWD(y, x, to) }
			wh := func(x, y, to vec) { a.VPUNPCKHWD(y, x, to) }
			d := func(x, y, to vec) { a.VPUNPCKLDQ(y, x, to) }
			dh := func(x, y, to vec) { a.VPUNPCKHDQ(y, x, to) }
			for _, p := range []pair{{0, 1}, {2, 3}, {4, 5}, {6, 7}} {
				zip(p, b, bh)
			}
			for _, p := range []pair{{0, 2}, {1, 3}, {4, 6}, {5, 7}} {
				zip(p, w, wh)
			}
			for _, p := range []pair{{0, 4}, {1, 5}, {2, 6}, {3, 7}} {
				zip(p, d, dh)
			}
			// Vector i now has, in each half, the squares of rows 16·order to 16·order+15.
			order := [8]int{0, 4, 2, 6, 1, 5, 3, 7}
			for _, e := range []struct {
				shift uint64
				mask  [2]uint32
			}{{7, [2]uint32{0x00aa00aa, 0x00aa00aa}}, {14, [2]uint32{0x0000cccc, 0x0000cccc}}, {28, [2]uint32{0xf0f0f0f0, 0}}} {
				a.VPBROADCASTQ(a.constant(fmt.Sprintf("swap%d", e.shift), e.mask[0], e.mask[1]), v(8))
				for i := range 8 {
					t := v(9 + i%4)
					a.VPSRLQ(Imm(e.shift), v(i), t)
					a.VPXOR(v(i), t, t)
					a.VPAND(v(8), t, t)
					a.VPXOR(t, v(i), v(i))
					a.VPSLLQ(Imm(e.shift), t, t)
					a.VPXOR(t, v(i), v(i))
				}
			}
			for i := range 8 {
				a.VMOVDQU(v(i).AsX(), Mem{Base: index, Disp: 16 * order[i]})
				a.VEXTRACTI128(Imm(1), v(i), Mem{Base: index, Disp: 128 + 16*order[i]})
			}
			a.ADDQ(U32(256-32), index)
		}, planes, index)
		a.ret()
	},
}

// add32 adds the leaves' values to the sums of rows. A gather takes longer on many
// cores than eight loads.
var add32 = routine{
	"add256", "(index *byte, values, sums *float32, n int)", "adds values of leaves to n sums, a positive multiple of 8; see addGeneric.",
	func(a *asm) {
		index, values, sums, n := a.param("index"), a.param("values"), a.param("sums"), a.param("n")
		x := []reg.VecPhysical{reg.X0, reg.X1}
		a.Label("rows")
		for half, to := range x {
			for i := range 4 {
				at := a.GP64()
				a.MOVBLZX(Mem{Base: index, Disp: 4*half + i}, at.As32())
				m := Mem{Base: values, Index: at, Scale: 4}
				if i == 0 {
					a.VMOVSS(m, to)
				} else {
					a.VINSERTPS(Imm(uint64(i<<4)), m, to, to)
				}
			}
		}
		a.VINSERTF128(Imm(1), reg.X1, reg.Y0, reg.Y0)
		a.VADDPS(Mem{Base: sums}, reg.Y0, reg.Y0)
		a.VMOVUPS(reg.Y0, Mem{Base: sums})
		a.ADDQ(Imm(8), index)
		a.ADDQ(Imm(32), sums)
		a.SUBQ(Imm(8), n)
		a.JNZ(LabelRef("rows"))
		a.ret()
	},
}

var add64 = routine{
	"addDouble256", "(index *byte, values, sums *float64, n int)", "adds values of leaves to n sums, a positive multiple of 4; see addGeneric.",
	func(a *asm) {
		index, values, sums, n := a.param("index"), a.param("values"), a.param("sums"), a.param("n")
		x := []reg.VecPhysical{reg.X0, reg.X1}
		a.Label("rows")
		for half, to := range x {
			for i := range 2 {
				at := a.GP64()
				a.MOVBLZX(Mem{Base: index, Disp: 2*half + i}, at.As32())
				m := Mem{Base: values, Index: at, Scale: 8}
				if i == 0 {
					a.VMOVSD(m, to)
				} else {
					a.VMOVHPD(m, to, to)
				}
			}
		}
		a.VINSERTF128(Imm(1), reg.X1, reg.Y0, reg.Y0)
		a.VADDPD(Mem{Base: sums}, reg.Y0, reg.Y0)
		a.VMOVUPD(reg.Y0, Mem{Base: sums})
		a.ADDQ(Imm(4), index)
		a.ADDQ(Imm(32), sums)
		a.SUBQ(Imm(4), n)
		a.JNZ(LabelRef("rows"))
		a.ret()
	},
}
