package tensor

import (
	"math"

	"github.com/pce-engine/pce/kernels/ptx"
)

// leafCounts says where the counts of a table come from. read emits the loads for a
// code, take makes the count of them, once for a code; both where ok holds.
type leafCounts struct {
	read func(c, ok ptx.Value) []ptx.Value
	take func(c, ok ptx.Value, read []ptx.Value) ptx.Value
}

// evidence is a unit's normaliser as the M-step takes it, in float64.
type evidence struct {
	scale       ptx.Value // of flows
	pseudocount ptx.Value
	weight      ptx.Value // scale·normaliser
	total       ptx.Value // weight + pseudocount
	step        ptx.Value // how far the unit goes
}

// evidence returns what a normaliser, F32 or F64, says. With visits the step of a
// unit is total / ((1-step)·visits + total), and 0 without evidence.
func (l *leafBlock) evidence(norm ptx.Value) evidence {
	if norm.Type == ptx.F32 {
		norm = l.Cvt(ptx.F64, norm)
	}
	e := evidence{scale: l.control(ptx.F64, ControlScale), pseudocount: l.control(ptx.F64, ControlPseudocount)}
	e.weight = l.Mul(e.scale, norm)
	e.total = l.Add(e.weight, e.pseudocount)
	e.step = l.control(ptx.F64, ControlStep)
	if _, ok := l.args[ArgVisits]; ok {
		visits := l.Cvt(ptx.F64, l.existing(ptx.F32, l.exists, l.At(l.arg(ArgVisits), l.place, 4)))
		step := l.Div(e.total, l.Add(l.Mul(l.Sub(1.0, e.step), visits), e.total))
		e.step = l.Select(l.Gt(e.total, 0), step, 0.0)
	}
	return e
}

// blend returns (1-step)·old + step·fresh.
func (l *leafBlock) blend(e evidence, old, fresh ptx.Value) ptx.Value {
	return l.Add(l.Mul(l.Sub(1.0, e.step), old), l.Mul(e.step, fresh))
}

// moveTable moves the parameters of tabulated families by counts, given the
// normaliser: those that are the table itself, or those of which it is made.
func (l *leafBlock) moveTable(counts leafCounts, norm ptx.Value) {
	e := l.evidence(norm)
	l.IfElse(l.is(FamilyMass), func() { l.moveMasses(counts, e) }, func() { l.moveMoments(counts, e) })
}

// moveMasses moves a table that holds its own parameters.
func (l *leafBlock) moveMasses(counts leafCounts, e evidence) {
	keep, gain, prior := l.Mov(ptx.F32, 1), l.Mov(ptx.F32, 0), l.Mov(ptx.F32, 0)
	fan := l.existing(ptx.U32, l.exists, l.At(l.arg(ArgFans), l.place, 4))
	l.If(l.And(l.Gt(e.total, 0), l.Ne(fan, 0)), func() {
		l.Into(keep).Cvt(ptx.F32, l.Sub(1.0, e.step), "rn")
		l.Into(gain).Cvt(ptx.F32, l.Div(l.Mul(e.step, e.scale), e.total), "rn")
		share := l.Mul(l.Cvt(ptx.F64, fan, "rn"), e.total)
		l.Into(prior).Cvt(ptx.F32, l.Div(l.Mul(e.step, e.pseudocount), share), "rn")
	})
	table := l.column(ArgParams, 4, InputTable)
	l.eachCode(func(c, ok ptx.Value) []ptx.Value {
		at := table.at(c)
		return append([]ptx.Value{at, l.existing(ptx.F32, ok, at)}, counts.read(c, ok)...)
	}, func(c, ok ptx.Value, read []ptx.Value) {
		count := l.round(counts.take(c, ok, read[2:]), l.fine)
		l.put(ptx.F32, ok, read[0], l.moved(read[1], count, keep, gain, prior))
	})
}

// moments is a mean and a variance, F64.
type moments struct{ mean, variance ptx.Value }

