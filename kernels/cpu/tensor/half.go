package tensor

import (
	"math"

	"github.com/pce-engine/pce/kernels/cpu"
	"github.com/pce-engine/pce/kernels/cpu/micro"
	"github.com/pce-engine/pce/layers"
)

// Operands of the flows as halves have full precision from 2^-14 on and vanish
// below 2^-25. Products are sums of up to halfTerms of them, so operands are
// scaled to stay at 2^4 or below:
//
//   - weights by 2^3;
//   - ratios, each row such that its largest lies in [2^3, 2^4);
//   - for the gradient, which contracts over rows, ratios and operands of each
//     unit such that its largest of the tile lies in [2^3, 2^4).
//
// A sum of halves loses terms far below it, and a little of every flow with them;
// over tens of levels that would add up. The flow that comes into a sum in a row
// is known, so the flows that go out are scaled to the same total. Where more is
// missing than rounding explains, ratios vanished that matter: that happens where
// the largest ratios of a row meet small values. Such rows are set aside and
// multiplied in float32, as are rows of the gradient whose ratios are too far from
// those of the others.
const (
	halfFar    = 100 // rows whose largest ratio is 2^halfFar or more, or below its inverse, are set aside
	halfSpread = 16  // exponents of the largest ratios of rows that the gradient takes together
	halfUp     = 3
	halfTerms  = 256
	halfWidth  = 32 // units of a block that has kernels
	halfLost   = 0x1p-10
	aside      = 32 // rows that are multiplied in float32 at a time
	sumRows    = 16 // rows that are scaled at a time
)

// farTop is the exponent of a row that was set aside for its largest ratio.
const farTop = math.MaxInt32

// halfBuffers hold operands of the flows as halves.
type halfBuffers struct {
	weights  []uint16  // of a sum, in the order of its runs
	ratios   []uint16  // of a tile
	operands []uint16  // of a tile
	sums     []uint16  // scratch of the panels
	top      []int32   // by row of a tile: exponent of the largest ratio, ZeroRow for a row without, or farTop
	shift    []int32   // by row of a tile
	scale    []float32 // by row of a product
	sent     []float32 // flow to each operand in some rows
	aside    []int32   // rows of the tile that are multiplied in float32

	// Factors of the columns of a tile, and their inverses.
	ratioUp, ratioDown, operandUp, operandDown []float32

	asideRatios, asideOperands, asideFlows []float32
}

type halfSizes struct{ weights, ratios, operands, rows, units, sent, ratioWidth, operandWidth int }

// grow enlarges the buffers for a task with n weights whose tiles have rows rows.
func (z *halfSizes) grow(rows int, t *task, n int) {
	z.sent = max(z.sent, sumRows*len(t.elems))
	z.units = max(z.units, sumRows)
	if t.sum == nil {
		return
	}
	z.weights = max(z.weights, n)
	z.ratios = max(z.ratios, rows*t.width)
	z.operands = max(z.operands, rows*t.cols)
	z.rows = max(z.rows, rows)
	z.units = max(z.units, rows)
	z.ratioWidth = max(z.ratioWidth, t.width)
	z.operandWidth = max(z.operandWidth, t.cols)
}

// bytes counts what init allocates.
func (z halfSizes) bytes() int {
	if z.units == 0 {
		return 0
	}
	return 2*(z.weights+z.ratios+z.operands+micro.HalfScratch) + 4*(3*z.rows+z.units+z.sent+(2+aside)*z.ratioWidth+(2+2*aside)*z.operandWidth)
}

func (b *halfBuffers) init(z halfSizes) {
	if z.units == 0 {
		return
	}
	b.weights, b.ratios, b.operands = cpu.Aligned[uint16](z.weights), cpu.Aligned[uint16](z.ratios), cpu.Aligned[uint16](z.operands)
	b.sums = cpu.Aligned[uint16](micro.HalfScratch)
	b.top, b.shift, b.aside = make([]int32, z.rows), make([]int32, z.rows), make([]int32, 0, z.rows)
	b.scale, b.sent = make([]float32, z.units), make([]float32, z.sent)
	b.ratioUp, b.ratioDown = cpu.Aligned[float32](z.ratioWidth), cpu.Aligned[float32](z.ratioWidth)
	b.operandUp, b.operandDown = cpu.Aligned[float32](z.operandWidth), cpu.Aligned[float32](z.operandWidth)
	b.asideRatios = cpu.Aligned[float32](aside * z.ratioWidth)
	b.asideOperands, b.asideFlows = cpu.Aligned[float32](aside*z.operandWidth), cpu.Aligned[float32](aside*z.operandWidth)
}

// halfWeights rounds the weights of a sum to halves.
func (x *executor) halfWeights(w *worker, t *task) {
	at, up := 0, int32(-halfUp)
	for k := range t.sum.back {
		run := &t.sum.back[k]
		if run.n > 0 {
			n := run.n * halfWidth
			x.set.Half.Pack(&w.half.weights[at], n, &x.call.params[x.prog.ParamOffset(run.param)], n, &up, nil, 1, n)
			at += n
		}
	}
}

