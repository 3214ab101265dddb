package tensor

import (
	"math"

	"github.com/pce-engine/pce/kernels/ptx"
)

// logBackward sends flows down in marked rows, a row in a block of threads: ratio
// becomes the flow of each unit, kept that of operands.
func (v Variant) logBackward() *ptx.Kernel {
	k := v.begin(KernelLogBackward, logThreads, 4, ArgControl, ArgParams, ArgCodes, ArgVal, ArgExp, ArgRatio, ArgKept,
		ArgBadRows, ArgFactors, ArgElements, ArgSums, ArgColumns, ArgRowSteps, ArgUses, ArgList)
	f := &logBackward{kernel: k, tid: k.Special("%tid.x")}
	vectors := k.control(ptx.U32, ControlVectors)
	k.eachMarkedRow(func(row ptx.Value) {
		f.row = row
		i := k.Mov(ptx.U32, vectors)
		k.While(func() ptx.Value { return k.Ne(i, 0) }, func() {
			k.Into(i).Sub(i, 1)
			entry := k.LoadN(ptx.U32, 2, k.At(k.arg(ArgList), i, 8), 0)
			k.If(k.Ne(entry[0], vectorInput), func() {
				sum := k.record(ArgSums, entry[1], SumSize)
				f.width = k.Load(ptx.U32, sum, SumWidth)
				first := k.MadWide(row, f.width, k.Load(ptx.U64, sum, SumVal))
				f.val, f.ratio = k.element(ArgVal, first), k.element(ArgRatio, first)
				f.gather(sum)
				k.Sync()
				k.IfElse(k.Eq(entry[0], vectorSum), func() { f.sum(sum) }, func() { f.stored(sum) })
				k.Sync()
			})
		})
	})
	return k.Kernel()
}

// logBackward is a kernel that sends the flows of a row down.
type logBackward struct {
	*kernel
	tid, row          ptx.Value
	width, val, ratio ptx.Value // of a vector: U32, and the addresses of the row's first unit
}

// gather adds up the flows of a vector over its uses, if there are any; else the
// element above has left them.
func (f *logBackward) gather(sum ptx.Value) {
	user, users := f.Load(ptx.U32, sum, SumUser), f.Load(ptx.U32, sum, SumUsers)
	root := f.Load(ptx.U32, sum, SumRoot)
	f.If(f.Ne(f.Or(users, root), 0), func() {
		f.For(ptx.U32, f.tid, f.width, logThreads, func(unit ptx.Value) {
			possible := f.Gt(f.Load(ptx.F32, f.At(f.val, unit, 4), 0), math.Inf(-1))
			enters := f.And(f.And(f.Ne(root, 0), f.Eq(unit, 0)), possible)
			flow := f.Select(enters, f.Mov(ptx.F32, 1), 0)
			f.For(ptx.U32, user, f.Add(user, users), 1, func(u ptx.Value) {
				use := f.record(ArgUses, u, UseSize)
				first := f.MadWide(f.row, f.Load(ptx.U32, use, UseWidth), f.Load(ptx.U64, use, UseKept))
				f.Into(flow).Add(flow, f.Load(ptx.F32, f.At(f.element(ArgKept, first), unit, 4), 0))
			})
			f.Store(ptx.F32, f.At(f.ratio, unit, 4), 0, flow)
		})
	})
}

// hand leaves the flow of a unit of an element where it is read.
func (f *logBackward) hand(e logElement, kept, unit, flow ptx.Value) {
	f.If(f.Ne(kept, int64(-1)), func() {
		at := f.element(ArgKept, f.MadWide(f.row, e.width, kept))
		f.Store(ptx.F32, f.At(at, unit, 4), 0, flow)
	})
	f.For(ptx.U32, e.factor, e.end, 1, func(i ptx.Value) {
		factor := f.record(ArgFactors, i, FactorSize)
		f.If(f.Eq(f.Load(ptx.U32, factor, FactorDown), DownRatio), func() {
			at := f.element(ArgRatio, f.MadWide(f.row, e.width, f.Load(ptx.U64, factor, FactorBase)))
			f.Store(ptx.F32, f.At(at, unit, 4), 0, flow)
		})
	})
}

