package engine

import (
	"cmp"
	"container/heap"
	"context"
	"math"
	"slices"

	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/layers"
)

// search is branch and bound over the partial completions of a row. What a partial completion
// has as its probability bounds that of each of its completions, and one pass down gives the
// probabilities of all that have one cell more. Those that are not likelier than the best
// completion so far are left out; when none remains, that one is proved to be the best.
type search struct {
	row      int        // of the batch
	whole    bool       // no missing cell is summed out
	open     []bool     // of the program's columns: whether the row's cell is completed
	frontier []*partial // those to extend, a heap with the largest bound first
	left     int        // how many may be extended
	rest     float64    // the largest bound of those that the frontier had no room for
	best     float64    // log-likelihood of the best completion so far
	found    *partial   // that completion; nil: the one that the search began with
}

// partial is a partial completion: another one with one cell more.
type partial struct {
	before       *partial // nil: the row as it is
	column, code int32    // of the program
	open         int      // cells that are left
	ll           float64  // log-likelihood
	peaks        float64  // logs of the highest densities of the columns of cells that are left
	bound        float64  // on the log-likelihoods of its completions
}

const (
	searchAtOnce = 8       // partial completions of a row that are extended together
	searchRoom   = 1024    // partial completions that a frontier has room for at least
	searchMost   = 1 << 18 // partial completions that the rows searched together may extend; a row alone may have more
	partialBytes = 64      // of one, with its place in a frontier

	// faint is the share that a code counts with at least: the device has shares in float32, in which
	// what is below 1e-38 is lost at each of many sums, and 0 does not say that a code is impossible.
	faint = 1e-32
)

// search looks for completions of the rows of b that are likelier than those in best, whose
// log-likelihoods are ll, and puts them there. It lowers bound where it proves more. Rows with
// evidence that is a range, a set or likelihoods are not searched, nor those with a cell to
// complete whose values are not codes.
func (e *Engine) search(ctx context.Context, b *dataset.Batch, o MPEOptions, best *dataset.Batch, ll, bound []float64) error {
	if o.Search == 0 {
		return nil
	}
	evidence := make([]float64, b.Rows)
	if err := e.LogLikelihood(ctx, b, evidence); err != nil {
		return err
	}
	var all []*search
	for r := range b.Rows {
		if s := e.newSearch(b, r, o, evidence[r], ll[r], bound[r]); s != nil {
			all = append(all, s)
		}
		if len(all) < searchesAtOnce(o.Search) && r < b.Rows-1 {
			continue
		}
		for done := false; !done; {
			var err error
			if done, err = e.advance(ctx, b, all); err != nil {
				return err
			}
		}
		if err := e.takeFound(ctx, b, all, best, ll, bound); err != nil {
			return err
		}
		all = nil // with the partial completions
	}
	return nil
}

// searchesAtOnce is how many rows are searched together where each may extend that many partial completions,
// all of which are kept until its search has ended.
func searchesAtOnce(limit int) int { return max(1, searchMost/max(limit, searchRoom)) }

// SearchBytes is what the partial completions of a search take at most, of rows that come in launches of that many.
func SearchBytes(p *layers.Program, rows int, o MPEOptions) int64 {
	if o.Search == 0 {
		return 0
	}
	// A frontier has twice as many as may be extended, beside those that were. No row has more than there are.
	each, all := int64(2*max(o.Search, searchRoom)+o.Search), int64(1)
	for i := range p.Columns {
		if c := &p.Columns[i]; !c.Beside {
			all *= min(each, int64(c.Codes)+1)
			all = min(all, each)
		}
	}
	return partialBytes * all * int64(min(searchesAtOnce(o.Search), o.rowsAtOnce(rows)))
}

// newSearch returns the search of a row, nil if there is nothing to look for or no way to do it.
func (e *Engine) newSearch(b *dataset.Batch, r int, o MPEOptions, evidence, best, bound float64) *search {
	if b.RowHasSoft(r) || math.IsInf(best, -1) || bound <= best+gain {
		return nil
	}
	s := &search{row: r, whole: true, open: make([]bool, len(e.prog.Columns)), left: o.Search, rest: best, best: best}
	root := &partial{ll: evidence}
	for i, c := range e.prog.Columns {
		switch {
		case c.Beside || !b.Columns[c.Var].IsMissing(r):
			continue
		case !o.completes(int(c.Var)):
			s.whole = false
			continue
		case c.Codes == 0:
			return nil
		}
		s.open[i] = true
		root.open++
		root.peaks += e.peakOfCodes(int32(i), &b.Columns[c.Var])
	}
	if root.open == 0 {
		return nil
	}
	root.bound = min(bound, root.ll+root.peaks)
	s.push(root)
	return s
}

