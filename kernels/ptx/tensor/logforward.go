package tensor

import (
	"math"

	"github.com/pce-engine/pce/kernels/ptx"
)

// logThreads is the number of threads of a block of the kernels in log space, which
// does whole rows.
const logThreads = 256

// LogScratch is how often a block of KernelLogForward needs the pitch: it uses
// LogScratch·pitch words of ArgScratch, from ctaid·LogScratch·pitch on.
const LogScratch = 4

// logForward evaluates marked rows in log space, a row in a block of threads: val
// becomes the log2 of each unit less the row's exponent, the whole part of the
// largest.
func (v Variant) logForward() *ptx.Kernel {
	// With no number of blocks asked for, the assembler spills registers.
	k := v.begin(KernelLogForward, logThreads, 2, ArgControl, ArgParams, ArgCodes, ArgValues, ArgVal, ArgExp,
		ArgBadRows, ArgScratch, ArgFactors, ArgElements, ArgSums, ArgGroups, ArgSteps, ArgInputs, ArgConstants, ArgList)
	f := &logForward{kernel: k, parts: k.Shared("parts", 16, 4*logThreads/32)}
	f.tid = k.Special("%tid.x")
	f.layOut()
	vectors := k.control(ptx.U32, ControlVectors)
	k.eachMarkedRow(func(row ptx.Value) {
		f.row = row
		k.For(ptx.U32, 0, vectors, 1, func(i ptx.Value) {
			entry := k.LoadN(ptx.U32, 2, k.At(k.arg(ArgList), i, 8), 0)
			k.IfElse(k.Eq(entry[0], vectorInput), func() { f.input(entry[1]) }, func() {
				sum := k.record(ArgSums, entry[1], SumSize)
				top := f.operands(sum)
				k.IfElse(k.Eq(entry[0], vectorSum), func() { f.sum(sum, top) }, func() { f.stored(sum, top) })
			})
			k.Sync()
		})
	})
	return k.Kernel()
}

// The kinds of vectors in the list, other than stored products.
const (
	vectorInput = 0
	vectorSum   = 1
)

// logForward is a kernel that evaluates a row. Its scratch memory holds an array for
// each of the operands' logs, whole and rest, their values in units of the largest
// whole part, and the whole parts of the outputs.
type logForward struct {
	*kernel
	parts, tid                  ptx.Value
	whole, rest, linear, output ptx.Value // U64
	row                         ptx.Value
}

// layOut finds the arrays of a block of threads.
func (f *logForward) layOut() {
	pitch := f.Mul(f.control(ptx.U32, ControlPitch), 4)
	at := f.MadWide(f.Mul(f.Special("%ctaid.x"), LogScratch), pitch, f.arg(ArgScratch))
	for _, place := range []*ptx.Value{&f.whole, &f.rest, &f.linear, &f.output} {
		*place = at
		at = f.Add(at, f.Cvt(ptx.U64, pitch))
	}
}

// each counts a thread's share of 0 to n-1.
func (f *logForward) each(n ptx.Value, do func(i ptx.Value)) {
	f.For(ptx.U32, f.tid, n, logThreads, do)
}

// operands writes the logs of a sum's operands, and returns the largest whole part.
func (f *logForward) operands(sum ptx.Value) ptx.Value {
	first, top := f.Mov(ptx.U32, 0), f.Mov(ptx.S32, none)
	element := f.Load(ptx.U32, sum, SumElement)
	f.For(ptx.U32, element, f.Add(element, f.Load(ptx.U32, sum, SumElements)), 1, func(i ptx.Value) {
		e := f.logElement(f.record(ArgElements, i, ElementSize))
		f.each(e.width, func(unit ptx.Value) {
			l, at := f.logOperand(e, f.row, unit), f.Add(first, unit)
			f.Store(ptx.S32, f.At(f.whole, at, 4), 0, l.whole)
			f.Store(ptx.F32, f.At(f.rest, at, 4), 0, l.rest)
			f.Into(top).Max(top, l.whole)
		})
		f.Into(first).Add(first, e.width)
	})
	return f.blockMax(f.parts, top)
}

// read returns the log of an operand.
func (f *logForward) read(i ptx.Value) logValue {
	return logValue{f.Load(ptx.S32, f.At(f.whole, i, 4), 0), f.Load(ptx.F32, f.At(f.rest, i, 4), 0)}
}

// place is the address of a vector's first value in the row.
func (f *logForward) place(sum ptx.Value) ptx.Value {
	first := f.MadWide(f.row, f.Load(ptx.U32, sum, SumWidth), f.Load(ptx.U64, sum, SumVal))
	return f.element(ArgVal, first)
}

