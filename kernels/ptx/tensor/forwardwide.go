package tensor

import "github.com/pce-engine/pce/kernels/ptx"

const (
	// KernelFit chooses the exponents of sums, and what their outputs must reach: x =
	// entries of list (sums), y = ceil(rows/T). Matrix variants have it.
	KernelFit = "fit"
	// KernelForwardWide evaluates groups of up to WideColumns units of sums that KernelFit
	// has done: x = entries of list (groups), y = ceil(rows/WideRows), with
	// ForwardWideShared of dynamic shared memory. It reads operands and weights half as
	// often as KernelForward, and has the same bits.
	KernelForwardWide = "forward_wide"
)

const (
	wideOperands   = 2                         // stages of operands
	wideOut        = wideDepth + 4             // floats from output to output of weights: eight lanes that read vectors of two, four outputs apart, meet no bank twice
	wideWeights    = 4 * WideColumns * wideOut // of a stage, in bytes
	wideOperandsAt = wideStages * wideWeights  // behind the weights
)

// ForwardWideShared is the shared memory of KernelForwardWide.
const ForwardWideShared = wideOperandsAt + wideOperands*wideLeft

// fit is the first half of forward.
func (v Variant) fit() *ptx.Kernel {
	k := v.begin(KernelFit, tileThreads, 4, append([]string{ArgLimits, ArgList}, operandArgs...)...)
	sum := k.record(ArgSums, k.entry(k.Special("%ctaid.x")), SumSize)
	t := k.rowTile(tileThreads, RowTile)
	o := k.operands(t.read)
	f := o.fitSum(sum, t.unit)
	k.storeExps(t, sum, f, k.Eq(t.lane, t.lane))
	to := k.At(k.arg(ArgLimits), k.Load(ptx.U32, sum, SumExp), 4)
	for i, l := range k.limits(sum, f) {
		at := k.At(to, t.row[i], 4)
		k.Guard(k.And(t.real[i], k.Eq(t.lane, 0)), func() { k.Store(ptx.F32, at, 0, l) })
	}
	return k.Kernel()
}

// wideOperand is what brings operands to the stages of forwardWide: two rows of a
// thread, a vector of each. Their factors are read a stage before they are multiplied.
type wideOperand struct {
	*operands
	exps   []ptx.Value                 // S32, of the sum, by row
	open   ptx.Value                   // U32: the element
	column ptx.Value                   // U32, of the vector in the element
	values [2][bareFactors][]ptx.Value // F32, by row
	to     ptx.Value                   // U32: of the first row in a stage, in bytes
}

// forwardWide is the second half of forward, 128 rows and up to 128 outputs at a time.
// Lane 4g+t has outputs 8t+4h+j (j < 4) of its warp: fragment j has output 4g+j as its
// column g.
func (v Variant) forwardWide() *ptx.Kernel {
	k := v.begin(KernelForwardWide, wideThreads, 1, append([]string{ArgBad, ArgLimits, ArgGroups, ArgSteps, ArgList}, operandArgs...)...)
	tiles := k.Symbol(room)
	group := k.LoadN(ptx.U32, 4, k.record(ArgGroups, k.entry(k.Special("%ctaid.x")), GroupSize), 0)
	steps := k.Load(ptx.U32, k.record(ArgGroups, k.entry(k.Special("%ctaid.x")), GroupSize), GroupSteps)
	sum := k.record(ArgSums, group[0], SumSize)
	p := k.wideProduct(k.Mul(group[2], v.Block))
	k.multiplyWideForward(p, sum, group[3], steps, tiles)
	p.finish(sum, group[1])
	return k.Kernel()
}

// wideOperand prepares to bring the operands of a sum.
func (k *kernel) wideOperand(sum ptx.Value) *wideOperand {
	tid := k.Special("%tid.x")
	rows := k.control(ptx.U32, ControlRows)
	last := k.Sub(rows, 1)
	line := k.Shr(tid, 2)
	exps := k.At(k.arg(ArgExp), k.Load(ptx.U32, sum, SumExp), 4)
	w := &wideOperand{open: k.Mov(ptx.U32, ^uint32(0)), column: k.Mov(ptx.U32, 0)}
	var read []ptx.Value
	for i := range 2 {
		r := k.Min(k.Add(k.Mad(k.Special("%ctaid.y"), WideRows, line), WideRows/2*i), last)
		read = append(read, r)
		w.exps = append(w.exps, k.Load(ptx.S32, k.At(exps, r, 4), 0))
		for f, list := range k.zeros(bareFactors, 4) {
			w.values[i][f] = list
		}
	}
	w.operands = k.operands(read)
	w.to = k.Mul(k.Mad(line, wideDepth, k.Mul(k.And(tid, 3), 4)), 4)
	return w
}

// load turns to the columns of an element from one on, and reads their factors if they
// are few.
func (w *wideOperand) load(element, column ptx.Value) {
	k := w.k
	k.If(k.Ne(element, w.open), func() {
		k.Set(w.open, element)
		w.operands.open(element)
		w.align(w.exps)
	})
	k.Into(w.column).Mad(k.And(k.Special("%tid.x"), 3), 4, column)
	w.eachCount(func(n int) {
		for f := range n {
			for i, at := range w.at[f] {
				for j, x := range k.LoadN(ptx.F32, 4, k.At(at, w.column, 4), 0) {
					k.Set(w.values[i][f][j], x)
				}
			}
		}
	})
}