// halfRatios rounds the ratios of n rows of a tile to halves.
func (x *executor) halfRatios(w *worker, t *task, n int, ratios []float32) {
	h := &w.half
	x.set.Half.Tops(&h.top[0], &ratios[0], t.width, n, t.width)
	for i, top := range h.top[:n] {
		h.shift[i] = top - halfUp
		switch {
		case top == -127:
			h.top[i], h.shift[i] = micro.ZeroRow, micro.ZeroRow
		case top >= halfFar || top <= -halfFar:
			h.top[i], h.shift[i] = farTop, micro.ZeroRow
		}
	}
	x.set.Half.Pack(&h.ratios[0], t.width, &ratios[0], t.width, &h.shift[0], nil, n, t.width)
}

// halfFlows is flowProducts on halves; balance completes it.
func (x *executor) halfFlows(w *worker, t *task, n int, ratios, e, fp []float32) {
	h := &w.half
	x.halfRatios(w, t, n, ratios)
	for i, top := range h.top[:n] {
		h.scale[i] = 0
		if h.shift[i] != micro.ZeroRow {
			h.scale[i] = exp2(top - 2*halfUp)
		}
	}
	at := 0
	a := &micro.HalfArgs{Rows: n, ARow: t.width, ACol: 1, BRow: halfWidth, CRow: t.cols, ERow: t.cols, Scale: &h.scale[0], Sums: &h.sums[0]}
	for k := range t.sum.back {
		run := &t.sum.back[k]
		for done := 0; done == 0 || done < run.n; done += halfTerms {
			a.K = min(halfTerms, run.n-done)
			a.A, a.B, a.C = &h.ratios[run.row+done], &h.weights[min(at, len(h.weights)-1)], &fp[run.col]
			a.Add = !run.head || done > 0
			a.E = nil
			if run.tail && done+a.K == run.n {
				a.E = &e[run.col]
			}
			x.set.Half.Panel(a)
			at += a.K * halfWidth
		}
	}
}

// balance scales the flows that halfFlows sent from n rows from r on to the flows
// that came in, multiplies rows again where too much is missing, and notes what
// the operands' factors receive.
func (x *executor) balance(w *worker, t *task, r, n int, ratios, e, fp []float32) {
	h := &w.half
	came := x.flowIn(t.vec)[r : r+n]
	h.aside = h.aside[:0]
	for lo := 0; lo < n; lo += sumRows {
		m := min(sumRows, n-lo)
		rows := fp[lo*t.cols:]
		x.sent(w, t, m, rows)
		for i := range m {
			var sum float32
			for k := range t.elems {
				sum += h.sent[k*sumRows+i]
			}
			q := float32(1)
			switch top := h.top[lo+i]; {
			case top == micro.ZeroRow:
			case top == farTop || !arrived(sum, came[lo+i]):
				h.aside = append(h.aside, int32(lo+i))
				came[lo+i] = -1
			case sum > 0:
				q = came[lo+i] / sum
			}
			h.scale[i] = q
		}
		x.set.Half.Scale(&rows[0], t.cols, &h.scale[0], m, t.cols)
		x.receive(w, t, r+lo, m)
	}
	x.eachAside(w, t, ratios, e, func(some []int32) {
		x.flowProducts(w, t, len(some), h.asideRatios, h.asideOperands, h.asideFlows)
		h.scale[0] = 1
		for i, row := range some {
			to := fp[int(row)*t.cols : (int(row)+1)*t.cols]
			copy(to, h.asideFlows[i*t.cols:])
			x.sent(w, t, 1, to)
			x.receive(w, t, r+int(row), 1)
		}
	})
}

// arrived reports whether what was sent of a flow that came in differs from it by no more than
// rounding explains.
func arrived(sent, came float32) bool {
	return sent >= came*(1-halfLost) && sent <= came*(1+halfLost)
}

// sent adds up the flows to each operand in n rows.
func (x *executor) sent(w *worker, t *task, n int, fp []float32) {
	for k := range t.elems {
		e := &t.elems[k]
		x.set.Half.Sums(&w.half.sent[k*sumRows], &fp[e.col], t.cols, n, e.width)
	}
}

// receive notes the flows that sent added up, times scale, as those that come
// into the operands' factors in n rows from r on.
func (x *executor) receive(w *worker, t *task, r, n int) {
	for k := range t.elems {
		for i := range t.elems[k].factors {
			v := t.elems[k].factors[i].vec
			if x.flowSlot[v] >= 0 || x.prog.Vectors[v].Kind == layers.InputVector {
				continue // ratios adds up what all users sent; inputs have none
			}
			in := x.flowIn(v)[r : r+n]
			for j := range in {
				in[j] = w.half.sent[k*sumRows+j] * w.half.scale[j]
			}
		}
	}
}

