package tensor

import (
	"github.com/pce-engine/pce/kernels/cpu"
	"github.com/pce-engine/pce/kernels/cpu/micro"
)

// pairBuffers hold operands of the flows as pairs of bfloat16.
type pairBuffers struct {
	weights  []uint32 // of a sum: pairs of units, in the order of its runs
	ratios   []uint32 // of a tile: pairs of units
	ratioT   []uint32 // of a tile: pairs of rows
	operands []uint32 // of a tile: pairs of rows
}

type pairSizes struct{ weights, ratios, ratioT, operands int }

// grow enlarges the buffers for a task with n weights whose tiles have rows rows.
func (z *pairSizes) grow(rows int, t *task, n int) {
	z.weights = max(z.weights, n/2)
	z.ratios = max(z.ratios, rows*t.width/2)
	z.ratioT = max(z.ratioT, (rows+1)/2*t.width)
	z.operands = max(z.operands, (rows+1)/2*t.cols)
}

func (z pairSizes) total() int { return z.weights + z.ratios + z.ratioT + z.operands }

func (b *pairBuffers) init(z pairSizes) {
	b.weights, b.ratios = cpu.Aligned[uint32](z.weights), cpu.Aligned[uint32](z.ratios)
	b.ratioT, b.operands = cpu.Aligned[uint32](z.ratioT), cpu.Aligned[uint32](z.operands)
}

// packWeights rounds the weights of a sum to pairs of units.
func (x *executor) packWeights(w *worker, t *task) {
	at := 0
	for k := range t.sum.back {
		run := &t.sum.back[k]
		if run.n > 0 {
			x.set.BF16.PackPairs(&w.pairs.weights[at], x.size, &x.call.params[x.prog.ParamOffset(run.param)], x.size, run.n, x.size)
		}
		at += run.n / 2 * x.size
	}
}

// pairFlows is the product of ratios and weights of backwardSum on pairs.
func (x *executor) pairFlows(w *worker, t *task, n int, ratios, e, fp []float32) {
	rRow := t.width / 2
	x.set.BF16.PackRows(&w.pairs.ratios[0], rRow, &ratios[0], t.width, n, t.width)
	at := 0
	for k := range t.sum.back {
		run := &t.sum.back[k]
		a := &w.panel
		*a = micro.PanelArgs{
			Rows: n, K: run.n / 2, W: x.size,
			A: words(w.pairs.ratios[run.row/2:]), ARow: rRow, ACol: 1,
			B: words(w.pairs.weights[min(at, len(w.pairs.weights)-1):]), BRow: x.size,
			C: &fp[run.col], CRow: t.cols, Add: !run.head,
		}
		if run.tail {
			a.E, a.ERow = &e[run.col], t.cols
		}
		x.set.BF16.Panel(a)
		at += run.n / 2 * x.size
	}
}

// pairGradient is the product of gradient on pairs.
func (x *executor) pairGradient(w *worker, t *task, n int, ratios, e, grad []float32, add bool, from, to int) {
	p := x.prog
	base := p.ParamOffset(p.Sums[t.sum.index].Param)
	x.set.BF16.PackPairs(&w.pairs.ratioT[0], t.width, &ratios[0], t.width, n, t.width)
	x.set.BF16.PackPairs(&w.pairs.operands[0], t.cols, &e[0], t.cols, n, t.cols)
	a := &w.panel
	*a = micro.PanelArgs{K: (n + 1) / 2, W: x.size, ARow: 1, ACol: t.width, BRow: t.cols, CRow: x.size, Add: add}
	for k := from; k < to; k++ {
		if run := &t.sum.back[k]; run.n > 0 {
			a.Rows, a.C = run.n, &grad[p.ParamOffset(run.param)-base]
			a.A, a.B = words(w.pairs.ratioT[run.row:]), words(w.pairs.operands[run.col:])
			x.set.BF16.Panel(a)
		}
	}
}
