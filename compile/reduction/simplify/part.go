package simplify

import (
	"fmt"
	"slices"

	"github.com/pce-engine/pce/compile/reduction"
	"github.com/pce-engine/pce/compile/reduction/polyhedron"
	"github.com/pce-engine/pce/compile/reduction/schedule"
)

// parts drops counts that are among those of another array, which are read in their place. Of
//
//	n[a,d]   += 1 : {[a,d,w] : 0 <= a < A, 1 <= d < D, 0 <= w < W} if doc[w] == d and word[w] == a
//	own[i,b] += 1 : {[i,b,w] : 0 <= i < D, 0 <= b < A, 0 <= w < W} if doc[w] == i and word[w] == b
//
// the elements of n that have a sum are elements of own, with indices in another order.
func (w *worker) parts() error {
	for _, s := range w.prog.Statements {
		for _, of := range w.prog.Statements {
			p, err := w.partOf(s, of)
			if err != nil {
				return err
			}
			if p == nil {
				continue
			}
			w.report.Steps = append(w.report.Steps, Step{Kind: Merge, Array: s.Array, Statement: s.String(),
				Text: fmt.Sprintf("%s is a part of %s", s.Array, of.Array)})
			if w.prog.Array(s.Array).Type == reduction.Int { // a count is as exact as it was
				w.prog.Array(of.Array).Type = reduction.Int
			}
			w.prog.Arrays = slices.DeleteFunc(w.prog.Arrays, func(a *reduction.Array) bool { return a.Name == s.Array })
			w.prog.Statements = slices.DeleteFunc(w.prog.Statements, func(t *reduction.Statement) bool { return t == s })
			for k, t := range w.prog.Statements {
				c := *t
				w.prog.Statements[k] = rewrite(&c, func(e reduction.Expr) reduction.Expr { return p.read(e, s.Array, of.Array) })
			}
			if err := w.reparse(); err != nil {
				return err
			}
			return w.parts()
		}
	}
	return nil
}

// part says which index of an array is which of another one.
type part []int

// read reads of an array what is read of its part.
func (p part) read(e reduction.Expr, array, of string) reduction.Expr {
	return transform(e, func(e reduction.Expr) reduction.Expr {
		r, ok := e.(*reduction.Read)
		if !ok || r.Array != array {
			return e
		}
		c := &reduction.Read{Pos: r.Pos, Array: of}
		for _, k := range p {
			c.Index = append(c.Index, r.Index[k])
		}
		return c
	})
}

// partOf returns how the array of s is a part of that of another statement, or nil: each is the only statement of its array and
// counts points, with the same guards, an element of the one counts those of the other, and nothing reads an element
// that the first one leaves at 0.
func (w *worker) partOf(s, of *reduction.Statement) (part, error) {
	if s == of || s.Array == of.Array || !w.counting(s) || !w.counting(of) || len(s.Dims) != len(of.Dims) || len(s.Index) != len(of.Index) ||
		len(s.Guards) != len(of.Guards) || !equal(s.Body, of.Body, nil, nil) || slices.Contains(w.prog.Outputs, s.Array) {
		return nil, nil
	}
	if w.prog.Array(s.Array).Type < w.prog.Array(of.Array).Type && slices.Contains(w.prog.Outputs, of.Array) { // an index has to be an integer
		return nil, nil
	}
	var found part
	var fail error
	permutations(len(s.Dims), func(order []int) bool { // dimension k of s is order[k] of the other
		p, err := w.partWith(s, of, order)
		found, fail = p, err
		return p == nil && err == nil
	})
	return found, fail
}

// counting reports whether s counts points in elements that its dimensions name, and nothing else writes its array.
func (w *worker) counting(s *reduction.Statement) bool {
	n, ok := s.Body.(*reduction.Number)
	if !ok || !n.Integer || n.I > 1<<20 || n.I < -1<<20 || s.Op != reduction.Add || len(s.Dims) > 5 {
		return false
	}
	for k := range s.Index {
		if ownDimension(s, k) < 0 {
			return false
		}
	}
	return !slices.ContainsFunc(w.prog.Statements, func(t *reduction.Statement) bool { return t != s && t.Array == s.Array })
}