// setExp writes the exponent of a vector in the row, 0 where all its values are.
func (f *logForward) setExp(exp, top ptx.Value) {
	f.If(f.Eq(f.tid, 0), func() {
		at := f.At(f.arg(ArgExp), f.Add(exp, f.row), 4)
		f.Store(ptx.S32, at, 0, f.Select(f.Le(top, Lost), 0, f.Min(top, Most)))
	})
}

// stored ends the evaluation of a stored product: the operands are its values.
func (f *logForward) stored(sum, top ptx.Value) {
	f.setExp(f.Load(ptx.U32, sum, SumExp), top)
	f.put(f.place(sum), f.Load(ptx.U32, sum, SumWidth), top)
}

// input evaluates a function of a value.
func (f *logForward) input(index ptx.Value) {
	in := f.record(ArgInputs, index, InputSize)
	width, units := f.Load(ptx.U32, in, InputWidth), f.Load(ptx.U32, in, InputUnits)
	x := f.Load(ptx.F32, f.At(f.arg(ArgValues), f.Add(f.Load(ptx.U32, in, InputAt), f.row), 4), 0)
	top := f.Mov(ptx.S32, none)
	f.each(width, func(unit ptx.Value) {
		log2 := f.leafLog2(in, x, f.Min(unit, f.Sub(units, 1)))
		floor := f.Max(f.Cvt(ptx.F64, log2, "rmi"), none) // what is lost comes to the same
		whole := f.Select(f.Lt(unit, units), f.Cvt(ptx.S32, floor, "rzi"), none)
		f.Store(ptx.S32, f.At(f.whole, unit, 4), 0, whole)
		f.Store(ptx.F32, f.At(f.rest, unit, 4), 0, f.Cvt(ptx.F32, f.Sub(log2, floor), "rn"))
		f.Into(top).Max(top, whole)
	})
	top = f.blockMax(f.parts, top)
	f.setExp(f.Load(ptx.U32, in, InputExp), top)
	first := f.MadWide(f.row, width, f.Load(ptx.U64, in, InputVal))
	f.put(f.element(ArgVal, first), width, top)
}

// put writes operands as values of a vector.
func (f *logForward) put(val, width, top ptx.Value) {
	f.each(width, func(unit ptx.Value) {
		f.Store(ptx.F32, f.At(val, unit, 4), 0, f.less(f.read(unit), top))
	})
}

// sum ends the evaluation of a sum.
func (f *logForward) sum(sum, top ptx.Value) {
	width, val := f.Load(ptx.U32, sum, SumWidth), f.place(sum)
	if !f.most {
		f.each(f.Load(ptx.U32, sum, SumCols), func(i ptx.Value) {
			f.Store(ptx.F32, f.At(f.linear, i, 4), 0, f.Ex2(f.less(f.read(i), top)))
		})
	}
	f.each(width, func(i ptx.Value) {
		f.Store(ptx.S32, f.At(f.output, i, 4), 0, none)
		f.Store(ptx.F32, f.At(val, i, 4), 0, 0)
	})
	f.Sync()
	best := f.Mov(ptx.S32, none)
	f.If(f.Gt(top, Lost), func() {
		group := f.Load(ptx.U32, sum, SumGroup)
		f.For(ptx.U32, group, f.Add(group, f.Load(ptx.U32, sum, SumGroups)), 1, func(g ptx.Value) {
			record := f.record(ArgGroups, g, GroupSize)
			row := f.Load(ptx.U32, record, GroupRow)
			units := f.Min(f.Mul(f.Load(ptx.U32, record, GroupBlocks), f.Block), f.Sub(f.Load(ptx.U32, sum, SumUnits), row))
			f.each(units, func(i ptx.Value) {
				var l logValue
				if f.most {
					l = f.logMost(sum, record, i)
				} else {
					l = f.logOutput(sum, record, i, top)
				}
				o := f.Add(row, i)
				f.Store(ptx.S32, f.At(f.output, o, 4), 0, l.whole)
				f.Store(ptx.F32, f.At(val, o, 4), 0, l.rest)
				f.Into(best).Max(best, l.whole)
			})
		})
	})
	best = f.blockMax(f.parts, best)
	f.setExp(f.Load(ptx.U32, sum, SumExp), best)
	f.each(width, func(o ptx.Value) {
		at := f.At(val, o, 4)
		l := logValue{f.Load(ptx.S32, f.At(f.output, o, 4), 0), f.Load(ptx.F32, at, 0)}
		f.Store(ptx.F32, at, 0, f.less(l, best))
	})
}

