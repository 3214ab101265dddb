package main

import (
	"fmt"
	"unsafe"

	. "github.com/mmcloughlin/avo/operand"
)

// halfArgs mirrors micro.HalfArgs.
type halfArgs struct {
	Rows, K    int
	A          uintptr
	ARow, ACol int
	B          uintptr
	BRow       int
	C          uintptr
	CRow       int
	E          uintptr
	ERow       int
	Scale      uintptr
	Columns    uintptr
	Sums       uintptr
	Add        bool
}

const (
	halfRows = 26 // rows of a group: micro.HalfScratch holds a vector for each
	halfRun  = 32 // terms of a run: micro.halfRun
)

func halfRoutines(wide bool) []routine {
	if !wide {
		return nil
	}
	return []routine{
		{"halfPanel512", "(a *HalfArgs)", fmt.Sprintf("is HalfSet.Panel, in groups of %d rows.", halfRows), halfPanel},
		{"halfTops512", "(top *int32, x *float32, xRow, rows, width int)", "is HalfSet.Tops.", halfTops},
		{"halfPack512", "(dst *uint16, dstRow int, x *float32, xRow int, shift *int32, columns *float32, rows, width int)", "is HalfSet.Pack.", halfPack},
		{"halfPeaks512", "(peak *float32, x *float32, xRow int, shift *int32, rows, width int)", "is HalfSet.Peaks.", halfPeaks},
		{"halfSums512", "(sum *float32, x *float32, xRow, rows, width int)", "is HalfSet.Sums.", halfSums},
		{"halfScale512", "(x *float32, xRow int, f *float32, rows, width int)", "is HalfSet.Scale.", halfScale},
	}
}

// halfStride loads a row distance and turns halves into bytes.
func (a *asm) halfStride(args gp, off uintptr) gp {
	r := a.field(args, off)
	a.ADDQ(r, r)
	return r
}

