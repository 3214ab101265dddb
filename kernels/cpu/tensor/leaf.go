package tensor

import (
	"math"

	"github.com/pce-engine/pce/kernels/cpu/micro"
	"github.com/pce-engine/pce/layers"
)

// unitParams copies the parameters of one unit.
func (x *executor) unitParams(in *layers.Input, unit int, p []float64) []float64 {
	width := x.prog.Width(in.Vector)
	p = p[:0]
	for k := range in.Family.NumParams() {
		p = append(p, float64(x.call.params[in.Params+int64(k*width+unit)]))
	}
	return p
}

// leaves gathers the statistics of the inputs that only this task reads.
func (x *executor) leaves(w *worker, t *task) {
	if x.call.frozen {
		return
	}
	for i := range t.elems {
		e := &t.elems[i]
		for k := range e.factors {
			f := &e.factors[k]
			if !f.local {
				continue
			}
			x.meet(w)
			in := x.prog.Vectors[f.vec].Def
			x.leafStats(w, in, []leafFlow{{in, e.id, w.fp[e.col:], t.cols}})
		}
	}
}

// leafFlow is the flow into an input from an element: rows of the call, row
// apart.
type leafFlow struct {
	input int32
	elem  int32
	flow  []float32
	row   int
}

// backwardInput gathers the statistics of an input that several products read
// or that shares its parameters. The owner does it for all that share with it.
func (x *executor) backwardInput(w *worker, t *task) {
	owner := x.prog.Inputs[t.input].Owner
	if owner != t.input {
		return
	}
	var fs []leafFlow
	for _, v := range x.inputMembers[owner] {
		for _, e := range x.usersOf[v] {
			width := int(x.prog.Elements[e].Count) * x.size
			fs = append(fs, leafFlow{x.prog.Vectors[v].Def, e, x.kept[x.keptAt[e]:], width})
		}
	}
	x.leafStats(w, owner, fs)
}

// leafStats gathers the statistics of an owning input and moves its parameters
// or adds them to the flows of the call.
func (x *executor) leafStats(w *worker, owner int32, fs []leafFlow) {
	in := &x.prog.Inputs[owner]
	if in.Family.NumParams() == 0 {
		return
	}
	if in.Codes == 0 {
		if w.part == 0 {
			x.functionStats(w, owner, fs)
		}
		return
	}
	width := x.prog.Width(in.Vector)
	lo, hi := splitColumns(width, w.part, w.parts)
	if lo == hi {
		return
	}
	n := hi - lo
	// A task that reads counts leaves zeros; the counts of missing cells are read here.
	for _, f := range fs {
		if codes := x.columnCodes(&x.prog.Inputs[f.input]); codes.wide != nil {
			x.set.ScatterAddWide(&w.count[lo], width, &codes.wide[0], &f.flow[lo], f.row, x.call.rows, n)
		} else {
			x.set.ScatterAdd(&w.count[lo], width, &codes.narrow[0], &f.flow[lo], f.row, x.call.rows, n)
		}
	}
	x.leafCounts(w, owner, lo, hi, fs)
}

// leafCounts moves the units lo..hi-1 of an owning tabulated input by the counts in w.count,
// or adds these to the flows of the call, and clears them. fs, where not nil, are the inputs
// whose codes were counted.
func (x *executor) leafCounts(w *worker, owner int32, lo, hi int, fs []leafFlow) {
	in := &x.prog.Inputs[owner]
	width, rows, n := x.prog.Width(in.Vector), int(in.Codes)+1, hi-lo
	clear(w.count[(rows-1)*width+lo : (rows-1)*width+hi])
	// The normaliser is the sum of the counts, not that of the flows: where one count
	// grows large it loses small flows, and the table would lose mass step by step.
	norm := w.row[lo:hi]
	clear(norm)
	x.set.ColumnSums(&norm[0], &w.count[lo], width, rows-1, n)
	for i := range norm {
		norm[i] = x.round(norm[i])
	}
	if x.call.flows == nil {
		var seen []bool
		if in.Params >= 0 && fs != nil {
			seen = make([]bool, rows)
			for _, f := range fs {
				codes := x.columnCodes(&x.prog.Inputs[f.input])
				for r := range x.call.rows {
					seen[codes.at(r)] = true
				}
			}
		}
		x.moveInput(w, in, lo, hi, norm, seen)
		return
	}
	for c := range rows - 1 {
		at := in.Table + int64(c*width+lo)
		x.set.Quantize(&x.call.flows[at], &w.count[c*width+lo], nil, n, x.grid)
	}
	clearColumns(w.count, width, rows, lo, hi)
	at := x.prog.InputNorm(owner) + int64(lo)
	x.set.Quantize(&x.call.flows[at], &norm[0], nil, n, x.grid)
}

