package tensor

import "github.com/pce-engine/pce/kernels/ptx"

// backward sends flows down from sums: columns of the ratios' product with the
// weights, times the operands. Slabs of ratios and panels of weights take turns.
func (v Variant) backward() *ptx.Kernel {
	k := v.begin(KernelBackward, tileThreads, 3, append([]string{ArgRatio, ArgKept, ArgBad, ArgColumns, ArgRowSteps, ArgList}, operandArgs...)...)
	tiles := k.Shared("tiles", 16, max(2*(v.slabBytes()+v.panelBytes()), 4*RowTile*panelPitch))
	column := k.record(ArgColumns, k.entry(k.Special("%ctaid.x")), ColumnSize)
	head := k.LoadN(ptx.U32, 4, column, ColumnSum)
	sum := k.record(ArgSums, head[0], SumSize)
	units := k.Mul(head[3], v.Block)
	t := k.rowTile(tileThreads, RowTile)
	clear := k.unmarked(t)
	p := k.rowProduct(units)
	k.multiplyDown(t, p, clear, sum, column, tiles)
	k.Sync()
	k.unload(p, tiles)
	k.Sync()
	k.sendDown(t, sum, head, units, tiles, panelPitch)
	return k.Kernel()
}

// sendDown multiplies the flows that lie in rows of shared memory, pitch floats apart,
// by the operands of a column, given by the head of its record, and sends them to its
// factors.
func (k *kernel) sendDown(t *rowTile, sum ptx.Value, head []ptx.Value, units, rows ptx.Value, pitch int) {
	clear := k.unmarked(t)
	o, source := k.operands(t.read), k.operands(t.read)
	o.openFormed(head[1], sum)
	source.head(head[1])
	exps := k.At(k.arg(ArgExp), k.Load(ptx.U32, sum, SumExp), 4)
	var exp []ptx.Value
	for _, r := range t.read {
		exp = append(exp, k.Load(ptx.S32, k.At(exps, r, 4), 0))
	}
	o.align(exp)
	d := source.down(head[1], t)
	lines := k.At(rows, k.Mul(t.line, pitch), 4)
	k.For(ptx.U32, t.unit, units, k.chunk(), func(c ptx.Value) {
		unit := k.Add(head[2], c)
		flows := o.form(unit)
		at := k.At(lines, c, 4)
		for i, row := range flows {
			for j, g := range k.floats(o.vector, at, 4*t.apart*i*pitch) {
				row[j] = k.Mul(row[j], g)
			}
		}
		d.send(flows, unit, clear)
	})
}

// unmarked reports, by row of a thread, whether the row exists and is not marked.
func (k *kernel) unmarked(t *rowTile) (clear []ptx.Value) {
	for i, r := range t.read {
		mark := k.Load(ptx.U32, k.At(k.arg(ArgBad), r, 4), 0)
		clear = append(clear, k.And(k.Eq(mark, 0), t.real[i]))
	}
	return clear
}