// halfPanel writes the routine: a loop over groups of rows, for each number of
// rows its own loop over runs, and one end for all.
func halfPanel(a *asm) {
	var f halfArgs
	args := a.param("a")
	old := a.control(flushResults | denormalsZero) // of floats: halves keep theirs
	// The group's place lives in memory, so that the runs have all registers.
	place := a.AllocLocal(56)
	slot := func(i int) Mem { m := place; m.Disp += 8 * i; return m }
	left, aAt, cAt, eAt, scaleAt, terms, count := slot(0), slot(1), slot(2), slot(3), slot(4), slot(5), slot(6)
	for i, off := range []uintptr{unsafe.Offsetof(f.Rows), unsafe.Offsetof(f.A), unsafe.Offsetof(f.C), unsafe.Offsetof(f.E), unsafe.Offsetof(f.Scale)} {
		a.MOVQ(a.field(args, off), slot(i))
	}
	ars, aks, bks := a.halfStride(args, unsafe.Offsetof(f.ARow)), a.halfStride(args, unsafe.Offsetof(f.ACol)), a.halfStride(args, unsafe.Offsetof(f.BRow))
	ars3, ars5 := a.GP64(), a.GP64()
	a.LEAQ(Mem{Base: ars, Index: ars, Scale: 2}, ars3)
	a.LEAQ(Mem{Base: ars, Index: ars, Scale: 4}, ars5)

	// Groups as in Panel.
	a.Label("group")
	n := a.GP64()
	a.MOVQ(left, n)
	a.CMPQ(n, Imm(halfRows))
	a.JLE(LabelRef("last"))
	a.CMPQ(n, Imm(2*halfRows))
	a.JGE(LabelRef("whole"))
	a.INCQ(n)
	a.SHRQ(Imm(1), n)
	a.JMP(LabelRef("last"))
	a.Label("whole")
	a.MOVQ(U32(halfRows), n)
	a.Label("last")
	a.TESTQ(n, n)
	a.JLE(LabelRef("end"))
	a.MOVQ(n, count)
	a.SUBQ(n, left)

	k := a.field(args, unsafe.Offsetof(f.K))
	a.MOVQ(k, terms)
	a.dispatch(n, 1, halfRows)
	for m := 1; m <= halfRows; m++ {
		a.Label(fmt.Sprintf("rows%d", m))
		halfGroup(a, m, args, aAt, terms, [5]gp{ars, aks, bks, ars3, ars5})
		if m < halfRows {
			a.JMP(LabelRef("finish"))
		}
	}

	a.Label("finish")
	sums, c, e, scale := a.field(args, unsafe.Offsetof(f.Sums)), a.GP64(), a.GP64(), a.GP64()
	a.MOVQ(cAt, c)
	a.MOVQ(eAt, e)
	a.MOVQ(scaleAt, scale)
	crs, ers, rows := a.stride(args, unsafe.Offsetof(f.CRow)), a.stride(args, unsafe.Offsetof(f.ERow)), a.GP64()
	a.MOVQ(count, rows)
	a.times(rows, func() {
		lo, hi, by := a.ZMM(), a.ZMM(), a.ZMM()
		a.VCVTPH2PS(Mem{Base: sums}, lo)
		a.VCVTPH2PS(Mem{Base: sums, Disp: 32}, hi)
		a.VBROADCASTSS(Mem{Base: scale}, by)
		a.VMULPS(by, lo, lo)
		a.VMULPS(by, hi, hi)
		skip := a.label("columns")
		columns := a.field(args, unsafe.Offsetof(f.Columns))
		a.TESTQ(columns, columns)
		a.JZ(LabelRef(skip))
		a.VMULPS(Mem{Base: columns}, lo, lo)
		a.VMULPS(Mem{Base: columns, Disp: 64}, hi, hi)
		a.Label(skip)
		skip = a.label("store")
		a.CMPB(Mem{Base: args, Disp: int(unsafe.Offsetof(f.Add))}, Imm(0))
		a.JEQ(LabelRef(skip))
		a.VADDPS(Mem{Base: c}, lo, lo)
		a.VADDPS(Mem{Base: c, Disp: 64}, hi, hi)
		a.Label(skip)
		skip = a.label("scaled")
		a.TESTQ(e, e)
		a.JZ(LabelRef(skip))
		a.VMULPS(Mem{Base: e}, lo, lo)
		a.VMULPS(Mem{Base: e, Disp: 64}, hi, hi)
		a.ADDQ(ers, e)
		a.Label(skip)
		a.VMOVUPS(lo, Mem{Base: c})
		a.VMOVUPS(hi, Mem{Base: c, Disp: 64})
		a.ADDQ(crs, c)
		a.ADDQ(Imm(64), sums)
		a.ADDQ(Imm(4), scale)
	})
	a.MOVQ(c, cAt)
	a.MOVQ(e, eAt)
	a.MOVQ(scale, scaleAt)
	step := a.GP64()
	a.MOVQ(count, step)
	a.IMULQ(ars, step)
	a.ADDQ(step, aAt)
	a.JMP(LabelRef("group"))
	a.Label("end")
	a.end(old)
}

// halfGroup writes the sums of m rows: runs in registers, their totals in memory.
func halfGroup(a *asm, m int, args gp, aAt, terms Mem, s [5]gp) {
	var f halfArgs
	ars, aks, bks, ars3, ars5 := s[0], s[1], s[2], s[3], s[4]
	base := make([]gp, (m+5)/6)
	base[0] = a.GP64()
	a.MOVQ(aAt, base[0])
	for i := 1; i < len(base); i++ {
		base[i] = a.GP64()
		a.LEAQ(Mem{Base: base[i-1], Index: ars3, Scale: 2}, base[i])
	}
	elem := func(r int) Mem { return rowOfSix(base[r/6], r%6, ars, ars3, ars5) }
	total := a.ZMM()
	a.zero(total)
	sums := a.field(args, unsafe.Offsetof(f.Sums))
	for r := range m {
		a.VMOVUPS(total, Mem{Base: sums, Disp: 64 * r})
	}
	b := a.field(args, unsafe.Offsetof(f.B))
	run, done := a.label("run"), a.label("runs")
	a.Label(run)
	n, rest := a.GP64(), a.GP64()
	a.MOVQ(terms, n)
	a.TESTQ(n, n)
	a.JLE(LabelRef(done))
	a.MOVQ(U32(halfRun), rest)
	a.CMPQ(n, rest)
	a.CMOVQGT(rest, n)
	a.SUBQ(n, terms)
	c := a.vecs(m)
	for _, v := range c {
		a.zero(v)
	}
	term := func() {
		w := a.ZMM()
		a.VMOVUPS(Mem{Base: b}, w)
		a.ADDQ(bks, b)
		for r, v := range c {
			a.fmaHalf(elem(r), w, v)
		}
		for _, r := range base {
			a.ADDQ(aks, r)
		}
	}
	fours := a.GP64()
	a.MOVQ(n, fours)
	a.SHRQ(Imm(2), fours)
	a.times(fours, func() {
		for range 4 {
			term()
		}
	})
	a.ANDQ(Imm(3), n)
	a.times(n, term)
	sums = a.field(args, unsafe.Offsetof(f.Sums))
	for r, v := range c {
		t := a.ZMM()
		a.VMOVUPS(Mem{Base: sums, Disp: 64 * r}, t)
		a.addHalves(t, v, v)
		a.VMOVUPS(v, Mem{Base: sums, Disp: 64 * r})
	}
	a.JMP(LabelRef(run))
	a.Label(done)
}