// advance extends some partial completions of each row, and says whether none was left. Where no cell is summed
// out, leaves at their modes are one more bound.
func (e *Engine) advance(ctx context.Context, b *dataset.Batch, all []*search) (done bool, err error) {
	var of []*search
	var next []*partial
	var rows []int
	open := make([]bool, len(e.prog.Columns))
	for _, s := range all {
		for range searchAtOnce {
			p := s.pop()
			if p == nil {
				break
			}
			of, next, rows = append(of, s), append(next, p), append(rows, s.row)
			for i, is := range s.open {
				open[i] = open[i] || is
			}
		}
	}
	if len(next) == 0 {
		return true, nil
	}
	partials := chosen(b, rows)
	var whole []int
	for k, p := range next {
		if err := e.putPartial(partials, k, p); err != nil {
			return false, err
		}
		if of[k].whole {
			whole = append(whole, k)
		}
	}
	bounds := make([]float64, len(whole))
	if err := e.maximise(ctx, chosen(partials, whole), bounds); err != nil {
		return false, err
	}
	for i, k := range whole {
		next[k].bound = min(next[k].bound, bounds[i])
	}
	var stay []int
	for k, p := range next {
		if p.bound > of[k].best+gain {
			stay = append(stay, k)
		}
	}
	partials = chosen(partials, stay)
	var columns []int32
	for i, is := range open {
		if is {
			columns = append(columns, int32(i))
		}
	}
	return false, e.posteriors(ctx, partials, columns, func(p *posteriors) error {
		for r := range p.rows {
			if err := ctx.Err(); err != nil { // a column may have many codes
				return err
			}
			k := stay[p.lo+r]
			e.branch(of[k], next[k], p, r, columns, partials)
		}
		return nil
	})
}

// putPartial writes the cells of a partial completion to a row.
func (e *Engine) putPartial(b *dataset.Batch, row int, p *partial) error {
	for ; p.before != nil; p = p.before {
		variable := e.prog.Columns[p.column].Var
		cells, value := &b.Columns[variable], float64(p.code)
		if bins := e.binsOf(variable); bins != nil && !cells.Discrete() {
			value, _ = bins.moments(int(p.code))
		}
		if err := put(cells, row, variable, value); err != nil {
			return err
		}
	}
	return nil
}

// branch adds the partial completions that have one cell more than p, of the column that leaves
// the fewest of them; of several such columns the one whose likeliest value is the least likely.
// of has in its row r the posteriors given p, which is that row of the launch in partials.
func (e *Engine) branch(s *search, p *partial, of *posteriors, r int, columns []int32, partials *dataset.Batch) {
	p.ll = of.ll[r] // which shares said up to their rounding
	at, fewest, least, bound := -1, 0, 0.0, min(p.bound, p.ll+p.peaks)
	var shares []float64
	for i, c := range columns {
		cells := &partials.Columns[e.prog.Columns[c].Var]
		if !s.open[c] || !cells.IsMissing(of.lo+r) {
			continue
		}
		weights, possible := of.of(i, r)
		if !possible {
			return
		}
		shares = e.shareOfCodes(shares, c, cells, weights)
		base := p.ll + p.peaks - e.peakOfCodes(c, cells) + e.takenOf(c, cells)
		enough := math.Exp(s.best + gain - base)
		stay := 0
		for _, x := range shares {
			if x > enough {
				stay++
			}
		}
		top := base + math.Log(slices.Max(shares))
		bound = min(bound, top)
		if at < 0 || stay < fewest || stay == fewest && top < least {
			at, fewest, least = i, stay, top
		}
	}
	if bound <= s.best+gain {
		return
	}
	c := columns[at]
	cells := &partials.Columns[e.prog.Columns[c].Var]
	weights, _ := of.of(at, r)
	peaks, taken := p.peaks-e.peakOfCodes(c, cells), e.takenOf(c, cells)
	for code, x := range e.shareOfCodes(shares, c, cells, weights) {
		ll := p.ll + taken + math.Log(x)
		next := partial{before: p, column: c, code: int32(code), open: p.open - 1, ll: ll, peaks: peaks, bound: min(bound, ll+peaks)}
		if next.open == 0 && float64(weights[code]) < faint { // its likelihood is not known
			s.rest = max(s.rest, next.bound)
			continue
		}
		s.add(&next)
	}
}

