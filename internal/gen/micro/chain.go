package main

import (
	"unsafe"

	. "github.com/mmcloughlin/avo/operand"
)

// chainArgs mirrors micro.ChainArgs.
type chainArgs struct {
	Rows, Width int
	T, Exps     uintptr
	Row         int
	M, E, Odds  uintptr
	Factors     uintptr
}

func chainRoutines(wide bool) []routine {
	if !wide {
		return nil
	}
	return []routine{{"chain512", "(a *ChainArgs)", "is Set.Chain.", chain}}
}

// chain takes 32 units at a time through all rows, then eight at a time.
func chain(a *asm) {
	var f chainArgs
	args := a.param("a")
	width, off := a.field(args, unsafe.Offsetof(f.Width)), a.GP64()
	a.XORQ(off, off) // of the units, in bytes of float32
	zero := a.ZMM()
	a.zero(zero)
	for _, n := range []int{4, 1} {
		loop, done := a.label("units"), a.label("fewer")
		a.Label(loop)
		a.CMPQ(width, Imm(uint64(8*n)))
		a.JLT(LabelRef(done))
		load := func(field uintptr) []vec {
			at := a.field(args, field)
			vs := a.vecs(n)
			for i, v := range vs {
				a.VMOVUPD(Mem{Base: at, Index: off, Scale: 2, Disp: 64 * i}, v)
			}
			return vs
		}
		m, e, odds := load(unsafe.Offsetof(f.M)), load(unsafe.Offsetof(f.E)), load(unsafe.Offsetof(f.Odds))
		table, exps := a.field(args, unsafe.Offsetof(f.T)), a.field(args, unsafe.Offsetof(f.Exps))
		a.ADDQ(off, table)
		a.ADDQ(off, exps)
		factor, left := a.field(args, unsafe.Offsetof(f.Factors)), a.field(args, unsafe.Offsetof(f.Rows))
		step := a.stride(args, unsafe.Offsetof(f.Row))
		row, last := a.label("row"), a.label("last")
		a.Label(row)
		for i := range n {
			x, y := a.YMM(), a.YMM()
			a.VCVTPD2PS(m[i], x)
			a.VCVTPD2PS(e[i], y)
			a.VMOVUPS(x, Mem{Base: table, Disp: 32 * i})
			a.VMOVUPS(y, Mem{Base: exps, Disp: 32 * i})
		}
		a.DECQ(left)
		a.JZ(LabelRef(last))
		by := a.ZMM()
		a.VBROADCASTSD(Mem{Base: factor}, by)
		for i := range n {
			k, up := a.K(), a.ZMM()
			a.VMULPD(by, m[i], m[i])
			a.VMULPD(odds[i], m[i], m[i])
			a.VCMPPD(Imm(4), zero, m[i], k)
			a.VGETEXPPD(m[i], up)
			a.VADDPD_Z(up, e[i], k, e[i])
			a.VGETMANTPD_Z(Imm(0), m[i], k, m[i])
		}
		a.ADDQ(step, table)
		a.ADDQ(step, exps)
		a.ADDQ(Imm(8), factor)
		a.JMP(LabelRef(row))
		a.Label(last)
		a.ADDQ(Imm(uint64(32*n)), off)
		a.SUBQ(Imm(uint64(8*n)), width)
		a.JMP(LabelRef(loop))
		a.Label(done)
	}
	a.end()
}