func halfTops(a *asm) {
	top, x, xRow := a.param("top"), a.param("x"), a.strideParam("xRow")
	rows, width := a.param("rows"), a.param("width")
	a.SHRQ(Imm(5), width)
	a.times(rows, func() {
		p, q := a.ZMM(), a.ZMM()
		a.zero(p)
		a.zero(q)
		at, left := a.GP64(), a.GP64()
		a.MOVQ(x, at)
		a.MOVQ(width, left)
		a.times(left, func() {
			a.VPMAXUD(Mem{Base: at}, p, p)
			a.VPMAXUD(Mem{Base: at, Disp: 64}, q, q)
			a.SUBQ(I32(-128), at)
		})
		a.VPMAXUD(p, q, p)
		y, m, t := a.YMM(), a.XMM(), a.XMM()
		a.VEXTRACTI64X4(Imm(1), p, y)
		a.VPMAXUD(p.AsY(), y, y)
		a.VEXTRACTI128(Imm(1), y, m)
		a.VPMAXUD(y.AsX(), m, m)
		a.VPSHUFD(Imm(0x4e), m, t)
		a.VPMAXUD(t, m, m)
		a.VPSHUFD(Imm(0xb1), m, t)
		a.VPMAXUD(t, m, m)
		e := a.GP32()
		a.VMOVD(m, e)
		a.SHRL(Imm(23), e)
		a.SUBL(Imm(127), e)
		a.MOVL(e, Mem{Base: top})
		a.ADDQ(Imm(4), top)
		a.ADDQ(xRow, x)
	})
	a.end()
}

func halfPack(a *asm) {
	dst, dstRow, x, xRow := a.param("dst"), a.param("dstRow"), a.param("x"), a.strideParam("xRow")
	shift, columns, rows, width := a.param("shift"), a.param("columns"), a.param("rows"), a.param("width")
	old := a.control(flushResults | denormalsZero)
	a.ADDQ(dstRow, dstRow)
	a.SHRQ(Imm(5), width)
	a.times(rows, func() {
		e, by, some := a.GP64(), a.ZMM(), a.K()
		a.MOVL(Mem{Base: shift}, e.As32())
		a.ADDQ(Imm(4), shift)
		a.splatGP(a.scaleBits(e), by)
		a.VPTESTMD(by, by, some) // no lanes of a row that becomes zeros, whatever it holds
		to, from, left, f := a.GP64(), a.GP64(), a.GP64(), a.GP64()
		a.MOVQ(dst, to)
		a.MOVQ(x, from)
		a.MOVQ(width, left)
		a.MOVQ(columns, f)
		row := func(scaled bool) {
			a.times(left, func() {
				for i := range 2 {
					v := a.ZMM()
					a.VMULPS_Z(Mem{Base: from, Disp: 64 * i}, by, some, v)
					if scaled {
						a.VMULPS(Mem{Base: f, Disp: 64 * i}, v, v)
					}
					a.VCVTPS2PH(Imm(0), v, Mem{Base: to, Disp: 32 * i})
				}
				a.SUBQ(I32(-128), from)
				if scaled {
					a.SUBQ(I32(-128), f)
				}
				a.ADDQ(Imm(64), to)
			})
		}
		plain, done := a.label("plain"), a.label("packed")
		a.TESTQ(f, f)
		a.JZ(LabelRef(plain))
		row(true)
		a.JMP(LabelRef(done))
		a.Label(plain)
		row(false)
		a.Label(done)
		a.ADDQ(dstRow, dst)
		a.ADDQ(xRow, x)
	})
	a.end(old)
}