// shareOfCodes returns what the likelihood of a row is multiplied by at most with each code as the cell of a
// column whose posterior is weights: its probability, or for a bin its density, of which takenOf says what is taken.
func (e *Engine) shareOfCodes(room []float64, column int32, cells *dataset.Cells, weights []float32) []float64 {
	room = slices.Grow(room[:0], len(weights))[:len(weights)]
	shares(room, weights)
	for code := range room {
		room[code] = max(room[code], faint)
	}
	if bins := e.binsOf(e.prog.Columns[column].Var); bins != nil && !cells.Discrete() {
		for code := range room {
			room[code] *= bins.density(code)
		}
	}
	return room
}

// takenOf is the natural log that shareOfCodes has divided by.
func (e *Engine) takenOf(column int32, cells *dataset.Cells) float64 {
	if bins := e.binsOf(e.prog.Columns[column].Var); bins != nil && !cells.Discrete() {
		return bins.taken
	}
	return 0
}

// add keeps a partial completion, or takes a whole one as the best if it is.
func (s *search) add(p *partial) {
	switch {
	case p.bound <= s.best+gain:
	case p.open == 0:
		s.best, s.found = p.ll, p
	default:
		s.push(p)
	}
}

// push adds a partial completion to the frontier. Once that has twice as many as can be extended, the
// ones of the smallest bounds go, and what the largest of these was is kept.
func (s *search) push(p *partial) {
	heap.Push((*frontier)(&s.frontier), p)
	if keep := max(s.left, searchRoom); len(s.frontier) > 2*keep {
		slices.SortFunc(s.frontier, func(a, b *partial) int { return cmp.Compare(b.bound, a.bound) }) // a sorted slice is a heap
		s.rest = max(s.rest, s.frontier[keep].bound)
		clear(s.frontier[keep:])
		s.frontier = s.frontier[:keep]
	}
}

// pop returns the partial completion to extend next, nil if the search has ended: none can be likelier than
// the best, or the search is at its limit.
func (s *search) pop() *partial {
	if s.left == 0 || len(s.frontier) == 0 || s.frontier[0].bound <= s.best+gain {
		return nil
	}
	s.left--
	return heap.Pop((*frontier)(&s.frontier)).(*partial)
}

// upper is what no completion of the row exceeds.
func (s *search) upper() float64 {
	top := max(s.best, s.rest)
	if len(s.frontier) > 0 {
		top = max(top, s.frontier[0].bound)
	}
	return top
}

// frontier is a heap of partial completions, the one of the largest bound first.
type frontier []*partial

func (f frontier) Len() int           { return len(f) }
func (f frontier) Less(i, j int) bool { return f[i].bound > f[j].bound }
func (f frontier) Swap(i, j int)      { f[i], f[j] = f[j], f[i] }
func (f *frontier) Push(x any)        { *f = append(*f, x.(*partial)) }
func (f *frontier) Pop() any {
	last := len(*f) - 1
	p := (*f)[last]
	(*f)[last] = nil
	*f = (*f)[:last]
	return p
}

// takeFound puts the completions that searches found into best, where they are likelier, with their log-likelihoods, and
// lowers the bounds to what the searches prove.
func (e *Engine) takeFound(ctx context.Context, b *dataset.Batch, all []*search, best *dataset.Batch, ll, bound []float64) error {
	var rows []int
	for _, s := range all {
		rows = append(rows, s.row)
	}
	found, scores := chosen(b, rows), make([]float64, len(rows))
	for k, s := range all {
		if s.found != nil {
			if err := e.putPartial(found, k, s.found); err != nil {
				return err
			}
		}
	}
	if err := e.LogLikelihood(ctx, found, scores); err != nil {
		return err
	}
	for k, s := range all {
		if s.found != nil && scores[k] > ll[s.row] {
			ll[s.row] = scores[k]
			for v := range best.Columns {
				moveCell(&best.Columns[v], s.row, &found.Columns[v], k)
			}
		}
		bound[s.row] = max(ll[s.row], min(bound[s.row], s.upper()))
	}
	return nil
}