// multiplyDown adds up the row steps of a column, a chunk of outputs at a time.
func (k *kernel) multiplyDown(t *rowTile, p *rowProduct, clear []ptx.Value, sum, column, tiles ptx.Value) {
	var (
		vector   = k.vector()
		slab     = k.slabBytes()
		perChunk = k.chunk() / k.Block
		across   = outTile / vector     // vectors of a panel's row
		deep     = tileThreads / across // rows that the block copies at once
		tid      = k.Special("%tid.x")
		head     = k.LoadN(ptx.U32, 2, column, ColumnStep) // first row step, steps
		steps    = head[1]
		start    = k.element(ArgRatio, k.Load(ptx.U64, sum, SumVal))
		pitch    = k.Mul(k.Load(ptx.U32, sum, SumWidth), 4)
		place    = k.slabPlace(t.line, t.lane)
		unit     = k.Mul(k.Rem(tid, across), vector) // of the panel
		block    = k.Mul(k.Div(unit, k.Block), k.Load(ptx.U32, column, ColumnStride))
		exists   = k.Lt(unit, p.outputs)
		side     = k.Mov(ptx.U32, 0)
		panels   = k.Add(tiles, 2*slab)
		rows     []ptx.Value // addresses of the ratios' rows
		have     []ptx.Value // bytes to read of them
		lines    []ptx.Value // offsets of the panel's rows of this thread
		outs     []ptx.Value // their numbers
	)
	for i, r := range t.read {
		rows = append(rows, k.MadWide(r, pitch, start))
		have = append(have, k.Select(clear[i], k.Mov(ptx.U32, 4*vector), 0))
	}
	for i := range k.chunk() / deep {
		o := k.Add(k.Div(tid, across), i*deep)
		outs = append(outs, o)
		lines = append(lines, k.Mul(k.Mad(k.panelRow(o), panelPitch, unit), 4))
	}
	// step reads the row step of output o of the chunk at a step: its record, and
	// whether it exists.
	step := func(at, o ptx.Value) ([]ptx.Value, ptx.Value) {
		mine := k.Add(at, k.Div(o, k.Block))
		there := k.Lt(mine, steps)
		return k.LoadN(ptx.U32, 2, k.record(ArgRowSteps, k.Add(head[0], k.Select(there, mine, 0)), RowStepSize), 0), there
	}
	fetch := func(at, side, panel ptx.Value) {
		record, there := step(at, t.unit)
		first := k.Add(record[0], k.Rem(t.unit, k.Block))
		to := k.Add(k.Add(tiles, place), side)
		for i, r := range rows {
			k.CopyAsync(to, 16*i*k.linePitch(), k.At(r, first, 4), 0, 4*vector, k.Select(there, have[i], 0))
		}
		for i, o := range outs {
			record, there := step(at, o)
			from := k.MadWide(k.Add(record[1], block), 4*k.Block*k.Block, k.arg(ArgParams))
			from = k.At(from, k.Mad(k.Rem(o, k.Block), k.Block, k.Rem(unit, k.Block)), 4)
			bytes := k.Select(k.And(there, exists), k.Mov(ptx.U32, 4*vector), 0)
			k.CopyAsync(k.Add(panel, lines[i]), 0, from, 0, 4*vector, bytes)
		}
		k.Commit()
	}
	panel := k.Mov(ptx.U32, panels)
	other := k.Add(panels, k.panelBytes())
	k.If(k.Gt(steps, 0), func() { fetch(k.Mov(ptx.U32, 0), side, panel) })
	k.For(ptx.U32, 0, steps, perChunk, func(at ptx.Value) {
		k.WaitGroup(0)
		k.Sync()
		left, right := k.Add(tiles, side), k.Mov(ptx.U32, panel)
		k.Into(side).Xor(side, slab)
		k.Into(panel).Select(k.Ne(side, 0), other, panels)
		next := k.Add(at, perChunk)
		k.If(k.Lt(next, steps), func() { fetch(next, side, panel) })
		vectors := k.Mul(k.Min(k.Sub(steps, at), perChunk), k.Block/vector)
		p.addDown(left, right, vectors)
	})
}

// downward is how the flows of an element go down to its factors.
type downward struct {
	*operands
	t     *rowTile
	pitch ptx.Value   // U32, bytes
	keeps ptx.Value   // Pred
	kept  []ptx.Value // U64, by row: first unit of the flows that the element keeps
}

// down prepares to send flows down from the element that is open.
func (o *operands) down(element ptx.Value, t *rowTile) *downward {
	k := o.k
	d := &downward{operands: o, t: t}
	kept := k.Load(ptx.U64, k.record(ArgElements, element, ElementSize), ElementKept)
	d.keeps = k.Ne(kept, NotKept)
	d.pitch = k.Mul(o.width, 4)
	start := k.element(ArgKept, kept)
	for _, r := range t.read {
		d.kept = append(d.kept, k.MadWide(r, d.pitch, start))
	}
	return d
}

