package engine

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/kernels/tensor"
)

// MPEOptions say how most probable completions are looked for.
type MPEOptions struct {
	// Candidates is how many drawn completions of a row are improved, beside those of
	// max-product and of the beam. 0 suits deterministic circuits, whose max-product is exact.
	Candidates int
	// Beam is how many partial completions of a row a beam search keeps while it fills one
	// column after another. 0: no such search.
	Beam int
	// Sweeps is the most times that a candidate's missing cells are each set to their
	// best value given all others; fewer if none changes.
	Sweeps int
	// Search is how many partial completions of a row branch and bound may extend to find a
	// likelier one than the candidates, or to prove that none is. 0: no such search.
	Search int
	// Of says of each variable whether it is completed. The missing cells of all others are
	// summed out, and stay missing: marginal MAP. nil: all are completed.
	Of    []bool
	Seed  uint64 // of the draws
	First int    // number of b's first row in the whole request
}

// MPE fills the missing cells of b with the most probable completion that it finds and
// writes its log-likelihood to ll and to bound a number that no completion exceeds, [rows]
// both, as LogLikelihood counts. A row whose observed cells are impossible keeps its missing
// cells. What becomes of a row depends on the options, its number and its cells alone.
func (e *Engine) MPE(ctx context.Context, b *dataset.Batch, o MPEOptions, ll, bound []float64) error {
	if len(ll) < b.Rows || len(bound) < b.Rows || o.Candidates < 0 || o.Beam < 0 || o.Sweeps < 0 || o.Search < 0 || o.Of != nil && len(o.Of) != len(b.Columns) {
		return fmt.Errorf("%w: room for %d and %d numbers for %d rows, %d candidates, a beam of %d, %d sweeps, a search of %d and %d columns of %d that are completed or not; want a number of each for each row",
			dataset.ErrFormat, len(ll), len(bound), b.Rows, o.Candidates, o.Beam, o.Sweeps, o.Search, len(o.Of), len(b.Columns))
	}
	var open, closed []int // rows with and without cells to complete
	for r := range b.Rows {
		if o.completesIn(b, r) {
			open = append(open, r)
		} else {
			closed = append(closed, r)
		}
	}
	if err := e.mpeOfNothing(ctx, b, closed, ll, bound); err != nil {
		return e.named(ctx, b, err)
	}
	for rows := range slices.Chunk(open, o.rowsAtOnce(e.rows)) {
		part := chosen(b, rows)
		partLL, partBound := make([]float64, len(rows)), make([]float64, len(rows))
		if err := e.mpe(ctx, part, o, rows, partLL, partBound); err != nil {
			return e.named(ctx, b, err)
		}
		for k, r := range rows {
			ll[r], bound[r] = partLL[k], partBound[k]
			for v := range b.Columns {
				if b.Columns[v].IsMissing(r) {
					moveCell(&b.Columns[v], r, &part.Columns[v], k)
				}
			}
		}
	}
	return nil
}

// completesIn reports whether a row has a cell that is completed.
func (o *MPEOptions) completesIn(b *dataset.Batch, row int) bool {
	for v := range b.Columns {
		if o.completes(v) && b.Columns[v].IsMissing(row) {
			return true
		}
	}
	return false
}

// mpeOfNothing is MPE of rows without cells to complete: nothing is likelier than what they are. A table often has many of
// them, and each would have the candidates of others, all equal.
func (e *Engine) mpeOfNothing(ctx context.Context, b *dataset.Batch, rows []int, ll, bound []float64) error {
	if len(rows) == 0 {
		return nil
	}
	own := make([]float64, len(rows))
	if err := e.LogLikelihood(ctx, chosen(b, rows), own); err != nil {
		return err
	}
	for k, r := range rows {
		ll[r], bound[r] = own[k], own[k]
	}
	return nil
}

// rowsAtOnce is how many rows are completed together in launches of that many.
func (o *MPEOptions) rowsAtOnce(rows int) int { return max(1, rows/max(2+o.Candidates, o.Beam)) }

