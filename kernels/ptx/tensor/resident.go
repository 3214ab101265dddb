package tensor

import "github.com/pce-engine/pce/kernels/ptx"

// KernelForwardResident evaluates runs of groups of sums, whose operands it forms
// once: x = entries of list (pairs: the first group, and how many follow each other
// from there), y = ceil(rows/T), with ResidentBytes of dynamic shared memory. All
// groups of such a sum have the same steps: every column block of its elements, in
// order. Matrix variants have it.
const KernelForwardResident = "forward_resident"

// ResidentColumns is the most columns that a sum of KernelForwardResident has, in all
// its elements.
const ResidentColumns = 512

// ResidentGroups is how many groups a block of threads of KernelForwardResident
// multiplies at a time.
const ResidentGroups = 2

const residentThreads = ResidentGroups * tileThreads

// room is the dynamic shared memory.
const room = "room"

// ResidentBytes is the dynamic shared memory of sums of that many columns.
func (v Variant) ResidentBytes(columns int) int {
	return (columns + v.chunk() - 1) / v.chunk() * v.slabBytes()
}

// ResidentShared is the shared memory of KernelForwardResident in addition to that.
func (v Variant) ResidentShared() int { return 2*ResidentGroups*v.slabBytes() + 4*RowTile }

// Resident reports whether the variant has KernelForwardResident.
func (v Variant) Resident() bool { return v.matrix() }

// forwardResident is forward with the operands of all columns as slabs in shared
// memory. Teams of threads take turns with the groups; each has two slabs of weights.
func (v Variant) forwardResident() *ptx.Kernel {
	k := v.begin(KernelForwardResident, residentThreads, 2, append([]string{ArgBad, ArgGroups, ArgSteps, ArgList}, operandArgs...)...)
	weights := k.Shared("weights", 16, 2*ResidentGroups*v.slabBytes())
	limits := k.Shared("limits", 16, 4*RowTile)
	slabs := k.Symbol(room)
	run := k.LoadN(ptx.U32, 2, k.At(k.arg(ArgList), k.Special("%ctaid.x"), 8), 0)
	sum := k.record(ArgSums, k.Load(ptx.U32, k.record(ArgGroups, run[0], GroupSize), GroupSum), SumSize)
	t := k.rowTile(residentThreads, RowTile)
	firstRun := k.Eq(run[0], k.Load(ptx.U32, sum, SumGroup))
	f := k.residentOperands(t, sum, slabs, firstRun)
	k.storeExps(t, sum, f, firstRun)
	limit := k.limits(sum, f)
	k.Guard(k.Eq(t.lane, 0), func() {
		for i, l := range limit {
			k.Store(ptx.F32, k.At(limits, k.Add(t.line, i*residentThreads/lanes), 4), 0, l)
		}
	})
	k.multiplyResident(t, sum, run, weights, slabs, limits)
	return k.Kernel()
}

// residentOperands writes the operands of a sum to slabs: first as bare products,
// which it then scales; those of many factors are formed again for that.
//
// The first run of the sum's groups keeps those that are wanted again.
func (k *kernel) residentOperands(t *rowTile, sum, slabs, firstRun ptx.Value) fitted {
	var (
		apart   = residentThreads / lanes * k.linePitch()
		columns = k.Load(ptx.U32, sum, SumCols)
		first   = k.Load(ptx.U32, sum, SumElement)
		several = k.Gt(k.Load(ptx.U32, sum, SumElements), 1)
		line    = k.Mad(t.line, k.linePitch(), slabs)
		key     = k.slabKey(t.line)
		before  = k.Mov(ptx.U32, 0) // columns of earlier elements
	)
	// at is the place of the vector from a column of the element on, in the thread's first row.
	at := func(c ptx.Value) ptx.Value {
		c = k.Add(before, c)
		j := k.Xor(k.And(k.Div(c, k.vector()), lanes-1), key)
		return k.Mad(k.Div(c, k.chunk()), k.slabBytes(), k.Mad(j, 4*k.vector(), line))
	}
	put := func(to ptx.Value, rows [][]ptx.Value) {
		for i, row := range rows {
			k.putFloats(to, i*apart, row)
		}
	}
	o := k.operands(t.read)
	f := o.fitElements(sum, func(top []ptx.Value) {
		o.fit(t.unit, top, func(c ptx.Value, rows [][]ptx.Value) { put(at(c), rows) })
		k.Into(before).Add(before, o.width)
	})
	// The last slab may have columns that do not exist.
	beyond := k.And(k.Sub(k.chunk(), k.And(columns, k.chunk()-1)), k.chunk()-1)
	k.If(k.Lt(t.unit, beyond), func() { put(at(t.unit), k.zeros(len(t.read), k.vector())) })
	k.Set(before, 0)
	k.For(ptx.U32, first, k.Add(first, k.Load(ptx.U32, sum, SumElements)), 1, func(e ptx.Value) {
		k.If(several, func() { o.exponents(e) })
		o.align(f.exp)
		k.IfElse(o.isBare(), func() {
			k.For(ptx.U32, t.unit, o.width, k.chunk(), func(c ptx.Value) {
				to := at(c)
				rows := make([][]ptx.Value, len(t.read))
				for i := range rows {
					rows[i] = k.floats(k.vector(), to, i*apart)
				}
				for i, row := range rows {
					for j, x := range row {
						row[j] = k.Mul(x, o.scale[i])
					}
				}
				put(to, rows)
			})
		}, func() {
			keep := o.keeper(e)
			k.For(ptx.U32, t.unit, o.width, k.chunk(), func(c ptx.Value) {
				to := at(c)
				for i := range t.read {
					xs := o.formWide(i, c)
					k.putFloats(to, i*apart, xs)
					keep(i, c, k.And(t.real[i], firstRun), xs)
				}
			})
		})
		k.Into(before).Add(before, o.width)
	})
	return f
}

