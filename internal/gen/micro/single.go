package main

import (
	"unsafe"

	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// singleArgs mirrors micro.SingleArgs.
type singleArgs struct {
	Tape, Starts           uintptr
	Groups                 int
	Values, Flows          uintptr
	Tables, Codes, Weights uintptr
	Counts, Scratch        uintptr
	Far                    bool
}

func singleRoutines(wide bool) []routine {
	list := []routine{
		{"singleForward", "(a *SingleArgs)", "is SingleSet.Forward.", singleForward},
		{"singleBackward", "(a *SingleArgs)", "is SingleSet.Backward.", singleBackward},
	}
	for i := range list {
		list[i].name += suffix(wide)
	}
	return list
}

// singleVectors is how many vectors the rows of a call fill.
func singleVectors(wide bool) int {
	if wide {
		return 2
	}
	return 1
}

// The bits of micro's leastExponent and lostTerm.
const (
	leastBits    = lostBits + 256
	lostTermBits = lostBits - 256
)

// single emits kernels of single units.
type single struct {
	*asm
	args, tape gp
	n          int // vectors of a run of rows
	zero       vec
}

func newSingle(a *asm) *single {
	s := &single{asm: a, args: a.param("a"), tape: a.GP64(), n: singleVectors(a.wide), zero: a.vec()}
	a.zero(s.zero)
	return s
}

// run is the bytes of a run of rows.
func (s *single) run() int { return 4 * s.n * s.lanes() }

func (s *single) base(off uintptr) gp { return s.field(s.args, off) }

// next reads the next word of the tape.
func (s *single) next() gp {
	r := s.GP64()
	s.MOVLQSX(Mem{Base: s.tape}, r)
	s.ADDQ(Imm(4), s.tape)
	return r
}

// begin goes to a group of the tape.
func (s *single) begin(starts gp) {
	var f singleArgs
	at := s.GP64()
	s.MOVLQSX(Mem{Base: starts}, at)
	s.MOVQ(s.base(unsafe.Offsetof(f.Tape)), s.tape)
	s.LEAQ(Mem{Base: s.tape, Index: at, Scale: 4}, s.tape)
}

// at returns m moved by t vectors past some runs.
func (s *single) at(m Mem, runs, t int) Mem {
	m.Disp += runs * s.run()
	return s.offset(m, t)
}

// copied returns a copy of a counter.
func (s *single) copied(n gp) gp {
	c := s.GP64()
	s.MOVQ(n, c)
	return c
}

// operands multiplies the factors of a group's n operands. On the way down the flows into
// them become 0.
func (s *single) operands(n gp, down bool) {
	var f singleArgs
	far, done := s.label("far"), s.label("operands")
	s.CMPB(Mem{Base: s.args, Disp: int(unsafe.Offsetof(f.Far))}, Imm(0))
	s.JNE(LabelRef(far))
	s.operandsOf(n, down, false)
	s.JMP(LabelRef(done))
	s.Label(far)
	s.operandsOf(n, down, true)
	s.Label(done)
}

// operandsOf is operands, with exponents that may be far from 0 or are not.
func (s *single) operandsOf(n gp, down, far bool) {
	var f singleArgs
	out := s.base(unsafe.Offsetof(f.Scratch))
	one, lost, most := s.splat(0x3f800000), s.splat(lostBits), s.splat(mostBits)
	s.times(s.copied(n), func() {
		leaves, nodes := s.next(), s.next()
		m, e := s.vecs(s.n), s.vecs(s.n)
		for t := range m {
			s.VMOVAPS(one, m[t])
			s.asm.zero(e[t])
		}
		tables, codes := s.base(unsafe.Offsetof(f.Tables)), s.base(unsafe.Offsetof(f.Codes))
		s.times(leaves, func() {
			table, code := s.next(), s.next()
			s.ADDQ(Imm(8), s.tape)
			tm, te := s.vec(), s.vec()
			s.broadcast4(Mem{Base: tables, Index: table, Scale: 4}, tm)
			s.broadcast4(Mem{Base: tables, Index: table, Scale: 4, Disp: 16}, te)
			for t := range m {
				c, x, y := s.vec(), s.vec(), s.vec()
				s.VMOVUPS(s.at(Mem{Base: codes, Index: code, Scale: 4}, 0, t), c)
				s.VPERMILPS(c, tm, x)
				s.VMULPS(x, m[t], m[t])
				s.VPERMILPS(c, te, y)
				s.VPADDD(y, e[t], e[t])
			}
		})
		values := s.base(unsafe.Offsetof(f.Values))
		s.times(nodes, func() {
			at := s.next()
			for t := range m {
				s.VMULPS(s.at(Mem{Base: values, Index: at, Scale: 4}, 0, t), m[t], m[t])
				exps := s.at(Mem{Base: values, Index: at, Scale: 4}, 1, t)
				if !far {
					s.VPADDD(exps, e[t], e[t])
					continue
				}
				y, sum := s.vec(), s.vec()
				s.VMOVUPS(exps, y)
				s.VPSUBD(y, lost, sum)
				s.VPMAXSD(e[t], sum, sum)
				s.VPADDD(y, sum, sum)
				s.VPMINSD(most, sum, sum)
				s.VPMINSD(e[t], y, y)
				if s.wide {
					k := s.K()
					s.VPCMPEQD(lost, y, k)
					s.VPBLENDMD(lost, sum, k, e[t])
				} else {
					s.VPCMPEQD(lost, y, y)
					s.VPBLENDVB(y, lost, sum, e[t])
				}
			}
		})
		for t := range m {
			if far {
				s.keepWhere(s.above(e[t]), m[t])
			}
			s.VMOVUPS(m[t], s.at(Mem{Base: out}, 0, t))
			s.VMOVUPS(e[t], s.at(Mem{Base: out}, 1, t))
			if down {
				s.VMOVUPS(s.zero, s.at(Mem{Base: out}, 2, t))
			}
		}
		s.ADDQ(U32(uint32(3*s.run())), out)
	})
}

// broadcast4 reads four words into each quarter of a vector.
func (s *single) broadcast4(m Mem, v vec) {
	if s.wide {
		s.VBROADCASTF32X4(m, v)
	} else {
		s.VBROADCASTF128(m, v)
	}
}

// above returns the mask of lanes whose exponent is micro's leastExponent or more.
func (s *single) above(e vec) reg.Register {
	limit := s.splat(leastBits - 1)
	if s.wide {
		k := s.K()
		s.VPCMPGTD(limit, e, k)
		return k
	}
	k := s.vec()
	s.VPCMPGTD(limit, e, k)
	return k
}

// nonzero returns the mask of lanes that are not 0.
func (s *single) nonzero(x vec) reg.Register {
	if s.wide {
		k := s.K()
		s.VCMPPS(Imm(4), s.zero, x, k)
		return k
	}
	k := s.vec()
	s.VCMPPS(Imm(4), s.zero, x, k)
	return k
}

// keepWhere clears the lanes of x that are not in a mask.
func (s *single) keepWhere(k reg.Register, x vec) {
	if s.wide {
		s.VMOVAPS_Z(x, k, x)
	} else {
		s.VANDPS(k, x, x)
	}
}

// scale emits x := x·2^d for x of 0 or about 1; d is lost.
func (s *single) scale(x, d vec) {
	if s.wide {
		s.VCVTDQ2PS(d, d)
		s.VSCALEFPS(d, x, x)
		return
	}
	s.VPMAXSD(s.constant(0xffffff81), d, d) // -127: 2^-127 is taken as 0
	s.VPMINSD(s.constant(127), d, d)
	s.VPADDD(s.constant(127), d, d)
	s.VPSLLD(Imm(23), d, d)
	s.VMULPS(d, x, x)
}

// term is an operand of a sum with its weight.
type term struct {
	operand Mem
	wm, we  vec
}

// term loads the weight of an operand.
func (s *single) term(operand, weight Mem) term {
	t := term{operand, s.vec(), s.vec()}
	s.VBROADCASTSS(weight, t.wm)
	weight.Disp += 4
	s.VPBROADCASTD(weight, t.we)
	return t
}

// product emits, for vector t of a term, q = m·w and d, the exponent of m and that of w.
func (s *single) product(x term, t int) (q, d vec) {
	q, d = s.vec(), s.vec()
	s.VMULPS(s.at(x.operand, 0, t), x.wm, q)
	s.VPADDD(s.at(x.operand, 1, t), x.we, d)
	return q, d
}

// terms calls body for each of a group's n operands, with its weight.
func (s *single) terms(n, weights gp, body func(x term)) {
	next := s.walk(weights)
	s.times(s.copied(n), func() { next(body) })
}

// walk returns what calls body for the next operand of a group, with its weight.
func (s *single) walk(weights gp) (next func(body func(x term))) {
	var f singleArgs
	operand, w := s.base(unsafe.Offsetof(f.Scratch)), s.copied(weights)
	return func(body func(x term)) {
		body(s.term(Mem{Base: operand}, Mem{Base: w}))
		s.ADDQ(U32(uint32(3*s.run())), operand)
		s.ADDQ(Imm(8), w)
	}
}

// two returns the terms of a group of two operands.
func (s *single) two(weights gp) (a, b term) {
	var f singleArgs
	operand := s.base(unsafe.Offsetof(f.Scratch))
	a = s.term(Mem{Base: operand}, Mem{Base: weights})
	return a, s.term(Mem{Base: operand, Disp: 3 * s.run()}, Mem{Base: weights, Disp: 8})
}

// ifTwo emits both where n is 2, which it most often is, and else other.
func (s *single) ifTwo(n gp, both, other func()) {
	not, done := s.label("other"), s.label("done")
	s.CMPQ(n, Imm(2))
	s.JNE(LabelRef(not))
	both()
	s.JMP(LabelRef(done))
	s.Label(not)
	other()
	s.Label(done)
}

// place returns the address of word i of an array.
func (s *single) place(off uintptr, i gp) gp {
	p := s.base(off)
	s.LEAQ(Mem{Base: p, Index: i, Scale: 4}, p)
	return p
}

func singleForward(a *asm) {
	var f singleArgs
	s := newSingle(a)
	old := a.control(flushResults | denormalsZero)
	s.begin(s.base(unsafe.Offsetof(f.Starts)))
	s.times(s.base(unsafe.Offsetof(f.Groups)), func() {
		n, sums := s.next(), s.next()
		s.operands(n, false)
		s.times(sums, func() {
			to, weights := s.place(unsafe.Offsetof(f.Values), s.next()), s.place(unsafe.Offsetof(f.Weights), s.next())
			s.ADDQ(Imm(4), s.tape)
			s.sum(n, to, weights)
		})
	})
	a.end(old)
}

func singleBackward(a *asm) {
	var f singleArgs
	s := newSingle(a)
	old := a.control(flushResults | denormalsZero)
	group, starts := s.base(unsafe.Offsetof(f.Groups)), s.base(unsafe.Offsetof(f.Starts))
	s.LEAQ(Mem{Base: starts, Index: group, Scale: 4}, starts)
	s.times(group, func() {
		s.SUBQ(Imm(4), starts)
		s.begin(starts)
		n, sums := s.next(), s.next()
		s.operands(n, true)
		s.times(sums, func() { s.sumFlows(n) })
		s.begin(starts)
		s.ADDQ(Imm(8), s.tape)
		s.flowsDown(n)
	})
	a.end(old)
}

// sumFlows divides the flow into the next sum of the tape among its n operands.
func (s *single) sumFlows(n gp) {
	var f singleArgs
	at := s.next()
	value := s.place(unsafe.Offsetof(f.Values), at)
	flow := s.flow(at)
	weights, count := s.place(unsafe.Offsetof(f.Weights), s.next()), s.place(unsafe.Offsetof(f.Counts), s.next())
	ratio, e := s.vecs(s.n), s.vecs(s.n)
	for t := range ratio {
		m := s.vec()
		s.VMOVUPS(s.at(Mem{Base: value}, 0, t), m)
		s.VMOVUPS(s.at(Mem{Base: value}, 1, t), e[t])
		s.VMOVUPS(s.at(Mem{Base: flow}, 0, t), ratio[t])
		s.VMOVUPS(s.zero, s.at(Mem{Base: flow}, 0, t))
		k := s.nonzero(m)
		if s.wide {
			s.VDIVPS_Z(m, ratio[t], k, ratio[t])
		} else {
			s.VDIVPS(m, ratio[t], ratio[t])
			s.VANDPS(k, ratio[t], ratio[t])
		}
	}
	// share returns the flow into an operand, added up over vectors.
	share := func(x term) (total vec) {
		for t := range ratio {
			q, d := s.product(x, t)
			s.VMULPS(ratio[t], q, q)
			s.VPSUBD(e[t], d, d)
			s.scale(q, d)
			into, sum := s.at(x.operand, 2, t), s.vec()
			s.VADDPS(into, q, sum)
			s.VMOVUPS(sum, into)
			total = s.joined(total, q, t)
		}
		return total
	}
	s.ifTwo(n, func() {
		a, b := s.two(weights)
		s.countTwo(share(a), share(b), Mem{Base: count})
	}, func() {
		s.terms(n, weights, func(x term) {
			s.count(share(x), Mem{Base: count})
			s.ADDQ(Imm(4), count)
		})
	})
}

// joined adds vector t to a total, which the first one is.
func (s *single) joined(total, x vec, t int) vec {
	if t == 0 {
		return x
	}
	s.VADDPS(x, total, total)
	return total
}

// flow returns the address of the flows into the vector at a place.
func (s *single) flow(at gp) gp {
	var f singleArgs
	p := s.base(unsafe.Offsetof(f.Flows))
	s.LEAQ(Mem{Base: p, Index: at, Scale: 2}, p)
	return p
}

// count adds the lanes of a vector, which is lost, to a float in memory.
func (s *single) count(v vec, to Mem) {
	x, high := s.folded(v), s.XMM()
	s.VMOVHLPS(x, x, high)
	s.VADDPS(high, x, x)
	s.VMOVSHDUP(x, high)
	s.VADDSS(high, x, x)
	s.VADDSS(to, x, x)
	s.VMOVSS(x, to)
}

// countTwo adds the lanes of two vectors, which are lost, to two floats in memory.
func (s *single) countTwo(v, w vec, to Mem) {
	low := s.vec()
	s.VUNPCKLPS(w, v, low)
	s.VUNPCKHPS(w, v, v)
	s.VADDPS(low, v, v)
	x, high := s.folded(v), s.XMM()
	s.VMOVHLPS(x, x, high)
	s.VADDPS(high, x, x)
	s.VMOVSD(to, high)
	s.VADDPS(high, x, x)
	s.VMOVSD(x, to)
}

// folded adds the quarters of a vector, which is lost.
func (s *single) folded(v vec) reg.VecVirtual {
	y := v.AsY()
	if s.wide {
		high := s.YMM()
		s.VEXTRACTF64X4(Imm(1), v, high)
		s.VADDPS(high, y, y)
	}
	x, high := v.AsX(), s.XMM()
	s.VEXTRACTF128(Imm(1), y, high)
	s.VADDPS(high, x, x)
	return x.(reg.VecVirtual)
}

// flowsDown hands the flows into a group's n operands to their factors.
func (s *single) flowsDown(n gp) {
	var f singleArgs
	operand := s.base(unsafe.Offsetof(f.Scratch))
	codes := s.base(unsafe.Offsetof(f.Codes))
	ones := s.splat(1)
	s.times(s.copied(n), func() {
		leaves, nodes := s.next(), s.next()
		flow := s.vecs(s.n)
		for t := range flow {
			s.VMOVUPS(s.at(Mem{Base: operand}, 2, t), flow[t])
		}
		s.times(leaves, func() {
			s.ADDQ(Imm(4), s.tape)
			code, seen := s.next(), s.next()
			count := s.place(unsafe.Offsetof(f.Counts), s.next())
			column := s.GP64()
			s.LEAQ(Mem{Base: codes, Index: code, Scale: 4}, column)
			// of returns the flow of rows that have a code, added up over vectors.
			of := func(which vec) (total vec) {
				for t := range flow {
					x := s.vec()
					if s.wide {
						k := s.K()
						s.VPCMPEQD(s.at(Mem{Base: column}, 0, t), which, k)
						s.VMOVAPS_Z(flow[t], k, x)
					} else {
						s.VPCMPEQD(s.at(Mem{Base: column}, 0, t), which, x)
						s.VANDPS(flow[t], x, x)
					}
					total = s.joined(total, x, t)
				}
				return total
			}
			s.ifTwo(seen, func() {
				s.countTwo(of(s.zero), of(ones), Mem{Base: count})
			}, func() {
				which := s.vec()
				s.asm.zero(which)
				s.times(seen, func() {
					s.count(of(which), Mem{Base: count})
					s.ADDQ(Imm(4), count)
					s.VPADDD(ones, which, which)
				})
			})
		})
		s.times(nodes, func() {
			to := s.flow(s.next())
			for t := range flow {
				x, m := s.vec(), s.at(Mem{Base: to}, 0, t)
				s.VADDPS(m, flow[t], x)
				s.VMOVUPS(x, m)
			}
		})
		s.ADDQ(U32(uint32(3*s.run())), operand)
	})
}
