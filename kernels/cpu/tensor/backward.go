package tensor

import (
	"fmt"
	"math"
	"slices"

	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/cpu/micro"
	"github.com/pce-engine/pce/kernels/tensor"
	"github.com/pce-engine/pce/layers"
)

// backward sends one count for each row from the root down, and moves the
// parameters, adds the flows up or counts visits. It replaces the values that
// forward left.
//
// Where singles evaluate the rows, it evaluates them again, and sets ll where that is not nil.
func (x *executor) backward(rows int, a *tensor.BackwardArgs, ll []float64) error {
	if err := x.begin(rows, a.Params, a.Codes, a.Values); err != nil {
		return err
	}
	var visits []float32
	x.call.flows, x.call.frozen = nil, a.Visits != nil
	switch {
	case a.Visits != nil:
		var err error
		if visits, err = argument[float32](x.dev, "visits", a.Visits, x.prog.VisitLen()); err != nil {
			return err
		}
	case a.Rule != nil:
		if a.Rule.Anemone != nil {
			return fmt.Errorf("%w: cpu: rule Anemone in a backward pass; add flows up and call Update", kernels.ErrDevice)
		}
		x.call.rule = newRule(*a.Rule)
		if err := x.countWeights(a.Params, 0, len(x.owners)); err != nil {
			return err
		}
	default:
		var err error
		if x.call.flows, err = argument[int64](x.dev, "flows", a.Flows, x.prog.FlowLen()); err != nil {
			return err
		}
	}
	if x.singles != nil {
		x.singlesUp(ll, true)
		x.singlesDown()
	} else {
		x.runBackward()
	}
	if x.call.frozen {
		x.visits(visits)
	}
	x.checkFlows()
	if x.overflown.Swap(false) {
		return fmt.Errorf("%w: cpu: statistics of leaves exceed 64 bits; cells lie beyond the ranges that the engine was told", kernels.ErrDevice)
	}
	return nil
}

func (x *executor) runBackward() {
	x.run(&x.backwardPlan, func(w *worker, t *task) {
		switch t.kind {
		case layers.SumVector:
			x.backwardSum(w, t)
		case layers.StoredVector:
			x.backwardStored(w, t)
		case layers.InputVector:
			if t.shared && !x.call.frozen {
				x.backwardInput(w, t)
			}
		}
	})
}

// rootFlow is the flow into the root in a row: 1, or 0 where the row is impossible.
func (x *executor) rootFlow(row int) float32 {
	if x.singles != nil && x.singles.stale {
		return x.singles.rootFlow[row]
	}
	if math.IsInf(x.logValue(x.prog.Root, row, 0), -1) {
		return 0
	}
	return 1
}

// ratios turns the values of n rows of a task's vector into flow over value.
// Rows in log space keep their flows beside, and their ratios become 0.
func (x *executor) ratios(t *task, r, n int) {
	at := x.slot[t.vec] + r*t.width
	switch {
	case t.vec == x.prog.Root:
		for i := range n {
			if x.halves() {
				x.flowIn(t.vec)[r+i] = x.rootFlow(r + i)
			}
			row := x.value(t.vec, r+i)
			if e, in := x.logs.get(t.vec, r+i); in {
				if e != nil {
					e.flow = append(e.flow[:0], x.rootFlow(r+i)) // the root has one unit
				}
				clear(row)
				continue
			}
			first := x.rootFlow(r+i) / row[0]
			clear(row)
			row[0] = first
		}
		return
	case x.flowSlot[t.vec] >= 0:
		f := x.flows[x.flowSlot[t.vec]+r*t.width:]
		if x.halves() {
			x.set.Half.Sums(&x.flowIn(t.vec)[r], &f[0], t.width, n, t.width)
		}
		x.set.Ratio(&x.values[at], t.width, &f[0], t.width, n, t.width)
		x.keepLogFlows(t.vec, t.width, r, n, f, t.width)
	}
}

// keepLogFlows notes the flows of rows in log space of a vector, which its
// ratios cannot hold, and clears these ratios.
func (x *executor) keepLogFlows(vec int32, width, r, n int, f []float32, fRow int) {
	if x.logs.counts[vec].Load() == 0 {
		return
	}
	for i := range n {
		e, in := x.logs.get(vec, r+i)
		if e != nil {
			e.flow = append(e.flow[:0], f[i*fRow:i*fRow+width]...)
		}
		if in {
			clear(x.value(vec, r+i))
		}
	}
}

