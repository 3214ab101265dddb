package tensor

import (
	"math"
	"slices"

	"github.com/pce-engine/pce/kernels/cpu/micro"
	"github.com/pce-engine/pce/layers"
)

// functionBuffers are a thread's for leaves without a table.
type functionBuffers struct {
	terms []float64   // of the units of a quadratic family, as micro.Set.Quadratic takes them
	logs  []float64   // of a row's units
	cells [][]float64 // numbers of the rows: of quadratic families g and off, or the statistics and 1
	args  micro.QuadraticArgs
}

// functionSizes are for that many rows, units of an input, and numbers of a cell.
type functionSizes struct{ rows, units, numbers int }

// grow makes room for an input of some units.
func (z *functionSizes) grow(rows, units int, f layers.Family) {
	z.rows, z.units, z.numbers = rows, max(z.units, units), max(z.numbers, f.NumStats()+1, 2)
}

func (z functionSizes) bytes() int {
	n := len(micro.Terms(z.units))
	return 8 * (n + n/micro.NumTerms + z.rows*z.numbers)
}

func (b *functionBuffers) init(z functionSizes) {
	b.terms = micro.Terms(z.units)
	b.logs = make([]float64, len(b.terms)/micro.NumTerms)
	for range z.numbers {
		b.cells = append(b.cells, make([]float64, z.rows))
	}
}

// functionCost is what the value of a unit takes, in those of a sum's operand.
func functionCost(f layers.Family) float64 {
	if _, ok := f.(layers.Quadratic); ok {
		return 4
	}
	return 50
}

// logDensity returns the natural log density of a unit of a function leaf, whose parameters are
// those of unitParams, in a row; where the cell is missing 0, or the peak.
func (x *executor) logDensity(in *layers.Input, row, unit int, params []float64) float64 {
	v := x.columnValues(in)[row]
	if v != v {
		if x.call.peaks == nil {
			return 0
		}
		return x.modesOf(in)[unit]
	}
	return in.Family.LogProb(params, float64(v))
}

// forwardInput evaluates a function leaf: densities scaled so that the largest
// of a row is 1 at most and above one half. This holds for rows whose exponent is
// Lost, too: they are told from 0 there alone, so no sum evaluates them again.
func (x *executor) forwardInput(w *worker, t *task) {
	in := &x.prog.Inputs[t.input]
	if in.Codes > 0 {
		return
	}
	lo, hi := x.rowsOf(w)
	if family, ok := in.Family.(layers.Quadratic); ok {
		x.forwardQuadratic(w, t, in, family, lo, hi)
		return
	}
	params := make([][]float64, t.units)
	for u := range params {
		params[u] = x.unitParams(in, u, nil)
	}
	logs, vals := w.function.logs[:t.units], x.columnValues(in)
	for r := lo; r < hi; r++ {
		if v := vals[r]; v == v {
			for u := range logs {
				logs[u] = in.Family.LogProb(params[u], float64(v))
			}
			x.setDensities(t, r, logs)
		} else {
			x.missingDensities(w, t, in, r)
		}
	}
}

// forwardQuadratic does that for a family whose log density is quadratic in a number of the cell,
// in runs of rows that have one.
func (x *executor) forwardQuadratic(w *worker, t *task, in *layers.Input, family layers.Quadratic, lo, hi int) {
	b, vals := &w.function, x.columnValues(in)
	for u := range t.width {
		if u >= t.units {
			micro.ClearTerms(b.terms, u)
			continue
		}
		w.unit = x.unitParams(in, u, w.unit)
		add, slope, curve, centre := family.QuadraticUnit(w.unit)
		micro.SetTerms(b.terms, u, add*math.Log2E, slope*math.Log2E, curve*math.Log2E, centre)
	}
	for u := t.width; u%micro.TermUnits != 0; u++ {
		micro.ClearTerms(b.terms, u)
	}
	g, off := b.cells[0], b.cells[1]
	for r := lo; r < hi; {
		n := 0
		for ; r+n < hi; n++ {
			v, ok := vals[r+n], false
			if v == v {
				g[n], off[n], ok = family.QuadraticCell(float64(v))
				off[n] *= math.Log2E
				ok = ok && !math.IsInf(g[n], 0) // no density is above 0 there
			}
			if !ok {
				break
			}
		}
		if n > 0 {
			x.quadratic(b, t, r, n)
		}
		if r += n; r == hi {
			break
		}
		if v := vals[r]; v == v { // impossible for all units
			clear(x.value(t.vec, r))
			clear(x.ownExp(t.vec, r))
			x.exp(t.vec)[r] = 0
		} else {
			x.missingDensities(w, t, in, r)
		}
		r++
	}
}

