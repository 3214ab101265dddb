package simplify

import (
	"fmt"
	"maps"
	"slices"

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
		bins, rest, err := w.histogram(s)
		if err != nil {
			return false, err
		}
		if bins == nil {
			statements = append(statements, s)
			continue
		}
		changed = true
		w.report.Steps = append(w.report.Steps, Step{Kind: Histogram, Array: s.Array, Statement: s.String(),
			Text: fmt.Sprintf("%s: a bin for each value of %s", s.Array, bins.Dims[len(bins.Dims)-1])})
		if w.name(bins, rest) {
			statements = append(statements, bins)
		}
		statements = append(statements, rest)
	}
	if !changed {
		return false, nil
	}
	w.prog.Statements = statements
	w.prog.Arrays = append(w.prog.Arrays, w.added...)
	w.added, w.inner = nil, nil
	return true, w.reparse()
}

// histogram returns the statement of the bins, whose array is not declared yet, and the one that picks from them; or
// nil where s has no guard of that kind, where bins would not give it a neighbour, or where they do not fit into memory.
func (w *worker) histogram(s *reduction.Statement) (bins, rest *reduction.Statement, err error) {
	if s.Op == reduction.Assign || s.Op.Draws() || len(s.Dims) >= reduction.MaxDims {
		return nil, nil, nil
	}
	for k := range s.Index {
		if ownDimension(s, k) < 0 {
			return nil, nil, nil
		}
	}
	sets, err := w.prog.Points(s)
	if err != nil || len(sets) != 1 {
		return nil, nil, err
	}
	for g := range s.Guards {
		value, high := w.picked(s, g)
		if value == nil {
			continue
		}
		bins, rest, extents, err := w.withBins(s, sets[0], g, value, high)
		if err != nil {
			return nil, nil, err
		}
		useful, err := w.movable(bins)
		if err != nil {
			return nil, nil, err
		}
		if !useful {
			continue
		}
		if !w.fits(extents) {
			w.report.Refused = append(w.report.Refused, Refusal{Array: s.Array, Statement: s.String(),
				Reason: fmt.Sprintf("a bin for each value of %s needs an array of more than %d elements", reduction.Text(value), maxElements)})
			continue
		}
		w.inner.extents, w.inner.kind = extents, w.prog.Array(s.Array).Type
		return bins, rest, nil
	}
	return nil, nil, nil
}

// picked returns the side of guard g that depends on the indices of s alone, and the end of the range of values that it is
// compared with; nil if the guard is of another kind.
func (w *worker) picked(s *reduction.Statement, g int) (value reduction.Expr, high *reduction.Affine) {
	b, ok := s.Guards[g].(*reduction.Binary)
	if !ok || b.Op != "==" {
		return nil, nil
	}
	outer := func(e reduction.Expr) (all, any bool) { // mentions only indices; mentions a dimension that is not one
		all = true
		for d, name := range s.Dims {
			own := false
			for k := range s.Index {
				own = own || ownDimension(s, k) == d
			}
			if !own && mentions(e, name) {
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
		for _, e := range []reduction.Expr{side[1], u} {
			r, ok := e.(*reduction.Read)
			if !ok {
				continue
			}
			if a := w.prog.Array(r.Array); a.Range != nil && len(a.Range.Low.Terms) == 0 && a.Range.Low.Constant == 0 {
				return u, &a.Range.High
			}
		}
	}
	return nil, nil
}

// withBins makes both statements for guard g, whose side value becomes dimension b, from 0 to below high.
func (w *worker) withBins(s *reduction.Statement, set *polyhedron.Set, g int, value reduction.Expr, high *reduction.Affine) (bins, rest *reduction.Statement, extents []reduction.Affine, err error) {
	b := "b"
	for w.reserved(b) {
		b += "b"
	}
	one := reduction.Affine{Terms: []reduction.Term{{Name: b, Coefficient: 1}}}
	c := *s
	bins = &c
	bins.Dims = append(slices.Clone(s.Dims), b)
	bins.Index = append(slices.Clone(s.Index), one)
	bins.Domain = append(slices.Clone(s.Domain), reduction.Chain{Terms: []reduction.Affine{{}, one, *high}, Relations: []reduction.Relation{reduction.LessEqual, reduction.Less}})
	bins.Guards = slices.Clone(s.Guards)
	other := s.Guards[g].(*reduction.Binary)
	left := other.X
	if other.X == value {
		left = other.Y
	}
	bins.Guards[g] = &reduction.Binary{Op: "==", X: left, Y: &reduction.Name{Name: b}}

	index, err := w.index(s)
	if err != nil {
		return nil, nil, nil, err
	}
	elements, _, err := set.Image(index, len(w.prog.Params))
	if err != nil {
		return nil, nil, nil, err
	}
	rest = &reduction.Statement{Pos: s.Pos, Array: s.Array, Index: s.Index, Op: s.Op}
	read := &reduction.Read{Pos: s.Pos}
	for k := range s.Index {
		name := s.Dims[ownDimension(s, k)]
		rest.Dims = append(rest.Dims, name)
		read.Index = append(read.Index, &reduction.Name{Name: name})
	}
	read.Index = append(read.Index, value)
	rest.Body = read
	rest.Domain = w.chains(elements, rest.Dims)
	w.inner = &innerArray{read: read}
	return bins, rest, append(slices.Clone(w.prog.Array(s.Array).Extents), *high), nil
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
// counted once. Without sizes there are no bins.
func (w *worker) withHistograms() error {
	plain, bins := *w, *w
	plain.report = &Report{Steps: slices.Clone(w.report.Steps), Refused: slices.Clone(w.report.Refused)}
	bins.report = &Report{Steps: slices.Clone(w.report.Steps), Refused: slices.Clone(w.report.Refused)}
	bins.sums = maps.Clone(w.sums)
	if err := bins.reparse(); err != nil { // a copy
		return err
	}
	changed := false
	if _, points, err := w.points(true, w.prog.Statements...); err != nil {
		return err
	} else if points != nil {
		if changed, err = bins.histograms(); err != nil {
			return err
		}
	}
	if !changed {
		plain.report.Refused = bins.report.Refused
		return w.take(&plain, plain.reuseSums())
	}
	if err := bins.contract(); err != nil {
		return err
	}
	if err := bins.reuseSums(); err != nil {
		return err
	}
	if err := plain.reuseSums(); err != nil {
		return err
	}
	_, with, err := bins.points(true, bins.prog.Statements...)
	if err != nil {
		return err
	}
	_, without, err := plain.points(true, plain.prog.Statements...)
	if err != nil {
		return err
	}
	if with.Cmp(without) < 0 {
		return w.take(&bins, nil)
	}
	return w.take(&plain, nil)
}

// take makes the result of another worker that of w.
func (w *worker) take(other *worker, err error) error {
	if err == nil {
		*w.report = *other.report
		report := w.report
		*w = *other
		w.report = report
	}
	return err
}