// store writes the operands to a stage.
func (w *wideOperand) store(stage ptx.Value) {
	k := w.k
	to := k.Add(stage, w.to)
	w.eachCount(func(n int) {
		for i := range w.rows {
			var xs []ptx.Value
			if n == 0 {
				xs = w.formWide(i, w.column)
			} else {
				for j := range 4 {
					x := w.values[i][0][j]
					for f := 1; f < n; f++ {
						x = k.Mul(x, w.values[i][f][j])
					}
					xs = append(xs, k.Mul(x, w.scale[i]))
				}
			}
			k.StoreN(ptx.F32, to, wideLeft/2*i, xs)
		}
	})
}

// multiplyWideForward adds up the steps of a group.
func (k *kernel) multiplyWideForward(p *wideProduct, sum, first, steps, tiles ptx.Value) {
	var (
		s      = k.Block
		tid    = k.Special("%tid.x")
		stages = k.Mul(steps, s/wideDepth)
		out    = k.Shr(tid, 2) // of a stage's weights: this and the one 64 further
		vec    = k.Mul(k.And(tid, 3), 4)
		own    = k.Mad(out, s, vec)
		to     = k.Mul(k.Mad(out, wideOut, vec), 4)
		slot   = k.Mov(ptx.U32, tiles)
		end    = k.Add(tiles, wideOperandsAt)
		side   = k.Mov(ptx.U32, end)
		have   []ptx.Value
	)
	for i := range 2 {
		have = append(have, k.Select(k.Lt(k.Add(out, WideColumns/2*i), p.units), k.Mov(ptx.U32, 16), 0))
	}
	g, t := k.Shr(p.lane, 2), k.And(p.lane, 3)
	p.rightAt = k.Mul(k.Mad(k.Mad(g, 4, p.column), wideOut, k.Mul(t, 4)), 4)
	step := func(stage ptx.Value) (record []ptx.Value, within ptx.Value) {
		column := k.Mul(stage, wideDepth)
		record = k.LoadN(ptx.U32, 4, k.record(ArgSteps, k.Add(first, k.Div(column, s)), StepSize), 0)
		return record, k.Rem(column, s)
	}
	fetch := func(stage, slot ptx.Value) {
		record, within := step(stage)
		from := k.MadWide(record[2], 4*s*s, k.arg(ArgParams))
		from = k.At(from, k.Add(own, within), 4)
		for i, bytes := range have {
			k.CopyAsync(k.Add(slot, to), wideWeights/2*i, from, 4*s*WideColumns/2*i, 16, bytes)
		}
	}
	for i := range wideStages - 1 {
		k.If(k.Gt(stages, i), func() { fetch(k.Mov(ptx.U32, i), k.Add(slot, i*wideWeights)) })
		k.Commit()
	}
	w := k.wideOperand(sum)
	// While a stage's factors are read, the one before is multiplied.
	k.For(ptx.U32, 0, k.Add(stages, 1), 1, func(stage ptx.Value) {
		exists := k.Lt(stage, stages)
		before := k.Select(k.Gt(slot, tiles), k.Sub(slot, wideWeights), k.Sub(end, wideWeights))
		other := k.Select(k.Eq(side, end), k.Add(end, wideLeft), end)
		k.If(exists, func() {
			record, within := step(stage)
			w.load(record[0], k.Add(record[1], within))
		})
		k.If(k.And(p.anything, k.Gt(stage, 0)), func() {
			var outs [4][]ptx.Value // by output, four columns
			for j := range outs {
				outs[j] = k.LoadN(ptx.F32, 4, k.Add(before, p.rightAt), 4*wideOut*j)
			}
			var right [4][]ptx.Value
			for c := range right {
				for _, out := range outs {
					right[c] = append(right[c], out[c])
				}
			}
			p.add(k.Add(other, p.leftAt), right)
		})
		k.If(exists, func() {
			w.store(side)
			k.WaitGroup(wideStages - 2)
			k.Sync()
			ahead := k.Add(stage, wideStages-1)
			k.If(k.Lt(ahead, stages), func() { fetch(ahead, before) })
			k.Commit()
		})
		after := k.Add(slot, wideWeights)
		k.Into(slot).Select(k.Lt(after, end), after, tiles)
		k.Set(side, other)
	})
}

// finish stores the outputs of a group from unit row on, and marks rows with outputs
// below their limits.
func (p *wideProduct) finish(sum, row ptx.Value) {
	k := p.kernel
	own := k.Mad(k.And(p.lane, 3), 8, p.column)
	rows := k.control(ptx.U32, ControlRows)
	line := k.Add(k.Mad(k.Special("%ctaid.y"), WideRows, p.row), k.Shr(p.lane, 2))
	pitch := k.Mul(k.Load(ptx.U32, sum, SumWidth), 4)
	unit := k.Add(row, own)
	end := k.Load(ptx.U32, sum, SumUnits)
	start := k.At(k.element(ArgVal, k.Load(ptx.U64, sum, SumVal)), unit, 4)
	limits := k.At(k.arg(ArgLimits), k.Load(ptx.U32, sum, SumExp), 4)
	k.If(k.Lt(own, p.units), func() {
		for i, acc := range p.acc {
			for half := range 2 {
				r := k.Add(line, 16*i+8*half)
				k.If(k.Lt(r, rows), func() {
					limit := k.Load(ptx.F32, k.At(limits, r, 4), 0)
					at := k.MadWide(r, pitch, start)
					bad := k.Mov(ptx.Pred, k.Ne(r, r))
					for part := range 2 {
						var four []ptx.Value
						for j, list := range acc {
							x := list[2*half+part]
							four = append(four, x)
							low := k.And(k.NotGe(x, limit), k.Lt(k.Add(unit, 4*part+j), end))
							k.Into(bad).Or(bad, low)
						}
						k.StoreN(ptx.F32, at, 16*part, four)
					}
					mark := k.At(k.arg(ArgBad), r, 4)
					k.Guard(bad, func() { k.Red("or", ptx.B32, mark, 0, 1) })
				})
			}
		}
	})
}