// mpe is MPE of rows whose candidates fit a launch, or of one row. Each candidate is improved
// cell by cell until a sweep changes none, or for o.Sweeps sweeps; then the best of a row is
// taken, the first of equals, so the answer does not depend on what is in the launch. Rows
// without any possible completion keep their missing cells. numbers are those of the rows, behind o.First.
func (e *Engine) mpe(ctx context.Context, b *dataset.Batch, o MPEOptions, numbers []int, ll, bound []float64) error {
	all, owner, err := e.candidates(ctx, b, o, numbers, bound)
	if err != nil {
		return err
	}
	all, owner = unlike(all, owner)
	moving := make([]bool, all.Rows) // candidates that the last sweep changed
	for k := range moving {
		moving[k] = true
	}
	soft := func(v, k int) *dataset.Evidence { return b.Columns[v].Soft.At(owner[k]) }
	for range o.Sweeps {
		open := func(v, k int) bool { return moving[k] && b.Columns[v].IsMissing(owner[k]) }
		if moving, err = e.ascend(ctx, all, open, soft); err != nil {
			return err
		}
		if !slices.Contains(moving, true) {
			break
		}
	}
	scores := make([]float64, all.Rows)
	if err := e.LogLikelihood(ctx, all, scores); err != nil {
		return err
	}
	for v := range b.Columns {
		for k, r := range owner {
			scores[k] += logLikelihood(&b.Columns[v], r, &all.Columns[v], k)
		}
	}
	pick := make([]int, b.Rows)
	for k := all.Rows - 1; k >= 0; k-- { // every row has one; the first of equals is taken
		if r := owner[k]; pick[r] == 0 || scores[k] >= scores[pick[r]-1] {
			pick[r] = k + 1
		}
	}
	for r := range pick {
		pick[r]--
		ll[r] = scores[pick[r]]
	}
	best := chosen(all, pick)
	if err := e.search(ctx, b, o, best, ll, bound); err != nil {
		return err
	}
	for r := range ll { // rounding must not put a bound below what was found
		bound[r] = max(bound[r], ll[r])
	}
	for v := range b.Columns {
		for r := range b.Rows {
			if b.Columns[v].IsMissing(r) {
				moveCell(&b.Columns[v], r, &best.Columns[v], r)
			}
		}
	}
	return nil
}

// candidates returns completions of the rows of b with the rows that they are of, in
// ascending order: for each row that of max-product, the best of the beam if one is wanted
// and the drawn ones. It writes bounds on the log-likelihoods of completions.
func (e *Engine) candidates(ctx context.Context, b *dataset.Batch, o MPEOptions, numbers []int, bound []float64) (*dataset.Batch, []int, error) {
	best := e.copies(b, 1)
	if err := e.maximise(ctx, best, bound); err != nil {
		return nil, nil, err
	}
	if err := e.boundMarginal(ctx, b, o, bound); err != nil {
		return nil, nil, err
	}
	each := 2 + o.Candidates
	all, owner := e.copies(b, each), make([]int, b.Rows*each)
	for k := range owner {
		owner[k] = k / each
	}
	for lo, hi := 0, 0; o.Candidates > 0 && lo < b.Rows; lo = hi { // draws are numbered, and those of rows side by side are drawn together
		for hi = lo + 1; hi < b.Rows && numbers[hi] == numbers[hi-1]+1; hi++ {
		}
		if err := e.Sample(ctx, all.Slice(lo*each, hi*each), o.Seed, (o.First+numbers[lo])*each); err != nil {
			return nil, nil, err
		}
	}
	take := func(row, at int, from *dataset.Batch, k int) {
		for v := range all.Columns {
			moveCell(&all.Columns[v], row*each+at, &from.Columns[v], k)
		}
	}
	for r := range b.Rows {
		take(r, 0, best, r)
		take(r, 1, best, r)
	}
	if o.Beam > 0 {
		found, err := e.beam(ctx, b, o)
		if err != nil {
			return nil, nil, err
		}
		for k := len(found.owner) - 1; k >= 0; k-- { // the first of a row is its best
			take(found.owner[k], 1, found.partials, k)
		}
	}
	for v := range all.Columns { // what is summed out is not completed
		for k, r := range owner {
			if !o.completes(v) {
				moveCell(&all.Columns[v], k, &b.Columns[v], r)
			}
		}
	}
	return all, owner, nil
}

// completes reports whether missing cells of a variable are completed.
func (o *MPEOptions) completes(v int) bool { return o.Of == nil || o.Of[v] }

// unlike returns the candidates of each row without those that are equal to an earlier one, in
// the same order: candidates often meet, and every sweep costs a pass for each.
func unlike(all *dataset.Batch, owner []int) (*dataset.Batch, []int) {
	seen, rows, of := map[string]bool{}, []int(nil), []int(nil)
	var key []byte
	for k, r := range owner {
		key = binary.AppendUvarint(key[:0], uint64(r))
		for v := range all.Columns {
			if cells := &all.Columns[v]; cells.Discrete() {
				key = binary.AppendVarint(key, int64(cells.Codes.At(k)))
			} else {
				key = binary.LittleEndian.AppendUint32(key, math.Float32bits(cells.Values[k]))
			}
		}
		if !seen[string(key)] {
			seen[string(key)] = true
			rows, of = append(rows, k), append(of, r)
		}
	}
	if len(rows) == all.Rows {
		return all, owner
	}
	return chosen(all, rows), of
}