// logOutput returns the log of output i of a group.
func (f *logForward) logOutput(sum, group, i, top ptx.Value) logValue {
	total, whole := f.Mov(ptx.F32, 0), f.Mov(ptx.S32, top)
	n := min(f.Block, 4)
	f.eachStep(sum, group, i, func(weights, column ptx.Value) {
		linear := f.At(f.linear, column, 4)
		for c := 0; c < f.Block; c += n {
			theta, e := f.floats(n, weights, 4*c), f.floats(n, linear, 4*c)
			for j := range theta {
				f.Into(total).FMA(theta[j], e[j], total)
			}
		}
	})
	// Terms below 2^-126 may have vanished; above this they do not matter.
	limit := f.Mul(f.Cvt(ptx.F32, f.Load(ptx.U32, sum, SumCols), "rn"), trust)
	f.If(f.NotGe(total, limit), func() {
		f.Set(whole, none)
		f.eachWeight(sum, group, i, func(m, exp, _ ptx.Value) { f.Into(whole).Max(whole, exp) })
		f.Set(total, 0)
		f.eachWeight(sum, group, i, func(m, exp, rest ptx.Value) {
			x := f.Ex2(f.Add(f.Cvt(ptx.F32, f.Sub(exp, whole), "rn"), rest))
			f.Into(total).FMA(m, x, total)
		})
	})
	m, e := f.split(total)
	return f.logOf(f.AddSat(whole, e), f.Lg2(m)) // of 0 it is lost
}

// eachStep goes through the steps of output i of a group: the address of its S
// weights and the first column that they mean.
func (f *logForward) eachStep(sum, group, i ptx.Value, do func(weights, column ptx.Value)) {
	s := f.Block
	own := f.At(f.arg(ArgParams), f.Mul(i, s), 4)
	start := f.Load(ptx.U32, sum, SumElement)
	element, first := f.Mov(ptx.U32, start), f.Mov(ptx.U32, 0) // first column of element
	step := f.Load(ptx.U32, group, GroupStep)
	f.For(ptx.U32, step, f.Add(step, f.Load(ptx.U32, group, GroupSteps)), 1, func(st ptx.Value) {
		record := f.record(ArgSteps, st, StepSize)
		want := f.Load(ptx.U32, record, StepElement)
		f.If(f.Lt(want, element), func() {
			f.Set(element, start)
			f.Set(first, 0)
		})
		f.While(func() ptx.Value { return f.Lt(element, want) }, func() {
			width := f.Load(ptx.U32, f.record(ArgElements, element, ElementSize), ElementWidth)
			f.Into(first).Add(first, width)
			f.Into(element).Add(element, 1)
		})
		column := f.Add(first, f.Load(ptx.U32, record, StepColumn))
		do(f.At(own, f.Load(ptx.U32, record, StepParam), 4*s*s), column)
	})
}

// eachWeight goes through the terms of output i of a group that are above 0, each as
// m·2^(exp+rest) with m near 1 and rest in [0, 1).
func (f *logForward) eachWeight(sum, group, i ptx.Value, do func(m, exp, rest ptx.Value)) {
	f.eachStep(sum, group, i, func(weights, column ptx.Value) {
		f.For(ptx.U32, 0, f.Block, 1, func(c ptx.Value) {
			theta, l := f.Load(ptx.F32, f.At(weights, c, 4), 0), f.read(f.Add(column, c))
			f.If(f.And(f.Gt(theta, 0), f.Gt(l.whole, Lost)), func() {
				m, e := f.split(theta)
				do(m, f.Add(l.whole, e), l.rest)
			})
		})
	})
}

// logValue is the log2 of a value as a whole number and a rest in [0, 1), or a whole
// number of at most Lost for a value that is not told from 0: sums of many logs keep
// their last bits.
type logValue struct {
	whole ptx.Value // S32
	rest  ptx.Value // F32
}

// split returns x > 0 as m·2^e with m in [0.75, 1.5), of which Lg2 has an absolute
// error of 2^-22.
func (k *kernel) split(x ptx.Value) (m, e ptx.Value) {
	small := k.Lt(x, 0x1p-126)
	bits := k.Select(small, k.Mul(x, 0x1p24), x).As(ptx.S32)
	e = k.Shr(k.Sub(bits, int(math.Float32bits(0.75))), 23)
	m = k.Sub(bits, k.Shl(e, 23)).As(ptx.F32)
	return m, k.Add(e, k.Select(small, k.Mov(ptx.S32, -24), 0))
}

// logOf returns the log that is whole + rest, for a small rest.
func (k *kernel) logOf(whole, rest ptx.Value) logValue {
	floor := k.Cvt(ptx.F32, rest, "rmi")
	return logValue{k.AddSat(whole, k.Cvt(ptx.S32, floor, "rzi")), k.Sub(rest, floor)}
}

