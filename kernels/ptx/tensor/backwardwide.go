package tensor

import "github.com/pce-engine/pce/kernels/ptx"

// KernelBackwardWide is KernelBackward for columns of up to WideColumns units: x =
// entries of list (columns), y = ceil(rows/WideRows), with WideShared of dynamic shared
// memory. It reads weights and ratios half as often, and has the same bits. Matrix
// variants have it.
const KernelBackwardWide = "backward_wide"

// WideRows and WideColumns are what a block of threads of KernelBackwardWide does.
const (
	WideRows    = 128
	WideColumns = 128
)

const (
	wideThreads = 256
	wideStages  = 4 // of which three are on their way
	wideDepth   = 16
	widePitch   = WideColumns + 8 // floats from row to row of weights, and of what is unloaded
	wideLeft    = 4 * wideDepth * WideRows
	wideStage   = wideLeft + 4*wideDepth*widePitch
)

// WideShared is the shared memory of KernelBackwardWide.
const WideShared = max(wideStages*wideStage, 4*WideRows*widePitch)

// wideProduct multiplies 128 rows by up to 128 columns, a stage of sixteen terms at a
// time: flows down have outputs of the sum for terms, its values columns for terms and
// outputs for columns. A stage has its terms of the left side by row. Two rows of warps have 64
// rows each, four of them 32 columns. Lane 4g+t has rows 16i+g and 16i+g+8 of its warp,
// columns 8t+4h+j (j < 4), and reads terms 4t..: fragment j has column 4g+j as its column g.
type wideProduct struct {
	*kernel
	units    ptx.Value // U32: columns that exist
	row      ptx.Value // U32: the warp's first
	column   ptx.Value // U32: the warp's first
	lane     ptx.Value // U32
	acc      [4][][]ptx.Value
	leftAt   ptx.Value // U32: what the lane reads first of a stage's ratios, in bytes
	rightAt  ptx.Value // U32: and of its weights
	anything ptx.Value // Pred: some of the warp's columns exist
}

// backwardWide is backward with stages of ratios by row and weights by output, these in
// the order of panels.
func (v Variant) backwardWide() *ptx.Kernel {
	k := v.begin(KernelBackwardWide, wideThreads, 1, append([]string{ArgRatio, ArgKept, ArgBad, ArgColumns, ArgRowSteps, ArgList}, operandArgs...)...)
	tiles := k.Symbol(room)
	column := k.record(ArgColumns, k.entry(k.Special("%ctaid.x")), ColumnSize)
	head := k.LoadN(ptx.U32, 4, column, ColumnSum)
	sum := k.record(ArgSums, head[0], SumSize)
	p := k.wideProduct(k.Mul(head[3], v.Block))
	k.multiplyWide(p, sum, column, tiles)
	k.Sync()
	p.unload(tiles)
	k.Sync()
	t := k.rowTile(wideThreads, WideRows)
	k.sendDown(t, sum, head, p.units, tiles, widePitch)
	return k.Kernel()
}

// wideProduct returns a product whose sums are 0.
func (k *kernel) wideProduct(units ptx.Value) *wideProduct {
	tid := k.Special("%tid.x")
	p := &wideProduct{kernel: k, units: units, lane: k.And(tid, 31)}
	warp := k.Shr(tid, 5)
	p.row, p.column = k.Mul(k.And(warp, 1), WideRows/2), k.Mul(k.Shr(warp, 1), patchColumns)
	p.anything = k.Lt(p.column, units)
	g, t := k.Shr(p.lane, 2), k.And(p.lane, 3)
	p.leftAt = k.Mul(k.Mad(k.Add(p.row, g), wideDepth, k.Mul(t, 4)), 4)
	p.rightAt = k.Mad(k.Mad(t, widePitch, k.Mad(g, 4, p.column)), 4, k.Mov(ptx.U32, wideLeft))
	for i := range p.acc {
		p.acc[i] = k.zeros(patchColumns/8, 4)
	}
	return p
}

