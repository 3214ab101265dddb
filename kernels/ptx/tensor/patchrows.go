package tensor

import "github.com/pce-engine/pce/kernels/ptx"

// bringing is what brings the rows of a member to the stages of a patch: ratios as
// they are, by copies; operands through registers, whose factors are read a stage
// before they are multiplied.
type bringing struct {
	*patchFlows
	*operands // of the row at hand
	sum       ptx.Value
	element   ptx.Value
	from      ptx.Value                    // U64: the ratios of the thread's units in row 0
	pitch     ptx.Value                    // U32, bytes from row to row of them
	bytes     ptx.Value                    // U32: of its vector that exist
	column    ptx.Value                    // U32, in the element: the thread's first
	exists    ptx.Value                    // Pred: the patch has it
	start     [BareFactors]ptx.Value       // U64: the thread's column in row, or code, 0 of the first factors
	values    [2][BareFactors][]ptx.Value  // F32, by the thread's rows of a stage
	offsets   [2]struct{ head, stage int } // of its rows
}

// bring prepares to bring a member's rows.
func (f *patchFlows) bring(sum, element, column ptx.Value) *bringing {
	k := f.kernel
	b := &bringing{patchFlows: f, sum: sum, element: element}
	b.operands = k.operands(k.Vars(ptx.U32, 1))
	k.Set(b.operands.rows[0], 0)
	mine := k.Div(f.vec, f.Block)
	there := k.Lt(mine, f.steps)
	b.bytes = k.Select(there, k.Mov(ptx.U32, 16), 0)
	row := k.Load(ptx.U32, k.record(ArgRowSteps, k.Add(f.step, k.Select(there, mine, 0)), RowStepSize), RowStepRow)
	b.from = k.At(k.element(ArgRatio, k.Load(ptx.U64, sum, SumVal)), k.Add(row, k.Rem(f.vec, f.Block)), 4)
	b.pitch = k.Mul(k.Load(ptx.U32, sum, SumWidth), 4)
	b.exists = k.Lt(f.vec, f.columns)
	b.column = k.Add(column, k.Select(b.exists, f.vec, 0))
	for i := range b.offsets {
		b.offsets[i].head = headSize * patchLines * i
		b.offsets[i].stage = 4 * patchLines * i * f.patch.pitch()
	}
	for i := range b.values {
		b.values[i] = [BareFactors][]ptx.Value{}
		for j, list := range k.zeros(BareFactors, 4) {
			b.values[i][j] = list
		}
	}
	b.turnFormed(element, sum)
	for i := range b.start {
		b.start[i] = k.Mov(ptx.U64, 0)
		k.If(k.Gt(b.factors(), i), func() { k.Into(b.start[i]).At(b.held[i].start, b.column, 4) })
	}
	return b
}

// writeHeads writes the heads of patchHeads rows from first on.
func (b *bringing) writeHeads(first ptx.Value) {
	k := b.patchFlows.kernel
	last := k.Sub(b.patchFlows.rows, 1)
	exps := k.At(k.arg(ArgExp), k.Load(ptx.U32, b.sum, SumExp), 4)
	row := b.operands.rows[0]
	k.For(ptx.U32, k.Special("%tid.x"), patchHeads, b.threads(), func(i ptx.Value) {
		own := k.Add(first, i)
		k.Into(row).Min(own, last)
		mark := k.Load(ptx.U32, k.At(k.arg(ArgBad), row, 4), 0)
		exp := k.Load(ptx.S32, k.At(exps, row, 4), 0)
		places := k.Vars(ptx.U32, BareFactors)
		for _, p := range places {
			k.Set(p, row)
		}
		b.adding(func(sums []exponentSum) {
			b.eachCount(func(n int) {
				for f := range n {
					p := b.held[f]
					k.IfElse(k.Eq(p.kind, StoredFactor), func() {
						k.addTo(sums[0], k.Load(ptx.S32, k.At(p.side, row, 4), 0))
					}, func() { k.Set(places[f], k.code(p.side, row)) })
				}
				if n == 0 {
					b.eachFactor(func(factor ptx.Value) { b.locate(k.place(factor, 0), nil, sums) })
				}
			})
		})
		b.align([]ptx.Value{exp})
		clear := k.And(k.Lt(own, b.patchFlows.rows), k.Eq(mark, 0))
		k.Set(places[0], k.Select(clear, places[0], nowhere))
		end := k.Select(b.isBare(), b.scale[0].As(ptx.U32), b.shift[0].As(ptx.U32))
		k.StoreN(ptx.U32, k.At(b.heads, i, headSize), 0, append(places, end))
	})
}