// passOn notes the flows that a stored product hands to its factors in the rows
// lo..hi-1.
func (x *executor) passOn(w *worker, t *task, lo, hi int) {
	for i := range sumRows {
		w.half.scale[i] = 1
	}
	for r := lo; r < hi; r += sumRows {
		n := min(sumRows, hi-r)
		x.sent(w, t, n, w.fp[r*t.cols:])
		x.receive(w, t, r, n)
	}
}

// flowIn returns the flow that comes into a vector, by row; -1 where the vector's
// task set the row aside.
func (x *executor) flowIn(v int32) []float32 {
	return x.came[int(v)*x.rowsMax : int(v)*x.rowsMax+x.rowsMax]
}

// halfGradient is gradientProducts on halves; fresh says that the ratios of these
// rows are those that were rounded last.
func (x *executor) halfGradient(w *worker, t *task, r, n int, ratios, e, grad []float32, add, fresh bool, from, to int) {
	h := &w.half
	if !fresh {
		x.halfRatios(w, t, n, ratios)
	}
	came := x.flowIn(t.vec)[r : r+n]
	for i := range h.top[:n] {
		if came[i] < 0 {
			h.top[i] = farTop
		}
	}
	most := together(h.top[:n])
	h.aside = h.aside[:0]
	for i, top := range h.top[:n] {
		h.shift[i] = 0
		switch {
		case top == micro.ZeroRow:
			h.shift[i] = micro.ZeroRow
		case top > most || top < most-halfSpread:
			h.shift[i] = micro.ZeroRow
			h.aside = append(h.aside, int32(i))
		}
	}
	x.packLevel(h, h.ratios, ratios, n, t.width, h.ratioUp, h.ratioDown)
	x.packLevel(h, h.operands, e, n, t.cols, h.operandUp, h.operandDown)
	base := x.prog.ParamOffset(x.prog.Sums[t.sum.index].Param)
	a := &micro.HalfArgs{K: n, ARow: 1, ACol: t.width, BRow: t.cols, CRow: halfWidth, Sums: &h.sums[0], Add: add}
	for k := from; k < to; k++ {
		if run := &t.sum.back[k]; run.n > 0 {
			a.Rows, a.A, a.B, a.C = run.n, &h.ratios[run.row], &h.operands[run.col], &grad[x.prog.ParamOffset(run.param)-base]
			a.Scale, a.Columns = &h.ratioDown[run.row], &h.operandDown[run.col]
			x.set.Half.Panel(a)
		}
	}
	x.eachAside(w, t, ratios, e, func(rows []int32) {
		x.gradientProducts(w, t, len(rows), h.asideRatios, h.asideOperands, grad, true, from, to)
	})
}

// packLevel rounds n rows to halves, each column scaled by up such that its
// largest lies in [2^halfUp, 2^(halfUp+1)); down undoes that.
func (x *executor) packLevel(h *halfBuffers, dst []uint16, src []float32, n, width int, up, down []float32) {
	x.set.Half.Peaks(&down[0], &src[0], width, &h.shift[0], n, width)
	const sum = 2*127 + halfUp
	for k, peak := range down[:width] {
		e := int32(math.Float32bits(peak) >> 23)
		e = max(e, halfUp+1)
		up[k] = math.Float32frombits(uint32(min(sum-e, 254)) << 23)
		down[k] = math.Float32frombits(uint32(e-halfUp) << 23)
	}
	x.set.Half.Pack(&dst[0], width, &src[0], width, &h.shift[0], &up[0], n, width)
}

// together returns the largest of halfSpread+1 exponents in a row that most rows
// have, the highest such.
func together(top []int32) int32 {
	var rows [2*halfFar + 1]int
	for _, t := range top {
		if -halfFar < t && t < halfFar {
			rows[t+halfFar]++
		}
	}
	best, most, have := 0, int32(0), 0
	for i, n := range rows {
		have += n
		if i > halfSpread {
			have -= rows[i-halfSpread-1]
		}
		if have > 0 && have >= best {
			best, most = have, int32(i-halfFar)
		}
	}
	return most
}

// eachAside gathers the rows of a tile that were set aside, some at a time.
func (x *executor) eachAside(w *worker, t *task, ratios, e []float32, do func(rows []int32)) {
	h := &w.half
	for rows := h.aside; len(rows) > 0; rows = rows[min(aside, len(rows)):] {
		some := rows[:min(aside, len(rows))]
		for i, row := range some {
			copy(h.asideRatios[i*t.width:(i+1)*t.width], ratios[int(row)*t.width:])
			copy(h.asideOperands[i*t.cols:(i+1)*t.cols], e[int(row)*t.cols:])
		}
		do(some)
	}
}

// halves reports whether the running call multiplies halves.
func (x *executor) halves() bool { return x.mixed == inHalves && !x.call.frozen }

// exp2 returns 2^e for a normal float32.
func exp2(e int32) float32 { return math.Float32frombits(uint32(e+127) << 23) }