// partWith is partOf for an order of dimensions.
func (w *worker) partWith(s, of *reduction.Statement, order []int) (part, error) {
	names := map[string]string{}
	for k, d := range s.Dims {
		names[d] = of.Dims[order[k]]
	}
	var p part
	for k := range of.Index {
		at := slices.IndexFunc(s.Index, func(x reduction.Affine) bool { return names[x.Terms[0].Name] == of.Index[k].Terms[0].Name })
		if at < 0 {
			return nil, nil
		}
		p = append(p, at)
	}
	for _, g := range s.Guards {
		if !slices.ContainsFunc(of.Guards, func(h reduction.Expr) bool { return sameGuard(g, h, names) }) {
			return nil, nil
		}
	}
	params := len(w.prog.Params)
	own, err := w.prog.Points(s)
	if err != nil || len(own) != 1 {
		return nil, err
	}
	others, err := w.prog.Points(of)
	if err != nil || len(others) != 1 {
		return nil, err
	}
	rows := make([]polyhedron.Row, len(s.Dims)) // the dimensions of s in those of the other
	for k := range rows {
		rows[k] = make(polyhedron.Row, params+len(s.Dims)+1)
		rows[k][params+order[k]] = 1
	}
	moved, err := own[0].Preimage(rows, params+len(s.Dims), params)
	if err != nil {
		return nil, err
	}
	index, err := w.index(of)
	if err != nil {
		return nil, err
	}
	elements, exact, err := moved.Image(index, params) // in the indices of the other array
	if err != nil || !exact {
		return nil, err
	}
	theirs, err := elements.Preimage(index, params+len(s.Dims), params)
	if err != nil {
		return nil, err
	}
	if same, err := (polyhedron.Union{theirs.Intersect(others[0])}).Equal(polyhedron.Union{moved}); err != nil || !same {
		return nil, err
	}
	if ok, err := w.readWithin(s.Array, p, elements); err != nil || !ok {
		return nil, err
	}
	return p, nil
}

// readWithin reports whether all that is read of an array is among the elements of a set, in the order of indices of p.
func (w *worker) readWithin(array string, p part, elements *polyhedron.Set) (bool, error) {
	params := len(w.prog.Params)
	for _, t := range w.prog.Statements {
		for _, r := range schedule.Reads(w.prog, t) {
			if r.Array != array {
				continue
			}
			var at []polyhedron.Row
			for _, k := range p {
				if r.Index[k] == nil {
					return false, nil
				}
				at = append(at, r.Index[k])
			}
			within, err := elements.Preimage(at, params+len(t.Dims), params)
			if err != nil {
				return false, err
			}
			sets, err := w.prog.Points(t)
			if err != nil {
				return false, err
			}
			if ok, err := polyhedron.Union(sets).Subset(polyhedron.Union{within}); err != nil || !ok {
				return false, err
			}
		}
	}
	return true, nil
}

// sameGuard reports whether two guards are equal, with other names of dimensions and the sides of == in either order.
func sameGuard(g, h reduction.Expr, names map[string]string) bool {
	var dims []string
	for d := range names {
		dims = append(dims, d)
	}
	same := func(a, b reduction.Expr) bool {
		at := map[string]string{}
		if !equal(a, b, dims, at) {
			return false
		}
		for d, n := range at {
			if names[d] != n {
				return false
			}
		}
		return true
	}
	if same(g, h) {
		return true
	}
	x, ok := g.(*reduction.Binary)
	y, also := h.(*reduction.Binary)
	return ok && also && x.Op == "==" && y.Op == "==" && same(x.X, y.Y) && same(x.Y, y.X)
}

// permutations calls visit with each order of 0 to below n until it returns false.
func permutations(n int, visit func([]int) bool) {
	var order []int
	var rec func() bool
	rec = func() bool {
		if len(order) == n {
			return visit(slices.Clone(order))
		}
		for k := range n {
			if slices.Contains(order, k) {
				continue
			}
			order = append(order, k)
			if !rec() {
				return false
			}
			order = order[:len(order)-1]
		}
		return true
	}
	rec()
}
