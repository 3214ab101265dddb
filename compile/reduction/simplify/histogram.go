package simplify

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pce-engine/pce/compile/reduction"
	"github.com/pce-engine/pce/compile/reduction/polyhedron"
)

// histograms gives sums a bin for each value that a guard compares data with. In
//
//	s[k] += x[i] : {[k,i] : 0 <= i < k} if z[i] == q[k]
//
// the guard changes with k, so that no element can start from its neighbour. In
//
//	h[k,b] += x[i]     : {[k,b,i] : 0 <= i < k, b in the range of z} if z[i] == b
//	s[k]   += h[k,q[k]]
//
// it does not, and b costs nothing where the guard fixes it. It reports whether it changed anything: the caller finds
// out whether the program is better for it.
func (w *worker) histograms() (changed bool, err error) {
	if w.all, err = w.reuse(); err != nil {
		return false, err
	}
	var statements []*reduction.Statement
	for _, s := range w.prog.Statements {
		own, err := w.histogram(s)
		if err != nil {
			return false, err
		}
		if own == nil {
			statements = append(statements, s)
			continue
		}
		changed = true
		statements = append(statements, own...)
	}
	if !changed {
		return false, nil
	}
	w.prog.Statements = statements
	w.prog.Arrays = append(w.prog.Arrays, w.added...)
	w.added, w.inner = nil, nil
	return true, w.reparse()
}

// histogram returns the statements that take the place of s: for each convex part of its domain one of the bins, unless an
// earlier one is the same, and one that picks from them. It returns nil where s has no guard of that kind, where bins would
// not give it a neighbour, or where they were refused before.
func (w *worker) histogram(s *reduction.Statement) (out []*reduction.Statement, err error) {
	if s.Op == reduction.Assign || s.Op.Draws() {
		return nil, nil
	}
	for k := range s.Index {
		if ownDimension(s, k) < 0 {
			return nil, nil
		}
	}
	text := s.String()
	if _, ok := w.refused[text]; ok {
		return nil, nil
	}
	var picks []*pick
	for g := range s.Guards {
		p := w.picked(s, g)
		if p == nil || g > 0 && w.daring(s, p.value) || w.daring(s, append([]reduction.Expr{s.Body}, s.Guards[g+1:]...)...) {
			continue // bins have points, and elements read bins, that guards keep out
		}
		picks = append(picks, p)
	}
	if len(picks) == 0 || len(s.Dims)+len(picks) > reduction.MaxDims {
		return nil, nil
	}
	tries := [][]*pick{picks} // one guard is enough for some
	if len(picks) > 1 {
		tries = nil
		for _, p := range picks {
			tries = append(tries, []*pick{p})
		}
		tries = append(tries, picks)
	}
	sets, err := w.prog.Points(s)
	if err != nil {
		return nil, err
	}
	for _, try := range tries {
		out, useful, err := w.withBins(s, sets, try)
		if err != nil {
			return nil, err
		}
		if useful {
			return out, nil
		}
	}
	return nil, nil
}

// withBins makes the statements for a choice of guards. useful reports whether each bin could start from a neighbour; nothing
// is named or reported if not.
func (w *worker) withBins(s *reduction.Statement, sets []*polyhedron.Set, picks []*pick) (out []*reduction.Statement, useful bool, err error) {
	type pair struct {
		bins, rest *reduction.Statement
		inner      *innerArray
	}
	var pairs []pair
	for _, set := range sets {
		part := *s
		if len(sets) > 1 {
			tight, err := set.Tighten()
			if err != nil {
				return nil, false, err
			}
			if tight.Hollow() {
				continue
			}
			part.Domain = w.chains(tight, s.Dims)
		}
		bins, rest, err := w.divideBins(&part, set, picks)
		if err != nil || bins == nil {
			return nil, false, err
		}
		if ok, err := w.movable(bins); err != nil || !ok {
			return nil, false, err
		}
		pairs = append(pairs, pair{bins, rest, w.inner})
	}
	for _, p := range pairs {
		w.inner = p.inner
		if w.name(p.bins, p.rest) {
			out = append(out, p.bins)
		}
		w.bins[p.inner.read.Array] = append(w.bins[p.inner.read.Array], s.String())
		out = append(out, p.rest)
	}
	var values []string
	for _, p := range picks {
		values = append(values, reduction.Text(p.value))
	}
	w.report.Steps = append(w.report.Steps, Step{Kind: Histogram, Array: s.Array, Statement: s.String(),
		Text: fmt.Sprintf("%s: a bin for each value of %s", s.Array, strings.Join(values, " and of "))})
	return out, len(pairs) > 0, nil
}

