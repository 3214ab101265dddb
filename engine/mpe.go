package engine

import (
	"context"
	"fmt"
	"math"

	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/kernels/tensor"
)

// MPEOptions say how most probable completions are looked for.
type MPEOptions struct {
	// Candidates is how many drawn completions of a row are improved beside that of
	// max-product. 0 suits deterministic circuits, whose max-product is exact.
	Candidates int
	// Sweeps is the most times that a candidate's missing cells are each set to their
	// best value given all others; fewer if none changes.
	Sweeps int
	Seed   uint64 // of the draws
	First  int    // number of b's first row in the whole request
}

// MPE fills the missing cells of b with the most probable completion that it finds and
// writes its log-likelihood to ll and to bound a number that no completion exceeds, [rows]
// both, as LogLikelihood counts. A row whose observed cells are impossible keeps its missing
// cells. What becomes of a row depends on the options, its number and its cells alone.
func (e *Engine) MPE(ctx context.Context, b *dataset.Batch, o MPEOptions, ll, bound []float64) error {
	if len(ll) < b.Rows || len(bound) < b.Rows || o.Candidates < 0 || o.Sweeps < 0 {
		return fmt.Errorf("%w: room for %d and %d numbers for %d rows, %d candidates and %d sweeps; want a number of each for each row",
			dataset.ErrFormat, len(ll), len(bound), b.Rows, o.Candidates, o.Sweeps)
	}
	each := 1 + o.Candidates
	for lo := 0; lo < b.Rows; {
		hi := min(b.Rows, lo+max(1, e.rows/each))
		if err := e.mpe(ctx, b.Slice(lo, hi), o, o.First+lo, ll[lo:hi], bound[lo:hi]); err != nil {
			return err
		}
		lo = hi
	}
	return nil
}

// mpe is MPE of rows whose candidates fit a launch, or of one row.
func (e *Engine) mpe(ctx context.Context, b *dataset.Batch, o MPEOptions, first int, ll, bound []float64) error {
	each := 1 + o.Candidates
	best := e.copies(b, 1)
	if err := e.maximise(ctx, best, bound); err != nil {
		return err
	}
	all := e.copies(b, each) // candidates of the rows, those of max-product first
	if o.Candidates > 0 {
		if err := e.Sample(ctx, all, o.Seed, first*each); err != nil {
			return err
		}
	}
	for v := range all.Columns {
		for r := range b.Rows {
			moveCell(&all.Columns[v], r*each, &best.Columns[v], r)
		}
	}
	missing := func(v, candidate int) bool { return b.Columns[v].IsMissing(candidate / each) }
	for range o.Sweeps {
		changed, err := e.ascend(ctx, all, missing)
		if err != nil {
			return err
		}
		if !changed {
			break
		}
	}
	scores := make([]float64, all.Rows)
	if err := e.LogLikelihood(ctx, all, scores); err != nil {
		return err
	}
	for r := range b.Rows {
		pick := r * each
		for c := pick; c < (r+1)*each; c++ {
			if scores[c] > scores[pick] {
				pick = c
			}
		}
		ll[r] = scores[pick]
		for v := range b.Columns {
			if b.Columns[v].IsMissing(r) {
				moveCell(&b.Columns[v], r, &all.Columns[v], pick)
			}
		}
	}
	return nil
}

// copies returns the cells of b, each row so many times.
func (e *Engine) copies(b *dataset.Batch, times int) *dataset.Batch {
	out := &dataset.Batch{Rows: b.Rows * times, Columns: make([]dataset.Cells, len(b.Columns))}
	for v := range b.Columns {
		spread(&out.Columns[v], &b.Columns[v], 0, out.Rows, times)
	}
	return out
}

// moveCell copies a cell to one of a column that is stored alike.
func moveCell(to *dataset.Cells, at int, from *dataset.Cells, row int) {
	if from.Discrete() {
		to.Codes.Set(at, from.Codes.At(row))
	} else {
		to.Values[at] = from.Values[row]
	}
}