// exponents turns to an element for its exponents and products of many factors alone.
func (o *operands) exponents(element ptx.Value) {
	o.head(element)
	o.adding(func(sums []exponentSum) {
		o.eachFactor(func(factor ptx.Value) { o.locate(o.k.place(factor, 0), nil, sums) })
	})
}

// multiplyResident multiplies the operands in slabs with the weights of a run of
// groups, a chunk at a time: while one is multiplied, the weights of the next are on
// their way.
func (k *kernel) multiplyResident(t *rowTile, sum ptx.Value, run []ptx.Value, weights, slabs, limits ptx.Value) {
	var (
		size     = k.slabBytes()
		perChunk = k.chunk() / k.Block
		vectors  = k.Block / k.vector() // of a step
		line     = k.Shr(k.worker(), 3)
		own      = k.Div(t.lane, vectors)
		within   = k.Mul(k.Rem(t.lane, vectors), k.vector())
		team     = k.Div(k.Special("%tid.x"), tileThreads)
		first    = k.Add(run[0], team)
		end      = k.Add(run[0], run[1])
		steps    = k.Load(ptx.U32, k.record(ArgGroups, run[0], GroupSize), GroupSteps)
		side     = k.Mov(ptx.U32, 0) // of the team's slabs, in bytes
	)
	weights = k.Mad(team, 2*size, weights)
	place := k.Add(weights, k.slabPlace(line, t.lane))
	inBlock := k.Mad(line, k.Block, within)
	// open reads the record of a group: its first unit, its outputs, and its first
	// step. A group that does not exist has no outputs.
	open := func(g ptx.Value) (row, outputs, step ptx.Value) {
		exists := k.Lt(g, end)
		record := k.LoadN(ptx.U32, 4, k.record(ArgGroups, k.Select(exists, g, run[0]), GroupSize), 0)
		return record[1], k.Select(exists, k.Mul(record[2], k.Block), 0), record[3]
	}
	fetch := func(g, at, side ptx.Value) {
		_, outputs, step := open(g)
		mine := k.Add(at, own)
		exists := k.Lt(mine, steps)
		record := k.record(ArgSteps, k.Add(step, k.Select(exists, mine, 0)), StepSize)
		from := k.MadWide(k.Load(ptx.U32, record, StepParam), 4*k.Block*k.Block, k.arg(ArgParams))
		from = k.At(from, inBlock, 4)
		to := k.Add(place, side)
		for i := range outTile / 16 {
			there := k.And(exists, k.Lt(k.Add(line, 16*i), outputs))
			have := k.Select(there, k.Mov(ptx.U32, 4*k.vector()), 0)
			k.CopyAsync(to, 16*i*k.linePitch(), from, 64*i*k.Block, 4*k.vector(), have)
		}
		k.Commit()
	}
	fetch(first, k.Mov(ptx.U32, 0), side)
	p := k.rowProduct(k.Mov(ptx.U32, 0))
	k.For(ptx.U32, run[0], end, ResidentGroups, func(base ptx.Value) {
		g := k.Add(base, team)
		after := k.Add(base, ResidentGroups)
		row, outputs, _ := open(g)
		k.Set(p.outputs, outputs)
		clearAll(k, p.acc)
		left := k.Mov(ptx.U32, slabs)
		k.For(ptx.U32, 0, steps, perChunk, func(at ptx.Value) {
			k.WaitGroup(0)
			k.Sync()
			right := k.Add(weights, side)
			k.Into(side).Xor(side, size)
			next := k.Add(at, perChunk)
			same := k.Lt(next, steps)
			k.If(k.Or(same, k.Lt(after, end)), func() {
				fetch(k.Add(k.Select(same, base, after), team), k.Select(same, next, 0), side)
			})
			k.If(k.Gt(p.outputs, 0), func() { p.addMatrix(left, right) })
			k.Into(left).Add(left, size)
		})
		k.If(k.Gt(p.outputs, 0), func() { k.finish(t, p, sum, row, limits) })
	})
}
