package main

import (
	"unsafe"

	. "github.com/mmcloughlin/avo/operand"
)

// Wide products with AVX2, where split takes fifteen instructions and not two. Mantissas and exponents of normal floats are
// fields of their bits; a 0 among the factors shows in the least of them, after the last one. The columns of a row from
// the first vector on in which the least is neither 0 nor a normal float are computed with split.

// productBits emits productWide for AVX2: mantissas of a row go to Out and exponents to Scratch, until the shift is known.
func productBits(a *asm) {
	var f productArgs
	s := newProduct(a)
	stored := s.stored()
	s.rows(func() {
		off, left, high := s.GP64(), s.GP64(), s.splat(0xff800000)
		slow, found := s.label("slow"), s.label("found")
		s.XORQ(off, off)
		s.MOVQ(s.arg(unsafe.Offsetof(f.Width)), left)
		for _, n := range []int{4, 2, 1} {
			chunk, fewer := s.label("chunk"), s.label("fewer")
			if n == 4 {
				s.CMPQ(stored, Imm(0))
				s.JNE(LabelRef(fewer))
			}
			s.Label(chunk)
			s.CMPQ(left, Imm(uint64(n*s.lanes())))
			s.JLT(LabelRef(fewer))
			s.fields(n, off, high, slow)
			s.ADDQ(U32(uint32(n*4*s.lanes())), off)
			s.SUBQ(Imm(uint64(n*s.lanes())), left)
			s.JMP(LabelRef(chunk))
			s.Label(fewer)
		}
		s.Label(found)
		s.fitted(func(low vec) { s.VMAXPS(high, low, low) })
		shift, live := s.shifted()
		s.MOVQ(s.arg(unsafe.Offsetof(f.Width)), left)
		s.XORQ(off, off)
		exps := s.field(s.args, unsafe.Offsetof(f.Scratch))
		scale := s.label("scale")
		s.Label(scale)
		m, e := s.vec(), s.vec()
		to := Mem{Base: s.out, Index: off, Scale: 1}
		s.VMOVUPS(to, m)
		s.VMOVUPS(Mem{Base: exps, Index: off, Scale: 1}, e)
		s.unsplit(m, e, shift, live)
		s.VMOVUPS(m, to)
		s.ADDQ(Imm(uint64(4*s.lanes())), off)
		s.SUBQ(Imm(uint64(s.lanes())), left)
		s.JNZ(LabelRef(scale))

		s.rare = append(s.rare, func() {
			s.Label(slow)
			m, e := s.vecs(1), s.vecs(1)
			s.extended(m, e, off, nil)
			s.keep(m, e, off, high)
			s.ADDQ(Imm(uint64(4*s.lanes())), off)
			s.SUBQ(Imm(uint64(s.lanes())), left)
			s.JNZ(LabelRef(slow))
			s.JMP(LabelRef(found))
		})
	})
	s.Label("end")
	s.end()
}

// stored returns a place that is not 0 if rows of a factor are not found by codes. To read two lines of each of such rows at a
// time takes half as long again as to read one.
func (s *productState) stored() Mem {
	var f factor
	p, n := s.field(s.args, unsafe.Offsetof(productArgs{}.Factors)), s.field(s.args, unsafe.Offsetof(productArgs{}.Factors)+8)
	stored, coded := s.AllocLocal(8), s.label("coded")
	s.MOVQ(U32(0), stored)
	s.times(n, func() {
		s.CMPQ(Mem{Base: p, Disp: int(unsafe.Offsetof(f.Codes))}, Imm(0))
		s.JNE(LabelRef(coded))
		s.MOVQ(U32(1), stored)
		s.Label(coded)
		s.ADDQ(Imm(uint64(unsafe.Sizeof(f))), p)
	})
	return stored
}

// fields emits n vectors of a row from byte offset off on, as mantissas and exponents, and takes these into the highest, or
// leaves for slow.
func (s *productState) fields(n int, off gp, high vec, slow string) {
	m, e, least := s.vecs(n), s.vecs(n), s.vecs(n)
	for i := range m {
		s.VMOVUPS(s.constant(0x3f800000), m[i])
		s.zero(e[i])
		s.VMOVUPS(s.constant(0x3f800000), least[i])
	}
	until := s.GP64()
	s.MOVQ(U32(renormal), until)
	// take emits m, e := mantissa of x in [1, 2), e + exponent.
	take := func(x, m, e vec) {
		up := s.vec()
		s.VPSRLD(Imm(23), x, up)
		s.VPSUBD(s.constant(127), up, up)
		s.VCVTDQ2PS(up, up)
		s.VADDPS(up, e, e)
		s.VANDPS(s.constant(0x007fffff), x, m)
		s.VORPS(s.constant(0x3f800000), m, m)
	}
	factor := func(at Mem, exps gp) {
		for i := range m {
			x := s.vec()
			s.VMOVUPS(s.offset(at, i), x)
			s.VPMINSD(x, least[i], least[i])
			take(x, x, e[i])
			s.VMULPS(x, m[i], m[i])
		}
		s.ownExponents(e, exps, nil)
		enough := s.label("fine")
		s.DECQ(until)
		s.JNZ(LabelRef(enough))
		for i := range m {
			take(m[i], m[i], e[i])
		}
		s.MOVQ(U32(renormal), until)
		s.Label(enough)
	}
	s.factorsWith(true, (n*s.lanes()*4+63)/64, off, factor, factor)

	odd, zero, bits := s.vec(), s.vec(), s.GP32()
	for i := range m {
		take(m[i], m[i], e[i])
		t := s.vec()
		s.zero(zero)
		s.VPCMPEQD(zero, least[i], zero)
		s.VBLENDVPS(zero, s.constant(0xff800000), e[i], e[i])
		s.VMOVUPS(s.constant(0x00800000), t)
		s.VPCMPGTD(least[i], t, t)
		s.VPANDN(t, zero, t)
		if i == 0 {
			s.VMOVAPS(t, odd)
		} else {
			s.VORPS(t, odd, odd)
		}
	}
	s.VMOVMSKPS(odd, bits)
	s.TESTL(bits, bits)
	s.JNZ(LabelRef(slow))
	s.keep(m, e, off, high)
}

// keep stores vectors of a row from byte offset off on, and takes their exponents into the highest.
func (s *productState) keep(m, e []vec, off gp, high vec) {
	exps := s.field(s.args, unsafe.Offsetof(productArgs{}.Scratch))
	for i := range m {
		s.VMOVUPS(m[i], s.offset(Mem{Base: s.out, Index: off, Scale: 1}, i))
		s.VMOVUPS(e[i], s.offset(Mem{Base: exps, Index: off, Scale: 1}, i))
		s.VMAXPS(e[i], high, high)
	}
}