// stored hands the flows of a stored product to its factors.
func (f *logBackward) stored(sum ptx.Value) {
	record := f.record(ArgElements, f.Load(ptx.U32, sum, SumElement), ElementSize)
	e, kept := f.logElement(record), f.Load(ptx.U64, record, ElementKept)
	f.For(ptx.U32, f.tid, e.width, logThreads, func(unit ptx.Value) {
		f.hand(e, kept, unit, f.Load(ptx.F32, f.At(f.ratio, unit, 4), 0))
	})
}

// sum hands the flows of a sum to its operands.
func (f *logBackward) sum(sum ptx.Value) {
	column := f.Load(ptx.U32, sum, SumColumn)
	exp := f.Load(ptx.S32, f.At(f.arg(ArgExp), f.Add(f.Load(ptx.U32, sum, SumExp), f.row), 4), 0)
	f.For(ptx.U32, column, f.Add(column, f.Load(ptx.U32, sum, SumColumns)), 1, func(c ptx.Value) {
		record := f.record(ArgColumns, c, ColumnSize)
		element := f.record(ArgElements, f.Load(ptx.U32, record, ColumnElement), ElementSize)
		e, kept := f.logElement(element), f.Load(ptx.U64, element, ElementKept)
		first := f.Load(ptx.U32, record, ColumnColumn)
		units := f.Mul(f.Load(ptx.U32, record, ColumnBlocks), f.Block)
		f.For(ptx.U32, f.tid, units, logThreads, func(i ptx.Value) {
			unit := f.Add(first, i)
			l := f.logOperand(e, f.row, unit)
			l.whole = f.SubSat(l.whole, exp)
			f.hand(e, kept, unit, f.operandFlow(record, i, l))
		})
	})
}

// operandFlow adds up, over the outputs that read unit i of a column, what it has in
// each of their flows: flow·θ·2^(l-s), with l its log, and s the output's.
func (f *logBackward) operandFlow(column, i ptx.Value, l logValue) ptx.Value {
	s := f.Block
	total, whole := f.Mov(ptx.F32, 0), f.Cvt(ptx.F32, l.whole, "rn")
	block, c := f.Div(i, s), f.Rem(i, s)
	shift := f.Mul(block, f.Load(ptx.U32, column, ColumnStride))
	own := f.At(f.arg(ArgParams), c, 4)
	step := f.Load(ptx.U32, column, ColumnStep)
	f.For(ptx.U32, step, f.Add(step, f.Load(ptx.U32, column, ColumnSteps)), 1, func(st ptx.Value) {
		record := f.LoadN(ptx.U32, 2, f.record(ArgRowSteps, st, RowStepSize), 0)
		weights := f.At(own, f.Add(record[1], shift), 4*s*s)
		ratio, val := f.At(f.ratio, record[0], 4), f.At(f.val, record[0], 4)
		f.For(ptx.U32, 0, s, 1, func(ptx.Value) {
			flow, theta := f.Load(ptx.F32, ratio, 0), f.Load(ptx.F32, weights, 0)
			f.If(f.And(f.Gt(flow, 0), f.Gt(theta, 0)), func() {
				// The difference is exact where it is small and the term counts.
				x := f.Add(f.Sub(whole, f.Load(ptx.F32, val, 0)), l.rest)
				half := f.Ex2(f.Mul(x, 0.5)) // 2^x itself overflows where θ is tiny
				f.Into(total).FMA(f.Mul(flow, half), f.Mul(theta, half), total)
			})
			f.Into(ratio).Add(ratio, 4)
			f.Into(val).Add(val, 4)
			f.Into(weights).Add(weights, 4*s)
		})
	})
	return total
}
