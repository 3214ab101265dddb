package main

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// quadraticArgs mirrors micro.QuadraticArgs.
type quadraticArgs struct {
	Rows, Width int
	G, Off      uintptr
	Terms       uintptr
	Logs        uintptr
	Out         uintptr
	OutRow      int
	Exp         uintptr
	Own         uintptr
}

// What package micro has in generic_quadratic.go and quadratic.go.
var exp2Terms = [7]float64{
	1.0000000005541667, 0.6931472057372687, 0.24022646890633798, 0.05550328776963733,
	0.009618488957126034, 0.0013399931219659378, 0.00015345812002855985,
}

const (
	leastBare  = -126
	leastPlain = -125
	leastOwn   = -1 << 28
	lost       = -3 << 29
	most       = 1<<29 - 1
	termUnits  = 8
)

// The terms of eight units, by their distance in bytes.
const (
	termAdd = iota * 8 * termUnits
	termSlope
	termCurve
	termCentre
	termsBytes
)

// Rounding of VRNDSCALE and VROUND without an exception.
const (
	toNearest = 8
	upwards   = 8 | 2
)

func quadraticRoutines(wide bool) []routine {
	list := []routine{
		{"quadratic", "(a *QuadraticArgs)", "is Set.Quadratic.", emitQuadratic},
		{"addScaled", "(sum *float64, f *float32, fRow int, t *float64, rows, width int)", "does sum[j] += Σ_r f[r][j]*t[r].", addScaled},
	}
	for i := range list {
		list[i].name += suffix(wide)
	}
	return list
}

// quadratic emits a kernel of densities. A part is a vector of float64: the eight units of
// a run of terms are one part, or two.
type quadratic struct {
	*asm
	args    gp
	numbers map[float64]Mem
	doubles map[float64]vec // registers that hold numbers in all lanes
}

// parts is how many vectors eight units fill.
func (q *quadratic) parts() int { return 16 / q.lanes() }

// number returns 32 bytes of memory that hold x four times.
func (q *quadratic) number(x float64) Mem {
	if m, ok := q.numbers[x]; ok {
		return m
	}
	m := q.StaticGlobal(fmt.Sprintf("d%016x", math.Float64bits(x)))
	q.DataAttributes(attr.RODATA | attr.NOPTR)
	for range 4 {
		q.AppendDatum(U64(math.Float64bits(x)))
	}
	q.numbers[x] = m
	return m
}

// double returns x in all lanes: a register, or, where registers are few, memory.
func (q *quadratic) double(x float64) Op {
	if !q.wide {
		return q.number(x)
	}
	v, ok := q.doubles[x]
	if !ok {
		v = q.ZMM()
		q.VBROADCASTSD(q.number(x), v)
		q.doubles[x] = v
	}
	return v
}

// floats is the register of as many floats as v has numbers.
func floats(v vec) reg.Register {
	if v.Size() == 64 {
		return v.AsY()
	}
	return v.AsX()
}

func emitQuadratic(a *asm) {
	var f quadraticArgs
	q := &quadratic{asm: a, args: a.param("a"), numbers: map[float64]Mem{}, doubles: map[float64]vec{}}
	field := func(off uintptr) gp { return a.field(q.args, off) }
	rows, g, off, exp := field(unsafe.Offsetof(f.Rows)), field(unsafe.Offsetof(f.G)), field(unsafe.Offsetof(f.Off)), field(unsafe.Offsetof(f.Exp))
	out, own, step := field(unsafe.Offsetof(f.Out)), field(unsafe.Offsetof(f.Own)), a.stride(q.args, unsafe.Offsetof(f.OutRow))
	// Where values have exponents of their own, these reach further down.
	var bounds []vec
	for _, b := range [][2]float64{{leastBare, leastPlain}, {leastBare, leastOwn}} {
		v, set := a.vec(), a.label("bound")
		q.broadcast(b[0], v)
		a.TESTQ(own, own)
		a.JZ(LabelRef(set))
		q.broadcast(b[1], v)
		a.Label(set)
		bounds = append(bounds, v)
	}
	if a.wide { // before the loops that use them
		for _, c := range exp2Terms {
			q.double(c)
		}
	}
	a.times(rows, func() {
		top := q.logs(g)
		unit := q.exponent(top, off, exp)
		q.values(unit, out, own, bounds[0], bounds[1])
		a.ADDQ(Imm(8), g)
		a.ADDQ(Imm(8), off)
		a.ADDQ(Imm(4), exp)
		a.ADDQ(step, out)
		none := a.label("none")
		a.TESTQ(own, own)
		a.JZ(LabelRef(none))
		a.ADDQ(step, own)
		a.Label(none)
	})
	a.end()
}

// broadcast sets all lanes of v to x.
func (q *quadratic) broadcast(x float64, v vec) {
	q.VBROADCASTSD(q.number(x), v)
}