// pick is a guard that compares data with a value of the element.
type pick struct {
	guard int
	value reduction.Expr    // the side that depends on the indices alone
	high  *reduction.Affine // the end of the range of values that it is compared with
	open  bool              // the range is that of what value is compared with: value may be outside of it
}

// picked looks at guard g of s; nil if it is of another kind.
func (w *worker) picked(s *reduction.Statement, g int) *pick {
	b, ok := s.Guards[g].(*reduction.Binary)
	if !ok || b.Op != "==" {
		return nil
	}
	outer := func(e reduction.Expr) (all, any bool) { // mentions only indices; mentions a dimension that is not one
		all = true
		for d, name := range s.Dims {
			own := false
			for k := range s.Index {
				own = own || ownDimension(s, k) == d
			}
			if !own && reduction.Mentions(e, name) {
				all = false
			}
		}
		return all, !all
	}
	for _, side := range [2][2]reduction.Expr{{b.X, b.Y}, {b.Y, b.X}} {
		u, ok := side[0].(*reduction.Read)
		if all, _ := outer(side[0]); !ok || !all {
			continue
		}
		if _, inner := outer(side[1]); !inner {
			continue
		}
		for k, e := range []reduction.Expr{u, side[1]} {
			r, ok := e.(*reduction.Read)
			if !ok {
				continue
			}
			if a := w.prog.Array(r.Array); a.Range != nil && len(a.Range.Low.Terms) == 0 && a.Range.Low.Constant == 0 {
				return &pick{g, u, &a.Range.High, k > 0}
			}
		}
	}
	return nil
}

// divideBins makes both statements for guards of s, the value of each of which becomes a dimension of the bins. It returns nil where
// elements between those of s, which no point writes, would read bins too: they may be outside of their arrays.
func (w *worker) divideBins(s *reduction.Statement, set *polyhedron.Set, picks []*pick) (bins, rest *reduction.Statement, err error) {
	c := *s
	bins = &c
	bins.Dims, bins.Index, bins.Domain, bins.Guards = slices.Clone(s.Dims), slices.Clone(s.Index), slices.Clone(s.Domain), slices.Clone(s.Guards)
	b := "b"
	for _, p := range picks {
		for w.reserved(b) || slices.Contains(bins.Dims, b) {
			b += "b"
		}
		one := reduction.Affine{Terms: []reduction.Term{{Name: b, Coefficient: 1}}}
		bins.Dims = append(bins.Dims, b)
		bins.Index = append(bins.Index, one)
		bins.Domain = append(bins.Domain, reduction.Chain{Terms: []reduction.Affine{{}, one, *p.high}, Relations: []reduction.Relation{reduction.LessEqual, reduction.Less}})
		other := s.Guards[p.guard].(*reduction.Binary)
		left := other.X
		if other.X == p.value {
			left = other.Y
		}
		bins.Guards[p.guard] = &reduction.Binary{Op: "==", X: left, Y: &reduction.Name{Name: b}}
	}
	index, err := w.index(s)
	if err != nil {
		return nil, nil, err
	}
	elements, exact, err := set.Image(index, len(w.prog.Params))
	if err != nil || !exact {
		return nil, nil, err
	}
	rest = &reduction.Statement{Pos: s.Pos, Array: s.Array, Index: s.Index, Op: s.Op}
	read := &reduction.Read{Pos: s.Pos}
	for k := range s.Index {
		name := s.Dims[ownDimension(s, k)]
		rest.Dims = append(rest.Dims, name)
		read.Index = append(read.Index, &reduction.Name{Name: name})
	}
	a := w.prog.Array(s.Array)
	extents := slices.Clone(a.Extents)
	for _, p := range picks {
		read.Index = append(read.Index, p.value)
		extents = append(extents, w.widened(*p.high))
		if p.open { // then no point has that value
			low, high := expression(&reduction.Affine{}, s.Pos), expression(p.high, s.Pos)
			rest.Guards = append(rest.Guards, &reduction.Binary{Pos: s.Pos, Op: "<=", X: low, Y: p.value}, &reduction.Binary{Pos: s.Pos, Op: "<", X: p.value, Y: high})
		}
	}
	rest.Body = read
	rest.Domain = w.chains(elements, rest.Dims)
	w.inner = &innerArray{read: read, extents: extents, kind: a.Type}
	return bins, rest, nil
}