// copies returns the cells of b, each row that many times.
func (e *Engine) copies(b *dataset.Batch, times int) *dataset.Batch {
	out := &dataset.Batch{Rows: b.Rows * times, Columns: make([]dataset.Cells, len(b.Columns))}
	for v := range b.Columns {
		spread(&out.Columns[v], &b.Columns[v], 0, out.Rows, times)
	}
	return out
}

// moveCell copies a cell to one of a column that is stored alike, with what is known of it if it is missing. Both
// columns share a list of evidence, if they have any.
func moveCell(to *dataset.Cells, at int, from *dataset.Cells, row int) {
	if to.Soft.Of != nil {
		to.Soft.Of[at] = 0
		if from.Soft.Of != nil && from.IsMissing(row) {
			to.Soft.Of[at] = from.Soft.Of[row]
		}
	}
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
	watched := len(e.prog.Watched())
	ll, taken := make([]float64, e.rows), make([]int32, watched*e.rows)
	if e.soft != nil {
		e.soft.most = true
		defer func() { e.soft.most = false }()
	}
	for lo, hi := 0, 0; lo < b.Rows; lo = hi {
		hi = e.launchEnd(b, lo)
		n := hi - lo
		s, err := e.evaluate(ctx, b, lo, hi, ll)
		if err != nil {
			return err
		}
		a := tensor.MaximiseArgs{
			Params: e.params, Codes: s.codes, Values: s.values, Modes: modes,
			Log: ll[:n], Bound: bound[lo:hi], Units: taken[:watched*n],
		}
		if err := e.exec.Maximise(ctx, n, &a); err != nil {
			return err
		}
		e.recomputed += a.Recomputed
		for r, x := range s.excess[:n] {
			bound[lo+r] -= x + e.leastExcess(b, lo+r)
		}
		if err := e.boundOutside(ctx, b, lo, bound[lo:hi]); err != nil {
			return err
		}
		if err := e.dev.Read(ctx, e.code.cells(), s.codes, 0); err != nil {
			return err
		}
		e.dropImpossible(s.excess[:n], taken)
		for _, c := range e.prog.Columns {
			bins := e.binsOf(c.Var)
			switch cells := &b.Columns[c.Var]; {
			case c.Codes == 0, c.Beside:
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
		if err := e.fillSoft(ctx, b, lo, hi, taken, nil); err != nil {
			return err
		}
		for i, f := range functions {
			c := e.prog.Columns[e.prog.Inputs[f].Column]
			for r, u := range taken[i*n : (i+1)*n] {
				if cells := &b.Columns[c.Var]; u >= 0 && cells.IsMissing(lo+r) && cells.Soft.At(lo+r) == nil {
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
		if cells.Discrete() || !cells.IsMissing(row) || c.Beside || cells.Soft.At(row) != nil {
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

// boundOutside adds to the bounds of the rows from lo on what they lack for observed cells outside of all bins. These are
// read as missing: Maximise has the largest probability of each unit for them, where a log-likelihood has 1.
func (e *Engine) boundOutside(ctx context.Context, b *dataset.Batch, lo int, bound []float64) error {
	for i, c := range e.prog.Columns {
		bins, cells := e.binsOf(c.Var), &b.Columns[c.Var]
		if bins == nil || cells.Discrete() {
			continue
		}
		least, found := 0.0, false
		for r := range bound {
			if v := cells.Values[lo+r]; v != v || bins.code(v) >= 0 {
				continue
			}
			if !found {
				var err error
				if least, err = e.leastPeak(ctx, int32(i)); err != nil {
					return err
				}
				found = true
			}
			bound[r] -= least
		}
	}
	return nil
}

// leastPeak returns the natural log of the largest probability of a code, of the unit of a column where it is smallest.
func (e *Engine) leastPeak(ctx context.Context, column int32) (float64, error) {
	all := &softCell{runs: []dataset.Run{{Last: int(e.prog.Columns[column].Codes) - 1, Likelihood: 1}}, most: true}
	least := 0.0
	for i := range e.prog.Inputs {
		in := &e.prog.Inputs[i]
		if in.Column != column {
			continue
		}
		logs := make([]float64, e.prog.Vectors[in.Vector].Units)
		if err := e.addTable(ctx, in, all, logs); err != nil {
			return 0, err
		}
		least = min(least, slices.Min(logs))
	}
	return least, nil
}

// ascend sets each open cell of the candidates in all to its best value given the
// candidate's other cells and what soft says is known of it, column after column, and says which
// candidates changed. No candidate becomes less probable.
func (e *Engine) ascend(ctx context.Context, all *dataset.Batch, isOpen func(v, candidate int) bool, soft func(v, candidate int) *dataset.Evidence) (changed []bool, err error) {
	changed = make([]bool, all.Rows)
	for i, c := range e.prog.Columns {
		if c.Beside {
			continue
		}
		cells := &all.Columns[c.Var]
		var open []int // candidates whose cell may change
		for k := range all.Rows {
			if isOpen(int(c.Var), k) && !cells.IsMissing(k) {
				open = append(open, k)
			}
		}
		if len(open) == 0 {
			continue
		}
		var units []unit
		if c.Codes == 0 {
			if units, err = e.unitsOf(ctx, int32(i)); err != nil {
				return nil, err
			}
		}
		err = e.posteriors(ctx, hiding(all, open, int(c.Var)), []int32{int32(i)}, func(p *posteriors) error {
			for r := range p.rows {
				weights, possible := p.of(0, r)
				if !possible {
					continue
				}
				at := open[p.lo+r]
				limit, err := e.limitOf(i, soft(int(c.Var), at))
				if err != nil {
					return err
				}
				best, better := e.bestCell(c.Var, cells, at, weights, units, limit)
				if better {
					changed[at] = true
					if err := put(cells, at, c.Var, best); err != nil {
						return err
					}
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
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
			if from.Soft.Of != nil {
				to.Soft = dataset.SoftCells{Of: make([]uint32, len(rows)), List: from.Soft.List}
			}
			for k, row := range rows {
				moveCell(to, k, from, row)
			}
		}
	}
	return out
}

// gain is by how much, in share or in nats, a value or a completion must be better to be taken: less is rounding.
const gain = 1e-5

// bestCell returns the best value of a cell given the posterior of its column, and whether
// it is better than what the cell has.
func (e *Engine) bestCell(variable int32, cells *dataset.Cells, row int, weights []float32, units []unit, limit *softCell) (best float64, better bool) {
	have := 0.0
	if cells.Discrete() {
		have = float64(cells.Codes.At(row))
	} else {
		have = float64(cells.Values[row])
	}
	best = have
	if units != nil {
		best = climb(have, weights, units, limit)
		return best, best != have
	}
	top := 0.0
	if bins := e.binsOf(variable); bins != nil && !cells.Discrete() {
		if code := bins.code(float32(have)); code >= 0 {
			top = float64(weights[code]) * bins.density(code) * (1 + gain)
		}
		for code, w := range weights {
			if d := float64(w) * bins.density(code); d > top && limit.likelihoodOf(code) > 0 {
				best, top, better = bins.middle(code, limit), d, true
			}
		}
		return best, better
	}
	top = float64(weights[int(have)]) * limit.likelihoodOf(int(have)) * (1 + gain)
	for code, w := range weights {
		if d := float64(w) * limit.likelihoodOf(code); d > top {
			best, top, better = float64(code), d, true
		}
	}
	return best, better
}

// climb returns a value of larger density under a mixture of units than x, or x: the best of
// the units' modes and x, and from there uphill by steps of powers of two, which are halved
// until they are small beside the width of a unit. limit, unless nil, says which values there
// are, with their likelihoods.
func climb(x float64, weights []float32, units []unit, limit *softCell) float64 {
	stepped := steppedUnits(weights, units)
	density := func(x float64) float64 {
		switch {
		case !stepped.take(x, limit):
			return 0
		case limit == nil:
			return density(x, weights, units)
		case !limit.allows(x):
			return 0
		case limit.runs != nil:
			return density(x, weights, units) * limit.likelihood(int(x))
		}
		return density(x, weights, units)
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
			if !slices.ContainsFunc(units, func(u unit) bool { return u.family.Check(to) == nil }) { // between two counts, or beyond the last number
				continue
			}
			if d := density(to); d > top {
				best, top = to, d*(1+gain)
			}
		}
	}
	return best
}

// density is that of a mixture of units at x.
func density(x float64, weights []float32, units []unit) float64 {
	d := 0.0
	for i, u := range units {
		if weights[i] > 0 {
			d += float64(weights[i]) * math.Exp(u.family.LogProb(u.params, x))
		}
	}
	return d
}