// logs writes the logs of the units of a row and returns the largest, in the low lane.
func (q *quadratic) logs(at gp) reg.VecVirtual {
	var f quadraticArgs
	g, top := q.vec(), q.vec()
	q.VBROADCASTSD(Mem{Base: at}, g)
	left, terms, logs := q.field(q.args, unsafe.Offsetof(f.Width)), q.field(q.args, unsafe.Offsetof(f.Terms)), q.field(q.args, unsafe.Offsetof(f.Logs))
	q.broadcast(math.Inf(-1), top)
	loop := q.label("logs")
	q.Label(loop)
	for i := range q.parts() {
		term := func(disp int) Mem { return Mem{Base: terms, Disp: disp + 32*i} }
		d, l := q.vec(), q.vec()
		q.VSUBPD(term(termCentre), g, d)
		q.VMULPD(d, d, d)
		q.VMOVUPD(term(termAdd), l)
		q.VFMADD231PD(term(termSlope), g, l)
		q.VFNMADD231PD(term(termCurve), d, l)
		q.VMOVUPD(l, Mem{Base: logs, Disp: 32 * i})
		q.VMAXPD(l, top, top)
	}
	q.ADDQ(U32(termsBytes), terms)
	q.ADDQ(U32(8*termUnits), logs)
	q.SUBQ(Imm(termUnits), left)
	q.JG(LabelRef(loop))
	y := top.AsY()
	if q.wide {
		high := q.YMM()
		q.VEXTRACTF64X4(Imm(1), top, high)
		q.VMAXPD(high, y, y)
	}
	x, high := top.AsX(), q.XMM()
	q.VEXTRACTF128(Imm(1), y, high)
	q.VMAXPD(high, x, x)
	q.VPERMILPD(Imm(1), x, high)
	q.VMAXSD(high, x, x)
	return x.(reg.VecVirtual)
}

// exponent writes the exponent of a row and returns what its logs are relative to, in all lanes.
func (q *quadratic) exponent(top reg.VecVirtual, off, exp gp) vec {
	scalar := func(x float64) reg.VecVirtual {
		v := q.XMM()
		q.VMOVSD(q.number(x), v)
		return v
	}
	e, unit, held := q.XMM(), q.XMM(), q.XMM()
	least := scalar(lost)
	q.VADDSD(Mem{Base: off}, top, e)
	q.VROUNDSD(Imm(upwards), e, e, e)
	q.VSUBSD(Mem{Base: off}, e, unit)
	near := q.label("near")
	q.VUCOMISD(least, e)
	q.JA(LabelRef(near))
	q.VMOVAPD(top, unit)
	q.Label(near)
	q.VMAXSD(least, e, held)
	q.VMINSD(scalar(most), held, held)
	whole := q.GP32()
	q.VCVTSD2SI(held, whole)
	q.MOVL(whole, Mem{Base: exp})
	v := q.vec()
	q.VBROADCASTSD(unit, v)
	return v
}

// values writes the values of a row from its logs.
func (q *quadratic) values(unit vec, out, own gp, plain, least vec) {
	var f quadraticArgs
	left, logs, at := q.field(q.args, unsafe.Offsetof(f.Width)), q.field(q.args, unsafe.Offsetof(f.Logs)), q.GP64()
	q.XORQ(at, at)
	loop, last, done := q.label("values"), q.label("last"), q.label("done")
	body := func(tail []reg.Register) {
		for i := range q.parts() {
			var mask reg.Register
			if tail != nil {
				mask = tail[i]
			}
			v, e := q.value(unit, Mem{Base: logs, Disp: 32 * i}, plain, least)
			to := Mem{Base: out, Index: at, Scale: 1, Disp: 16 * i}
			none := q.label("bare")
			q.storeFloats(v, to, mask)
			q.TESTQ(own, own)
			q.JZ(LabelRef(none))
			to.Base = own
			q.storeFloats(e, to, mask)
			q.Label(none)
		}
	}
	q.Label(loop)
	q.CMPQ(left, Imm(termUnits))
	q.JLT(LabelRef(last))
	body(nil)
	q.ADDQ(U32(8*termUnits), logs)
	q.ADDQ(U32(4*termUnits), at)
	q.SUBQ(Imm(termUnits), left)
	q.JMP(LabelRef(loop))
	q.Label(last)
	q.TESTQ(left, left)
	q.JZ(LabelRef(done))
	body(q.first(left))
	q.Label(done)
}

// first returns the masks of the first n of eight floats, one for each part.
func (q *quadratic) first(n gp) []reg.Register {
	if q.wide {
		bits, k := q.GP64(), q.K()
		q.MOVQ(I32(-1), bits)
		q.BZHIQ(n, bits, bits)
		q.KMOVW(bits.As32(), k)
		return []reg.Register{k}
	}
	m := q.StaticGlobal("firsts")
	q.DataAttributes(attr.RODATA | attr.NOPTR)
	for i := range 2 * termUnits {
		v := uint32(math.MaxUint32)
		if i >= termUnits {
			v = 0
		}
		q.AppendDatum(U32(v))
	}
	at, back := q.GP64(), q.GP64()
	q.LEAQ(m, at)
	q.MOVQ(n, back)
	q.SHLQ(Imm(2), back)
	q.SUBQ(back, at)
	low, high := q.XMM(), q.XMM()
	q.VMOVUPS(Mem{Base: at, Disp: 4 * termUnits}, low)
	q.VMOVUPS(Mem{Base: at, Disp: 4*termUnits + 16}, high)
	return []reg.Register{low, high}
}