func (x *executor) backwardSum(w *worker, t *task) {
	p := x.prog
	s := t.sum
	lo, hi := x.rowsOf(w)
	step := tileRows(t.cols)
	vals := x.values[x.slot[t.vec]:]
	base := p.Sums[s.index].Param
	grad := w.grad
	if s.group >= 0 && !x.call.frozen {
		grad = x.groups[s.group]
	}
	for r := lo; r < hi; r += step {
		n := min(step, hi-r)
		e := w.e[w.eRow(r)*t.cols:]
		fp := w.fp[r*t.cols:]
		x.form(w, t, r, n, e)
		x.ratios(t, r, n)
		switch {
		case x.halves():
			if r == lo {
				x.halfWeights(w, t)
			}
			x.halfFlows(w, t, n, vals[r*t.width:], e, fp)
		case x.mixed == inPairs && !x.call.frozen:
			if r == lo {
				x.packWeights(w, t)
			}
			x.pairFlows(w, t, n, vals[r*t.width:], e, fp)
		default:
			x.flowProducts(w, t, n, vals[r*t.width:], e, fp)
		}
		x.exactFlows(w, t, r, n)
		if x.halves() {
			x.balance(w, t, r, n, vals[r*t.width:], e, fp)
		}
		x.flowDown(t, r, n, fp)
		if w.parts == 1 && !x.call.frozen {
			x.gradient(w, t, r, n, e, grad, s.group < 0 || s.first, 0, len(s.back))
		}
	}
	if w.parts > 1 {
		x.meet(w)
		from, to := split(len(s.back), 1, w.part, w.parts)
		for r := 0; r < x.call.rows && !x.call.frozen; r += step {
			x.gradient(w, t, r, min(step, x.call.rows-r), w.e[r*t.cols:], grad, s.group < 0 || s.first, from, to)
		}
	}
	if x.call.query != nil {
		x.mixOwn(w, t)
		return
	}
	x.sumNorms(w, t)
	x.leaves(w, t)
	x.meet(w)
	if s.last && !x.call.frozen {
		x.moveSum(w, t, grad, base)
	}
}

// flowProducts computes the flows to the operands of n rows from the ratios of
// the outputs.
func (x *executor) flowProducts(w *worker, t *task, n int, ratios, e, fp []float32) {
	for k := range t.sum.back {
		run := &t.sum.back[k]
		a := &w.panel
		*a = micro.PanelArgs{
			Rows: n, K: run.n, W: x.size,
			A: &ratios[run.row], ARow: t.width, ACol: 1,
			B: &x.call.params[x.prog.ParamOffset(run.param)], BRow: x.size,
			C: &fp[run.col], CRow: t.cols, Add: !run.head,
		}
		if run.tail {
			a.E, a.ERow = &e[run.col], t.cols
		}
		x.set.Panel(a)
	}
}

// gradient adds, for the runs from..to-1 of weights, the products of ratios and
// operands of n rows from r on.
func (x *executor) gradient(w *worker, t *task, r, n int, e, grad []float32, fresh bool, from, to int) {
	p := x.prog
	base := p.ParamOffset(p.Sums[t.sum.index].Param)
	add := r > 0 || !fresh
	ratios := x.values[x.slot[t.vec]+r*t.width:]
	switch x.mixed {
	case inHalves:
		x.halfGradient(w, t, r, n, ratios, e, grad, add, w.parts == 1, from, to)
	case inPairs:
		x.pairGradient(w, t, n, ratios, e, grad, add, from, to)
	default:
		x.gradientProducts(w, t, n, ratios, e, grad, add, from, to)
	}
	if x.logs.counts[t.vec].Load() == 0 {
		return
	}
	for row := r; row < r+n; row++ {
		entry, _ := x.logs.get(t.vec, row)
		if entry == nil { // no flow goes through a row of zeros
			continue
		}
		for k := from; k < to; k++ {
			run := &t.sum.back[k]
			at := p.ParamOffset(run.param)
			for i := range run.n {
				if run.row+i >= t.units || entry.flow[run.row+i] == 0 {
					continue
				}
				f, ls := float64(entry.flow[run.row+i]), entry.log[run.row+i]
				for j := range x.size {
					o := at + int64(i*x.size+j)
					if x.call.params[o] != 0 {
						grad[o-base] += float32(f * math.Exp(entry.operands[run.col+j]-ls))
					}
				}
			}
		}
	}
}

// gradientProducts is the product of gradient in float32.
func (x *executor) gradientProducts(w *worker, t *task, n int, ratios, e, grad []float32, add bool, from, to int) {
	p := x.prog
	base := p.ParamOffset(p.Sums[t.sum.index].Param)
	a := &w.panel
	*a = micro.PanelArgs{K: n, W: x.size, ARow: 1, ACol: t.width, BRow: t.cols, CRow: x.size, Add: add}
	for k := from; k < to; k++ {
		if run := &t.sum.back[k]; run.n > 0 {
			a.Rows, a.C = run.n, &grad[p.ParamOffset(run.param)-base]
			a.A, a.B = &ratios[run.row], &e[run.col]
			x.set.Panel(a)
		}
	}
}

