package tensor

import (
	"math"

	"github.com/pce-engine/pce/kernels/ptx"
)

// Samples are drawn by two kernels, after a forward pass. The first takes each row
// down from the root, a row in a block of threads, level by level; the vectors of a
// level are the warps' in turn. The second draws codes, an input and a run of rows in
// a block: these read one table, which stays in the cache next to the threads, where
// rows of all inputs side by side would fetch a sector of memory for every code.
//
// The first must read, for a row and a sum of K operands in m factors, 4·K·(1+m)
// bytes, of which the weights are mostly in the cache of the card; the second must
// read every table once. An HCLT of 784 variables, 64 units and 256 codes has 0.3 GB
// and 0.05 GB of that for 512 rows. More counts that a level waits for about six loads
// one after the other, and for more where K passes 32: some microseconds for each level.

// sampleThreads is the number of threads of a block of the kernels that draw.
const sampleThreads = 256

// SampleRows is the number of rows that a block of KernelSampleLeaf does.
const SampleRows = 64

// The numbers of SplitMix64, as package kernels defines draws.
const (
	drawStep = 0x9e3779b97f4a7c15
	mixFirst = 0xbf58476d1ce4e5b9
	mixLast  = 0x94d049bb133111eb
)

// mix is the output function of SplitMix64, of a U64.
func (k *kernel) mix(z ptx.Value) ptx.Value {
	z = k.Mul(k.Xor(z, k.Shr(z, 30)), uint64(mixFirst))
	z = k.Mul(k.Xor(z, k.Shr(z, 27)), uint64(mixLast))
	return k.Xor(z, k.Shr(z, 31))
}

// sampler draws in the rows of a launch. Its values are a warp's.
type sampler struct {
	*kernel
	lane, warp ptx.Value // U32
	row        ptx.Value // U32
	draws      ptx.Value // U64: the numbers of the row
}

func (v Variant) sampler(name string, args ...string) *sampler {
	k := v.begin(name, sampleThreads, 4, args...)
	s := &sampler{kernel: k, lane: k.Special("%laneid")}
	s.warp = k.Shr(k.Special("%tid.x"), 5)
	return s
}

// turn goes to a row.
func (s *sampler) turn(row ptx.Value) {
	s.row = row
	if s.most {
		return
	}
	first := s.control(ptx.U64, ControlDraws)
	s.draws = s.mix(s.Mad(s.Cvt(ptx.U64, row), uint64(drawStep), first))
}

// uniform returns the number of a vector, F64.
func (s *sampler) uniform(vector ptx.Value) ptx.Value {
	bits := s.mix(s.Mad(s.Cvt(ptx.U64, s.Add(vector, 1)), uint64(drawStep), s.draws))
	return s.Mul(s.Cvt(ptx.F64, s.Shr(bits, 12), "rn"), 0x1p-52)
}

// takenAt is the address of what the row takes of a vector whose first number in
// taken is given.
func (s *sampler) takenAt(first ptx.Value) ptx.Value {
	return s.At(s.arg(ArgTaken), s.Add(first, s.row), 4)
}

// sample takes each row from the root down to its inputs.
func (v Variant) sample() *ptx.Kernel {
	s := v.sampler(KernelSample, ArgControl, ArgParams, ArgCodes, ArgVal, ArgExp, ArgBad, ArgTaken,
		ArgFactors, ArgElements, ArgSums, ArgGroups, ArgSteps, ArgList)
	row := s.Special("%ctaid.x")
	s.ReturnIf(s.Ge(row, s.control(ptx.U32, ControlRows)))
	s.turn(row)
	d := &descent{sampler: s}
	d.marked = s.Ne(s.Load(ptx.U32, s.At(s.arg(ArgBad), row, 4), 0), 0)
	levels := s.Load(ptx.U32, s.arg(ArgList), 0)
	s.Guard(s.Eq(s.Special("%tid.x"), 0), func() { d.enter(s.Add(levels, 1)) }) // which looks at the root, too
	s.For(ptx.U32, 1, s.Add(levels, 1), 1, func(l ptx.Value) {
		d.level(s.LoadN(ptx.U32, 2, d.pair(l), 0))
		s.Sync()
	})
	return s.Kernel()
}

// descent is a sampler that goes down from the root.
type descent struct {
	*sampler
	marked ptx.Value // Pred: the row's values are logs
	// Of the sum at hand: the first of its steps, the weights of the unit in an edge
	// block 0, and the exponent that terms are relative to.
	step, weights, exp ptx.Value
}

// pair is the address of pair i of the list.
func (d *descent) pair(i ptx.Value) ptx.Value { return d.At(d.arg(ArgList), i, 8) }

