package simplify

import (
	"fmt"
	"slices"

	"github.com/pce-engine/pce/compile/reduction"
	"github.com/pce-engine/pce/compile/reduction/polyhedron"
	"github.com/pce-engine/pce/compile/reduction/schedule"
)

// apart gives sums of data arrays of their own where other terms of the same elements are computed one element after the
// other. In
//
//	m[i,a] += h[i,a,y[i]] : {[i,a] : ...}
//	m[i,a] += 1           : {[i,a,w] : ...} if doc[w] == i and word[w] == a
//
// the second line would look at every w for each i, because m[i+1,a] needs m[i,a] through h. By itself it has no order, and
// looks at every w once.
func (w *worker) apart() error {
	deps, err := schedule.Dependences(w.prog)
	if err != nil {
		return err
	}
	recursive := schedule.Recursive(deps)
	all, _, err := w.points(true, w.prog.Statements...)
	if err != nil {
		return err
	}
	var statements []*reduction.Statement
	for _, s := range w.prog.Statements {
		statements = append(statements, s)
		if s.Op != reduction.Add || !recursive[s.Array] || w.prog.Array(s.Array).Fold != nil || !w.ofData(s) {
			continue
		}
		sets, err := w.prog.Points(s)
		if err != nil {
			return err
		}
		if len(sets) != 1 {
			continue
		}
		index, err := w.index(s)
		if err != nil {
			return err
		}
		if one, err := w.onePoint(sets[0], index, len(s.Dims)); err != nil || one {
			if err != nil {
				return err
			}
			continue
		}
		elements, exact, err := sets[0].Image(index, len(w.prog.Params))
		if err != nil {
			return err
		}
		if d, err := w.degree(elements); !exact || err != nil || !dominated(d, all) {
			continue
		}
		part := &sum{stmt: s, array: s.Array, root: s.Array, set: sets[0], index: index}
		own := *s
		own.Array = w.newArray(part)
		copied, err := w.copyInto(part, own.Array)
		if err != nil {
			return err
		}
		w.report.Steps = append(w.report.Steps, Step{Kind: Apart, Array: s.Array, Statement: s.String(),
			Text: fmt.Sprintf("%s: what is of data alone is added up in %s", s.Array, own.Array)})
		statements[len(statements)-1] = &own
		statements = append(statements, copied)
	}
	w.prog.Statements = statements
	w.prog.Arrays = append(w.prog.Arrays, w.added...)
	w.added = nil
	return w.reparse()
}

// onePoint reports whether at most one point of a set of so many dimensions has the same index, so that each element takes a
// look at one.
func (w *worker) onePoint(set *polyhedron.Set, index []polyhedron.Row, dims int) (bool, error) {
	set, err := set.Tighten()
	if err != nil {
		return false, err
	}
	params := len(w.prog.Params)
	var rows [][]int64
	for _, r := range append(slices.Clone(index), set.Zero...) {
		rows = append(rows, r[params:len(r)-1])
	}
	free, err := polyhedron.Kernel(rows, dims)
	return len(free) == 0, err
}

// ofData reports whether s reads inputs alone, and a guard picks the element that a point adds to.
func (w *worker) ofData(s *reduction.Statement) bool {
	for _, a := range w.prog.Arrays {
		if !a.Input && mentionsArray(s, a.Name) {
			return false
		}
	}
	return slices.ContainsFunc(s.Guards, func(g reduction.Expr) bool {
		b, ok := g.(*reduction.Binary)
		if !ok || b.Op != "==" {
			return false
		}
		for _, side := range []reduction.Expr{b.X, b.Y} {
			if n, ok := side.(*reduction.Name); ok {
				for k := range s.Index {
					if d := ownDimension(s, k); d >= 0 && s.Dims[d] == n.Name {
						return true
					}
				}
			}
		}
		return false
	})
}