// quadratic evaluates n rows from r on, whose numbers are in b.
func (x *executor) quadratic(b *functionBuffers, t *task, r, n int) {
	b.args = micro.QuadraticArgs{
		Rows: n, Width: t.width, G: &b.cells[0][0], Off: &b.cells[1][0], Terms: &b.terms[0], Logs: &b.logs[0],
		Out: &x.value(t.vec, r)[0], OutRow: t.width, Exp: &x.exp(t.vec)[r],
	}
	if own := x.ownExp(t.vec, r); own != nil {
		b.args.Own = &own[0]
	}
	x.set.Quadratic(&b.args)
}

// missingDensities sets the values of a row whose cell is missing: 1, or the peaks of the units.
func (x *executor) missingDensities(w *worker, t *task, in *layers.Input, r int) {
	if x.call.peaks != nil {
		logs := w.function.logs[:t.units]
		copy(logs, x.modesOf(in))
		x.setDensities(t, r, logs)
		return
	}
	row := x.value(t.vec, r)
	clear(row)
	clear(x.ownExp(t.vec, r))
	x.exp(t.vec)[r] = 0
	for u := range t.units {
		row[u] = 1
	}
}

// setDensities sets the values of a row to those of some natural logs.
func (x *executor) setDensities(t *task, r int, logs []float64) {
	row, ex := x.value(t.vec, r), x.exp(t.vec)
	clear(row)
	ex[r] = 0
	top := slices.Max(logs)
	if math.IsInf(top, -1) {
		return // values of 0, whatever exponents the units have
	}
	e := math.Ceil(top / math.Ln2)
	ex[r] = micro.Exponent(e)
	unit := e * math.Ln2
	if ex[r] == micro.Lost {
		unit = top // which is so far down that e·log 2 may be off by more than 1
	}
	for u, l := range logs {
		row[u] = float32(math.Exp(l - unit))
	}
	if own := x.ownExp(t.vec, r); own != nil {
		splitSmall(row, own, logs, unit)
	}
}

// splitSmall gives the values of a row that are not normal float32 numbers an exponent of their own,
// given their logs and that of the row's unit.
func splitSmall(row, own []float32, logs []float64, unit float64) {
	clear(own)
	for u, l := range logs {
		if row[u] < 0x1p-126 && !math.IsInf(l, -1) {
			m, e := layers.SplitLog(l - unit)
			row[u], own[u] = float32(m), float32(e)
		}
	}
}

// functionStats gathers the statistics of a function leaf: Σ flow and Σ flow·T(x)
// over the observed cells, in float64.
func (x *executor) functionStats(w *worker, owner int32, fs []leafFlow) {
	in := &x.prog.Inputs[owner]
	units := int(x.prog.Vectors[in.Vector].Units)
	ns := in.Family.NumStats()
	stats := make([]float64, (ns+1)*units) // [statistic, unit]; the last is the normaliser
	t := make([]float64, ns)
	for _, f := range fs {
		for r, v := range x.columnValues(&x.prog.Inputs[f.input]) {
			clear(t)
			one := 0.0
			if v == v {
				in.Family.Stats(float64(v), t)
				one = 1
			}
			for k, s := range t {
				w.function.cells[k][r] = s
			}
			w.function.cells[ns][r] = one
		}
		for k := range ns + 1 {
			x.set.AddScaled(&stats[k*units], &f.flow[0], f.row, &w.function.cells[k][0], x.call.rows, units)
		}
	}
	width := x.prog.Width(in.Vector)
	for i := range stats {
		k, u := i/units, i%units
		steps := math.RoundToEven(stats[i] / float64(x.grid) / layers.StatScale(x.scales, in, k))
		q := int64(steps)
		if !(math.Abs(steps) < 0x1p63) {
			x.overflown.Store(true)
		}
		if x.call.flows == nil {
			stats[i] = float64(q) * float64(x.grid) * layers.StatScale(x.scales, in, k)
			continue
		}
		at := in.Params + int64(k*width+u)
		if k == ns {
			at = x.prog.InputNorm(owner) + int64(u)
		}
		if sum := x.call.flows[at] + q; (sum < x.call.flows[at]) == (q < 0) {
			x.call.flows[at] = sum
		} else {
			x.overflown.Store(true)
		}
	}
	if x.call.flows == nil {
		x.moveFunction(in, stats)
	}
}

// moveFunction moves the parameters of a function leaf.
func (x *executor) moveFunction(in *layers.Input, stats []float64) {
	units := int(x.prog.Vectors[in.Vector].Units)
	ns := in.Family.NumStats()
	sum := make([]float64, ns)
	rule, first := &x.call.rule, x.firstUnit(in.Vector)
	var p []float64
	for u := range units {
		for k := range sum {
			sum[k] = rule.scale * stats[k*units+u]
		}
		norm := stats[ns*units+u]
		p = x.unitParams(in, u, p)
		in.Family.MStep(p, sum, rule.scale*norm, rule.pseudocount, rule.stepOf(norm, first+u))
		x.setUnitParams(in, u, p)
	}
}
