package main

import (
	"math"
	"unsafe"

	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// product has the layout of lanes.Product.
type product struct {
	left     [4]*byte
	right    [2]*byte
	from, to [4]*byte
	a        [16][16]float64
	b        [16][8]float64
	c        [16][8]float32
	ea       [16][16]int32
	eb       [16][8]int32
}

const (
	productSignature = "(p *Product, kind, group, extra int) bool"
	productDoc       = `multiplies the operands of p. Products are of a kind, see the kinds of Product.
// With a group of 0 they are added exactly, else in such groups, of a multiple of 4, and
// cut to extra bits. It reports false, without having done so, if operands that are to
// be cut are not finite.`
)

// Kinds of operands.
const (
	tensors  = iota // tf32, k is 8
	halves16        // f16, k is 16
	halves8         // f16, k is 8
	brains          // bf16, k is 16
	kinds
)

// Exponents: of a float64, of zero, and half of that.
const (
	bias       = 1023
	noExponent = -1 << 20
)

// multiplier emits the product of matrices.
type multiplier struct {
	*asm
	p   reg.GPVirtual
	bad reg.VecVirtual // words that are not 0 if an operand is not finite (YMM)
}

// emitProducts writes the product of matrices: c[i][:] += Σ_l a[i][l]·b[l][:], a row of
// eight sums at a time.
func emitProducts(a *asm) {
	a.Function("multiply" + suffix(a.wide))
	a.Attributes(attr.NOSPLIT)
	a.SignatureExpr("func(p *byte, kind, group, extra int) bool")
	m := &multiplier{asm: a, p: a.GP64(), bad: a.YMM()}
	a.Load(a.Param("p"), m.p)
	kind, k := a.GP64(), a.GP64()
	a.Load(a.Param("kind"), kind)
	a.VXORPS(m.bad, m.bad, m.bad)
	a.MOVQ(U32(8), k)
	for i := range kinds {
		next := a.label("kind")
		a.CMPQ(kind, Imm(uint64(i)))
		a.JNE(LabelRef(next))
		if i == halves16 || i == brains {
			a.MOVQ(U32(16), k)
		}
		m.gather(i)
		a.JMP(LabelRef("gathered"))
		a.Label(next)
	}
	a.Label("gathered")
	m.gatherSums()
	group := a.GP64()
	a.Load(a.Param("group"), group)
	a.TESTQ(group, group)
	a.JNZ(LabelRef("groups"))
	m.rows(func(i, offA, offE reg.GPVirtual) { m.exact(k, i, offA) })
	a.JMP(LabelRef("end"))
	a.Label("groups")
	a.VPTEST(m.bad, m.bad)
	a.JNZ(LabelRef("refused"))
	top := a.GP64()
	a.Load(a.Param("extra"), top)
	unit, scale := a.XMM(), a.XMM()
	t := a.GP64()
	a.MOVQ(U32(bias-23), t)
	a.SUBQ(top, t)
	a.VMOVQ(t, unit)
	a.ADDQ(U32(bias+23), top)
	a.VMOVQ(top, scale)
	units, scales := a.vec(), a.vec()
	a.VPBROADCASTQ(unit, units)
	a.VPBROADCASTQ(scale, scales)
	m.rows(func(i, offA, offE reg.GPVirtual) { m.truncated(k, group, i, offA, offE, units, scales) })
	a.Label("end")
	ok := a.GP8()
	a.MOVB(Imm(1), ok)
	a.Store(ok, a.ReturnIndex(0))
	a.VZEROUPPER()
	a.RET()
	a.Label("refused")
	no := a.GP8()
	a.MOVB(Imm(0), no)
	a.Store(no, a.ReturnIndex(0))
	a.VZEROUPPER()
	a.RET()
}

// at is the place of a field of the product, moved by an index and bytes.
func (m *multiplier) at(field uintptr, index reg.Register, disp int) Mem {
	if index == nil {
		return Mem{Base: m.p, Disp: int(field) + disp}
	}
	return Mem{Base: m.p, Index: index, Scale: 1, Disp: int(field) + disp}
}

// times repeats body with a number of bytes that grows in steps.
func (m *multiplier) times(n int, step uint32, body func(off reg.GPVirtual)) {
	off := m.GP64()
	loop := m.label("loop")
	m.XORQ(off, off)
	m.Label(loop)
	body(off)
	m.ADDQ(U32(step), off)
	m.CMPQ(off, U32(uint32(n)*step))
	m.JNE(LabelRef(loop))
}

// gather collects the operands a and b as float64, and their exponents.
func (m *multiplier) gather(kind int) {
	var f product
	perRow, eights := 8, 1 // elements of a row in a register; registers of b
	if kind == tensors {
		perRow = 4
	}
	registers := 4
	if kind == halves8 {
		registers = 2
	}
	if kind != halves8 {
		eights = 2
	}
	for n := range registers {
		from := m.GP64()
		m.MOVQ(m.at(unsafe.Offsetof(f.left), nil, 8*n), from)
		row, column := 8*(n&1), perRow*(n>>1)
		to := m.GP64()
		m.XORQ(to, to)
		m.times(8, 16, func(off reg.GPVirtual) { // 16 bytes of a register are a row
			quads := m.floats(kind, Mem{Base: from, Index: off, Scale: 1})
			// A row of a is 128 bytes, 8 times as many; one of exponents 64.
			at, atE := m.GP64(), m.GP64()
			m.MOVQ(off, at)
			m.SHLQ(Imm(3), at)
			m.MOVQ(off, atE)
			m.SHLQ(Imm(2), atE)
			for q, x := range quads {
				m.quad(x, m.at(unsafe.Offsetof(f.a), at, 128*row+8*(column+4*q)), m.at(unsafe.Offsetof(f.ea), atE, 64*row+4*(column+4*q)))
			}
		})
	}
	// The columns of b, as they lie in the registers, with c as their place.
	for n := range eights {
		from := m.GP64()
		m.MOVQ(m.at(unsafe.Offsetof(f.right), nil, 8*n), from)
		m.times(8, 16, func(off reg.GPVirtual) {
			quads := m.floats(kind, Mem{Base: from, Index: off, Scale: 1})
			at := m.GP64()
			m.MOVQ(off, at)
			if perRow == 8 {
				m.SHLQ(Imm(1), at)
			}
			for q, x := range quads {
				m.VMOVUPS(x, m.at(unsafe.Offsetof(f.c), at, n*32*perRow+16*q))
			}
		})
	}
	// Their rows: elements a column apart.
	index := m.YMM()
	m.VMOVDQU(m.table(map[int]string{4: "fours", 8: "eights"}[perRow], func(j int) uint32 { return uint32(j * perRow) }), index)
	for n := range eights {
		m.times(perRow, 4, func(off reg.GPVirtual) {
			x, all := m.YMM(), m.YMM()
			m.VPCMPEQD(all, all, all)
			base := m.GP64()
			m.LEAQ(m.at(unsafe.Offsetof(f.c), off, n*32*perRow), base)
			m.VGATHERDPS(all, Mem{Base: base, Index: index, Scale: 4}, x)
			high := m.XMM()
			m.VEXTRACTF128(Imm(1), x, high)
			at, atE := m.GP64(), m.GP64()
			m.MOVQ(off, at)
			m.SHLQ(Imm(4), at)
			m.MOVQ(off, atE)
			m.SHLQ(Imm(3), atE)
			row := n * perRow
			m.quad(x.AsX(), m.at(unsafe.Offsetof(f.b), at, 64*row), m.at(unsafe.Offsetof(f.eb), atE, 32*row))
			m.quad(high, m.at(unsafe.Offsetof(f.b), at, 64*row+32), m.at(unsafe.Offsetof(f.eb), atE, 32*row+16))
		})
	}
}

// floats reads 16 bytes of a register as vectors of four floats.
func (m *multiplier) floats(kind int, from Mem) []reg.Register {
	if kind == tensors { // a card takes the high 19 bits
		x := m.XMM()
		m.VMOVDQU(m.words("high19", 0xffffe000), x)
		m.VPAND(from, x, x)
		return []reg.Register{x}
	}
	y, high := m.YMM(), m.XMM()
	if kind == brains {
		m.VPMOVZXWD(from, y)
		m.VPSLLD(Imm(16), y, y)
	} else {
		m.VCVTPH2PS(from, y)
	}
	m.VEXTRACTF128(Imm(1), y, high)
	return []reg.Register{y.AsX(), high}
}

// words is 32 bytes of memory with one word.
func (m *multiplier) words(name string, w uint32) Mem {
	return m.table(name, func(int) uint32 { return w })
}

// quad stores four floats as float64, and their exponents.
func (m *multiplier) quad(x reg.Register, to, toE Mem) {
	y := m.YMM()
	m.VCVTPS2PD(x, y)
	m.VMOVUPS(y, to)
	high, e := m.XMM(), m.XMM()
	m.VEXTRACTF128(Imm(1), y, high)
	m.VSHUFPS(Imm(0xdd), high, y.AsX(), e)
	m.exponents(e)
	m.VMOVDQU(e, toE)
}

// exponents turns the high words of four float64 into their exponents.
func (m *multiplier) exponents(e reg.VecVirtual) {
	zero, bad := m.XMM(), m.XMM()
	m.VPSRLD(Imm(20), e, e)
	m.VPAND(m.words("field", 0x7ff), e, e)
	m.VPCMPEQD(m.words("field", 0x7ff), e, bad)
	m.VPOR(bad.AsY(), m.bad, m.bad)
	m.VPXOR(zero, zero, zero)
	m.VPCMPEQD(zero, e, zero)
	m.VPSUBD(m.words("bias", bias), e, e)
	m.VMOVDQU(m.words("none", 1<<32+noExponent), bad)
	m.VBLENDVPS(zero, bad, e, e)
}

// gatherSums collects the sums so far: of a row the even ones lie in one register, the
// odd ones in another.
func (m *multiplier) gatherSums() {
	var f product
	exponent := m.YMM()
	m.VMOVDQU(m.words("infinity", 0x7f800000), exponent)
	for n := range 2 {
		even, odd := m.GP64(), m.GP64()
		m.MOVQ(m.at(unsafe.Offsetof(f.from), nil, 16*n), even)
		m.MOVQ(m.at(unsafe.Offsetof(f.from), nil, 16*n+8), odd)
		m.times(8, 16, func(off reg.GPVirtual) {
			x, y, lo, hi, t := m.XMM(), m.XMM(), m.XMM(), m.XMM(), m.YMM()
			m.VMOVUPS(Mem{Base: even, Index: off, Scale: 1}, x)
			m.VMOVUPS(Mem{Base: odd, Index: off, Scale: 1}, y)
			m.VUNPCKLPS(y, x, lo)
			m.VUNPCKHPS(y, x, hi)
			m.VINSERTF128(Imm(1), hi, lo.AsY(), t)
			at := m.GP64()
			m.MOVQ(off, at)
			m.SHLQ(Imm(1), at)
			m.VMOVUPS(t, m.at(unsafe.Offsetof(f.c), at, 256*n))
			m.VPAND(exponent, t, t)
			m.VPCMPEQD(exponent, t, t)
			m.VPOR(t, m.bad, m.bad)
		})
	}
}

// rows repeats body for the rows, at a number of bytes in c, in a and in its exponents.
func (m *multiplier) rows(body func(i, offA, offE reg.GPVirtual)) {
	offA, offE := m.GP64(), m.GP64()
	m.XORQ(offA, offA)
	m.XORQ(offE, offE)
	m.times(16, 32, func(i reg.GPVirtual) {
		body(i, offA, offE)
		m.ADDQ(U32(128), offA)
		m.ADDQ(U32(64), offE)
	})
}

// parts is how many vectors a row of eight float64 takes.
func (m *multiplier) parts() int {
	if m.wide {
		return 1
	}
	return 2
}

// loadSums reads a row of c as float64.
func (m *multiplier) loadSums(i reg.GPVirtual) []vec {
	var f product
	s := make([]vec, m.parts())
	for q := range s {
		s[q] = m.vec()
		m.VCVTPS2PD(m.at(unsafe.Offsetof(f.c), i, 16*q), s[q])
	}
	return s
}

// single rounds a row to f32.
func (m *multiplier) single(s []vec) reg.VecVirtual {
	if m.wide {
		y := m.YMM()
		m.VCVTPD2PS(s[0], y)
		return y
	}
	x, y, z := m.XMM(), m.XMM(), m.YMM()
	m.VCVTPD2PSY(s[0], x)
	m.VCVTPD2PSY(s[1], y)
	m.VINSERTF128(Imm(1), y, x.AsY(), z)
	return z
}

// scatter puts the sums of a row into their registers: i is 32 times the row.
func (m *multiplier) scatter(i reg.GPVirtual, y reg.VecVirtual) {
	var f product
	none, nan := m.YMM(), m.YMM()
	m.VCMPPS(Imm(notNumber), y, y, none)
	m.VMOVDQU(m.words("nan", 0x7fffffff), nan)
	m.VBLENDVPS(none, nan, y, y)
	high, t := m.XMM(), m.XMM()
	m.VEXTRACTF128(Imm(1), y, high)
	at, half, to := m.GP64(), m.GP64(), m.GP64()
	m.MOVQ(i, at)
	m.SHRQ(Imm(1), at)
	m.MOVQ(at, half) // 128 and more for rows from 8 on: 16 bytes of pointers further
	m.ANDQ(U32(127), at)
	m.SHRQ(Imm(7), half)
	m.SHLQ(Imm(4), half)
	for j, order := range []uint64{0x88, 0xdd} {
		m.MOVQ(m.at(unsafe.Offsetof(f.to), half, 8*j), to)
		m.VSHUFPS(Imm(order), high, y.AsX(), t)
		m.VMOVUPS(t, Mem{Base: to, Index: at, Scale: 1})
	}
}

// products repeats body for n bytes of a row of a, 32 at a time, four elements: with
// the place of the element, and of its row in b and in the exponents of both.
func (m *multiplier) products(n, offA, offE, l reg.GPVirtual, body func(a, b, ea, eb Mem)) {
	var f product
	left, at, atE, b, eb := m.GP64(), m.GP64(), m.GP64(), m.GP64(), m.GP64()
	m.MOVQ(n, left)
	// l counts elements: 8 bytes of a, 4 of its exponents, 64 of b, 32 of its exponents.
	for _, s := range []struct {
		to    reg.GPVirtual
		shift uint64
		from  reg.Register
	}{{at, 3, offA}, {atE, 2, offE}, {b, 6, nil}, {eb, 5, nil}} {
		m.MOVQ(l, s.to)
		m.SHLQ(Imm(s.shift), s.to)
		if s.from != nil {
			m.ADDQ(s.from, s.to)
		}
	}
	loop := m.label("four")
	m.Label(loop)
	for j := range 4 {
		body(m.at(unsafe.Offsetof(f.a), at, 8*j), m.at(unsafe.Offsetof(f.b), b, 64*j),
			m.at(unsafe.Offsetof(f.ea), atE, 4*j), m.at(unsafe.Offsetof(f.eb), eb, 32*j))
	}
	for _, s := range []struct {
		r  reg.Register
		by uint32
	}{{at, 32}, {atE, 16}, {b, 256}, {eb, 128}} {
		m.ADDQ(U32(s.by), s.r)
	}
	m.SUBQ(Imm(4), left)
	m.JNZ(LabelRef(loop))
}

// part moves a place by vectors.
func (m *multiplier) part(x Mem, q int) Mem {
	x.Disp += 32 * q
	return x
}

// exact adds a row in float64, in order. Products are exact, so that adding them with
// one rounding is what adding them is.
func (m *multiplier) exact(k, i, offA reg.GPVirtual) {
	s := m.loadSums(i)
	zero := m.GP64()
	m.XORQ(zero, zero)
	m.products(k, offA, zero, zero, func(a, b, _, _ Mem) {
		x := m.vec()
		m.VBROADCASTSD(a, x)
		for q := range s {
			m.VFMADD231PD(m.part(b, q), x, s[q])
		}
	})
	m.scatter(i, m.single(s))
}

// truncated adds a row in groups: what is added is aligned to the largest exponent and
// cut, and so is the sum.
func (m *multiplier) truncated(k, group, i, offA, offE reg.GPVirtual, units, scales vec) {
	s := m.loadSums(i)
	l := m.GP64()
	m.XORQ(l, l)
	loop := m.label("group")
	row := m.YMM()
	m.Label(loop)
	top := m.top(s)
	m.products(group, offA, offE, l, func(_, _, ea, eb Mem) {
		e := m.YMM()
		m.VPBROADCASTD(ea, e)
		m.VPADDD(eb, e, e)
		m.VPMAXSD(e, top, top)
	})
	nothing := m.YMM()
	m.VMOVDQU(m.words("half", 1<<32+noExponent/2), nothing)
	m.VPCMPGTD(top, nothing, nothing)
	unit, scale, sum := m.rowVecs(), m.rowVecs(), m.rowVecs()
	for q := range s {
		from := top.AsX()
		if m.wide {
			m.VPMOVSXDQ(top, unit[q])
		} else {
			if q == 1 {
				high := m.XMM()
				m.VEXTRACTF128(Imm(1), top, high)
				from = high
			}
			m.VPMOVSXDQ(from, unit[q])
		}
		m.VPSUBQ(unit[q], scales, scale[q])
		m.VPADDQ(units, unit[q], unit[q])
		m.VPSLLQ(Imm(52), scale[q], scale[q])
		m.VPSLLQ(Imm(52), unit[q], unit[q])
		// Starting from +0, no sum is -0.
		m.VXORPS(sum[q], sum[q], sum[q])
		m.VMULPD(scale[q], s[q], s[q])
		m.cut(s[q])
		m.VADDPD(s[q], sum[q], sum[q])
	}
	m.products(group, offA, offE, l, func(a, b, _, _ Mem) {
		x := m.vec()
		m.VBROADCASTSD(a, x)
		for q := range sum {
			y := m.vec()
			m.VMULPD(m.part(b, q), x, y)
			m.VMULPD(scale[q], y, y)
			m.cut(y)
			m.VADDPD(y, sum[q], sum[q])
		}
	})
	for q := range sum {
		m.VMULPD(unit[q], sum[q], sum[q])
		m.cutSingle(sum[q])
	}
	y := m.single(sum)
	m.VANDNPS(y, nothing, row)
	m.ADDQ(group, l)
	m.CMPQ(l, k)
	m.JEQ(LabelRef(loop + "end"))
	for q := range s {
		if q == 0 {
			if m.wide {
				m.VCVTPS2PD(row, s[q])
			} else {
				m.VCVTPS2PD(row.AsX(), s[q])
			}
			continue
		}
		high := m.XMM()
		m.VEXTRACTF128(Imm(1), row, high)
		m.VCVTPS2PD(high, s[q])
	}
	m.JMP(LabelRef(loop))
	m.Label(loop + "end")
	m.scatter(i, row)
}

func (m *multiplier) rowVecs() []vec {
	v := make([]vec, m.parts())
	for q := range v {
		v[q] = m.vec()
	}
	return v
}

// cut rounds to an integer towards zero.
func (m *multiplier) cut(v vec) {
	if m.wide {
		m.VRNDSCALEPD(Imm(0xb), v, v)
	} else {
		m.VROUNDPD(Imm(0xb), v, v)
	}
}

// top is the exponent of each sum so far, that of the least normal f32 at least.
func (m *multiplier) top(s []vec) reg.VecVirtual {
	e, zero, least, none := m.YMM(), m.YMM(), m.YMM(), m.YMM()
	if m.wide {
		t := m.ZMM()
		m.VPSRLQ(Imm(32), s[0], t)
		m.VPMOVQD(t, e)
	} else {
		m.VSHUFPS(Imm(0xdd), s[1], s[0], e)
		m.VPERMQ(Imm(0xd8), e, e)
	}
	m.VPSRLD(Imm(20), e, e)
	m.VPAND(m.words("field", 0x7ff), e, e)
	m.VPXOR(zero, zero, zero)
	m.VPCMPEQD(zero, e, zero)
	m.VPSUBD(m.words("bias", bias), e, e)
	m.VMOVDQU(m.words("least", 1<<32-126), least)
	m.VPMAXSD(least, e, e)
	m.VMOVDQU(m.words("none", 1<<32+noExponent), none)
	m.VBLENDVPS(zero, none, e, e)
	return e
}

// cutSingle cuts to the bits of f32, also below its normal range.
func (m *multiplier) cutSingle(v vec) {
	low, size := m.vec(), m.vec()
	up, down := m.splat64(math.Float64bits(0x1p149)), m.splat64(math.Float64bits(0x1p-149))
	m.VMULPD(up, v, low)
	m.cut(low)
	m.VMULPD(down, low, low)
	m.VMOVAPD(v, size)
	m.and(m.splat64(1<<63-1), size)
	m.and(m.splat64(^uint64(1<<29-1)), v)
	normal := m.splat64(math.Float64bits(0x1p-126))
	if m.wide {
		k := m.K()
		m.VCMPPD(Imm(lessThan), normal, size, k)
		m.VMOVDQA64(low, k, v)
		return
	}
	m.VCMPPD(Imm(lessThan), normal, size, size)
	m.VBLENDVPD(size, low, v, v)
}
