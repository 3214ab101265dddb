package engine

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/pce-engine/pce/dataset"
)

// beam is a search for likely completions of several rows. It fills columns one after
// another: each partial completion of a row is extended by each value of the column, and
// those stay whose cells so far are the likeliest, the cells to come summed out. Unlike
// max-product it weighs all terms of every sum.
type beam struct {
	width    int
	partials *dataset.Batch // [partials of the first row, of the second, ...]
	owner    []int          // row of each partial, ascending
	score    []float64      // log of the probability of its cells, up to a constant of the row
}

// extension is a partial completion with one more value.
type extension struct {
	owner, from int
	value       float64
	score       float64
}

// beam completes the missing cells of b that o names and returns the completions, those of a row in order
// of their likelihood and at most width of them; none of a row that is impossible or has
// evidence that is a range, a set or likelihoods.
func (e *Engine) beam(ctx context.Context, b *dataset.Batch, o MPEOptions) (*beam, error) {
	width := o.Beam
	s := &beam{width: width}
	for r := range b.Rows {
		if !b.RowHasSoft(r) {
			s.owner = append(s.owner, r)
		}
	}
	s.partials, s.score = chosen(b, s.owner), make([]float64, len(s.owner))
	for i, c := range e.prog.Columns {
		if c.Beside || !o.completes(int(c.Var)) {
			continue
		}
		missing := func(row int) bool { return b.Columns[c.Var].IsMissing(row) }
		if !slices.ContainsFunc(s.owner, missing) {
			continue
		}
		var units []unit
		if c.Codes == 0 {
			var err error
			if units, err = e.unitsOf(ctx, int32(i)); err != nil {
				return nil, err
			}
		}
		var next []extension
		err := e.posteriors(ctx, s.partials, []int32{int32(i)}, func(p *posteriors) error {
			for r := range p.rows {
				from := p.lo + r
				weights, possible := p.of(0, r)
				x := extension{owner: s.owner[from], from: from, score: s.score[from]}
				switch {
				case !possible:
				case !missing(x.owner):
					next = append(next, x)
				default:
					next = e.extend(next, x, width, c.Var, &s.partials.Columns[c.Var], weights, units)
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		if err := s.advance(next, c.Var, missing); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// extend appends a partial completion with each of the likeliest values of a column, at most
// width: of a column without codes the modes of its units and the peak uphill of the best of
// them.
func (e *Engine) extend(next []extension, x extension, width int, variable int32, cells *dataset.Cells, weights []float32, units []unit) []extension {
	total := 0.0
	for _, w := range weights {
		total += float64(w)
	}
	first, base := len(next), x.score-math.Log(total)
	add := func(value, density float64) { // in order of the scores, the first of equals first
		y := extension{x.owner, x.from, value, base + math.Log(density)}
		at := first
		for at < len(next) && next[at].score >= y.score {
			if next[at].value == value { // units may share a mode
				return
			}
			at++
		}
		if at < first+width && density > 0 {
			next = slices.Insert(next, at, y)
			next = next[:min(len(next), first+width)]
		}
	}
	bins := e.binsOf(variable)
	switch {
	case units != nil:
		best, top := 0.0, -1.0
		for i, u := range units {
			if weights[i] > 0 {
				mode := float64(float32(u.family.Mode(u.params)))
				d := density(mode, weights, units)
				if add(mode, d); d > top {
					best, top = mode, d
				}
			}
		}
		if top > 0 {
			peak := climb(best, weights, units, nil)
			add(peak, density(peak, weights, units))
		}
	case bins != nil && !cells.Discrete():
		base += bins.taken
		for code, w := range weights {
			mid, _ := bins.moments(code)
			add(float64(float32(mid)), float64(w)*bins.density(code))
		}
	default:
		for code, w := range weights {
			add(float64(code), float64(w))
		}
	}
	return next
}

// advance keeps the best extensions of each row, the first of equals, and makes them the
// partial completions.
func (s *beam) advance(next []extension, variable int32, missing func(row int) bool) error {
	kept := next[:0]
	for lo := 0; lo < len(next); {
		hi := lo
		for hi < len(next) && next[hi].owner == next[lo].owner {
			hi++
		}
		of := next[lo:hi]
		slices.SortStableFunc(of, func(a, b extension) int { return cmp.Compare(b.score, a.score) })
		kept = append(kept, of[:min(len(of), s.width)]...)
		lo = hi
	}
	rows := make([]int, len(kept))
	for k, x := range kept {
		rows[k] = x.from
	}
	s.partials = chosen(s.partials, rows)
	s.owner, s.score = make([]int, len(kept)), make([]float64, len(kept))
	for k, x := range kept {
		s.owner[k], s.score[k] = x.owner, x.score
		if missing(x.owner) {
			if err := put(&s.partials.Columns[variable], k, variable, x.value); err != nil {
				return err
			}
		}
	}
	return nil
}

// chosen returns some rows of b, which may repeat.
func chosen(b *dataset.Batch, rows []int) *dataset.Batch {
	out := &dataset.Batch{Rows: len(rows), Columns: make([]dataset.Cells, len(b.Columns))}
	for v := range b.Columns {
		out.Columns[v] = missingCells(&b.Columns[v], len(rows))
		for k, row := range rows {
			moveCell(&out.Columns[v], k, &b.Columns[v], row)
		}
		if from := &b.Columns[v].Soft; from.Of != nil {
			to := &out.Columns[v].Soft
			to.Of, to.List = make([]uint32, len(rows)), from.List
			for k, row := range rows {
				to.Of[k] = from.Of[row]
			}
		}
	}
	return out
}