// blendMoments blends those of the present parameters with those of the statistics
// x and x²; the pseudocount observes the present parameters.
func (l *leafBlock) blendMoments(e evidence, now moments, sum, squares ptx.Value) moments {
	blended := func(old, sum ptx.Value) ptx.Value {
		fresh := l.Div(l.Add(sum, l.Mul(e.pseudocount, old)), e.total)
		return l.blend(e, old, fresh)
	}
	mean := blended(now.mean, sum)
	square := blended(l.Add(now.variance, l.Mul(now.mean, now.mean)), squares)
	return moments{mean, l.Sub(square, l.Mul(mean, mean))}
}

// clamp returns x within bounds, F64.
func (l *leafBlock) clamp(x, least, most ptx.Value) ptx.Value { return l.Min(l.Max(x, least), most) }

// storeParams rounds the parameters of a unit to float32 and stores those that exist
// where ok holds. It returns what is stored.
func (l *leafBlock) storeParams(params column, ok ptx.Value, ps ...ptx.Value) []ptx.Value {
	stored := make([]ptx.Value, len(ps))
	for i, p := range ps {
		narrow := l.Cvt(ptx.F32, p, "rn")
		l.put(ptx.F32, l.And(ok, l.has(i)), params.at(l.Mov(ptx.U32, i)), narrow)
		stored[i] = l.Cvt(ptx.F64, narrow)
	}
	return stored
}

// twoParams reads up to two parameters of a unit as float64.
func (l *leafBlock) twoParams(params column) (p, q ptx.Value) {
	p = l.Cvt(ptx.F64, l.existing(ptx.F32, l.exists, params.base))
	q = l.Cvt(ptx.F64, l.existing(ptx.F32, l.has(1), params.at(l.Mov(ptx.U32, 1))))
	return p, q
}

// moveFunction moves the parameters of a function by its statistics, with the
// normaliser last; one warp does that.
func (l *leafBlock) moveFunction(stats []ptx.Value) {
	e := l.evidence(stats[leafStats-1])
	params := l.column(ArgParams, 4, InputParams)
	p, q := l.twoParams(params)
	sum, squares := l.Mul(e.scale, stats[0]), l.Mul(e.scale, stats[1])
	first, second := l.Var(ptx.F64), l.Mov(ptx.F64, 0)
	l.IfElse(l.Or(l.is(FamilyGaussian), l.is(FamilyLogNormal)), func() {
		m := l.blendMoments(e, moments{p, l.Mul(q, q)}, sum, squares)
		l.Set(first, m.mean)
		l.Into(second).Max(l.Sqrt(l.Max(m.variance, 0)), l.constant(0))
	}, func() {
		fresh := l.Div(l.Add(sum, l.Mul(e.pseudocount, p)), e.total)
		l.Set(first, l.clamp(l.blend(e, p, fresh), l.constant(0), l.constant(1)))
	})
	l.storeParams(params, l.Gt(e.total, 0), first, second)
}

// The variance of a logistic distribution in squares of its scale, and what rounding
// to whole numbers adds to a variance.
const (
	logisticVariance = math.Pi * math.Pi / 3
	roundingVariance = 1. / 12
)

