package main

import (
	"unsafe"

	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// updateArgs mirrors micro.UpdateArgs.
type updateArgs struct {
	Rows, W                int
	T, G                   uintptr
	Keep, Gain, Prior, Sum uintptr
	Grid, Floor            float32
	Plain                  bool
}

// tableArgs mirrors micro.TableArgs.
type tableArgs struct {
	Rows, Width            int
	T, Count               uintptr
	Row                    int
	Keep, Gain, Prior, Sum uintptr
	Grid, Floor            float32
}

func updateRoutines(wide bool) []routine {
	list := []routine{
		{"updatePanel", "(a *UpdateArgs)", "is Set.UpdatePanel.", updatePanel},
		{"updateTable", "(a *TableArgs)", "is Set.UpdateTable.", updateTable},
	}
	if wide {
		list = append(list, routine{"quantize", "(acc *int64, x, y *float32, n int, scale float64)", "does acc[i] += int64(nearest even(round(x[i]*y[i]) * scale)); y may be nil.", quantize512})
	} else {
		list = append(list, routine{"quantize", "(acc *int64, x, y *float32, n int, scale float64) int", "does what quantize512 does for multiples of four elements; it stops at four of which one is 2^51 or more, and returns how many are done.", quantize256})
	}
	for i := range list {
		list[i].name += suffix(wide)
	}
	return list
}

// mover holds the constants of an update.
type mover struct {
	*asm
	grid, floor, zero vec
}

func newMover(a *asm, args gp, grid, floor uintptr) mover {
	m := mover{a, a.vec(), a.vec(), a.vec()}
	a.VBROADCASTSS(Mem{Base: args, Disp: int(grid)}, m.grid)
	a.VBROADCASTSS(Mem{Base: args, Disp: int(floor)}, m.floor)
	a.zero(m.zero)
	return m
}

// move returns the new value of the weights old; f is lost.
func (m mover) move(old, f vec, keep, gain, prior vec) vec {
	t := m.vec()
	if m.wide {
		k, live := m.K(), m.K()
		m.VCMPPS(Imm(1), m.grid, f, k) // f < grid
		m.VADDPS(m.grid, f, k, f)
		m.VSUBPS(m.grid, f, k, f)
		m.VCMPPS(Imm(4), m.zero, old, live)
		m.VMOVAPS(prior, t)
		m.VFMADD231PS(f, gain, t)
		m.VFMADD231PS(old, keep, t)
		m.VMAXPS_Z(t, m.floor, live, t)
		return t
	}
	k := m.vec()
	m.VADDPS(m.grid, f, t)
	m.VSUBPS(m.grid, t, t)
	m.VCMPPS(Imm(1), m.grid, f, k)
	m.VBLENDVPS(k, t, f, f)
	m.VMOVAPS(prior, t)
	m.VFMADD231PS(f, gain, t)
	m.VFMADD231PS(old, keep, t)
	m.VMAXPS(t, m.floor, t)
	m.VCMPPS(Imm(4), m.zero, old, k)
	m.VANDPS(k, t, t)
	return t
}

func updatePanel(a *asm) {
	var f updateArgs
	args := a.param("a")
	old := a.control(flushResults | denormalsZero)
	m := newMover(a, args, unsafe.Offsetof(f.Grid), unsafe.Offsetof(f.Floor))
	w, rows := a.field(args, unsafe.Offsetof(f.W)), a.field(args, unsafe.Offsetof(f.Rows))
	t, g := a.field(args, unsafe.Offsetof(f.T)), a.field(args, unsafe.Offsetof(f.G))
	r := a.GP64()
	a.XORQ(r, r)
	a.maskOf(w)
	a.times(rows, func() {
		splat := func(off uintptr) vec {
			v := a.vec()
			a.VBROADCASTSS(Mem{Base: a.field(args, off), Index: r, Scale: 4}, v)
			return v
		}
		keep, gain, prior := splat(unsafe.Offsetof(f.Keep)), splat(unsafe.Offsetof(f.Gain)), splat(unsafe.Offsetof(f.Prior))
		sum := a.vec()
		a.zero(sum)
		a.columns(w, 2, func(off gp, n int, mask reg.Register) {
			for i := range n {
				at := a.offset(Mem{Base: t, Index: off, Scale: 1}, i)
				was, flow := a.vec(), a.vec()
				a.load(at, was, mask)
				a.load(a.offset(Mem{Base: g, Index: off, Scale: 1}, i), flow, mask)
				plain := a.label("plain")
				a.CMPB(Mem{Base: args, Disp: int(unsafe.Offsetof(f.Plain))}, Imm(0))
				a.JNE(LabelRef(plain))
				a.VMULPS(was, flow, flow)
				a.Label(plain)
				now := m.move(was, flow, keep, gain, prior)
				a.VADDPS(now, sum, sum)
				a.store(now, at, mask)
			}
		})
		at := Mem{Base: a.field(args, unsafe.Offsetof(f.Sum)), Index: r, Scale: 4}
		x := a.total(sum)
		a.VADDSS(at, x, x)
		a.VMOVSS(x, at)
		a.LEAQ(Mem{Base: t, Index: w, Scale: 4}, t)
		a.LEAQ(Mem{Base: g, Index: w, Scale: 4}, g)
		a.INCQ(r)
	})
	a.end(old)
}

// total returns the sum of the lanes of v in the first lane.
func (a *asm) total(v vec) vec {
	y, x, t := v, a.XMM(), a.XMM()
	if a.wide {
		y = a.YMM()
		a.VEXTRACTF64X4(Imm(1), v, y)
		a.VADDPS(v.AsY(), y, y)
		a.VEXTRACTF32X4(Imm(1), y, x)
	} else {
		a.VEXTRACTF128(Imm(1), y, x)
	}
	a.VADDPS(y.AsX(), x, x)
	a.VPERMILPS(Imm(0x4e), x, t)
	a.VADDPS(t, x, x)
	a.VPERMILPS(Imm(0xb1), x, t)
	a.VADDPS(t, x, x)
	return x
}

func updateTable(a *asm) {
	var f tableArgs
	args := a.param("a")
	old := a.control(flushResults | denormalsZero)
	m := newMover(a, args, unsafe.Offsetof(f.Grid), unsafe.Offsetof(f.Floor))
	width, rows, row := a.field(args, unsafe.Offsetof(f.Width)), a.field(args, unsafe.Offsetof(f.Rows)), a.stride(args, unsafe.Offsetof(f.Row))
	t, count := a.field(args, unsafe.Offsetof(f.T)), a.field(args, unsafe.Offsetof(f.Count))
	keep, gain := a.field(args, unsafe.Offsetof(f.Keep)), a.field(args, unsafe.Offsetof(f.Gain))
	prior, sum := a.field(args, unsafe.Offsetof(f.Prior)), a.field(args, unsafe.Offsetof(f.Sum))
	a.maskOf(width)
	a.times(rows, func() {
		a.columns(width, 2, func(off gp, n int, mask reg.Register) {
			for i := range n {
				at := func(base gp) Mem { return a.offset(Mem{Base: base, Index: off, Scale: 1}, i) }
				read := func(base gp) vec {
					v := a.vec()
					a.load(at(base), v, mask)
					return v
				}
				now := m.move(read(t), read(count), read(keep), read(gain), read(prior))
				a.store(now, at(t), mask)
				a.store(m.zero, at(count), mask)
				s := read(sum)
				a.VADDPS(now, s, s)
				a.store(s, at(sum), mask)
			}
		})
		a.ADDQ(row, t)
		a.ADDQ(row, count)
	})
	a.end(old)
}

func quantize512(a *asm) {
	acc, x, y, n := a.param("acc"), a.param("x"), a.param("y"), a.param("n")
	s := a.XMM()
	a.Load(a.Param("scale"), s)
	scale := a.ZMM()
	a.VBROADCASTSD(s, scale)
	one := func(mask reg.Register) {
		v, d, product := a.YMM(), a.ZMM(), a.label("product")
		a.load(Mem{Base: x}, v, mask)
		a.TESTQ(y, y)
		a.JZ(LabelRef(product))
		if mask != nil {
			a.VMULPS_Z(Mem{Base: y}, v, mask, v)
		} else {
			a.VMULPS(Mem{Base: y}, v, v)
		}
		a.ADDQ(Imm(32), y)
		a.Label(product)
		a.VCVTPS2PD(v, d)
		a.VMULPD(scale, d, d)
		a.VCVTPD2QQ(d, d)
		if mask != nil {
			a.VPADDQ_Z(Mem{Base: acc}, d, mask, d)
			a.VMOVDQU64(d, mask, Mem{Base: acc})
		} else {
			a.VPADDQ(Mem{Base: acc}, d, d)
			a.VMOVDQU64(d, Mem{Base: acc})
		}
		a.ADDQ(Imm(32), x)
		a.ADDQ(Imm(64), acc)
	}
	whole, left := a.GP64(), a.GP64()
	a.MOVQ(n, whole)
	a.SHRQ(Imm(3), whole)
	a.times(whole, func() { one(nil) })
	a.ANDQ(Imm(7), n)
	a.JZ(LabelRef("end"))
	a.MOVQ(I32(-1), left)
	a.BZHIQ(n, left, left)
	k := a.K()
	a.KMOVW(left.As32(), k)
	one(k)
	a.Label("end")
	a.end()
}

func quantize256(a *asm) {
	acc, x, y, n := a.param("acc"), a.param("x"), a.param("y"), a.param("n")
	s := a.XMM()
	a.Load(a.Param("scale"), s)
	scale, magic, limit := a.YMM(), a.YMM(), a.YMM()
	a.VBROADCASTSD(s, scale)
	fill := func(hi uint64, v vec) {
		t, lo := a.GP64(), a.XMM()
		a.MOVQ(U64(hi), t)
		a.VMOVQ(t, lo)
		a.VBROADCASTSD(lo, v)
	}
	fill(0x4338000000000000, magic) // 1.5·2^52: adding it rounds to an integer
	fill(0x4320000000000000, limit) // 2^51
	done := a.GP64()
	a.XORQ(done, done)
	a.SHRQ(Imm(2), n)
	a.times(n, func() {
		v, d, big, product := a.XMM(), a.YMM(), a.YMM(), a.label("product")
		a.VMOVUPS(Mem{Base: x, Index: done, Scale: 4}, v)
		a.TESTQ(y, y)
		a.JZ(LabelRef(product))
		a.VMULPS(Mem{Base: y, Index: done, Scale: 4}, v, v)
		a.Label(product)
		a.VCVTPS2PD(v, d)
		a.VMULPD(scale, d, d)
		a.VCMPPD(Imm(5), limit, d, big) // not below the limit
		bits := a.GP32()
		a.VMOVMSKPD(big, bits)
		a.TESTL(bits, bits)
		a.JNZ(LabelRef("end"))
		a.VADDPD(magic, d, d)
		a.VPSUBQ(magic, d, d)
		at := Mem{Base: acc, Index: done, Scale: 8}
		a.VPADDQ(at, d, d)
		a.VMOVUPS(d, at)
		a.ADDQ(Imm(4), done)
	})
	a.Label("end")
	a.Store(done, a.ReturnIndex(0))
	a.end()
}