// send hands the flows of the units from unit on to what the element keeps and to
// the ratios of its factors, in rows for which where holds.
func (d *downward) send(flows [][]ptx.Value, unit ptx.Value, where []ptx.Value) {
	k := d.k
	k.If(d.keeps, func() {
		for i, row := range flows {
			at := k.At(d.kept[i], unit, 4)
			k.Guard(where[i], func() { k.putFloats(at, 0, row) })
		}
	})
	d.eachFactor(func(factor ptx.Value) {
		k.If(k.Eq(k.Load(ptx.U32, factor, FactorDown), DownRatio), func() {
			base := k.Load(ptx.U64, factor, FactorBase)
			vals, ratios := k.element(ArgVal, base), k.element(ArgRatio, base)
			for i, row := range flows {
				to := k.At(k.MadWide(d.t.read[i], d.pitch, ratios), unit, 4)
				from := k.At(k.MadWide(d.t.read[i], d.pitch, vals), unit, 4)
				quotients := k.ratios(row, k.floats(d.vector, from, 0))
				k.Guard(where[i], func() { k.putFloats(to, 0, quotients) })
			}
		})
	})
}

// ratios returns flows over values, 0 where a value is 0.
func (k *kernel) ratios(flows, values []ptx.Value) (quotients []ptx.Value) {
	for i, f := range flows {
		q := k.Div(f, values[i])
		quotients = append(quotients, k.Select(k.Eq(values[i], 0.0), 0.0, q))
	}
	return quotients
}

// gather forms the flows of vectors that several elements read, of stored products
// and of the root, from those that the elements keep, in rows that are not marked.
// Sums get ratios; a stored product hands its flows on.
func (v Variant) gather() *ptx.Kernel {
	k := v.begin(KernelGather, tileThreads, 4, append([]string{ArgRatio, ArgKept, ArgBad, ArgUses, ArgList}, operandArgs...)...)
	sum := k.record(ArgSums, k.entry(k.Special("%ctaid.x")), SumSize)
	t := k.rowTile(tileThreads, RowTile)
	where := k.unmarked(t)
	width := k.Load(ptx.U32, sum, SumWidth)
	base := k.Load(ptx.U64, sum, SumVal)
	isRoot := k.Ne(k.Load(ptx.U32, sum, SumRoot), 0)
	isSum := k.Gt(k.Load(ptx.U32, sum, SumGroups), 0)
	first := k.Load(ptx.U32, sum, SumUser)
	end := k.Add(first, k.Load(ptx.U32, sum, SumUsers))
	o := k.operands(t.read)
	element := k.Load(ptx.U32, sum, SumElement)
	o.head(element)
	k.Set(o.width, width)
	d := o.down(element, t)
	vals, ratios := k.element(ArgVal, base), k.element(ArgRatio, base)
	k.For(ptx.U32, t.unit, width, v.chunk(), func(c ptx.Value) {
		flows := make([][]ptx.Value, len(t.read))
		for i := range flows {
			flows[i] = k.Vars(ptx.F32, o.vector)
			for _, f := range flows[i] {
				k.Set(f, 0.0)
			}
		}
		k.For(ptx.U32, first, end, 1, func(u ptx.Value) {
			use := k.record(ArgUses, u, UseSize)
			start := k.element(ArgKept, k.Load(ptx.U64, use, UseKept))
			pitch := k.Mul(k.Load(ptx.U32, use, UseWidth), 4)
			for i, r := range t.read {
				for j, f := range k.floats(o.vector, k.At(k.MadWide(r, pitch, start), c, 4), 0) {
					k.Into(flows[i][j]).Add(flows[i][j], f)
				}
			}
		})
		values := make([][]ptx.Value, len(t.read))
		for i, r := range t.read {
			values[i] = k.floats(o.vector, k.At(k.MadWide(r, d.pitch, vals), c, 4), 0)
		}
		k.If(k.And(isRoot, k.Eq(c, 0)), func() {
			for i := range flows {
				exp := k.Load(ptx.S32, k.At(k.sumExps(sum), t.read[i], 4), 0)
				possible := k.And(k.Gt(values[i][0], 0.0), k.Gt(exp, Lost))
				one := k.Select(possible, k.Mov(ptx.F32, 1.0), 0.0)
				k.Into(flows[i][0]).Add(flows[i][0], one)
			}
		})
		k.IfElse(isSum, func() {
			for i, r := range t.read {
				at := k.At(k.MadWide(r, d.pitch, ratios), c, 4)
				quotients := k.ratios(flows[i], values[i])
				k.Guard(where[i], func() { k.putFloats(at, 0, quotients) })
			}
		}, func() { d.send(flows, c, where) })
	})
	return k.Kernel()
}