// head is the place of the head of the thread's first row of a stage.
func (b *bringing) head(stage ptx.Value) ptx.Value {
	k := b.patchFlows.kernel
	return k.At(b.heads, k.Mad(stage, patchRows, b.line), headSize)
}

// ratios sets off the copies of the ratios of a stage, counted from row first on, to
// the stage at a byte of those of ratios.
func (b *bringing) ratios(first, stage, slot ptx.Value) {
	k := b.patchFlows.kernel
	head := b.head(stage)
	to := k.At(k.Add(b.patchFlows.ratios, slot), k.Mad(b.line, b.patch.pitch(), b.vec), 4)
	row := k.Add(k.Mad(stage, patchRows, first), b.line)
	last := k.Sub(b.patchFlows.rows, 1)
	for i, at := range b.offsets {
		here := k.Ne(k.Load(ptx.U32, head, at.head), nowhere)
		from := k.MadWide(k.Min(k.Add(row, patchLines*i), last), b.pitch, b.from)
		k.CopyAsync(to, at.stage, from, 0, 16, k.Select(here, b.bytes, 0))
	}
}

// load reads the factors of the thread's operands of a stage, if they are few.
func (b *bringing) load(stage ptx.Value) {
	k := b.patchFlows.kernel
	head := b.head(stage)
	pitch := k.Mul(b.width, 4)
	b.eachCount(func(n int) {
		if n == 0 {
			return // store does
		}
		for i, at := range b.offsets {
			places := k.LoadN(ptx.U32, 4, head, at.head)
			places[0] = k.Select(k.Ne(places[0], nowhere), places[0], 0)
			for f := range n {
				for j, x := range k.LoadN(ptx.F32, 4, k.MadWide(places[f], pitch, b.start[f]), 0) {
					k.Set(b.values[i][f][j], x)
				}
			}
		}
	})
}

// store writes the operands of a stage, 0 where a row or a column counts for nothing,
// to the stage at a byte of those of operands.
func (b *bringing) store(stage, side ptx.Value) {
	k := b.patchFlows.kernel
	head := b.head(stage)
	to := k.At(k.Add(b.operandsAt, side), k.Mad(b.line, b.patch.pitch(), b.vec), 4)
	b.eachCount(func(n int) {
		for i, at := range b.offsets {
			first := k.Load(ptx.U32, head, at.head)
			end := k.Load(ptx.F32, head, at.head+headScale)
			here := k.And(k.Ne(first, nowhere), b.exists)
			var xs []ptx.Value
			if n == 0 {
				k.Set(b.operands.rows[0], k.Select(k.Ne(first, nowhere), first, 0))
				k.Set(b.shift[0], end.As(ptx.S32))
				xs = b.formWide(0, b.column)
			} else {
				for j := range 4 {
					x := b.values[i][0][j]
					for f := 1; f < n; f++ {
						x = k.Mul(x, b.values[i][f][j])
					}
					xs = append(xs, k.Mul(x, end))
				}
			}
			for j, x := range xs {
				if k.Mixed {
					x = k.TF32(x).As(ptx.F32)
				}
				xs[j] = k.Select(here, x, 0.0)
			}
			k.StoreN(ptx.F32, to, at.stage, xs)
		}
	})
}
