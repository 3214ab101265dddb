package main

import (
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// suffix is the end of a routine's name.
func suffix(wide bool) string {
	if wide {
		return "512"
	}
	return "256"
}

func rowRoutines(wide bool) []routine {
	list := []routine{
		{"addExponents", "(dst, src *int32, n int)", "does dst[i] = AddExponents(dst[i], src[i]).", addExponents},
		{"scaleRows", "(x *float32, xRow int, shift *int32, rows, width int)", "does x[r][:] *= 2^-shift[r].", scaleRows},
		{"ratio", "(s *float32, sRow int, f *float32, fRow, rows, width int)", "does s[r][j] = f[r][j] / s[r][j], 0 where s is 0.", ratio},
		{"addRows", "(dst *float32, dstRow int, src *float32, srcRow, rows, width int)", "does dst[r][j] += src[r][j].", addRows},
		{"columnSums", "(sum *float32, f *float32, fRow, rows, width int)", "does sum[j] += Σ_r f[r][j].", columnSums},
		{"scatterAdd", "(table *float32, tableRow int, codes *uint16, f *float32, fRow, rows, width int)", "does table[codes[r]][j] += f[r][j].", scatterAdd},
		{"scatterAddWide", "(table *float32, tableRow int, codes *uint32, f *float32, fRow, rows, width int)", "does table[codes[r]][j] += f[r][j].", scatterAddWide},
		{"scalePanel", "(x *float32, f *float32, rows, w int)", "does x[r][j] *= f[r] on a panel.", scalePanel},
	}
	for i := range list {
		list[i].name += suffix(wide)
	}
	return list
}

// add does dst[j] += src[j] for the columns at off.
func (a *asm) add(dst, src, off gp, n int, mask reg.Register) {
	for i := range n {
		v := a.vec()
		a.load(a.offset(Mem{Base: src, Index: off, Scale: 1}, i), v, mask)
		to := a.offset(Mem{Base: dst, Index: off, Scale: 1}, i)
		if mask != nil {
			a.VADDPS_Z(to, v, mask, v)
		} else {
			a.VADDPS(to, v, v)
		}
		a.store(v, to, mask)
	}
}

// The bits of micro.Lost and micro.Most.
const (
	lostBits = 0xa0000000
	mostBits = 0x1fffffff
)

// addExponents does dst[i] = max(dst[i], Lost-src[i]) + src[i], at most Most, where
// no operation overflows, and Lost where either is Lost.
func addExponents(a *asm) {
	dst, src, n := a.param("dst"), a.param("src"), a.param("n")
	lost, most := a.splat(lostBits), a.splat(mostBits)
	a.maskOf(n)
	a.columns(n, 2, func(off gp, n int, mask reg.Register) {
		for i := range n {
			x, y, sum := a.vec(), a.vec(), a.vec()
			to := a.offset(Mem{Base: dst, Index: off, Scale: 1}, i)
			a.load(to, x, mask)
			a.load(a.offset(Mem{Base: src, Index: off, Scale: 1}, i), y, mask)
			a.VPSUBD(y, lost, sum)
			a.VPMAXSD(x, sum, sum)
			a.VPADDD(y, sum, sum)
			a.VPMINSD(most, sum, sum)
			a.VPMINSD(x, y, y)
			if a.wide {
				k := a.K()
				a.VPCMPEQD(lost, y, k)
				a.VPBLENDMD(lost, sum, k, sum)
			} else {
				a.VPCMPEQD(lost, y, y)
				a.VPBLENDVB(y, lost, sum, sum)
			}
			a.store(sum, to, mask)
		}
	})
	a.end()
}

func scaleRows(a *asm) {
	x, xRow, shift, rows, width := a.param("x"), a.strideParam("xRow"), a.param("shift"), a.param("rows"), a.param("width")
	a.maskOf(width)
	a.times(rows, func() {
		next := a.label("next")
		e := a.GP64()
		a.MOVL(Mem{Base: shift}, e.As32())
		a.TESTL(e.As32(), e.As32())
		a.JZ(LabelRef(next))
		by := a.vec()
		a.splatGP(a.scaleBits(e), by)
		a.columns(width, 4, func(off gp, n int, mask reg.Register) {
			for i := range n {
				v := a.vec()
				m := a.offset(Mem{Base: x, Index: off, Scale: 1}, i)
				a.load(m, v, mask)
				a.VMULPS(by, v, v)
				a.store(v, m, mask)
			}
		})
		a.Label(next)
		a.ADDQ(xRow, x)
		a.ADDQ(Imm(4), shift)
	})
	a.end()
}

func ratio(a *asm) {
	s, sRow, f, fRow := a.param("s"), a.strideParam("sRow"), a.param("f"), a.strideParam("fRow")
	rows, width := a.param("rows"), a.param("width")
	old := a.control(flushResults | denormalsZero)
	a.maskOf(width)
	zero, two := a.vec(), a.splat(0x40000000)
	a.zero(zero)
	a.times(rows, func() {
		a.columns(width, 4, func(off gp, n int, mask reg.Register) {
			for i := range n {
				d, v := a.vec(), a.vec()
				m := a.offset(Mem{Base: s, Index: off, Scale: 1}, i)
				a.load(m, d, mask)
				a.load(a.offset(Mem{Base: f, Index: off, Scale: 1}, i), v, mask)
				if a.wide {
					k, x, t := a.K(), a.vec(), a.vec()
					a.VCMPPS(Imm(4), zero, d, k)
					a.VRCP14PS_Z(d, k, x)
					a.VMOVAPS(two, t)
					a.VFNMADD231PS(d, x, t)
					a.VMULPS(t, x, x)
					a.VMULPS(x, v, v)
				} else {
					k := a.vec()
					a.VCMPPS(Imm(4), zero, d, k)
					a.VDIVPS(d, v, v)
					a.VANDPS(k, v, v)
				}
				a.store(v, m, mask)
			}
		})
		a.ADDQ(sRow, s)
		a.ADDQ(fRow, f)
	})
	a.end(old)
}

func addRows(a *asm) {
	dst, dstRow, src, srcRow := a.param("dst"), a.strideParam("dstRow"), a.param("src"), a.strideParam("srcRow")
	rows, width := a.param("rows"), a.param("width")
	a.maskOf(width)
	a.times(rows, func() {
		a.columns(width, 4, func(off gp, n int, mask reg.Register) { a.add(dst, src, off, n, mask) })
		a.ADDQ(dstRow, dst)
		a.ADDQ(srcRow, src)
	})
	a.end()
}

func columnSums(a *asm) {
	sum, f, fRow, rows, width := a.param("sum"), a.param("f"), a.strideParam("fRow"), a.param("rows"), a.param("width")
	a.maskOf(width)
	a.columns(width, 8, func(off gp, n int, mask reg.Register) {
		acc := a.vecs(n)
		for i, v := range acc {
			a.load(a.offset(Mem{Base: sum, Index: off, Scale: 1}, i), v, mask)
		}
		p, left := a.GP64(), a.GP64()
		a.LEAQ(Mem{Base: f, Index: off, Scale: 1}, p)
		a.MOVQ(rows, left)
		a.times(left, func() {
			for i, v := range acc {
				if mask != nil {
					a.VADDPS_Z(a.offset(Mem{Base: p}, i), v, mask, v)
				} else {
					a.VADDPS(a.offset(Mem{Base: p}, i), v, v)
				}
			}
			a.ADDQ(fRow, p)
		})
		for i, v := range acc {
			a.store(v, a.offset(Mem{Base: sum, Index: off, Scale: 1}, i), mask)
		}
	})
	a.end()
}

// ahead is the number of rows by which coded rows are prefetched.
const ahead = 6

func scatterAdd(a *asm) { scatterAddBy(a, a.MOVWLZX, 2) }

func scatterAddWide(a *asm) { scatterAddBy(a, a.MOVL, 4) }

// scatterAddBy emits the sum over codes of size bytes that load reads.
func scatterAddBy(a *asm, load func(m, r Op), size uint64) {
	table, tableRow, codes := a.param("table"), a.strideParam("tableRow"), a.param("codes")
	f, fRow, rows, width := a.param("f"), a.strideParam("fRow"), a.param("rows"), a.param("width")
	a.maskOf(width)
	a.times(rows, func() {
		// The row ahead, or this one near the end.
		code, dst, soon := a.GP64(), a.GP64(), a.GP64()
		a.XORQ(soon, soon)
		far := a.GP64()
		a.MOVQ(U32(size*ahead), far)
		a.CMPQ(rows, Imm(ahead))
		a.CMOVQGT(far, soon)
		load(Mem{Base: codes, Index: soon, Scale: 1}, code.As32())
		a.MOVQ(code, soon)
		a.IMULQ(tableRow, soon)
		a.ADDQ(table, soon)
		load(Mem{Base: codes}, code.As32())
		a.MOVQ(code, dst)
		a.IMULQ(tableRow, dst)
		a.ADDQ(table, dst)
		a.columns(width, 4, func(off gp, n int, mask reg.Register) {
			for i := 0; i < n; i += 64 / (4 * a.lanes()) {
				a.PREFETCHT0(a.offset(Mem{Base: soon, Index: off, Scale: 1}, i))
			}
			a.add(dst, f, off, n, mask)
		})
		a.ADDQ(fRow, f)
		a.ADDQ(Imm(size), codes)
	})
	a.end()
}

func scalePanel(a *asm) {
	x, f, rows, w := a.param("x"), a.param("f"), a.param("rows"), a.param("w")
	row := a.GP64()
	a.MOVQ(w, row)
	a.SHLQ(Imm(2), row)
	a.maskOf(w)
	a.times(rows, func() {
		by := a.vec()
		a.VBROADCASTSS(Mem{Base: f}, by)
		a.columns(w, 2, func(off gp, n int, mask reg.Register) {
			for i := range n {
				v := a.vec()
				m := a.offset(Mem{Base: x, Index: off, Scale: 1}, i)
				a.load(m, v, mask)
				a.VMULPS(by, v, v)
				a.store(v, m, mask)
			}
		})
		a.ADDQ(row, x)
		a.ADDQ(Imm(4), f)
	})
	a.end()
}