// moveMoments moves the parameters of a binomial or a discretised logistic
// distribution, and tabulates it anew from what is stored.
func (l *leafBlock) moveMoments(counts leafCounts, e evidence) {
	sum, squares := l.Mov(ptx.F64, 0), l.Mov(ptx.F64, 0)
	l.eachCode(counts.read, func(c, ok ptx.Value, read []ptx.Value) {
		n := l.Mul(e.scale, l.Cvt(ptx.F64, l.round(counts.take(c, ok, read), l.fine)))
		x := l.Cvt(ptx.F64, c, "rn")
		l.Into(sum).Add(sum, l.Mul(n, x))
		l.Into(squares).Add(squares, l.Mul(n, l.Mul(x, x)))
	})
	params := l.column(ArgParams, 4, InputParams)
	p, q := l.twoParams(params)
	sums := l.sum(sum, squares)
	evident := l.Gt(e.total, 0)
	store := func(ps ...ptx.Value) []ptx.Value { return l.storeParams(params, l.Eq(l.warp, 0), ps...) }
	l.IfElse(l.is(FamilyBinomial), func() {
		trials := l.constant(0)
		fresh := l.Div(l.Add(l.Div(sums[0], trials), l.Mul(e.pseudocount, 0.5)), e.total)
		moved := l.clamp(l.blend(e, p, fresh), l.constant(1), l.constant(2))
		moves := l.And(evident, l.And(l.Ne(p, 0), l.Ne(p, 1)))
		l.tabulateBinomial(trials, store(l.Select(moves, moved, p))[0])
	}, func() {
		variance := l.Add(l.Mul(l.Mul(q, q), logisticVariance), roundingVariance)
		m := l.blendMoments(e, moments{p, variance}, sums[0], sums[1])
		scale := l.Sqrt(l.Div(l.Max(l.Sub(m.variance, roundingVariance), 0), logisticVariance))
		scale = l.Max(scale, l.constant(0))
		stored := store(l.Select(evident, m.mean, p), l.Select(evident, scale, q))
		l.tabulateLogistic(stored[0], stored[1])
	})
}

// tabulateBinomial writes the probabilities of a binomial distribution: those of the
// next 32 codes in turn for each warp, whose lanes first find their coefficients.
func (l *leafBlock) tabulateBinomial(trials, p ptx.Value) {
	table := l.column(ArgParams, 4, InputTable)
	success, failure := l.log(p), l.log1p(l.Neg(p))
	all := l.logFactorial(trials)
	shelf := l.At(l.Add(l.parts, 2*leafThreads*8), l.Special("%tid.x"), 8) // sums of two end before
	first := l.Sub(shelf, l.Mul(l.lane, 8))
	l.For(ptx.U32, l.Mul(l.warp, 32), l.codes, leafThreads, func(base ptx.Value) {
		x := l.Min(l.Cvt(ptx.F64, l.Add(base, l.lane), "rn"), trials)
		l.SyncWarp()
		l.Store(ptx.F64, shelf, 0, l.Sub(l.Sub(all, l.logFactorial(x)), l.logFactorial(l.Sub(trials, x))))
		l.SyncWarp()
		l.For(ptx.U32, 0, l.Min(l.Sub(l.codes, base), 32), 1, func(j ptx.Value) {
			c := l.Add(base, j)
			x := l.Cvt(ptx.F64, c, "rn")
			y := l.Load(ptx.F64, l.At(first, j, 8), 0)
			rest := l.Sub(trials, x)
			y = l.Add(y, l.Select(l.Gt(x, 0), l.Mul(x, success), 0.0))
			y = l.Add(y, l.Select(l.Gt(rest, 0), l.Mul(rest, failure), 0.0))
			l.putLog(table, c, y)
		})
	})
}

// putLog writes the probability of a code, given its natural log, with an exponent of
// its own.
func (l *leafBlock) putLog(table column, c, log ptx.Value) {
	log = l.Mul(log, math.Log2E)
	whole := l.Cvt(ptx.F64, log, "rmi")
	some := l.Ge(whole, leastOwn)
	at := table.at(c)
	x := l.Cvt(ptx.F32, l.exp2(l.Sub(log, whole)), "rn")
	l.put(ptx.F32, l.exists, at, l.Select(some, x, 0))
	l.put(ptx.F32, l.exists, l.At(at, l.field(InputExps), 4), l.Cvt(ptx.F32, l.Select(some, whole, 0.0), "rn"))
}

