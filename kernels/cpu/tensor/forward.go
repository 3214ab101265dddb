package tensor

import (
	"math"

	"github.com/pce-engine/pce/kernels/cpu/micro"
	"github.com/pce-engine/pce/kernels/tensor"
	"github.com/pce-engine/pce/layers"
)

// trust is the smallest value of an output, relative to the largest product of
// its row and divided by the number of terms, that float32 still gives to 2^-24:
// what vanished below 2^-126 cannot matter to it.
const trust = 0x1p-102

// storedLoss is how many bits a stored product of few factors may lose at the low
// end.
const storedLoss = 24

// bareFactors is how many factors micro.Set.Product multiplies without an
// exponent for each element, unless one of them comes with exponents of its own.
const bareFactors = 3

// forward evaluates rows rows.
func (x *executor) forward(rows int, a *tensor.ForwardArgs) error {
	ll, err := argument[float64](x.dev, "log-likelihoods", a.LL, int64(rows))
	if err != nil {
		return err
	}
	if err := x.begin(rows, a.Params, a.Codes, a.Values); err != nil {
		return err
	}
	if x.singles != nil {
		x.singlesUp(ll[:rows], false)
		x.checkLogs(ll[:rows])
		a.Recomputed = 0
		return nil
	}
	x.up(ll[:rows])
	a.Recomputed = x.recomputed.Load()
	return nil
}

// up evaluates the rows of the call, by sums or maxima as it says, and sets the logs of
// their values.
func (x *executor) up(logs []float64) {
	x.logs.reset()
	x.recomputed.Store(0)
	x.run(&x.forwardPlan, func(w *worker, t *task) {
		switch t.kind {
		case layers.InputVector:
			x.forwardInput(w, t)
		case layers.SumVector:
			x.forwardSum(w, t)
		case layers.StoredVector:
			x.forwardStored(w, t)
		}
	})
	for r := range logs {
		logs[r] = x.logValue(x.prog.Root, r, 0)
	}
	x.checkLogs(logs)
}

// rowsOf returns the rows of the call that a worker computes, in whole tiles.
func (x *executor) rowsOf(w *worker) (lo, hi int) { return split(x.call.rows, 16, w.part, w.parts) }

// eRow is the row of w.e where the tile from row r on begins: 0 unless all
// threads share the buffer.
func (w *worker) eRow(r int) int {
	if w.parts > 1 {
		return r
	}
	return 0
}

func (x *executor) forwardSum(w *worker, t *task) {
	x.transpose(w, t)
	lo, hi := x.rowsOf(w)
	step := tileRows(t.cols)
	vals := x.values[x.slot[t.vec]:]
	panel := x.set.Panel
	if x.call.most {
		panel = x.set.MaxPanel
	}
	for r := lo; r < hi; r += step {
		n := min(step, hi-r)
		e := w.e[w.eRow(r)*t.cols:]
		low, suspect := x.fit(w, t, r, n, e)
		minimum := w.min[:t.width]
		for i := range minimum {
			minimum[i] = math.MaxFloat32
		}
		for k := range t.sum.forward {
			run := &t.sum.forward[k]
			a := &w.panel
			*a = micro.PanelArgs{
				Rows: n, K: run.n, W: x.size,
				A: &e[run.col], ARow: t.cols, ACol: 1,
				B: &w.tt[min(run.at*x.size, len(w.tt)-1)], BRow: x.size,
				C: &vals[r*t.width+run.row], CRow: t.width, Add: !run.head,
			}
			if run.tail {
				a.Min = &minimum[run.row]
			}
			panel(a)
		}
		limit := float32(t.cols) * trust * exp2neg(low)
		for _, m := range minimum[:t.units] {
			if !(m >= limit) {
				suspect = true
			}
		}
		if suspect {
			x.recheck(w, t, r, n)
		}
	}
}

// transpose makes the weights of a sum ready for the forward product: panels
// over its own units.
func (x *executor) transpose(w *worker, t *task) {
	if w.ttSum == t.sum.owner {
		return
	}
	w.ttSum = t.sum.owner
	p := x.prog
	sq := x.size * x.size
	if t.sum.dense && w.parts == 1 {
		x.set.Transpose(&w.tt[0], &x.call.params[p.ParamOffset(p.Sums[t.sum.index].Param)], t.width, t.cols, x.size)
		return
	}
	lo, hi := split(len(t.sum.forward), 1, w.part, w.parts)
	for k := lo; k < hi; k++ {
		run := &t.sum.forward[k]
		for i, tile := range run.tiles {
			x.set.Transpose(&w.tt[run.at*x.size+i*sq], &x.call.params[p.ParamOffset(tile)], x.size, x.size, x.size)
		}
	}
	x.meet(w)
}

// product forms an operand in n rows from r on, scaled by the rows' shifts, which fit
// sets.
func (x *executor) product(w *worker, e *elem, r, n int, out []float32, outRow int, fit bool) {
	shift := x.shiftOf(e.id)
	for hi := r + n; r < hi; r += n {
		n = x.alike(e, r, hi-r)
		w.product = micro.ProductArgs{
			Rows: n, Width: e.width, Factors: x.operand(w, e, r),
			Out: &out[0], OutRow: outRow, Shift: &shift[r], Fit: fit, Wide: e.wide, Scratch: &w.exps[0],
		}
		x.set.Product(&w.product)
		out = out[min(n*outRow, len(out)):]
	}
}