// exactFlows replaces the flows to the operands in rows whose outputs are in
// log space.
func (x *executor) exactFlows(w *worker, t *task, r, n int) {
	if x.logs.counts[t.vec].Load() == 0 {
		return
	}
	for row := r; row < r+n; row++ {
		entry, in := x.logs.get(t.vec, row)
		if !in {
			continue
		}
		fp := w.fp[row*t.cols : (row+1)*t.cols]
		if entry == nil {
			clear(fp)
			continue
		}
		w.linearE = slices.Grow(w.linearE[:0], t.cols)[:t.cols]
		sum := w.linearE
		clear(sum)
		x.eachWeight(t, 0, t.units, func(i, j int, theta float64) {
			if f := entry.flow[i]; f > 0 {
				sum[j] += float64(f) * math.Exp(math.Log(theta)+entry.operands[j]-entry.log[i])
			}
		})
		for j, s := range sum {
			fp[j] = float32(s)
		}
	}
}

// flowDown hands the flows of n rows of operands to their factors.
func (x *executor) flowDown(t *task, r, n int, fp []float32) {
	for ei := range t.elems {
		e := &t.elems[ei]
		f := &fp[e.col]
		for k := range e.factors {
			fc := &e.factors[k]
			v := fc.vec
			if x.prog.Vectors[v].Kind == layers.InputVector {
				continue
			}
			if at := x.flowSlot[v]; at >= 0 {
				dst := x.flows[at+r*e.width:]
				if fc.first {
					copyRows(dst, e.width, fp[e.col:], t.cols, n, e.width)
				} else {
					x.set.AddRows(&dst[0], e.width, f, t.cols, n, e.width)
				}
				continue
			}
			x.set.Ratio(&x.values[x.slot[v]+r*e.width], e.width, f, t.cols, n, e.width)
			x.keepLogFlows(v, e.width, r, n, fp[e.col:], t.cols)
		}
		if e.kept >= 0 {
			copyRows(x.kept[e.kept+r*e.width:], e.width, fp[e.col:], t.cols, n, e.width)
		}
	}
}

func copyRows(dst []float32, dstRow int, src []float32, srcRow, rows, width int) {
	for r := range rows {
		copy(dst[r*dstRow:r*dstRow+width], src[r*srcRow:r*srcRow+width])
	}
}

// sumNorms adds the flows of a task's operands up over the rows.
func (x *executor) sumNorms(w *worker, t *task) {
	for i := range t.elems {
		e := &t.elems[i]
		lo, hi := splitColumns(e.width, w.part, w.parts)
		if lo == hi {
			continue
		}
		at := int(x.prog.Elements[e.id].First)*x.size + lo
		clear(x.norms[at : at+hi-lo])
		x.set.ColumnSums(&x.norms[at], &w.fp[e.col+lo], t.cols, x.call.rows, hi-lo)
	}
}

// backwardStored hands the flows of a stored product to its factors.
func (x *executor) backwardStored(w *worker, t *task) {
	lo, hi := x.rowsOf(w)
	f := x.flows[x.flowSlot[t.vec]:]
	if t.vec == x.prog.Root {
		for r := lo; r < hi; r++ {
			row := f[r*t.width : (r+1)*t.width]
			clear(row)
			row[0] = x.rootFlow(r)
		}
	}
	if lo < hi {
		copyRows(w.fp[lo*t.cols:], t.cols, f[lo*t.width:], t.width, hi-lo, t.width)
		x.flowDown(t, lo, hi-lo, w.fp[lo*t.cols:])
		if x.halves() {
			x.passOn(w, t, lo, hi)
		}
	}
	if x.call.query != nil {
		x.mixOwn(w, t)
		return
	}
	x.meet(w)
	x.sumNorms(w, t)
	x.leaves(w, t)
}

// norm writes the flow through each unit of a vector over the rows of the
// call, rounded to the grid.
func (x *executor) norm(v int32, out []float32) {
	clear(out)
	x.addFlow(v, out)
	for i := range out {
		out[i] = x.round(out[i])
	}
}

// addFlow adds the flow through each unit of a vector over the rows of the
// call.
func (x *executor) addFlow(v int32, out []float32) {
	if v == x.prog.Root {
		for r := range x.call.rows {
			out[0] += x.rootFlow(r)
		}
	}
	for _, e := range x.usersOf[v] {
		at := int(x.prog.Elements[e].First) * x.size
		for i, n := range x.norms[at : at+len(out)] {
			out[i] += n
		}
	}
}

// round rounds a count to the grid; above x.fine every float32 lies on it.
func (x *executor) round(f float32) float32 {
	if f < x.fine {
		return (f + x.fine) - x.fine
	}
	return f
}
