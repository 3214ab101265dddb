package tensor

import "github.com/pce-engine/pce/kernels/ptx"

const (
	// KernelFit chooses the exponents of sums, and what their outputs must reach, and
	// writes their operands: x = entries of list (pairs: a sum, and the place of its first
	// operand in operands, [R, Cols]), y = ceil(rows/FitRows). Matrix variants have it.
	KernelFit = "fit"
	// KernelForwardWide evaluates groups of up to WideColumns units of sums that KernelFit
	// has done: x = entries of list (pairs: a group, and the place of its sum's first
	// operand), y = ceil(rows/WideRows), with ForwardWideShared of dynamic shared memory. It
	// reads weights half as often as KernelForward, and has the same bits.
	KernelForwardWide = "forward_wide"
)

// FitRows is the number of rows that a block of threads of KernelFit does: each warp
// has one, so that a level with one sum has many blocks, and few trips to memory in each.
const FitRows = tileThreads / fitLanes

const fitLanes = 32

const (
	wideOut      = wideDepth + 4                    // floats from output to output of weights: eight lanes that read vectors of two, four outputs apart, meet no bank twice
	forwardStage = wideLeft + 4*WideColumns*wideOut // of shared memory, in bytes: a stage of operands, then weights
)

// ForwardWideShared is the shared memory of KernelForwardWide.
const ForwardWideShared = wideStages * forwardStage

// fit is the first half of forward.
func (v Variant) fit() *ptx.Kernel {
	k := v.begin(KernelFit, tileThreads, 4, append([]string{ArgLimits, ArgOperands, ArgList}, operandArgs...)...)
	pair := k.LoadN(ptx.U32, 2, k.At(k.arg(ArgList), k.Special("%ctaid.x"), 8), 0)
	sum := k.record(ArgSums, pair[0], SumSize)
	t := k.rowTileOf(tileThreads, FitRows, fitLanes)
	o := k.operands(t.read)
	o.lanes = fitLanes
	f := o.fitSum(sum, t.unit)
	k.storeExps(t, sum, f, k.Eq(t.lane, t.lane))
	limits := k.At(k.arg(ArgLimits), k.Load(ptx.U32, sum, SumExp), 4)
	var to []ptx.Value // rows of operands
	for i, l := range k.limits(sum, f) {
		at := k.At(limits, t.row[i], 4)
		k.Guard(k.And(t.real[i], k.Eq(t.lane, 0)), func() { k.Store(ptx.F32, at, 0, l) })
		to = append(to, k.operandRow(sum, pair[1], t.read[i]))
	}
	first := k.Load(ptx.U32, sum, SumElement)
	k.For(ptx.U32, first, k.Add(first, k.Load(ptx.U32, sum, SumElements)), 1, func(e ptx.Value) {
		o.open(e)
		o.align(f.exp)
		keep := o.keeper(e)
		k.For(ptx.U32, t.unit, o.width, o.chunk(), func(c ptx.Value) {
			for i, xs := range o.form(c) {
				at := k.At(to[i], c, 4)
				k.Guard(t.real[i], func() { k.putFloats(at, 0, xs) })
				keep(i, c, t.real[i], xs)
			}
		})
		for _, at := range to {
			k.Into(at).At(at, o.width, 4)
		}
	})
	return k.Kernel()
}

// operandRow returns the address of a row's operands of a sum, the first of which stands
// at a place of operands.
func (k *kernel) operandRow(sum, place, row ptx.Value) ptx.Value {
	return k.At(k.element(ArgOperands, k.MulWide(row, k.Load(ptx.U32, sum, SumCols))), place, 4)
}

// forwardWide is the second half of forward, 128 rows and up to 128 outputs at a time.
// Lane 4g+t has outputs 8t+4h+j (j < 4) of its warp: fragment j has output 4g+j as its
// column g.
func (v Variant) forwardWide() *ptx.Kernel {
	k := v.begin(KernelForwardWide, wideThreads, 1, ArgControl, ArgParams, ArgVal, ArgSums, ArgBad, ArgLimits, ArgOperands, ArgGroups, ArgSteps, ArgList)
	tiles := k.Symbol(room)
	pair := k.LoadN(ptx.U32, 2, k.At(k.arg(ArgList), k.Special("%ctaid.x"), 8), 0)
	record := k.record(ArgGroups, pair[0], GroupSize)
	group := k.LoadN(ptx.U32, 4, record, 0)
	sum := k.record(ArgSums, group[0], SumSize)
	p := k.wideProduct(k.Mul(group[2], v.Block))
	k.multiplyWideForward(p, sum, pair[1], group[3], k.Load(ptx.U32, record, GroupSteps), tiles)
	p.finish(sum, group[1])
	return k.Kernel()
}