// operand sets the arguments of a product of the rows from r on, which are alike.
func (x *executor) operand(w *worker, e *elem, r int) []micro.Factor {
	w.factors = w.factors[:0]
	for i := range e.factors {
		f := &e.factors[i]
		if x.peaked(f, r) {
			w.factors = append(w.factors, x.peakFactor(f.input))
		} else if f.input >= 0 {
			in := &x.prog.Inputs[f.input]
			factor := micro.Factor{Base: &x.call.params[in.Table], Row: e.width}
			if codes := x.columnCodes(in); codes.wide != nil {
				factor.WideCodes = &codes.wide[r]
			} else {
				factor.Codes = &codes.narrow[r]
			}
			if in.Exps >= 0 {
				factor.Exps = &x.call.params[in.Exps]
			}
			w.factors = append(w.factors, factor)
		} else {
			read := micro.Factor{Base: &x.values[x.slot[f.vec]+r*e.width], Row: e.width}
			if own := x.ownExp(f.vec, r); own != nil {
				read.Exps = &own[0]
			}
			w.factors = append(w.factors, read)
		}
	}
	return w.factors
}

// fit forms the operands of n rows from r on, each row scaled so that its
// largest element lies in [1, 2), and sets the exponents of the task's vector. It
// returns the lowest shift that matters to what vanished, and whether a row must
// be looked at more closely.
func (x *executor) fit(w *worker, t *task, r, n int, out []float32) (low int32, suspect bool) {
	ex := x.exp(t.vec)[r : r+n]
	for i := range t.elems {
		e := &t.elems[i]
		x.product(w, e, r, n, out[e.col:], t.cols, true)
	}
	if len(t.elems) == 1 {
		e := &t.elems[0]
		for i, s := range x.shiftOf(e.id)[r : r+n] {
			ex[i] = s
			if s == micro.ZeroRow {
				suspect = true
				ex[i] = 0
			} else if !e.wide {
				low = min(low, s)
			}
			suspect = suspect || e.rounded(s)
		}
		x.addExponents(e, ex, r, n)
	} else if x.align(w, t, ex, r, n, out, &low) {
		suspect = true
	}
	if x.logs.any(t) {
		suspect = true
		for i := range n {
			if x.logs.operandInLog(t, r+i) {
				x.logOperands(w, t, r+i)
				x.fillOperands(w, t, r+i, out[i*t.cols:])
			}
		}
	}
	return low, suspect
}

// addExponents adds the exponents of an element's factors to ex.
func (x *executor) addExponents(e *elem, ex []int32, r, n int) {
	for i := range e.factors {
		if f := &e.factors[i]; f.input < 0 {
			x.set.AddExponents(&ex[0], &x.exp(f.vec)[r], n)
		}
	}
}

// align brings the operands of a sum to the largest of their exponents. It
// reports rows in which no operand has a value. Exponents differ by less than 2^31.
func (x *executor) align(w *worker, t *task, ex []int32, r, n int, out []float32, low *int32) (suspect bool) {
	const none = math.MinInt32 // below every exponent, Lost included
	for i := range ex {
		ex[i] = none
	}
	base := w.shift[:n]
	for i := range t.elems {
		e := &t.elems[i]
		clear(base)
		x.addExponents(e, base, r, n)
		for k, s := range x.shiftOf(e.id)[r : r+n] {
			if s != micro.ZeroRow {
				ex[k] = max(ex[k], micro.AddExponents(base[k], s))
			}
		}
	}
	for i := range t.elems {
		e := &t.elems[i]
		clear(base)
		x.addExponents(e, base, r, n)
		shift := x.shiftOf(e.id)[r : r+n]
		move := false
		for k, s := range shift {
			b := base[k]
			base[k] = 0
			switch {
			case ex[k] == none:
			case s == micro.ZeroRow:
				*low = min(*low, ex[k]-b)
			default:
				d := min(ex[k]-micro.AddExponents(b, s), 1<<20)
				base[k] = d
				shift[k] = s + d
				move = move || d != 0
				if !e.wide {
					*low = min(*low, shift[k])
				}
				suspect = suspect || e.rounded(shift[k])
			}
		}
		if move {
			x.set.ScaleRows(&out[e.col], t.cols, &base[0], n, e.width)
		}
	}
	for i := range ex {
		if ex[i] == none {
			ex[i], suspect = 0, true
		}
	}
	return suspect
}

// form forms the operands of n rows from r on again, as fit left them.
func (x *executor) form(w *worker, t *task, r, n int, out []float32) {
	for i := range t.elems {
		e := &t.elems[i]
		x.product(w, e, r, n, out[e.col:], t.cols, false)
	}
	if x.logs.any(t) {
		for i := range n {
			if x.logs.operandInLog(t, r+i) {
				x.logOperands(w, t, r+i)
				x.fillOperands(w, t, r+i, out[i*t.cols:])
			}
		}
	}
}

// exp2neg returns max(1, 2^-s) as a float32, at most the largest power of two.
func exp2neg(s int32) float32 {
	if s >= 0 {
		return 1
	}
	return float32(math.Ldexp(1, int(min(-s, 127))))
}

// forwardStored keeps a product of many factors.
func (x *executor) forwardStored(w *worker, t *task) {
	lo, hi := x.rowsOf(w)
	if lo >= hi {
		return
	}
	vals := x.values[x.slot[t.vec]+lo*t.width:]
	low, suspect := x.fit(w, t, lo, hi-lo, vals)
	if suspect || low < -storedLoss {
		for r := lo; r < hi; r++ {
			s := x.shiftOf(t.elems[0].id)[r]
			if s == micro.ZeroRow || s < -storedLoss && !t.elems[0].wide || t.elems[0].rounded(s) || x.logs.operandInLog(t, r) {
				x.logOperands(w, t, r)
				x.logs.put(t.vec, r, w.logE[:t.units], nil)
				x.recomputed.Add(1)
			}
		}
	}
}
