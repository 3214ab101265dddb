package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// asm emits one routine for AVX-512 (wide) or AVX2 with FMA.
type asm struct {
	*build.Context
	wide   bool
	labels int
	consts map[uint32]Mem
	tail   reg.Register // mask of the last vector of a row (wide)
}

type gp = reg.GPVirtual
type vec = reg.VecVirtual

// lanes is the number of floats in a vector.
func (a *asm) lanes() int {
	if a.wide {
		return 16
	}
	return 8
}

// vec returns a new vector register.
func (a *asm) vec() vec {
	if a.wide {
		return a.ZMM()
	}
	return a.YMM()
}

// vecs returns n new vector registers.
func (a *asm) vecs(n int) []vec {
	v := make([]vec, n)
	for i := range v {
		v[i] = a.vec()
	}
	return v
}

// label returns a new label.
func (a *asm) label(what string) string {
	a.labels++
	return fmt.Sprintf("%s%d", what, a.labels)
}

// field loads the 8 bytes at off of the struct at base.
func (a *asm) field(base reg.Register, off uintptr) gp {
	r := a.GP64()
	a.MOVQ(Mem{Base: base, Disp: int(off)}, r)
	return r
}

// stride loads a row distance and turns floats into bytes.
func (a *asm) stride(base reg.Register, off uintptr) gp {
	r := a.field(base, off)
	a.SHLQ(Imm(2), r)
	return r
}

// param loads a parameter.
func (a *asm) param(name string) gp {
	r := a.GP64()
	a.Load(a.Param(name), r)
	return r
}

// strideParam loads a row distance and turns floats into bytes.
func (a *asm) strideParam(name string) gp {
	r := a.param(name)
	a.SHLQ(Imm(2), r)
	return r
}

// constant returns 32 bytes of memory that hold v eight times.
func (a *asm) constant(v uint32) Mem {
	if m, ok := a.consts[v]; ok {
		return m
	}
	m := a.StaticGlobal(fmt.Sprintf("c%08x", v))
	a.DataAttributes(attr.RODATA | attr.NOPTR)
	for range 8 {
		a.AppendDatum(U32(v))
	}
	if a.consts == nil {
		a.consts = map[uint32]Mem{}
	}
	a.consts[v] = m
	return m
}

// splat returns a vector of v.
func (a *asm) splat(v uint32) vec {
	x := a.vec()
	a.VBROADCASTSS(a.constant(v), x)
	return x
}

// zero clears v. (avo knows that VXORPS does not read v, unlike VPXORD.)
func (a *asm) zero(v vec) { a.VXORPS(v, v, v) }

// load reads a vector, or under a mask its first lanes and zeros.
func (a *asm) load(m Mem, v vec, mask reg.Register) {
	if mask != nil {
		a.VMOVUPS_Z(m, mask, v)
	} else {
		a.VMOVUPS(m, v)
	}
}

// store writes a vector, or under a mask its first lanes.
func (a *asm) store(v vec, m Mem, mask reg.Register) {
	if mask != nil {
		a.VMOVUPS(v, mask, m)
	} else {
		a.VMOVUPS(v, m)
	}
}

// offset returns m moved by n vectors.
func (a *asm) offset(m Mem, n int) Mem {
	m.Disp += n * 4 * a.lanes()
	return m
}

// maskOf sets the tail mask to the lanes of the last, partial vector of width
// floats. AVX2 routines have no tail: their callers keep to whole vectors.
func (a *asm) maskOf(width gp) {
	if !a.wide {
		return
	}
	n, bits := a.GP64(), a.GP64()
	a.MOVQ(width, n)
	a.ANDQ(Imm(15), n)
	a.MOVQ(I32(-1), bits)
	a.BZHIQ(n, bits, bits)
	k := a.K()
	a.KMOVW(bits.As32(), k)
	a.tail = k
}

// columns emits a walk over the columns of a row: body handles n vectors at
// byte offset off, the last one under mask. unroll vectors are taken at once
// while there are that many.
func (a *asm) columns(width gp, unroll int, body func(off gp, n int, mask reg.Register)) {
	off, left := a.GP64(), a.GP64()
	a.XORQ(off, off)
	a.MOVQ(width, left)
	for _, n := range []int{unroll, 1} {
		loop, done := a.label("columns"), a.label("fewer")
		a.Label(loop)
		a.CMPQ(left, Imm(uint64(n*a.lanes())))
		a.JLT(LabelRef(done))
		body(off, n, nil)
		a.ADDQ(U32(uint32(n*4*a.lanes())), off)
		a.SUBQ(Imm(uint64(n*a.lanes())), left)
		a.JMP(LabelRef(loop))
		a.Label(done)
		if unroll == 1 {
			break
		}
	}
	if a.wide {
		done := a.label("whole")
		a.TESTQ(left, left)
		a.JZ(LabelRef(done))
		body(off, 1, a.tail)
		a.Label(done)
	}
}

// times emits body n times; n counts down to 0.
func (a *asm) times(n gp, body func()) {
	loop, done := a.label("loop"), a.label("done")
	a.TESTQ(n, n)
	a.JLE(LabelRef(done))
	a.Label(loop)
	body()
	a.DECQ(n)
	a.JNZ(LabelRef(loop))
	a.Label(done)
}

// Bits of the floating-point control register.
const (
	flushResults  = 0x8000 // results below 2^-126 become 0
	denormalsZero = 0x0040 // operands below 2^-126 count as 0
)

// control sets bits of the floating-point control register and returns the
// place of the old value, for restore.
func (a *asm) control(bits uint32) Mem {
	old := a.AllocLocal(8)
	a.STMXCSR(old)
	t := a.GP32()
	a.MOVL(old, t)
	a.ORL(U32(bits), t)
	now := old
	now.Disp += 4
	a.MOVL(t, now)
	a.LDMXCSR(now)
	return old
}

// end restores the control register, if it was changed, and returns.
func (a *asm) end(old ...Mem) {
	for _, m := range old {
		a.LDMXCSR(m)
	}
	a.VZEROUPPER()
	a.RET()
}

// scaleBits returns the bits of 2^-shift: 0 for shifts above 127 and ZeroRow,
// 2^127 for shifts below -127.
func (a *asm) scaleBits(shift gp) gp {
	e, bits, other := a.GP32(), a.GP32(), a.GP32()
	a.MOVL(U32(127), e)
	a.SUBL(shift.As32(), e) // ZeroRow wraps to a negative exponent
	a.MOVL(e, bits)
	a.MOVL(U32(254), other)
	a.CMPL(bits, other)
	a.CMOVLGT(other, bits)
	a.SHLL(Imm(23), bits)
	a.MOVL(U32(0x400000), other) // 2^-127 is a denormal
	a.TESTL(e, e)
	a.CMOVLEQ(other, bits)
	a.MOVL(U32(0), other)
	a.CMOVLLT(other, bits)
	return bits
}

// splatGP fills v with the 32 bits in r.
func (a *asm) splatGP(r gp, v vec) {
	if a.wide {
		a.VPBROADCASTD(r.As32(), v)
		return
	}
	x := a.XMM()
	a.VMOVD(r.As32(), x)
	a.VBROADCASTSS(x, v)
}
