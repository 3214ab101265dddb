package main

import (
	"fmt"
	"unsafe"

	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// productArgs mirrors micro.ProductArgs.
type productArgs struct {
	Rows, Width int
	Factors     struct {
		Base     uintptr
		Len, Cap int
	}
	Out    uintptr
	OutRow int
	Shift  uintptr
	Fit    bool
	Wide   bool

	Scratch uintptr
}

// factor mirrors micro.Factor.
type factor struct {
	Base      uintptr
	Row       int
	Codes     uintptr
	WideCodes uintptr
	Exps      uintptr
}

// zeroRow is micro.ZeroRow.
const zeroRow = 1 << 31

func productRoutines(wide bool) []routine {
	return []routine{
		{"product" + suffix(wide), "(a *ProductArgs)", "is Product for one to three factors.", product},
		{"productWide" + suffix(wide), "(a *ProductArgs)", "is Product for one or more factors, with an exponent for each element.", productWide},
	}
}

// productState is what the code of a product row refers to.
type productState struct {
	*asm
	args, row, out, shift gp
	last                  gp       // last row
	rare                  []func() // code off the straight path, for end
}

func newProduct(a *asm) *productState {
	var f productArgs
	s := &productState{asm: a, args: a.param("a")}
	s.out, s.shift = a.field(s.args, unsafe.Offsetof(f.Out)), a.field(s.args, unsafe.Offsetof(f.Shift))
	s.last = a.field(s.args, unsafe.Offsetof(f.Rows))
	s.row = a.GP64()
	a.XORQ(s.row, s.row)
	a.DECQ(s.last)
	a.JLT(LabelRef("end"))
	return s
}

func (s *productState) arg(off uintptr) Mem { return Mem{Base: s.args, Disp: int(off)} }

// rows emits the loop over the rows that are left.
func (s *productState) rows(body func()) {
	loop := s.label("row")
	s.Label(loop)
	body()
	step := s.stride(s.args, unsafe.Offsetof(productArgs{}.OutRow))
	s.ADDQ(step, s.out)
	s.ADDQ(Imm(4), s.shift)
	s.INCQ(s.row)
	s.CMPQ(s.row, s.last)
	s.JLE(LabelRef(loop))
}

// end emits the end of the routine and the code that the straight path left out.
func (s *productState) end() {
	s.asm.end()
	for i := 0; i < len(s.rare); i++ { // such code may have rare code too
		s.rare[i]()
	}
}

// factors emits a walk over the factors of a row: first and rest get the address of
// the factor's row. lines cache lines of coded rows further on are prefetched. Narrow
// codes are on the straight path, which wide ones leave: few circuits have them.
func (s *productState) factors(lines int, off gp, first, rest func(at Mem)) {
	s.factorsWith(false, lines, off, func(at Mem, _ gp) { first(at) }, func(at Mem, _ gp) { rest(at) })
}

// factorsWith is factors; with exps, first and rest also get the address of the
// row's exponents, 0 where the factor has none.
func (s *productState) factorsWith(exps bool, lines int, off gp, first, rest func(at Mem, exps gp)) {
	var f factor
	p, end := s.field(s.args, unsafe.Offsetof(productArgs{}.Factors)), s.GP64()
	n := s.field(s.args, unsafe.Offsetof(productArgs{}.Factors)+8)
	s.LEAQ(Mem{Base: n, Index: n, Scale: 4}, end)
	s.LEAQ(Mem{Base: p, Index: end, Scale: 8}, end) // 40 bytes each
	at := func() (Mem, gp) {
		i, base, codes := s.GP64(), s.GP64(), s.GP64()
		uncoded, found := s.label("uncoded"), s.label("found")
		own := gp(nil)
		// read emits i := codes[row], and a prefetch of the row that codes name further on.
		read := func(load func(m, r Op), size uint8) {
			if lines > 0 {
				soon := s.GP64()
				s.LEAQ(Mem{Base: s.row, Disp: ahead}, soon)
				s.CMPQ(soon, s.last)
				s.CMOVQGT(s.last, soon)
				load(Mem{Base: codes, Index: soon, Scale: size}, soon.As32())
				s.IMULQ(Mem{Base: p, Disp: int(unsafe.Offsetof(f.Row))}, soon)
				if exps { // a prefetch from nowhere does nothing
					for l := range lines {
						s.PREFETCHT0(Mem{Base: own, Index: soon, Scale: 4, Disp: 64 * l})
					}
				}
				s.LEAQ(Mem{Base: base, Index: soon, Scale: 4}, soon)
				for l := range lines {
					s.PREFETCHT0(Mem{Base: soon, Disp: 64 * l})
				}
			}
			load(Mem{Base: codes, Index: s.row, Scale: size}, i.As32())
		}
		s.MOVQ(s.row, i)
		s.MOVQ(Mem{Base: p, Disp: int(unsafe.Offsetof(f.Base))}, base)
		if off != nil {
			s.ADDQ(off, base)
		}
		s.MOVQ(Mem{Base: p, Disp: int(unsafe.Offsetof(f.Codes))}, codes)
		if exps {
			none := s.label("none")
			own = s.GP64()
			s.MOVQ(Mem{Base: p, Disp: int(unsafe.Offsetof(f.Exps))}, own)
			if off != nil {
				s.TESTQ(own, own)
				s.JZ(LabelRef(none))
				s.ADDQ(off, own)
				s.Label(none)
			}
		}
		s.TESTQ(codes, codes)
		s.JZ(LabelRef(uncoded))
		read(s.MOVWLZX, 2)
		s.Label(found)
		s.IMULQ(Mem{Base: p, Disp: int(unsafe.Offsetof(f.Row))}, i)
		s.LEAQ(Mem{Base: base, Index: i, Scale: 4}, base)
		s.rare = append(s.rare, func() {
			s.Label(uncoded)
			s.MOVQ(Mem{Base: p, Disp: int(unsafe.Offsetof(f.WideCodes))}, codes)
			s.TESTQ(codes, codes)
			s.JZ(LabelRef(found))
			read(s.MOVL, 4)
			s.JMP(LabelRef(found))
		})
		if !exps {
			return Mem{Base: base}, nil
		}
		none := s.label("none")
		s.TESTQ(own, own)
		s.JZ(LabelRef(none))
		s.LEAQ(Mem{Base: own, Index: i, Scale: 4}, own)
		s.Label(none)
		return Mem{Base: base}, own
	}
	first(at())
	loop, done := s.label("factor"), s.label("factors")
	s.Label(loop)
	s.ADDQ(Imm(uint64(unsafe.Sizeof(f))), p)
	s.CMPQ(p, end)
	s.JGE(LabelRef(done))
	rest(at())
	s.JMP(LabelRef(loop))
	s.Label(done)
}

// multiply emits p := product of the factors' elements.
func (s *productState) multiply(p []vec, off gp, mask reg.Register) {
	lines := (len(p)*s.lanes()*4 + 63) / 64
	s.factors(lines, off,
		func(at Mem) {
			for i, v := range p {
				s.load(s.offset(at, i), v, mask)
			}
		},
		func(at Mem) {
			for i, v := range p {
				if mask != nil {
					s.VMULPS_Z(s.offset(at, i), v, mask, v)
				} else {
					s.VMULPS(s.offset(at, i), v, v)
				}
			}
		})
}

// most returns the maximum of the vectors, lane by lane; they stay.
func (s *productState) most(p []vec) vec {
	m := s.vecs(min(len(p), 2))
	for i, v := range p {
		switch {
		case len(p) == 1:
			s.VMOVAPS(v, m[0])
		case i < 2:
			if i+2 < len(p) {
				s.VMAXPS(v, p[i+2], m[i])
			} else {
				s.VMOVAPS(v, m[i])
			}
		case i >= 4:
			s.VMAXPS(v, m[i%2], m[i%2])
		}
	}
	if len(m) == 2 {
		s.VMAXPS(m[0], m[1], m[0])
	}
	return m[0]
}

// reduce folds v to the maximum of its lanes, in all four lanes of the result.
func (s *productState) reduce(v vec) vec {
	y, x, t := v, s.XMM(), s.XMM()
	if s.wide {
		y = s.YMM()
		s.VEXTRACTF64X4(Imm(1), v, y)
		s.VMAXPS(v.AsY(), y, y)
		s.VEXTRACTF32X4(Imm(1), y, x)
	} else {
		s.VEXTRACTF128(Imm(1), y, x)
	}
	s.VMAXPS(y.AsX(), x, x)
	s.VPERMILPS(Imm(0x4e), x, t)
	s.VMAXPS(t, x, x)
	s.VPERMILPS(Imm(0xb1), x, t)
	s.VMAXPS(t, x, x)
	return x
}

// consts are the vectors that fitting needs.
type fitConsts struct{ field, top, least, bias, none vec }

func (s *productState) fitConsts() fitConsts {
	x := func(v uint32) vec {
		r := s.XMM()
		s.VBROADCASTSS(s.constant(v), r)
		return r
	}
	return fitConsts{x(0x7f800000), x(0x7f000000), x(0x00400000), x(127), x(zeroRow)}
}

// fit stores the shift of a row whose maximum is m and returns 2^-shift, or 0
// where m is not normal.
func (s *productState) fit(m vec, c fitConsts) vec {
	x := s.reduce(m)
	by, e, q := s.vec(), s.XMM(), s.XMM()
	if s.wide {
		k := s.K()
		s.VPANDD(c.field, x, e)
		s.VPTESTMD(e, e, k)
		s.VPSUBD(e, c.top, q)
		s.VPMAXSD_Z(c.least, q, k, q)
		s.VPSRLD(Imm(23), e, e)
		s.VPSUBD(c.bias, e, e)
		s.VPBLENDMD(e, c.none, k, e)
		s.VPBROADCASTD(q, by)
	} else {
		k := s.XMM()
		s.VPAND(c.field, x, e)
		s.VPXOR(k, k, k)
		s.VPCMPEQD(e, k, k)
		s.VPSUBD(e, c.top, q)
		s.VPMAXSD(c.least, q, q)
		s.VPANDN(q, k, q)
		s.VPSRLD(Imm(23), e, e)
		s.VPSUBD(c.bias, e, e)
		s.VPBLENDVB(k, c.none, e, e)
		s.VBROADCASTSS(q, by)
	}
	s.VMOVD(e, Mem{Base: s.shift})
	return by
}

// given returns 2^-shift for the given shift.
func (s *productState) given() vec {
	e, by := s.GP64(), s.vec()
	s.MOVL(Mem{Base: s.shift}, e.As32())
	s.splatGP(s.scaleBits(e), by)
	return by
}

func product(a *asm) {
	var f productArgs
	s := newProduct(a)
	old := s.control(flushResults)
	c := s.fitConsts()
	width := s.field(s.args, unsafe.Offsetof(f.Width))
	s.maskOf(width)

	// Rows of one to sixteen vectors (eight with AVX2) stay in registers.
	whole := []int{1, 2, 4, 8, 16}
	if !s.wide {
		whole = whole[:4]
	}
	for _, n := range whole {
		s.CMPQ(width, U32(uint32(n*s.lanes())))
		s.JEQ(LabelRef(fmt.Sprintf("whole%d", n)))
	}

	// Any width: products go to the output row, which is scaled afterwards.
	chunk := 8
	if !s.wide {
		chunk = 4
	}
	s.rows(func() {
		m := s.vec()
		s.zero(m)
		s.columns(width, chunk, func(off gp, n int, mask reg.Register) {
			p := s.vecs(n)
			s.multiply(p, off, mask)
			for i, v := range p {
				s.VMAXPS(v, m, m)
				s.store(v, s.offset(Mem{Base: s.out, Index: off, Scale: 1}, i), mask)
			}
		})
		by := s.scale(func() vec { return m }, c)
		s.columns(width, chunk, func(off gp, n int, mask reg.Register) {
			for i := range n {
				v, at := s.vec(), s.offset(Mem{Base: s.out, Index: off, Scale: 1}, i)
				s.load(at, v, mask)
				s.VMULPS(by, v, v)
				s.store(v, at, mask)
			}
		})
	})
	s.JMP(LabelRef("restore"))

	for _, n := range whole {
		s.Label(fmt.Sprintf("whole%d", n))
		s.rows(func() {
			p := s.vecs(n)
			s.multiply(p, nil, nil)
			by := s.scale(func() vec { return s.most(p) }, c)
			for i, v := range p {
				s.VMULPS(by, v, v)
				s.VMOVUPS(v, s.offset(Mem{Base: s.out}, i))
			}
		})
		s.JMP(LabelRef("restore"))
	}
	s.Label("restore")
	s.LDMXCSR(old)
	s.Label("end")
	s.end()
}

// scale returns 2^-shift of the row, fitting the shift if the caller wants it.
func (s *productState) scale(most func() vec, c fitConsts) vec {
	given, done := s.label("given"), s.label("scale")
	by := s.vec()
	s.CMPB(s.arg(unsafe.Offsetof(productArgs{}.Fit)), Imm(0))
	s.JEQ(LabelRef(given))
	s.VMOVAPS(s.fit(most(), c), by)
	s.JMP(LabelRef(done))
	s.Label(given)
	s.VMOVAPS(s.given(), by)
	s.Label(done)
	return by
}