// expression writes an affine as an expression.
func expression(a *reduction.Affine, at reduction.Pos) (sum reduction.Expr) {
	join := func(x reduction.Expr) {
		if sum != nil {
			x = &reduction.Binary{Pos: at, Op: "+", X: sum, Y: x}
		}
		sum = x
	}
	number := func(x int64) reduction.Expr { return &reduction.Number{Pos: at, Integer: true, I: x} }
	for _, t := range a.Terms {
		var x reduction.Expr = &reduction.Name{Pos: at, Name: t.Name}
		if t.Coefficient != 1 {
			x = &reduction.Binary{Pos: at, Op: "*", X: number(t.Coefficient), Y: x}
		}
		join(x)
	}
	if sum == nil || a.Constant != 0 {
		join(number(a.Constant))
	}
	return sum
}

// movable reports whether a sum could start from a neighbour.
func (w *worker) movable(s *reduction.Statement) (bool, error) {
	sets, err := w.prog.Points(s)
	if err != nil {
		return false, err
	}
	tight, err := sets[0].Tighten()
	if err != nil {
		return false, err
	}
	index, err := w.index(s)
	if err != nil {
		return false, err
	}
	vectors, _, err := w.vectors(&sum{stmt: s, array: s.Array, root: s.Array, set: tight, index: index})
	return len(vectors) > 0, err
}

// withHistograms simplifies the program with and without bins, and keeps what does less at the program's sizes, guards
// counted once. Without sizes there are no bins. Bins that would be too large, because they could not be kept in
// place, are not made in a further try.
func (w *worker) withHistograms() error {
	plain, err := w.clone()
	if err == nil {
		err = plain.rest()
	}
	if err != nil {
		return err
	}
	if _, points, err := w.points(true, w.prog.Statements...); err != nil {
		return err
	} else if points == nil {
		w.take(plain)
		return nil
	}
	w.refused = map[string]string{}
	for {
		bins, err := w.clone()
		if err != nil {
			return err
		}
		changed, err := bins.histograms()
		if err != nil {
			return err
		}
		if changed {
			err = bins.contract()
		}
		if changed && err == nil {
			err = bins.rest()
		}
		if err != nil {
			return err
		}
		if changed && bins.tooLarge(w.refused) {
			continue
		}
		if changed {
			_, with, err := bins.points(true, bins.prog.Statements...)
			if err != nil {
				return err
			}
			_, without, err := plain.points(true, plain.prog.Statements...)
			if err != nil {
				return err
			}
			if with.Cmp(without) < 0 {
				plain = bins
			}
		}
		for _, s := range w.prog.Statements {
			if reason, ok := w.refused[s.String()]; ok {
				plain.report.Refused = append(plain.report.Refused, Refusal{Array: s.Array, Statement: s.String(), Reason: reason})
			}
		}
		w.take(plain)
		return nil
	}
}

// tooLarge notes the statements whose bins have too many elements, and reports whether there are any.
func (w *worker) tooLarge(refused map[string]string) (found bool) {
	for _, a := range w.prog.Arrays {
		extents := slices.Clone(a.Extents)
		where := ", as they cannot be kept in place"
		if a.Fold != nil {
			extents, where = slices.Delete(extents, a.Fold.Index, a.Fold.Index+1), ""
		}
		if w.fits(extents) {
			continue
		}
		for _, text := range w.bins[a.Name] {
			refused[text], found = fmt.Sprintf("bins for its guards need an array of more than %d elements%s", maxElements, where), true
		}
	}
	return found
}

// clone copies the program and what else the steps change.
func (w *worker) clone() (*worker, error) {
	c := *w
	c.report = &Report{Steps: slices.Clone(w.report.Steps), Refused: slices.Clone(w.report.Refused)}
	c.sums, c.bins = maps.Clone(w.sums), map[string][]string{}
	return &c, c.reparse()
}

// take makes the result of another worker that of w.
func (w *worker) take(other *worker) {
	report := w.report
	*report = *other.report
	*w = *other
	w.report = report
}