func halfPeaks(a *asm) {
	peak, x, xRow := a.param("peak"), a.param("x"), a.strideParam("xRow")
	shift, rows, width := a.param("shift"), a.param("rows"), a.param("width")
	exponent := a.splat(0x7f800000)
	walk := func(n int) { // the columns of n vectors
		m := a.vecs(n)
		for _, v := range m {
			a.zero(v)
		}
		at, s, left := a.GP64(), a.GP64(), a.GP64()
		a.MOVQ(x, at)
		a.MOVQ(shift, s)
		a.MOVQ(rows, left)
		a.times(left, func() {
			skip := a.label("skipped")
			a.CMPL(Mem{Base: s}, I32(-zeroRow))
			a.JEQ(LabelRef(skip))
			for i, v := range m {
				a.VMAXPS(Mem{Base: at, Disp: 64 * i}, v, v)
			}
			a.Label(skip)
			a.ADDQ(Imm(4), s)
			a.ADDQ(xRow, at)
		})
		for i, v := range m {
			a.VPANDD(exponent, v, v)
			a.VMOVUPS(v, Mem{Base: peak, Disp: 64 * i})
		}
		a.ADDQ(U32(uint32(64*n)), x)
		a.ADDQ(U32(uint32(64*n)), peak)
	}
	for _, n := range []int{16, 2} {
		loop, done := a.label("columns"), a.label("fewer")
		a.Label(loop)
		a.CMPQ(width, U32(uint32(16*n)))
		a.JLT(LabelRef(done))
		walk(n)
		a.SUBQ(U32(uint32(16*n)), width)
		a.JMP(LabelRef(loop))
		a.Label(done)
	}
	a.end()
}

func halfSums(a *asm) {
	sum, x, xRow := a.param("sum"), a.param("x"), a.strideParam("xRow")
	rows, width := a.param("rows"), a.param("width")
	a.SHRQ(Imm(5), width)
	a.times(rows, func() {
		p, q := a.ZMM(), a.ZMM()
		a.zero(p)
		a.zero(q)
		at, left := a.GP64(), a.GP64()
		a.MOVQ(x, at)
		a.MOVQ(width, left)
		a.times(left, func() {
			a.VADDPS(Mem{Base: at}, p, p)
			a.VADDPS(Mem{Base: at, Disp: 64}, q, q)
			a.SUBQ(I32(-128), at)
		})
		a.VADDPS(p, q, p)
		y, m, t := a.YMM(), a.XMM(), a.XMM()
		a.VEXTRACTF64X4(Imm(1), p, y)
		a.VADDPS(p.AsY(), y, y)
		a.VEXTRACTF128(Imm(1), y, m)
		a.VADDPS(y.AsX(), m, m)
		a.VPERMILPS(Imm(0x4e), m, t)
		a.VADDPS(t, m, m)
		a.VPERMILPS(Imm(0xb1), m, t)
		a.VADDPS(t, m, m)
		a.VMOVSS(m, Mem{Base: sum})
		a.ADDQ(Imm(4), sum)
		a.ADDQ(xRow, x)
	})
	a.end()
}

func halfScale(a *asm) {
	x, xRow, f := a.param("x"), a.strideParam("xRow"), a.param("f")
	rows, width := a.param("rows"), a.param("width")
	a.SHRQ(Imm(5), width)
	a.times(rows, func() {
		by := a.ZMM()
		a.VBROADCASTSS(Mem{Base: f}, by)
		at, left := a.GP64(), a.GP64()
		a.MOVQ(x, at)
		a.MOVQ(width, left)
		a.times(left, func() {
			for i := range 2 {
				v := a.ZMM()
				a.VMULPS(Mem{Base: at, Disp: 64 * i}, by, v)
				a.VMOVUPS(v, Mem{Base: at, Disp: 64 * i})
			}
			a.SUBQ(I32(-128), at)
		})
		a.ADDQ(Imm(4), f)
		a.ADDQ(xRow, x)
	})
	a.end()
}