// multiplyWide adds up the row steps of a column.
func (k *kernel) multiplyWide(p *wideProduct, sum, column, tiles ptx.Value) {
	var (
		s      = k.Block
		tid    = k.Special("%tid.x")
		head   = k.LoadN(ptx.U32, 2, column, ColumnStep) // first row step, steps
		stages = k.Mul(head[1], s/wideDepth)
		rows   = k.control(ptx.U32, ControlRows)
		last   = k.Sub(rows, 1)
		start  = k.element(ArgRatio, k.Load(ptx.U64, sum, SumVal))
		pitch  = k.Mul(k.Load(ptx.U32, sum, SumWidth), 4)
		line   = k.Shr(tid, 2) // of the ratios' rows: this and the one 64 further
		vec    = k.Mul(k.And(tid, 3), 4)
		out    = k.Shr(tid, 5) // of a stage's outputs: this and the one 8 further
		unit   = k.Mul(k.And(tid, 31), 4)
		block  = k.Mul(k.Div(unit, s), k.Load(ptx.U32, column, ColumnStride))
		bytes  = k.Select(k.Lt(unit, p.units), k.Mov(ptx.U32, 16), 0)
		left   = k.Mad(line, 4*wideDepth, k.Mul(vec, 4))
		slot   = k.Mov(ptx.U32, tiles)
		end    = k.Add(tiles, wideStages*wideStage)
		ratios []ptx.Value // addresses of the thread's rows
		have   []ptx.Value // bytes to read of them
		right  []ptx.Value // places of its outputs
	)
	for i := range 2 {
		row := k.Add(k.Mad(k.Special("%ctaid.y"), WideRows, line), WideRows/2*i)
		read := k.Min(row, last)
		mark := k.Load(ptx.U32, k.At(k.arg(ArgBad), read, 4), 0)
		clear := k.And(k.Eq(mark, 0), k.Lt(row, rows))
		have = append(have, k.Select(clear, k.Mov(ptx.U32, 16), 0))
		ratios = append(ratios, k.MadWide(read, pitch, start))
		right = append(right, k.Mul(k.Mad(k.panelRow(k.Add(out, 8*i)), widePitch, unit), 4))
	}
	fetch := func(stage, slot ptx.Value) {
		first := k.Mul(stage, wideDepth)
		record := k.LoadN(ptx.U32, 2, k.record(ArgRowSteps, k.Add(head[0], k.Div(first, s)), RowStepSize), 0)
		within := k.Rem(first, s)
		for i, row := range ratios {
			from := k.At(row, k.Add(k.Add(record[0], within), vec), 4)
			k.CopyAsync(k.Add(slot, left), 4*wideDepth*WideRows/2*i, from, 0, 16, have[i])
		}
		from := k.MadWide(k.Add(record[1], block), 4*s*s, k.arg(ArgParams))
		from = k.At(from, k.Mad(k.Add(within, out), s, k.Rem(unit, s)), 4)
		for i, to := range right {
			k.CopyAsync(k.Add(slot, to), wideLeft, from, 4*8*s*i, 16, bytes)
		}
	}
	for i := range wideStages - 1 {
		k.If(k.Gt(stages, i), func() { fetch(k.Mov(ptx.U32, i), k.Add(slot, i*wideStage)) })
		k.Commit()
	}
	k.For(ptx.U32, 0, stages, 1, func(stage ptx.Value) {
		k.WaitGroup(wideStages - 2)
		k.Sync()
		ahead := k.Add(stage, wideStages-1)
		k.If(k.Lt(ahead, stages), func() {
			back := k.Sub(slot, wideStage)
			fetch(ahead, k.Select(k.Gt(slot, tiles), back, k.Sub(end, wideStage)))
		})
		k.Commit()
		k.If(p.anything, func() {
			var right [4][]ptx.Value // by output of the lane's
			for c := range right {
				right[c] = k.LoadN(ptx.F32, 4, k.Add(slot, p.rightAt), 4*4*c*widePitch)
			}
			p.add(k.Add(slot, p.leftAt), right)
		})
		next := k.Add(slot, wideStage)
		k.Into(slot).Select(k.Lt(next, end), next, tiles)
	})
}

// add adds the products of a stage, given by the place of the lane's first row; w has
// four of the other side for each of the lane's four. It is addHalf with other rows and columns.
func (p *wideProduct) add(left ptx.Value, w [4][]ptx.Value) {
	k := p.kernel
	var high, low [2][][]ptx.Value // by step and run of 8 columns
	for s := range 2 {
		for j := range patchColumns / 8 {
			h, l := k.tf32([]ptx.Value{w[2*s][j], w[2*s+1][j]})
			high[s], low[s] = append(high[s], h), append(low[s], l)
		}
	}
	for i, acc := range p.acc {
		near := k.LoadN(ptx.F32, 4, left, 4*wideDepth*16*i)
		far := k.LoadN(ptx.F32, 4, left, 4*wideDepth*(16*i+8))
		sums := k.zeros(patchColumns/8, 4)
		var as [2][]ptx.Value
		for s := range 2 {
			h, l := k.tf32([]ptx.Value{near[2*s], far[2*s], near[2*s+1], far[2*s+1]})
			if !k.Mixed {
				k.mmas(sums, l, high[s])
				k.mmas(sums, h, low[s])
			}
			as[s] = h
		}
		for s := range 2 {
			k.mmas(sums, as[s], high[s])
		}
		for j, sum := range sums {
			for e, x := range sum {
				k.Into(acc[j][e]).Add(acc[j][e], x)
			}
		}
	}
}

// unload writes the sums to rows of shared memory.
func (p *wideProduct) unload(to ptx.Value) {
	k := p.kernel
	row := k.Add(p.row, k.Shr(p.lane, 2))
	column := k.Mad(k.And(p.lane, 3), 8, p.column)
	at := k.At(to, k.Mad(row, widePitch, column), 4)
	k.If(k.Lt(column, p.units), func() {
		for i, acc := range p.acc {
			for e := range 4 {
				var four []ptx.Value
				for _, list := range acc {
					four = append(four, list[e])
				}
				k.StoreN(ptx.F32, at, 4*((16*i+8*(e/2))*widePitch+4*(e%2)), four)
			}
		}
	})
}