// maximise fills the missing cells of b with the choice of max-product, and writes a
// bound on the log-likelihoods of completions.
func (e *Engine) maximise(ctx context.Context, b *dataset.Batch, bound []float64) error {
	functions := e.prog.Functions()
	units := make([][]unit, len(functions))
	var modes []float64
	for i, f := range functions {
		var err error
		if units[i], err = e.unitsOfInput(ctx, &e.prog.Inputs[f]); err != nil {
			return err
		}
		for _, u := range units[i] {
			modes = append(modes, u.family.LogProb(u.params, u.family.Mode(u.params)))
		}
	}
	ll, taken := make([]float64, e.rows), make([]int32, len(functions)*e.rows)
	for lo := 0; lo < b.Rows; lo += e.rows {
		hi := min(lo+e.rows, b.Rows)
		n := hi - lo
		s, err := e.evaluate(ctx, b, lo, hi, ll)
		if err != nil {
			return err
		}
		a := tensor.MaximiseArgs{
			Params: e.params, Codes: s.codes, Values: s.values, Modes: modes,
			Log: ll[:n], Bound: bound[lo:hi], Units: taken[:len(functions)*n],
		}
		if err := e.exec.Maximise(ctx, n, &a); err != nil {
			return err
		}
		e.recomputed += a.Recomputed
		for r, x := range s.excess[:n] {
			bound[lo+r] -= x + e.leastExcess(b, lo+r)
		}
		if err := e.dev.Read(ctx, e.code.cells(), s.codes, 0); err != nil {
			return err
		}
		for _, c := range e.prog.Columns {
			bins := e.binsOf(c.Var)
			switch cells := &b.Columns[c.Var]; {
			case c.Codes == 0:
			case bins != nil && !cells.Discrete():
				for r := range n {
					if code := e.code.at(int(c.Slot)*e.rows + r); code < c.Codes && cells.IsMissing(lo+r) {
						mid, _ := bins.moments(int(code))
						cells.Values[lo+r] = float32(mid)
					}
				}
			default:
				if err := e.fill(cells, lo, hi, c); err != nil {
					return err
				}
			}
		}
		for i, f := range functions {
			c := e.prog.Columns[e.prog.Inputs[f].Column]
			for r, u := range taken[i*n : (i+1)*n] {
				if cells := &b.Columns[c.Var]; u >= 0 && cells.IsMissing(lo+r) {
					x := units[i][u]
					if err := put(cells, lo+r, c.Var, x.family.Mode(x.params)); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

// leastExcess is the least that the log density of any completion of a row exceeds that of
// its numbers by, for the cells that are missing.
func (e *Engine) leastExcess(b *dataset.Batch, row int) float64 {
	least := 0.0
	for _, c := range e.prog.Columns {
		cells := &b.Columns[c.Var]
		if cells.Discrete() || !cells.IsMissing(row) {
			continue
		}
		switch bins := e.binsOf(c.Var); {
		case bins != nil:
			narrow := math.Inf(1)
			for _, w := range bins.logWidth {
				narrow = min(narrow, w)
			}
			least += narrow
		case c.Codes == 0 && e.logScales != nil:
			least += e.logScales[c.Var]
		}
	}
	return least
}

// ascend sets each missing cell of the candidates in all to its best value given the
// candidate's other cells, column after column, and reports whether any changed. No
// candidate becomes less probable.
func (e *Engine) ascend(ctx context.Context, all *dataset.Batch, missing func(v, candidate int) bool) (changed bool, err error) {
	for i, c := range e.prog.Columns {
		cells := &all.Columns[c.Var]
		var open []int // candidates whose cell may change
		for k := range all.Rows {
			if missing(int(c.Var), k) && !cells.IsMissing(k) {
				open = append(open, k)
			}
		}
		if len(open) == 0 {
			continue
		}
		var units []unit
		if c.Codes == 0 {
			if units, err = e.unitsOf(ctx, int32(i)); err != nil {
				return false, err
			}
		}
		err = e.posteriors(ctx, hiding(all, open, int(c.Var)), []int32{int32(i)}, func(p *posteriors) error {
			for r := range p.rows {
				weights, possible := p.of(0, r)
				if !possible {
					continue
				}
				at := open[p.lo+r]
				best, better := e.bestCell(c.Var, cells, at, weights, units)
				if better {
					changed = true
					if err := put(cells, at, c.Var, best); err != nil {
						return err
					}
				}
			}
			return nil
		})
		if err != nil {
			return false, err
		}
	}
	return changed, nil
}

// hiding returns some rows of b without what they say in a column.
func hiding(b *dataset.Batch, rows []int, column int) *dataset.Batch {
	out := &dataset.Batch{Rows: len(rows), Columns: make([]dataset.Cells, len(b.Columns))}
	for v := range b.Columns {
		switch from, to := &b.Columns[v], &out.Columns[v]; {
		case v == column:
			*to = missingCells(from, len(rows))
		case len(rows) == b.Rows: // all of them
			*to = *from
		default:
			*to = missingCells(from, len(rows))
			for k, row := range rows {
				moveCell(to, k, from, row)
			}
		}
	}
	return out
}

// gain is by how much, in share, a value must be better to be taken: less is rounding.
const gain = 1e-5

// bestCell returns the best value of a cell given the posterior of its column, and whether
// it is better than what the cell has.
func (e *Engine) bestCell(variable int32, cells *dataset.Cells, row int, weights []float32, units []unit) (best float64, better bool) {
	have := 0.0
	if cells.Discrete() {
		have = float64(cells.Codes.At(row))
	} else {
		have = float64(cells.Values[row])
	}
	best = have
	if units != nil {
		best = climb(have, weights, units)
		return best, best != have
	}
	top := 0.0
	if bins := e.binsOf(variable); bins != nil && !cells.Discrete() {
		if code := bins.code(float32(have)); code >= 0 {
			top = float64(weights[code]) * math.Exp(-bins.logWidth[code]) * (1 + gain)
		}
		for code, w := range weights {
			if d := float64(w) * math.Exp(-bins.logWidth[code]); d > top {
				best, _ = bins.moments(code)
				top, better = d, true
			}
		}
		return best, better
	}
	top = float64(weights[int(have)]) * (1 + gain)
	for code, w := range weights {
		if d := float64(w); d > top {
			best, top, better = float64(code), d, true
		}
	}
	return best, better
}

// climb returns a value of larger density under a mixture of units than x, or x: the best of
// the units' modes and x, and from there uphill by steps of powers of two, which are halved
// until they are small beside the width of a unit.
func climb(x float64, weights []float32, units []unit) float64 {
	density := func(x float64) float64 {
		d := 0.0
		for i, u := range units {
			if weights[i] > 0 {
				d += float64(weights[i]) * math.Exp(u.family.LogProb(u.params, x))
			}
		}
		return d
	}
	best, top, width := x, density(x)*(1+gain), 0.0
	for i, u := range units {
		if weights[i] == 0 {
			continue
		}
		mode := float64(float32(u.family.Mode(u.params)))
		_, variance := u.family.Moments(u.params)
		width = max(width, math.Sqrt(variance))
		if d := density(mode); d > top {
			best, top = mode, d
		}
	}
	const halvings = 12
	width = min(width, 1<<40)
	step := math.Exp2(math.Ceil(math.Log2(max(width, 1))))
	for least := min(width, 1) / (1 << halvings); step > least; step /= 2 {
		for _, to := range []float64{best - step, best + step} {
			to = float64(float32(to))
			if units[0].family.Check(to) != nil { // between two counts, or beyond the last number
				continue
			}
			if d := density(to); d > top {
				best, top = to, d*(1+gain)
			}
		}
	}
	return best
}
