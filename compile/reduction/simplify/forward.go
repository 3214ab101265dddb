package simplify

import (
	"fmt"
	"slices"

	"github.com/pce-engine/pce/compile/reduction"
	"github.com/pce-engine/pce/compile/reduction/polyhedron"
)

// forward removes copies of which little is read. In
//
//	a[k,t] += h[k,t,doc[k]] : {[k,t] : 1 <= k < W, 0 <= t < K}
//	lw[k]   = log(a[k,z[k]])
//
// one element in K of a is read, so that lw reads h[k,z[k],doc[k]] instead.
func (w *worker) forward() error {
	for _, a := range w.prog.Arrays {
		s := w.first(a)
		if s == nil {
			continue
		}
		ok, err := w.forwards(a, s)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		w.report.Steps = append(w.report.Steps, Step{Kind: Forward, Array: a.Name, Statement: s.String(),
			Text: fmt.Sprintf("%s is read where it is copied from, %s", a.Name, reduction.Text(s.Body))})
		w.prog.Statements = slices.DeleteFunc(w.prog.Statements, func(t *reduction.Statement) bool { return t == s })
		w.prog.Arrays = slices.DeleteFunc(w.prog.Arrays, func(b *reduction.Array) bool { return b == a })
		for k, t := range w.prog.Statements {
			c := *t
			w.prog.Statements[k] = rewrite(&c, func(e reduction.Expr) reduction.Expr { return readThrough(e, s) })
		}
		if err := w.reparse(); err != nil {
			return err
		}
		return w.forward()
	}
	return nil
}

// readThrough puts what s copies in the place of reads of its array.
func readThrough(e reduction.Expr, s *reduction.Statement) reduction.Expr {
	return transform(e, func(e reduction.Expr) reduction.Expr {
		r, ok := e.(*reduction.Read)
		if !ok || r.Array != s.Array {
			return e
		}
		at := map[string]reduction.Expr{}
		for k := range s.Index {
			at[s.Index[k].Terms[0].Name] = r.Index[k]
		}
		return transform(s.Body, func(e reduction.Expr) reduction.Expr {
			if n, ok := e.(*reduction.Name); ok && at[n.Name] != nil {
				return at[n.Name]
			}
			return e
		})
	})
}

// forwards reports whether array a, first written by s, is a copy to do without: s is its only statement, each of its dimensions
// is an index, it adds elements of one other array, which are that operator's identity where s has no points, and what reads a
// has fewer points than s. Further indices of the other array are data.
func (w *worker) forwards(a *reduction.Array, s *reduction.Statement) (bool, error) {
	r, ok := s.Body.(*reduction.Read)
	if !ok || s.Op == reduction.Assign || s.Op == reduction.LogSumExp || s.Op.Draws() || len(s.Guards) > 0 || len(s.Dims) != len(s.Index) || slices.Contains(w.prog.Outputs, a.Name) {
		return false, nil
	}
	from := w.prog.Array(r.Array)
	if from == a || from.Input || from.Type != a.Type || len(r.Index) < len(s.Index) {
		return false, nil
	}
	at := map[string]string{} // the extents of the dimensions
	for k := range s.Index {  // h[k,t,...] with the indices of a first
		n, ok := r.Index[k].(*reduction.Name)
		if d := ownDimension(s, k); d < 0 || !ok || n.Name != s.Dims[d] || from.Extents[k].String() != a.Extents[k].String() {
			return false, nil
		}
		at[n.Name] = a.Extents[k].String()
	}
	for _, x := range r.Index[len(s.Index):] {
		if !w.everywhere(x, at) {
			return false, nil
		}
	}
	var readers []*reduction.Statement
	params := len(w.prog.Params)
	all, err := w.prog.ExtentSet(a)
	if err != nil {
		return false, err
	}
	rest := polyhedron.Union{all}
	var written polyhedron.Union
	for _, t := range w.prog.Statements {
		index, err := w.index(t)
		if err != nil {
			return false, err
		}
		if mentionsArray(t, a.Name) {
			readers = append(readers, t)
		}
		if t.Array != a.Name && t.Array != from.Name {
			continue
		}
		if t.Array == a.Name && t != s || t.Op != s.Op {
			return false, nil
		}
		sets, err := w.prog.Points(t)
		if err != nil {
			return false, err
		}
		for _, set := range sets {
			u, _, err := set.Image(index[:len(a.Extents)], params)
			if err != nil {
				return false, err
			}
			if t != s {
				written = append(written, u)
			} else if rest, err = rest.Subtract(polyhedron.Union{u}); err != nil {
				return false, err
			}
		}
	}
	both, err := rest.Intersect(written)
	if err != nil || len(both) > 0 {
		return false, err
	}
	own, _, err := w.points(true, s)
	if err != nil {
		return false, err
	}
	less, _, err := w.points(true, readers...)
	if err != nil {
		return false, err
	}
	return len(readers) > 0 && !dominated(own, less), nil
}

// everywhere reports whether x is an element of an input that is there for all values of the dimensions below their extents,
// and not only in the domain of the statement that reads it.
func (w *worker) everywhere(x reduction.Expr, extents map[string]string) bool {
	r, ok := x.(*reduction.Read)
	if !ok || !w.prog.Array(r.Array).Input {
		return false
	}
	for k, i := range r.Index {
		n, ok := i.(*reduction.Name)
		if !ok || extents[n.Name] != w.prog.Array(r.Array).Extents[k].String() {
			return false
		}
	}
	return true
}

// mentionsArray reports whether s reads an array.
func mentionsArray(s *reduction.Statement, name string) bool {
	for _, e := range s.Expressions() {
		found := false
		reduction.Walk(e, func(e reduction.Expr) {
			r, ok := e.(*reduction.Read)
			found = found || ok && r.Array == name
		})
		if found {
			return true
		}
	}
	return false
}