// tabulateLogistic writes the probabilities of a discretised logistic distribution.
func (l *leafBlock) tabulateLogistic(mean, scale ptx.Value) {
	table := l.column(ArgParams, 4, InputTable)
	inverse := l.Rcp(scale)
	both := l.log1mexp(inverse)
	last := l.Sub(l.codes, 1)
	l.For(ptx.U32, l.warp, l.codes, leafWarps, func(c ptx.Value) {
		x := l.Sub(l.Cvt(ptx.F64, c, "rn"), mean)
		below := l.softplus(l.Mul(l.Sub(x, 0.5), inverse))
		above := l.softplus(l.Neg(l.Mul(l.Add(x, 0.5), inverse)))
		low, high := l.Gt(c, 0), l.Lt(c, last)
		y := l.Neg(l.Add(l.Select(low, below, 0.0), l.Select(high, above, 0.0)))
		y = l.Add(y, l.Select(l.And(low, high), both, 0.0))
		l.putLog(table, c, y)
	})
}

// bin is a bin of a histogram.
type bin struct {
	from, to ptx.Value // U32, codes
	width    ptx.Value // F64
	at       ptx.Value // address of its mass
	old      ptx.Value // F64, its mass
	positive ptx.Value // Pred
	sum      ptx.Value // F64, its count times scale
}

// eachBin goes through a warp's bins of a histogram, whose counts are complete.
func (l *leafBlock) eachBin(t tally, e evidence, do func(b bin)) {
	params := l.column(ArgParams, 4, InputParams)
	l.For(ptx.U32, l.warp, l.field(InputStats), leafWarps, func(i ptx.Value) {
		from, to := l.constant(i), l.constant(l.Add(i, 1))
		b := bin{from: l.Cvt(ptx.U32, from, "rzi"), to: l.Cvt(ptx.U32, to, "rzi"), width: l.Sub(to, from), at: params.at(i)}
		b.old = l.Cvt(ptx.F64, l.existing(ptx.F32, l.exists, b.at))
		b.positive = l.Gt(b.old, 0)
		b.sum = l.Mov(ptx.F64, 0)
		l.For(ptx.U32, b.from, b.to, 1, func(c ptx.Value) {
			n := l.Cvt(ptx.F64, l.round(t.get(c, l.exists), l.fine))
			l.Into(b.sum).Add(b.sum, l.Mul(e.scale, n))
		})
		do(b)
	})
}

// moveBins moves the masses of a histogram's bins, over which the pseudocount is
// spread by their widths, and writes the table: the codes of a bin share its mass.
func (l *leafBlock) moveBins(t tally, norm ptx.Value) {
	e := l.evidence(norm)
	total, shares, mass := l.Mov(ptx.F64, 0), l.Mov(ptx.F64, 0), l.Mov(ptx.F64, 0)
	l.eachBin(t, e, func(b bin) {
		l.Into(total).Add(total, l.Select(b.positive, b.sum, 0.0))
		l.Into(shares).Add(shares, l.Select(b.positive, b.width, 0.0))
	})
	sums := l.sum(total, shares)
	all := l.Add(sums[0], e.pseudocount)
	moved := func(b bin) ptx.Value {
		prior := l.Div(l.Mul(e.pseudocount, b.width), sums[1])
		return l.Max(l.blend(e, b.old, l.Div(l.Add(b.sum, prior), all)), leastWeight)
	}
	l.eachBin(t, e, func(b bin) {
		l.Into(mass).Add(mass, l.Select(b.positive, moved(b), 0.0))
	})
	whole := l.sum(mass)[0]
	moves := l.Gt(all, 0)
	table := l.column(ArgParams, 4, InputTable)
	l.eachBin(t, e, func(b bin) {
		fresh := l.Max(l.Div(moved(b), whole), leastWeight)
		stored := l.Cvt(ptx.F32, l.Select(l.And(moves, b.positive), fresh, b.old), "rn")
		l.put(ptx.F32, l.exists, b.at, stored)
		share := l.Cvt(ptx.F32, l.Div(l.Cvt(ptx.F64, stored), b.width), "rn")
		l.For(ptx.U32, b.from, b.to, 1, func(c ptx.Value) { l.put(ptx.F32, l.exists, table.at(c), share) })
	})
}