func clearColumns(m []float32, width, rows, lo, hi int) {
	if hi-lo == width {
		clear(m[:rows*width])
		return
	}
	for r := range rows {
		clear(m[r*width+lo : r*width+hi])
	}
}

// moveInput moves the units lo..hi-1 of a tabulated input by the counts in
// w.count; seen is as of moveFamily.
func (x *executor) moveInput(w *worker, in *layers.Input, lo, hi int, norm []float32, seen []bool) {
	width := x.prog.Width(in.Vector)
	units := int(x.prog.Vectors[in.Vector].Units)
	if in.Params >= 0 {
		if lo < units { // a part may have padding alone, which has no parameters
			x.moveFamily(w, in, lo, min(hi, units), norm, seen)
		}
		return
	}
	n := hi - lo
	if x.singles != nil {
		counts := w.count[:in.Codes]
		x.moveTable(in, counts, norm[0])
		clear(counts)
		return
	}
	keep, gain, prior := w.row[width+lo:width+hi], w.row[2*width+lo:2*width+hi], w.row[3*width+lo:3*width+hi]
	sum, mass := w.row[4*width+lo:4*width+hi], w.row[5*width+lo:5*width+hi]
	first := x.firstUnit(in.Vector) + lo
	for u := range n {
		keep[u], gain[u], prior[u] = x.call.rule.coefficients(norm[u], first+u, int(x.fanIn[first+u]))
	}
	args := &micro.TableArgs{
		Width: n, Row: width, Keep: &keep[0], Gain: &gain[0], Prior: &prior[0], Sum: &sum[0], Grid: x.fine, Floor: floorWeight,
	}
	table := x.call.params[in.Table:][:int(in.Codes)*width]
	clear(mass)
	for c := 0; c < int(in.Codes); c += summedCodes {
		clear(sum)
		args.Rows, args.T, args.Count = min(summedCodes, int(in.Codes)-c), &table[c*width+lo], &w.count[c*width+lo]
		x.set.UpdateTable(args)
		for u, s := range sum {
			mass[u] += s
		}
	}
	for u := range mass {
		if gain[u] == 0 && prior[u] == 0 { // it keeps its parameters
			mass[u] = 1
		}
	}
	restoreMass(table[lo:], width, int(in.Codes), mass)
}

// summedCodes is how many numbers of a table are added up in float32 before their sum is added to the others.
const summedCodes = 1024

// massTolerance is how far the mass of a table may be from 1. Roundings take a mass away from 1 where steps are small: what a step adds to a
// number is below half of its last digit then, and lost each time.
const massTolerance = 0x1p-15

// restoreMass divides the tables of units, [codes, width] from the first unit on, by their masses where these are too far from 1.
func restoreMass(table []float32, width, codes int, mass []float32) {
	off := false
	for u, m := range mass {
		mass[u] = 1
		if m > 0 && m <= math.MaxFloat32 && math.Abs(float64(m)-1) > massTolerance {
			mass[u], off = 1/m, true
		}
	}
	if !off {
		return
	}
	for c := range codes {
		row := table[c*width:][:len(mass)]
		for u, p := range row {
			if p != 0 {
				row[u] = max(p*mass[u], floorWeight)
			}
		}
	}
}

// roundCounts rounds counts to the grid and reports whether any is not 0.
func (x *executor) roundCounts(counts []float32) bool {
	fine, bits := x.fine, uint32(0)
	for i, f := range counts {
		if f < fine {
			f = (f + fine) - fine
		}
		counts[i] = f
		bits |= math.Float32bits(f)
	}
	return bits != 0
}