// less returns the log less a whole number, -Inf for a value of 0.
func (k *kernel) less(l logValue, whole ptx.Value) ptx.Value {
	x := k.Add(k.Cvt(ptx.F32, k.Sub(l.whole, whole), "rn"), l.rest)
	return k.Select(k.Le(l.whole, Lost), math.Inf(-1), x)
}

// logElement is what a thread must know of an element.
type logElement struct {
	width, units ptx.Value // U32
	factor, end  ptx.Value // U32, its factors
}

func (k *kernel) logElement(record ptx.Value) logElement {
	span := k.LoadN(ptx.U32, 2, record, ElementFactor)
	size := k.LoadN(ptx.U32, 2, record, ElementWidth)
	return logElement{size[0], size[1], span[0], k.Add(span[0], span[1])}
}

// logOperand returns the log of a unit of an element in a marked row: that of the
// product of its factors, of padding 0.
func (k *kernel) logOperand(e logElement, row, unit ptx.Value) logValue {
	l := logValue{k.Mov(ptx.S32, 0), k.Mov(ptx.F32, 0)}
	zero := k.Ge(unit, e.units)
	k.For(ptx.U32, e.factor, e.end, 1, func(f ptx.Value) {
		record := k.record(ArgFactors, f, FactorSize)
		base := k.Load(ptx.U64, record, FactorBase)
		kind := k.LoadN(ptx.U32, 2, record, FactorKind)
		whole, rest := k.Var(ptx.S32), k.Var(ptx.F32)
		k.IfElse(k.Eq(kind[0], StoredFactor), func() {
			at := k.element(ArgVal, k.Add(k.MadWide(row, e.width, base), k.Cvt(ptx.U64, unit)))
			x := k.Load(ptx.F32, at, 0)
			gone := k.Eq(x, math.Inf(-1))
			k.Into(zero).Or(zero, gone)
			exp := k.Load(ptx.S32, k.At(k.arg(ArgExp), k.Add(kind[1], row), 4), 0)
			stored := k.logOf(exp, k.Select(gone, 0, x))
			k.Set(whole, stored.whole)
			k.Set(rest, stored.rest)
		}, func() {
			code := k.Load(k.codeType(), k.codeAt(k.Add(kind[1], row)), 0)
			at := k.element(ArgParams, k.Add(k.MadWide(code, e.width, base), k.Cvt(ptx.U64, unit)))
			at, missing := k.orMode(record, code, unit, at)
			x := k.Load(ptx.F32, at, 0)
			m, exp := k.split(x)
			own := k.ownExps(1, k.unlessMode(missing, k.Load(ptx.U32, record, FactorExps)), at)[0]
			k.Into(zero).Or(zero, k.Not(k.Gt(x, 0)))
			k.Into(rest).Lg2(m)
			k.Into(whole).Add(exp, k.Cvt(ptx.S32, own, "rzi"))
		})
		next := k.logOf(k.AddSat(l.whole, whole), k.Add(l.rest, rest))
		k.Set(l.whole, next.whole)
		k.Set(l.rest, next.rest)
		k.Into(zero).Or(zero, k.Le(l.whole, Lost))
	})
	return logValue{k.Select(zero, none, l.whole), k.Select(zero, 0, l.rest)}
}

// eachMarkedRow gives the marked rows out to the blocks of a launch.
func (k *kernel) eachMarkedRow(do func(row ptx.Value)) {
	block, blocks := k.Special("%ctaid.x"), k.Special("%nctaid.x")
	list := k.arg(ArgBadRows)
	k.For(ptx.U32, block, k.Load(ptx.U32, list, 0), blocks, func(i ptx.Value) {
		do(k.Load(ptx.U32, k.At(list, i, 4), 4))
	})
}

// blockMax returns the largest S32 of a block of logThreads threads, none at least,
// and waits for all of them. The shared words at parts are one for each warp.
func (k *kernel) blockMax(parts, x ptx.Value) ptx.Value {
	tid := k.Special("%tid.x")
	x = k.WarpReduce(x, func(x, y any) ptx.Value { return k.Max(x, y) })
	k.Guard(k.Eq(k.And(tid, 31), 0), func() { k.Store(ptx.S32, k.At(parts, k.Shr(tid, 5), 4), 0, x) })
	k.Sync()
	most := k.Mov(ptx.S32, none)
	for w := range logThreads / 32 {
		k.Into(most).Max(most, k.Load(ptx.S32, parts, 4*w))
	}
	k.Sync()
	return most
}
