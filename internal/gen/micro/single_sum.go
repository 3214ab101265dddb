package main

import . "github.com/mmcloughlin/avo/operand"

// singleBatch is that of package micro.
const singleBatch = 64

// sum emits a sum of n operands.
func (s *single) sum(n, to, weights gp) {
	top, sum := s.vecs(s.n), s.vecs(s.n)
	none := s.splat(lostTermBits)
	for t := range top {
		s.VMOVAPS(none, top[t])
		s.asm.zero(sum[t])
	}
	raise := func(t int, q, d vec) {
		if k := s.nonzero(q); s.wide {
			s.VPMAXSD(d, top[t], k, top[t])
		} else {
			x := s.vec()
			s.VBLENDVPS(k, d, none, x)
			s.VPMAXSD(x, top[t], top[t])
		}
	}
	add := func(t int, q, d, sum vec) {
		s.VPSUBD(top[t], d, d)
		s.scale(q, d)
		s.VADDPS(q, sum, sum)
	}
	s.ifTwo(n, func() {
		a, b := s.two(weights)
		for t := range top {
			q, d := s.product(a, t)
			p, e := s.product(b, t)
			raise(t, q, d)
			raise(t, p, e)
			add(t, q, d, sum[t])
			add(t, p, e, sum[t])
		}
	}, func() {
		s.terms(n, weights, func(x term) {
			for t := range top {
				q, d := s.product(x, t)
				raise(t, q, d)
			}
		})
		s.batches(n, weights, sum, func(x term, sum []vec) {
			for t := range sum {
				q, d := s.product(x, t)
				add(t, q, d, sum[t])
			}
		})
	})
	for t := range top {
		k, e := s.nonzero(sum[t]), s.vec()
		s.VPSRLD(Imm(23), sum[t], e)
		s.VPSUBD(s.splat(127), e, e)
		s.VPADDD(e, top[t], e)
		s.VPMAXSD(s.splat(lostBits), e, e)
		s.VPMINSD(s.splat(mostBits), e, e)
		s.VANDPS(s.splat(0x007fffff), sum[t], sum[t])
		s.VORPS(s.splat(0x3f800000), sum[t], sum[t])
		s.keepWhere(k, sum[t])
		s.keepWhere(k, e)
		s.VMOVUPS(sum[t], s.at(Mem{Base: to}, 0, t))
		s.VMOVUPS(e, s.at(Mem{Base: to}, 1, t))
	}
}

// batches adds up n operands: the first batch to sum, the sum of each other one compensated.
func (s *single) batches(n, weights gp, sum []vec, add func(x term, sum []vec)) {
	next, left, k := s.walk(weights), s.copied(n), s.GP64()
	batch := func(sum []vec) {
		few := s.label("few")
		s.MOVQ(left, k)
		s.CMPQ(k, Imm(singleBatch))
		s.JLE(LabelRef(few))
		s.MOVQ(U32(singleBatch), k)
		s.Label(few)
		s.SUBQ(k, left)
		s.times(k, func() { next(func(x term) { add(x, sum) }) })
	}
	again, done := s.label("batch"), s.label("done")
	batch(sum)
	s.TESTQ(left, left)
	s.JZ(LabelRef(done))
	part, lost := s.vecs(s.n), s.vecs(s.n)
	for t := range lost {
		s.asm.zero(lost[t])
	}
	s.Label(again)
	for t := range part {
		s.asm.zero(part[t])
	}
	batch(part)
	for t := range sum {
		s.compensated(sum[t], part[t], lost[t])
	}
	s.TESTQ(left, left)
	s.JNZ(LabelRef(again))
	s.Label(done)
}

// compensated adds x, which is lost, to a sum and keeps what rounding adds to it.
func (s *single) compensated(sum, x, lost vec) {
	old := s.vec()
	s.VMOVAPS(sum, old)
	s.VSUBPS(lost, x, x)
	s.VADDPS(x, sum, sum)
	s.VSUBPS(old, sum, lost)
	s.VSUBPS(x, lost, lost)
}
