package tensor

import (
	"math"

	"github.com/pce-engine/pce/kernels/ptx"
)

// Bounds on what float32 mantissas hold.
const (
	// trust is the least value of an output in a row whose largest operand is in
	// [1, 2), for every column of the sum: whatever vanished below 2^-126 cannot
	// matter to it.
	trust = 0x1p-102
	// storedLoss is how many bits a stored product may lose at the low end.
	storedLoss = 24
)

// operandArgs are the parameters of what reads operands.
var operandArgs = []string{ArgControl, ArgParams, ArgCodes, ArgVal, ArgExp, ArgFactors, ArgElements, ArgSums}

// forward evaluates groups of sums. Two slabs of operands and two of weights take
// turns: while one pair is multiplied, the weights of the next are on their way.
func (v Variant) forward() *ptx.Kernel {
	k := v.begin(KernelForward, tileThreads, 3, append([]string{ArgBad, ArgGroups, ArgSteps, ArgList}, operandArgs...)...)
	slabs := k.Shared("slabs", 16, 4*v.slabBytes())
	limits := k.Shared("limits", 16, 4*RowTile)
	index := k.entry(k.Special("%ctaid.x"))
	group := k.record(ArgGroups, index, GroupSize)
	g := k.LoadN(ptx.U32, 2, group, GroupSum)
	sum := k.record(ArgSums, g[0], SumSize)
	outputs := k.Mul(k.Load(ptx.U32, group, GroupBlocks), v.Block)
	t := k.rowTile(tileThreads, RowTile)
	o := k.operands(t.read)
	f := o.fitSum(sum, t.unit)
	k.storeExps(t, sum, f, k.Eq(index, k.Load(ptx.U32, sum, SumGroup)))
	limit := k.limits(sum, f)
	k.Guard(k.Eq(t.lane, 0), func() {
		for i, l := range limit {
			k.Store(ptx.F32, k.At(limits, k.Add(t.line, 16*i), 4), 0, l)
		}
	})
	p := k.rowProduct(outputs)
	k.multiply(t, o, f, p, group, outputs, slabs)
	k.Sync()
	k.finish(t, p, sum, g[1], limits)
	return k.Kernel()
}

// storeExps stores the exponents of a sum's rows if owner holds.
func (k *kernel) storeExps(t *rowTile, sum ptx.Value, f fitted, owner ptx.Value) {
	at := k.At(k.arg(ArgExp), k.Load(ptx.U32, sum, SumExp), 4)
	owner = k.And(owner, k.Eq(t.lane, 0))
	for i, e := range f.exp {
		a := k.At(at, t.row[i], 4)
		k.Guard(k.And(owner, t.real[i]), func() { k.Store(ptx.S32, a, 0, e) })
	}
}

// limits returns, by row, what an output of a sum must reach.
func (k *kernel) limits(sum ptx.Value, f fitted) (limits []ptx.Value) {
	least := k.Mul(k.Cvt(ptx.F32, k.Load(ptx.U32, sum, SumCols), "rn"), trust)
	for i := range f.exp {
		l := k.Mul(least, k.pow2(f.lost[i]))
		limits = append(limits, k.Select(f.empty[i], math.Inf(1), l))
	}
	return limits
}

// multiply adds up the steps of a group, a chunk at a time.
func (k *kernel) multiply(t *rowTile, o *operands, f fitted, p *rowProduct, group, outputs, slabs ptx.Value) {
	var (
		size     = k.slabBytes()
		perChunk = k.chunk() / k.Block
		vectors  = k.Block / k.vector() // of a step
		own      = k.Div(t.lane, vectors)
		within   = k.Mul(k.Rem(t.lane, vectors), k.vector())
		place    = k.slabPlace(t.line, t.lane)
		first    = k.Load(ptx.U32, group, GroupStep)
		steps    = k.Load(ptx.U32, group, GroupSteps)
		weights  = k.Add(k.Add(slabs, 2*size), place)
		side     = k.Mov(ptx.U32, 0) // of the slabs, in bytes
	)
	// fetch reads this thread's step of the chunk at a step and sets off its weights.
	step := k.Vars(ptx.U32, 3) // element, unit, whether it exists
	for _, s := range step {
		k.Set(s, 0)
	}
	fetch := func(at, side ptx.Value) {
		mine := k.Add(at, own)
		exists := k.Lt(mine, steps)
		record := k.LoadN(ptx.U32, 4, k.record(ArgSteps, k.Add(first, k.Select(exists, mine, 0)), StepSize), 0)
		k.Set(step[0], record[0])
		k.Into(step[1]).Add(record[1], within)
		k.Set(step[2], k.Select(exists, k.Mov(ptx.U32, 1), 0))
		from := k.MadWide(record[2], 4*k.Block*k.Block, k.arg(ArgParams))
		from = k.At(from, k.Mad(t.line, k.Block, within), 4)
		to := k.Add(weights, side)
		for i := range outTile / 16 {
			there := k.And(exists, k.Lt(k.Add(t.line, 16*i), outputs))
			have := k.Select(there, k.Mov(ptx.U32, 4*k.vector()), 0)
			k.CopyAsync(to, 16*i*k.linePitch(), from, 64*i*k.Block, 4*k.vector(), have)
		}
		k.Commit()
	}
	k.If(k.Gt(steps, 0), func() { fetch(k.Mov(ptx.U32, 0), side) })
	open := k.Mov(ptx.U32, ^uint32(0))
	k.For(ptx.U32, 0, steps, perChunk, func(at ptx.Value) {
		k.If(k.Ne(step[0], open), func() {
			k.Set(open, step[0])
			o.open(open)
			o.align(f.exp)
		})
		k.operandsToSlab(o, k.Add(k.Add(slabs, place), side), step[1], step[2])
		k.WaitGroup(0)
		k.Sync()
		left := k.Add(slabs, side)
		k.Into(side).Xor(side, size)
		next := k.Add(at, perChunk)
		k.If(k.Lt(next, steps), func() { fetch(next, side) })
		p.add(left, k.Add(left, 2*size), k.Mul(k.Min(k.Sub(steps, at), perChunk), vectors))
	})
}