// sum is the address of the record of pair i, a sum or a stored product.
func (d *descent) sum(i ptx.Value) ptx.Value {
	return d.record(ArgSums, d.Load(ptx.U32, d.pair(i), 0), SumSize)
}

// value is the address of the row's first value of a sum.
func (d *descent) value(sum ptx.Value) ptx.Value {
	return d.element(ArgVal, d.MadWide(d.row, d.Load(ptx.U32, sum, SumWidth), d.Load(ptx.U64, sum, SumVal)))
}

// enter takes unit 0 of the root, entry i, unless the row is impossible. It may not branch.
func (d *descent) enter(i ptx.Value) {
	sum := d.sum(i)
	taken := d.Select(d.possible(sum, d.row), d.Mov(ptx.U32, 1), 0)
	d.Store(ptx.U32, d.takenAt(d.Load(ptx.U32, sum, SumTaken)), 0, taken)
}

// level goes through the vectors of a level, each of which the warps look at 32 at a
// time: warp w at the entries w, w+8, w+16, ... of these.
func (d *descent) level(span []ptx.Value) {
	const warps = sampleThreads / 32
	d.For(ptx.U32, d.Add(span[0], d.warp), span[1], sampleThreads, func(base ptx.Value) {
		i := d.Mad(d.lane, warps, base)
		taken := d.Mov(ptx.U32, 0)
		d.If(d.Lt(i, span[1]), func() {
			d.Into(taken).Load(ptx.U32, d.takenAt(d.Load(ptx.U32, d.sum(i), SumTaken)), 0)
		})
		left := d.Mov(ptx.U32, d.Ballot(d.Ne(taken, 0)))
		d.While(func() ptx.Value { return d.Ne(left, 0) }, func() {
			first := d.lowest(left)
			d.Into(left).And(left, d.Sub(left, 1))
			unit := d.Sub(d.Shuffle("idx", taken, first), 1)
			d.vector(d.Mad(first, warps, base), unit)
		})
	})
}

// lowest returns the place of the lowest bit of a U32 that is not 0.
func (k *kernel) lowest(x ptx.Value) ptx.Value { return k.Popc(k.And(k.Not(x), k.Sub(x, 1))) }

// vector hands what the row takes of entry i down: of a sum an operand that is drawn,
// of a stored product the unit.
func (d *descent) vector(i, unit ptx.Value) {
	sum := d.sum(i)
	element, column := d.Load(ptx.U32, sum, SumElement), d.Mov(ptx.U32, unit)
	d.If(d.Ne(d.Load(ptx.U32, sum, SumGroups), 0), func() {
		steps := d.open(sum, unit)
		pick := d.choose(i, steps)
		step := d.record(ArgSteps, d.Add(d.step, d.Div(pick, d.Block)), StepSize)
		d.Into(element).Load(ptx.U32, step, StepElement)
		d.Into(column).Add(d.Load(ptx.U32, step, StepColumn), d.Rem(pick, d.Block))
	})
	record := d.record(ArgElements, element, ElementSize)
	span := d.LoadN(ptx.U32, 2, record, ElementFactor)
	took := d.Add(column, 1)
	d.For(ptx.U32, d.Add(span[0], d.lane), d.Add(span[0], span[1]), 32, func(f ptx.Value) {
		first := d.Load(ptx.U32, d.record(ArgFactors, f, FactorSize), FactorTaken)
		d.Store(ptx.U32, d.takenAt(first), 0, took)
	})
}

// choose returns which operand of the sum at hand, entry i, the row takes of those in its steps.
func (d *descent) choose(i, steps ptx.Value) ptx.Value {
	if d.most {
		return d.largest(d.Mul(steps, d.Block), d.term)
	}
	uniform := d.uniform(d.Load(ptx.U32, d.pair(i), 4))
	return d.draw(uniform, d.Mul(steps, d.Block), d.term)
}

// open turns to a unit of a sum and returns the number of its steps.
func (d *descent) open(sum, unit ptx.Value) (steps ptx.Value) {
	s := d.Block
	group, holds := d.Load(ptx.U32, sum, SumGroup), d.Mov(ptx.U32, 0)
	last := d.Sub(d.Add(group, d.Load(ptx.U32, sum, SumGroups)), 1)
	d.While(func() ptx.Value { return d.Eq(holds, 0) }, func() {
		record := d.record(ArgGroups, d.Min(d.Add(group, d.lane), last), GroupSize)
		inside := d.Sub(unit, d.Load(ptx.U32, record, GroupRow))
		d.Set(holds, d.Ballot(d.Lt(inside, d.Mul(d.Load(ptx.U32, record, GroupBlocks), s))))
		d.Into(group).Add(group, 32)
	})
	record := d.record(ArgGroups, d.Add(d.Sub(group, 32), d.lowest(holds)), GroupSize)
	d.step = d.Load(ptx.U32, record, GroupStep)
	d.weights = d.At(d.arg(ArgParams), d.Mul(d.Sub(unit, d.Load(ptx.U32, record, GroupRow)), s), 4)
	d.exp = d.Load(ptx.S32, d.At(d.arg(ArgExp), d.Add(d.Load(ptx.U32, sum, SumExp), d.row), 4), 0)
	// In a marked row the log of the unit, whose terms may lie far below the row's
	// largest; else a mantissa, below 2.
	value := d.Load(ptx.F32, d.At(d.value(sum), unit, 4), 0)
	d.Into(d.exp).AddSat(d.exp, d.Cvt(ptx.S32, value, "rmi"))
	return d.Load(ptx.U32, record, GroupSteps)
}