// moveFamily moves the parameters of a tabulated family that has its own
// M-step by the counts in w.count, which it clears, and tabulates it anew.
//
// Codes that are not seen, unless seen is nil, have no counts.
func (x *executor) moveFamily(w *worker, in *layers.Input, lo, hi int, norm []float32, seen []bool) {
	width := x.prog.Width(in.Vector)
	n, ns := hi-lo, in.Family.NumStats()
	rule, first := &x.call.rule, x.firstUnit(in.Vector)
	sums, stat := make([]float64, n*ns), make([]float64, ns) // sums: [statistic, unit]
	for c := range int(in.Codes) {
		counts := w.count[c*width+lo : c*width+hi]
		if seen != nil && !seen[c] || !x.roundCounts(counts) {
			continue
		}
		in.Family.Stats(float64(c), stat)
		for k, s := range stat {
			if s == 0 {
				continue
			}
			of, scale := sums[k*n:][:len(counts)], rule.scale
			for u, f := range counts {
				of[u] += scale * float64(f) * s
			}
		}
		clear(counts)
	}
	var p []float64
	for u := lo; u < hi; u++ {
		for k := range stat {
			stat[k] = sums[k*n+u-lo]
		}
		p = x.unitParams(in, u, p)
		in.Family.MStep(p, stat, rule.scale*float64(norm[u-lo]), rule.pseudocount, rule.stepOf(float64(norm[u-lo]), first+u))
		x.setUnitParams(in, u, p)
	}
	var exps []float32
	if in.Exps >= 0 {
		exps = x.call.params[in.Exps:][:int(in.Codes)*width]
	}
	// The table is made of what is stored, not of what was computed.
	params, table := x.call.params[in.Params:], x.call.params[in.Table:][:int(in.Codes)*width]
	chain, ok := in.Family.(layers.Chain)
	if !ok || exps == nil || x.set.Chain == nil || n%8 != 0 {
		layers.Tabulate(in.Family, params, width, lo, hi, table, exps)
		return
	}
	l := layers.NewLinks(chain, params[lo:hi])
	x.set.Chain(&micro.ChainArgs{
		Rows: int(in.Codes), Width: n, T: &table[lo], Exps: &exps[lo], Row: width,
		M: &l.M[0], E: &l.E[0], Odds: &l.Odds[0], Factors: &l.Factors[0],
	})
	l.Finish(table[lo:], exps[lo:], width)
}

func (x *executor) setUnitParams(in *layers.Input, unit int, p []float64) {
	width := x.prog.Width(in.Vector)
	for k, v := range p {
		x.call.params[in.Params+int64(k*width+unit)] = float32(v)
	}
}

// applyInput moves an owning input by the flows of all shards.
func (x *executor) applyInput(w *worker, o *layers.Owner, flows []int64) {
	p := x.prog
	in := &p.Inputs[o.Input]
	width := p.Width(in.Vector)
	at := p.InputNorm(o.Input)
	if in.Codes > 0 {
		n := int(in.Codes) * width
		x.counts(w.count[:n], flows, in.Table)
		norm := w.row[:width]
		x.counts(norm, flows, at)
		x.moveInput(w, in, 0, width, norm, nil)
		return
	}
	units := int(p.Vectors[in.Vector].Units)
	ns := in.Family.NumStats()
	residue := o.Averages[len(o.Averages)-1].Lo
	stats := make([]float64, (ns+1)*units)
	take := func(at, k, u int64) float64 {
		f := float64(flows[at]) * float64(x.grid)
		flows[at] = 0
		if x.call.rule.averages != nil {
			f = x.call.rule.averagePair(f, at, residue+k*int64(width)+u)
		}
		return f
	}
	for u := range units {
		for k := range ns {
			stats[k*units+u] = take(in.Params+int64(k*width+u), int64(k), int64(u)) * layers.StatScale(x.scales, in, k)
		}
		stats[ns*units+u] = take(at+int64(u), int64(ns), int64(u))
	}
	x.moveFunction(in, stats)
}
