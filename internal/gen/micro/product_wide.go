package main

import (
	"unsafe"

	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// renormal is the number of factors after which mantissas return to [1, 2).
const renormal = 64

// split emits m and e, both floats, with x = m·2^e and m in [1, 2); e of 0 is
// -Inf. x is lost.
func (s *productState) split(x, m, e vec) {
	if s.wide {
		s.VGETEXPPS(x, e)
		s.VGETMANTPS(Imm(0), x, m)
		return
	}
	small, zero, t := s.vec(), s.vec(), s.vec()
	s.zero(zero)
	s.VCMPPS(Imm(0), zero, x, zero)
	s.VMOVUPS(s.constant(0x00800000), small)
	s.VPCMPGTD(x, small, small) // denormals grow by 2^24
	s.VMULPS(s.constant(0x4b800000), x, t)
	s.VBLENDVPS(small, t, x, x)
	s.VPSRLD(Imm(23), x, e)
	s.VCVTDQ2PS(e, e)
	s.VANDPS(s.constant(0x41c00000), small, small) // 24
	s.VSUBPS(small, e, e)
	s.VSUBPS(s.constant(0x42fe0000), e, e) // 127
	s.VMOVUPS(s.constant(0xff800000), t)
	s.VBLENDVPS(zero, t, e, e)
	s.VANDPS(s.constant(0x007fffff), x, m)
	s.VORPS(s.constant(0x3f800000), m, m)
}

// extended emits p = m·2^e, lane by lane, as the product of all factors.
func (s *productState) extended(m, e []vec, off gp, mask reg.Register) {
	n := s.GP64()
	s.MOVQ(U32(renormal), n)
	renormalise := func() {
		for i := range m {
			x, up := s.vec(), s.vec()
			s.VMOVAPS(m[i], x)
			s.split(x, m[i], up)
			s.VADDPS(up, e[i], e[i])
		}
		s.MOVQ(U32(renormal), n)
	}
	s.factorsWith(true, (len(m)*s.lanes()*4+63)/64, off,
		func(at Mem, exps gp) {
			for i := range m {
				x := s.vec()
				s.load(s.offset(at, i), x, mask)
				s.split(x, m[i], e[i])
			}
			s.ownExponents(e, exps, mask)
		},
		func(at Mem, exps gp) {
			for i := range m {
				x, y, up := s.vec(), s.vec(), s.vec()
				s.load(s.offset(at, i), x, mask)
				s.split(x, y, up)
				s.VMULPS(y, m[i], m[i])
				s.VADDPS(up, e[i], e[i])
			}
			s.ownExponents(e, exps, mask)
			enough := s.label("fine")
			s.DECQ(n)
			s.JNZ(LabelRef(enough))
			renormalise()
			s.Label(enough)
		})
	renormalise()
}

// ownExponents emits e += the exponents of a factor's row at exps, if that is not 0.
func (s *productState) ownExponents(e []vec, exps gp, mask reg.Register) {
	none := s.label("alike")
	s.TESTQ(exps, exps)
	s.JZ(LabelRef(none))
	for i, v := range e {
		to := s.offset(Mem{Base: exps}, i)
		if mask != nil {
			s.VADDPS_Z(to, v, mask, v)
		} else {
			s.VADDPS(to, v, v)
		}
	}
	s.Label(none)
}

// unsplit emits m := m·2^(e-shift), 0 where live is not set.
func (s *productState) unsplit(m, e, shift vec, live reg.Register) {
	s.VSUBPS(shift, e, e)
	if s.wide {
		s.VSCALEFPS_Z(e, m, live, m)
		return
	}
	s.VMAXPS(s.constant(0xc2fe0000), e, e) // -127: 2^-127 is taken as 0
	s.VMINPS(s.constant(0x43000000), e, e) // 128: 2^128 is infinite
	s.VADDPS(s.constant(0x42fe0000), e, e)
	s.VCVTPS2DQ(e, e)
	s.VPSLLD(Imm(23), e, e)
	s.VMULPS(e, m, m)
	s.VANDPS(live.(vec), m, m)
}

func productWide(a *asm) {
	if !a.wide {
		productBits(a)
		return
	}
	const chunk = 8
	whole := []int{1, 2, 4, 8}
	var f productArgs
	s := newProduct(a)
	width := s.field(s.args, unsafe.Offsetof(f.Width))
	s.maskOf(width)
	names := map[int]string{}
	for _, n := range whole {
		names[n] = s.label("whole")
		s.CMPQ(width, U32(uint32(n*s.lanes())))
		s.JEQ(LabelRef(names[n]))
	}

	// Any width: one pass for the maximum, one for the result.
	s.rows(func() {
		s.fitted(func(low vec) {
			s.columns(width, chunk, func(off gp, n int, mask reg.Register) {
				m, e := s.vecs(n), s.vecs(n)
				s.extended(m, e, off, mask)
				for _, v := range e {
					s.higher(v, low, mask)
				}
			})
		})
		shift, live := s.shifted()
		s.columns(width, chunk, func(off gp, n int, mask reg.Register) {
			m, e := s.vecs(n), s.vecs(n)
			s.extended(m, e, off, mask)
			for i := range m {
				s.unsplit(m[i], e[i], shift, live)
				s.store(m[i], s.offset(Mem{Base: s.out, Index: off, Scale: 1}, i), mask)
			}
		})
	})
	s.JMP(LabelRef("end"))

	for _, n := range whole {
		s.Label(names[n])
		s.rows(func() {
			m, e := s.vecs(n), s.vecs(n)
			s.extended(m, e, nil, nil)
			s.fitted(func(low vec) {
				for _, v := range e {
					s.higher(v, low, nil)
				}
			})
			shift, live := s.shifted()
			for i := range m {
				s.unsplit(m[i], e[i], shift, live)
				s.store(m[i], s.offset(Mem{Base: s.out}, i), nil)
			}
		})
		s.JMP(LabelRef("end"))
	}
	s.Label("end")
	s.end()
}

// higher emits high := max(high, e), under a mask.
func (s *productState) higher(e, high vec, mask reg.Register) {
	if mask != nil {
		s.VMAXPS(e, high, mask, high)
	} else {
		s.VMAXPS(e, high, high)
	}
}

// fitted emits, if the caller wants the shift, the shift of the row: walk
// takes the maximum of the exponents.
func (s *productState) fitted(walk func(high vec)) {
	given := s.label("given")
	s.CMPB(s.arg(unsafe.Offsetof(productArgs{}.Fit)), Imm(0))
	s.JEQ(LabelRef(given))
	high := s.splat(0xff800000)
	walk(high)
	x := s.reduce(high)
	s.VCVTPS2DQ(x, x) // -Inf becomes ZeroRow
	s.VMOVD(x, Mem{Base: s.shift})
	s.Label(given)
}

// shifted returns the row's shift as float and the lanes that live: all, or
// none for ZeroRow.
func (s *productState) shifted() (vec, reg.Register) {
	e, shift := s.GP64(), s.vec()
	s.MOVL(Mem{Base: s.shift}, e.As32())
	s.splatGP(e, shift)
	if s.wide {
		k, none := s.K(), s.splat(zeroRow)
		s.VPCMPD(Imm(4), none, shift, k)
		s.VCVTDQ2PS(shift, shift)
		return shift, k
	}
	live := s.vec()
	s.VCVTDQ2PS(shift, shift)
	s.VMOVUPS(s.constant(0xcf000000), live) // -2^31
	s.VCMPPS(Imm(4), live, shift, live)
	return shift, live
}
