package main

import (
	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func bf16Routines(wide bool) []routine {
	if !wide {
		return nil
	}
	return []routine{
		{"packRows512", "(dst *uint32, dstRow int, x *float32, xRow, rows, width int)", "is BF16Set.PackRows.", packRows},
		{"packPairs512", "(dst *uint32, dstRow int, x *float32, xRow, rows, width int)", "is BF16Set.PackPairs.", packPairs},
	}
}

func packRows(a *asm) {
	dst, dstRow, x, xRow := a.param("dst"), a.strideParam("dstRow"), a.param("x"), a.strideParam("xRow")
	rows, width := a.param("rows"), a.param("width")
	// Masks of the last vectors: floats of its two halves, and words.
	full, lo, hi, words := a.GP64(), a.K(), a.K(), a.K()
	bits, n := a.GP64(), a.GP64()
	a.MOVQ(I32(-1), full)
	a.MOVQ(width, n)
	a.ANDQ(Imm(31), n)
	a.BZHIQ(n, full, bits)
	a.KMOVW(bits.As32(), lo)
	a.SHRL(Imm(16), bits.As32())
	a.KMOVW(bits.As32(), hi)
	a.INCQ(n)
	a.SHRQ(Imm(1), n)
	a.BZHIQ(n, full, bits)
	a.KMOVW(bits.As32(), words)
	one := func(to, from gp, lo, hi, words reg.Register) {
		p, q := a.ZMM(), a.ZMM()
		a.load(Mem{Base: from}, p, lo)
		a.load(Mem{Base: from, Disp: 64}, q, hi)
		a.narrow(q, p, p)
		a.store(p, Mem{Base: to}, words)
	}
	a.times(rows, func() {
		to, from, left := a.GP64(), a.GP64(), a.GP64()
		a.MOVQ(dst, to)
		a.MOVQ(x, from)
		a.MOVQ(width, left)
		a.SHRQ(Imm(5), left)
		a.times(left, func() {
			one(to, from, nil, nil, nil)
			a.ADDQ(Imm(64), to)
			a.SUBQ(I32(-128), from)
		})
		whole := a.label("whole")
		a.MOVQ(width, left)
		a.ANDQ(Imm(31), left)
		a.JZ(LabelRef(whole))
		one(to, from, lo, hi, words)
		a.Label(whole)
		a.ADDQ(dstRow, dst)
		a.ADDQ(xRow, x)
	})
	a.end()
}

func packPairs(a *asm) {
	dst, dstRow, x, xRow := a.param("dst"), a.strideParam("dstRow"), a.param("x"), a.strideParam("xRow")
	rows, width := a.param("rows"), a.param("width")
	a.maskOf(width)
	// Word k of the permutation takes halves k and k+16.
	order := a.StaticGlobal("order")
	a.DataAttributes(attr.RODATA | attr.NOPTR)
	for k := range 16 {
		a.AppendDatum(U32(uint32(k | (k+16)<<16)))
	}
	by := a.ZMM()
	a.VMOVDQU64(order, by)
	pairs := func(both bool) {
		a.columns(width, 2, func(off gp, n int, mask reg.Register) {
			for i := range n {
				p, q := a.ZMM(), a.ZMM()
				a.load(a.offset(Mem{Base: x, Index: off, Scale: 1}, i), p, mask)
				if both {
					second := a.GP64()
					a.LEAQ(Mem{Base: x, Index: xRow, Scale: 1}, second)
					a.load(a.offset(Mem{Base: second, Index: off, Scale: 1}, i), q, mask)
				} else {
					a.zero(q)
				}
				a.narrow(q, p, p)
				a.VPERMW(p, by, p)
				a.store(p, a.offset(Mem{Base: dst, Index: off, Scale: 1}, i), mask)
			}
		})
	}
	two := a.GP64()
	a.MOVQ(rows, two)
	a.SHRQ(Imm(1), two)
	a.times(two, func() {
		pairs(true)
		a.ADDQ(dstRow, dst)
		a.LEAQ(Mem{Base: x, Index: xRow, Scale: 2}, x)
	})
	a.ANDQ(Imm(1), rows)
	a.JZ(LabelRef("even"))
	pairs(false)
	a.Label("even")
	a.end()
}