// multiplyWideForward adds up the steps of a group, whose operands are at a place.
func (k *kernel) multiplyWideForward(p *wideProduct, sum, place, first, steps, tiles ptx.Value) {
	var (
		s      = k.Block
		tid    = k.Special("%tid.x")
		stages = k.Mul(steps, s/wideDepth)
		last   = k.Sub(k.control(ptx.U32, ControlRows), 1)
		line   = k.Shr(tid, 2) // of a stage's rows, and of its outputs: this and the one 64 further
		vec    = k.Mul(k.And(tid, 3), 4)
		own    = k.Mad(line, s, vec)
		left   = k.Mul(k.Mad(line, wideDepth, vec), 4)
		right  = k.Mad(k.Mad(line, wideOut, vec), 4, k.Mov(ptx.U32, wideLeft))
		slot   = k.Mov(ptx.U32, tiles)
		end    = k.Add(tiles, ForwardWideShared)
		rows   []ptx.Value // addresses of the thread's rows of operands
		have   []ptx.Value // bytes to read of its outputs' weights
	)
	for i := range 2 {
		row := k.Min(k.Add(k.Mad(k.Special("%ctaid.y"), WideRows, line), WideRows/2*i), last)
		rows = append(rows, k.At(k.operandRow(sum, place, row), vec, 4))
		have = append(have, k.Select(k.Lt(k.Add(line, WideColumns/2*i), p.units), k.Mov(ptx.U32, 16), 0))
	}
	g, t := k.Shr(p.lane, 2), k.And(p.lane, 3)
	p.rightAt = k.Mad(k.Mad(k.Mad(g, 4, p.column), wideOut, k.Mul(t, 4)), 4, k.Mov(ptx.U32, wideLeft))
	fetch := func(stage, slot ptx.Value) {
		column := k.Mul(stage, wideDepth)
		step := k.LoadN(ptx.U32, 2, k.record(ArgSteps, k.Add(first, k.Div(column, s)), StepSize), StepParam)
		within := k.Rem(column, s)
		for i, row := range rows {
			k.CopyAsync(k.Add(slot, left), wideLeft/2*i, k.At(row, k.Add(step[1], within), 4), 0, 16, k.Mov(ptx.U32, 16))
		}
		from := k.At(k.MadWide(step[0], 4*s*s, k.arg(ArgParams)), k.Add(own, within), 4)
		for i, bytes := range have {
			k.CopyAsync(k.Add(slot, right), 4*wideOut*WideColumns/2*i, from, 4*s*WideColumns/2*i, 16, bytes)
		}
	}
	for i := range wideStages - 1 {
		k.If(k.Gt(stages, i), func() { fetch(k.Mov(ptx.U32, i), k.Add(slot, i*forwardStage)) })
		k.Commit()
	}
	k.For(ptx.U32, 0, stages, 1, func(stage ptx.Value) {
		k.WaitGroup(wideStages - 2)
		k.Sync()
		ahead := k.Add(stage, wideStages-1)
		k.If(k.Lt(ahead, stages), func() {
			back := k.Sub(slot, forwardStage)
			fetch(ahead, k.Select(k.Gt(slot, tiles), back, k.Sub(end, forwardStage)))
		})
		k.Commit()
		k.If(p.anything, func() {
			var outs [4][]ptx.Value // by output, four columns
			for j := range outs {
				outs[j] = k.LoadN(ptx.F32, 4, k.Add(slot, p.rightAt), 4*wideOut*j)
			}
			var right [4][]ptx.Value
			for c := range right {
				for _, out := range outs {
					right[c] = append(right[c], out[c])
				}
			}
			p.add(k.Add(slot, p.leftAt), right)
		})
		next := k.Add(slot, forwardStage)
		k.Into(slot).Select(k.Lt(next, end), next, tiles)
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