// term returns weight times value of operand i of the sum at hand, counted over its
// steps, in units of the sum's exponent: F64.
func (d *descent) term(i ptx.Value) ptx.Value {
	step := d.record(ArgSteps, d.Add(d.step, d.Div(i, d.Block)), StepSize)
	place := d.LoadN(ptx.U32, 2, step, StepElement)
	c := d.Rem(i, d.Block)
	weight := d.At(d.At(d.weights, d.Load(ptx.U32, step, StepParam), 4*d.Block*d.Block), c, 4)
	theta, x := d.Load(ptx.F32, weight, 0), d.Mov(ptx.F64, 0)
	d.If(d.Gt(theta, 0), func() {
		m, e := d.operand(d.record(ArgElements, place[0], ElementSize), d.Add(place[1], c), theta)
		// A mantissa of 0 may have any exponent.
		e = d.Select(d.Gt(m, 0), d.SubSat(e, d.exp), -1023)
		d.Into(x).Mul(m, d.widePow2(e))
	})
	return x
}

// widePow2 returns 2^n as an F64 for an S32 up to 1023, 0 below 2^-1022.
func (k *kernel) widePow2(n ptx.Value) ptx.Value {
	return k.Shl(k.Cvt(ptx.U64, k.Add(k.Max(n, -1023), 1023)), 52).As(ptx.F64)
}

// operand returns theta times a unit of an element, as a mantissa in [1, 2) or 0, and
// an exponent: F64 and S32.
func (d *descent) operand(record, unit, theta ptx.Value) (m, e ptx.Value) {
	m, e = d.Cvt(ptx.F64, theta), d.Mov(ptx.S32, 0)
	span, width := d.LoadN(ptx.U32, 2, record, ElementFactor), d.Load(ptx.U32, record, ElementWidth)
	d.For(ptx.U32, span[0], d.Add(span[0], span[1]), 1, func(f ptx.Value) {
		factor := d.record(ArgFactors, f, FactorSize)
		base, kind := d.Load(ptx.U64, factor, FactorBase), d.LoadN(ptx.U32, 2, factor, FactorKind)
		first, x := d.Add(base, d.Cvt(ptx.U64, unit)), d.Var(ptx.F32)
		exps, own := d.Load(ptx.U32, factor, FactorExps), d.Mov(ptx.F32, 0)
		d.IfElse(d.Eq(kind[0], StoredFactor), func() {
			at := d.element(ArgVal, d.MadWide(d.row, width, first))
			d.Into(x).Load(ptx.F32, at, 0)
			d.Set(own, d.ownExps(1, d.Select(d.marked, 0, exps), at)[0])
			d.Into(e).AddSat(e, d.Load(ptx.S32, d.At(d.arg(ArgExp), d.Add(kind[1], d.row), 4), 0))
			d.If(d.marked, func() {
				floor, none := d.Cvt(ptx.F32, x, "rmi"), d.Eq(x, math.Inf(-1))
				d.Into(e).AddSat(e, d.Cvt(ptx.S32, floor, "rzi"))
				d.Into(x).Select(none, 0, d.Ex2(d.Sub(x, floor)))
			})
		}, func() {
			code := d.Load(d.codeType(), d.codeAt(d.Add(kind[1], d.row)), 0)
			at, missing := d.orMode(factor, code, unit, d.element(ArgParams, d.MadWide(code, width, first)))
			d.Into(x).Load(ptx.F32, at, 0)
			d.Set(own, d.ownExps(1, d.unlessMode(missing, exps), at)[0])
		})
		d.Into(e).AddSat(e, d.Cvt(ptx.S32, own, "rzi"))
		d.Into(m).Mul(m, d.Cvt(ptx.F64, x))
		bits := m.As(ptx.S64)
		d.Into(e).AddSat(e, d.Sub(d.Cvt(ptx.S32, d.Shr(bits, 52)), 1023))
		one := d.Or(d.And(bits, int64(1<<52-1)), int64(1023<<52)).As(ptx.F64)
		d.Into(m).Select(d.Gt(m, 0), one, 0)
	})
	return m, e
}