// operandsToSlab writes the operands of a thread's rows to a slab, 0 where their
// step does not exist.
func (k *kernel) operandsToSlab(o *operands, to, column, exists ptx.Value) {
	put := func(rows [][]ptx.Value) {
		for i, row := range rows {
			k.putFloats(to, 16*i*k.linePitch(), row)
		}
	}
	k.IfElse(k.Ne(exists, 0), func() { put(o.form(column)) }, func() {
		if !k.matrix() {
			return // nobody reads it
		}
		zero := k.Mov(ptx.F32, 0.0)
		for i := range o.rows {
			k.putFloats(to, 16*i*k.linePitch(), []ptx.Value{zero, zero, zero, zero})
		}
	})
}

// finish stores the outputs of a group from unit row on, and marks rows with
// outputs below their limits.
func (k *kernel) finish(t *rowTile, p *rowProduct, sum, row, limits ptx.Value) {
	places := p.places()
	width := k.Load(ptx.U32, sum, SumWidth)
	end := k.Min(k.Load(ptx.U32, sum, SumUnits), k.Add(row, p.outputs)) // of the units that exist here
	start := k.At(k.element(ArgVal, k.Load(ptx.U64, sum, SumVal)), row, 4)
	n := len(places.outputs)
	for j, line := range places.rows {
		r := k.Add(t.first, line)
		limit := k.Load(ptx.F32, k.At(limits, line, 4), 0)
		k.If(k.Lt(r, t.rows), func() {
			at := k.At(k.MadWide(r, k.Mul(width, 4), start), places.outputs[0], 4)
			bad := k.Mov(ptx.Pred, k.Ne(r, r))
			p.eachRun(func(run int) {
				sums := p.acc[run][j*n : (j+1)*n]
				for l, s := range sums {
					unit := k.Add(k.Add(row, places.outputs[l]), 8*run)
					low := k.And(k.NotGe(s, limit), k.Lt(unit, end))
					k.Into(bad).Or(bad, low)
				}
				if !k.matrix() {
					k.Guard(k.Lt(k.Add(places.outputs[0], 8*run), p.outputs), func() { k.putFloats(at, 32*run, sums) })
					return
				}
				k.putFloats(at, 32*run, sums)
			})
			mark := k.At(k.arg(ArgBad), r, 4)
			k.Guard(bad, func() { k.Red("or", ptx.B32, mark, 0, 1) })
		})
	}
}

// stored evaluates stored products.
func (v Variant) stored() *ptx.Kernel {
	k := v.begin(KernelStored, tileThreads, 4, append([]string{ArgBad, ArgList}, operandArgs...)...)
	sum := k.record(ArgSums, k.entry(k.Special("%ctaid.x")), SumSize)
	t := k.rowTile(tileThreads, RowTile)
	o := k.operands(t.read)
	f := o.fitSum(sum, t.unit)
	k.storeExps(t, sum, f, k.Eq(t.lane, t.lane))
	o.align(f.exp)
	for i, r := range t.row {
		bad := k.Or(f.empty[i], k.Gt(f.lost[i], storedLoss))
		mark := k.At(k.arg(ArgBad), r, 4)
		k.Guard(k.And(k.And(bad, t.real[i]), k.Eq(t.lane, 0)), func() { k.Red("or", ptx.B32, mark, 0, 1) })
	}
	start := k.element(ArgVal, k.Load(ptx.U64, sum, SumVal))
	var rows []ptx.Value
	for _, r := range t.row {
		rows = append(rows, k.MadWide(r, k.Mul(o.width, 4), start))
	}
	k.For(ptx.U32, t.unit, o.width, v.chunk(), func(c ptx.Value) {
		for i, xs := range o.form(c) {
			at := k.At(rows[i], c, 4)
			k.Guard(t.real[i], func() { k.putFloats(at, 0, xs) })
		}
	})
	return k.Kernel()
}