// storeFloats writes a vector of float64 as float32, or under a mask its first lanes; v is lost.
func (q *quadratic) storeFloats(v vec, to Mem, mask reg.Register) {
	x := floats(v)
	if q.wide {
		q.VCVTPD2PS(v, x)
	} else {
		q.VCVTPD2PSY(v, x)
	}
	switch {
	case mask == nil:
		q.VMOVUPS(x, to)
	case q.wide:
		q.VMOVUPS(x, mask, to)
	default:
		q.VMASKMOVPS(x, mask, to)
	}
}

// value returns the values of the units of a part and their own exponents.
func (q *quadratic) value(unit vec, log Mem, plain, least vec) (v, own vec) {
	d, n, p := q.vec(), q.vec(), q.vec()
	q.VMOVUPD(log, d)
	q.VSUBPD(unit, d, d)
	if q.wide {
		q.VRNDSCALEPD(Imm(toNearest), d, n)
	} else {
		q.VROUNDPD(Imm(toNearest), d, n)
	}
	q.VSUBPD(n, d, d)
	q.VMOVUPD(q.double(exp2Terms[6]), p)
	for k := 5; k >= 0; k-- {
		q.VFMADD213PD(q.double(exp2Terms[k]), d, p)
	}
	own, by := q.vec(), q.vec()
	const atLeast = 13
	if q.wide {
		near, any, far := q.K(), q.K(), q.K()
		q.VCMPPD(Imm(atLeast), plain, n, near)
		q.VCMPPD(Imm(atLeast), least, n, any)
		q.KANDNB(any, near, far)
		q.VMOVAPD_Z(n, far, own)
		q.VMOVAPD_Z(n, near, by)
		q.VSCALEFPD_Z(by, p, any, p)
		return p, own
	}
	q.VCMPPD(Imm(atLeast), plain, n, own)
	q.VANDPD(n, own, by)
	q.VANDNPD(n, own, own)
	q.VCMPPD(Imm(atLeast), least, n, n)
	q.VANDPD(n, own, own)
	// Added to 1.5·2^52, a whole number is the low bits of the sum.
	q.VADDPD(q.double(3<<51+1023), by, by)
	q.VPSLLQ(Imm(52), by, by)
	q.VMULPD(by, p, p)
	q.VANDPD(n, p, p)
	return p, own
}

func addScaled(a *asm) {
	sum, f, fRow, t := a.param("sum"), a.param("f"), a.strideParam("fRow"), a.param("t")
	rows, width := a.param("rows"), a.param("width")
	lanes := a.lanes() / 2
	unrolled := []int{4, 1}
	columns := func(n int, mask reg.Register) {
		acc := a.vecs(n)
		for i, v := range acc {
			m := Mem{Base: sum, Disp: 8 * lanes * i}
			if mask != nil {
				a.VMOVUPD_Z(m, mask, v)
			} else {
				a.VMOVUPD(m, v)
			}
		}
		from, scale, left := a.GP64(), a.GP64(), a.GP64()
		a.MOVQ(f, from)
		a.MOVQ(t, scale)
		a.MOVQ(rows, left)
		a.times(left, func() {
			by := a.vec()
			a.VBROADCASTSD(Mem{Base: scale}, by)
			for i, v := range acc {
				x, m := a.vec(), Mem{Base: from, Disp: 4 * lanes * i}
				if mask != nil {
					a.VCVTPS2PD_Z(m, mask, x)
				} else {
					a.VCVTPS2PD(m, x)
				}
				a.VMULPD(by, x, x)
				a.VADDPD(x, v, v)
			}
			a.ADDQ(fRow, from)
			a.ADDQ(Imm(8), scale)
		})
		for i, v := range acc {
			m := Mem{Base: sum, Disp: 8 * lanes * i}
			if mask != nil {
				a.VMOVUPD(v, mask, m)
			} else {
				a.VMOVUPD(v, m)
			}
		}
	}
	for _, n := range unrolled {
		loop, done := a.label("columns"), a.label("fewer")
		a.Label(loop)
		a.CMPQ(width, Imm(uint64(n*lanes)))
		a.JLT(LabelRef(done))
		columns(n, nil)
		a.ADDQ(U32(uint32(8*lanes*n)), sum)
		a.ADDQ(U32(uint32(4*lanes*n)), f)
		a.SUBQ(Imm(uint64(n*lanes)), width)
		a.JMP(LabelRef(loop))
		a.Label(done)
	}
	if a.wide {
		done := a.label("whole")
		a.TESTQ(width, width)
		a.JZ(LabelRef(done))
		bits, k := a.GP64(), a.K()
		a.MOVQ(I32(-1), bits)
		a.BZHIQ(width, bits, bits)
		a.KMOVW(bits.As32(), k)
		columns(1, k)
		a.Label(done)
	}
	a.end()
}