// draw returns a number below n in proportion to term, an F64 of 0 or more: the first
// whose sum up to there is above uniform times the sum of all; 0 where all terms are.
// A lane adds up a run of terms, all lanes their sums, and the lane in whose run the
// sum passes goes through it again.
func (s *sampler) draw(uniform, n ptx.Value, term func(i ptx.Value) ptx.Value) ptx.Value {
	each := s.Shr(s.Add(n, 31), 5)
	lo := s.Mul(s.lane, each)
	hi, own := s.Min(s.Add(lo, each), n), s.Mov(ptx.F64, 0)
	s.For(ptx.U32, lo, hi, 1, func(i ptx.Value) { s.Into(own).Add(own, term(i)) })
	upTo := s.Mov(ptx.F64, own)
	for by := 1; by < 32; by *= 2 {
		before := s.shuffle("up", upTo, by)
		s.Into(upTo).Add(upTo, s.Select(s.Ge(s.lane, by), before, 0))
	}
	some := s.Gt(own, 0)
	// Lanes without a sum of their own may have another rounding of what is before.
	last := s.Sub(31, s.Clz(s.Ballot(some)))
	goal := s.Mul(uniform, s.shuffle("idx", upTo, last))
	at := s.lowest(s.Ballot(s.And(some, s.Gt(upTo, goal))))
	pick := s.Mov(ptx.U32, 0)
	s.If(s.Eq(s.lane, at), func() {
		// Within the run, by the same sums as above, so that one of them passes.
		goal := s.Min(s.Max(s.Sub(goal, s.Sub(upTo, own)), 0), s.Mul(own, 1-0x1p-52))
		sum := s.Mov(ptx.F64, 0)
		s.While(func() ptx.Value { return s.Le(sum, goal) }, func() {
			s.Into(sum).Add(sum, term(lo))
			s.Into(lo).Add(lo, 1)
		})
		s.Into(pick).Sub(lo, 1)
	})
	return s.Shuffle("idx", pick, at)
}

// shuffle is Shuffle of an F64.
func (k *kernel) shuffle(mode string, x ptx.Value, lane any) ptx.Value {
	low, high := k.Split(x)
	return k.Join(ptx.F64, k.Shuffle(mode, low, lane), k.Shuffle(mode, high, lane))
}

// storeCode writes a code, a U32.
func (k *kernel) storeCode(cell, code ptx.Value) {
	if !k.WideCodes {
		code = k.Cvt(ptx.U16, code)
	}
	k.Store(k.codeType(), cell, 0, code)
}

// sampleLeaf draws the missing codes of inputs.
func (v Variant) sampleLeaf() *ptx.Kernel {
	s := v.sampler(KernelSampleLeaf, ArgControl, ArgParams, ArgCodes, ArgTaken, ArgInputs, ArgList)
	entry := s.LoadN(ptx.U32, 2, s.At(s.arg(ArgList), s.Special("%ctaid.x"), 8), 0)
	in := s.record(ArgInputs, entry[0], InputSize)
	taken, n := s.Load(ptx.U32, in, InputTaken), s.Load(ptx.U32, in, InputCodes)
	pitch, table := s.Mul(s.Load(ptx.U32, in, InputWidth), 4), s.element(ArgParams, s.Load(ptx.U64, in, InputTable))
	exps := s.Load(ptx.U32, in, InputExps)
	codes := s.codeAt(s.Load(ptx.U32, in, InputAt))
	first := s.Mul(s.Special("%ctaid.y"), SampleRows)
	end := s.Min(s.Add(first, SampleRows), s.control(ptx.U32, ControlRows))
	s.For(ptx.U32, s.Add(first, s.warp), end, sampleThreads/32, func(row ptx.Value) {
		s.turn(row)
		unit, cell := s.Load(ptx.U32, s.takenAt(taken), 0), s.At(codes, row, s.codeBytes())
		// A row takes one input of each variable. The block of that input may be writing
		// the cell, so those of the others must not read it.
		s.If(s.Ne(unit, 0), func() {
			s.If(s.Eq(s.Load(s.codeType(), cell, 0), n), func() {
				column := s.At(table, s.Sub(unit, 1), 4)
				pick := s.draw(s.uniform(entry[1]), n, func(i ptx.Value) ptx.Value {
					at := s.MadWide(i, pitch, column)
					own := s.Cvt(ptx.S32, s.ownExps(1, exps, at)[0], "rzi")
					return s.Mul(s.Cvt(ptx.F64, s.Load(ptx.F32, at, 0)), s.widePow2(own))
				})
				s.Guard(s.Eq(s.lane, 0), func() { s.storeCode(cell, pick) })
			})
		})
	})
	return s.Kernel()
}
