package simplify

import (
	"fmt"
	"slices"

	"github.com/pce-engine/pce/compile/reduction"
	"github.com/pce-engine/pce/compile/reduction/polyhedron"
)

// common reads what an array has where another statement computes it again. In
//
//	lp2[k,n] = log(s[k,n]/c[k,n])         : {[k,n] : ...}
//	lp[k,m]  = log(s[k,m]/c[k,m]) - lz[k] : {[k,m] : ...}
//
// the second line takes the logarithm once more, and becomes lp2[k,m] - lz[k]. An element of lp2 needs nothing that the element
// that reads it does not need already, so the elements still have an order.
func (w *worker) common() error {
	changed := false
	for _, s := range w.prog.Statements {
		set, err := w.defines(s)
		if err != nil {
			return err
		}
		if set == nil {
			continue
		}
		for k, t := range w.prog.Statements {
			if t == s {
				continue
			}
			found := false
			var fail error
			c := *t
			rewrite(&c, func(e reduction.Expr) reduction.Expr {
				return transform(e, func(e reduction.Expr) reduction.Expr {
					r, err := w.computes(t, e, s, set)
					switch {
					case err != nil:
						fail = err
					case r != nil:
						found = true
						return r
					}
					return e
				})
			})
			if fail != nil {
				return fail
			}
			if !found {
				continue
			}
			w.report.Steps = append(w.report.Steps, Step{Kind: Common, Array: t.Array, Statement: t.String(),
				Text: fmt.Sprintf("%s reads %s where it computes it again", t.Array, s.Array)})
			w.prog.Statements[k] = &c
			changed = true
		}
	}
	if !changed {
		return nil
	}
	return w.reparse()
}

// defines returns the points of s if it gives each element of an array that others read the value of an expression with
// operations, and nil for other statements.
func (w *worker) defines(s *reduction.Statement) (*polyhedron.Set, error) {
	a := w.prog.Array(s.Array)
	if s.Op != reduction.Assign || len(s.Guards) > 0 || len(s.Dims) != len(s.Index) || w.prog.TypeOf(s, s.Body) != a.Type {
		return nil, nil
	}
	switch s.Body.(type) {
	case *reduction.Binary, *reduction.Call:
	default:
		return nil, nil
	}
	for k := range s.Index {
		if ownDimension(s, k) < 0 {
			return nil, nil
		}
	}
	read := slices.Contains(w.prog.Outputs, a.Name)
	for _, t := range w.prog.Statements {
		if t != s && t.Array == a.Name {
			return nil, nil
		}
		read = read || t != s && mentionsArray(t, a.Name)
	}
	sets, err := w.prog.Points(s)
	if err != nil || !read || len(sets) != 1 {
		return nil, err
	}
	return sets[0], nil
}

// computes returns a read of the array of s if the part e of statement t is what s, whose points are set, computes for an
// element, and nil if not.
func (w *worker) computes(t *reduction.Statement, e reduction.Expr, s *reduction.Statement, set *polyhedron.Set) (reduction.Expr, error) {
	at := map[string]string{}
	if !equal(s.Body, e, s.Dims, at) || len(at) != len(s.Dims) {
		return nil, nil
	}
	params := len(w.prog.Params)
	rows := make([]polyhedron.Row, len(s.Dims))
	for k, d := range s.Dims {
		v := slices.Index(t.Dims, at[d])
		if v < 0 {
			return nil, nil
		}
		rows[k] = make(polyhedron.Row, params+len(t.Dims)+1)
		rows[k][params+v] = 1
	}
	within, err := set.Preimage(rows, params+len(t.Dims), params)
	if err != nil {
		return nil, err
	}
	sets, err := w.prog.Points(t)
	if err != nil {
		return nil, err
	}
	if ok, err := polyhedron.Union(sets).Subset(polyhedron.Union{within}); err != nil || !ok { // some point has no element
		return nil, err
	}
	r := &reduction.Read{Pos: e.Position(), Array: s.Array}
	for k := range s.Index {
		r.Index = append(r.Index, &reduction.Name{Pos: e.Position(), Name: at[s.Index[k].Terms[0].Name]})
	}
	return r, nil
}

// equal reports whether e is the pattern with other names for dims, which it adds to at.
func equal(pattern, e reduction.Expr, dims []string, at map[string]string) bool {
	list := func(a, b []reduction.Expr) bool {
		return slices.EqualFunc(a, b, func(x, y reduction.Expr) bool { return equal(x, y, dims, at) })
	}
	switch p := pattern.(type) {
	case *reduction.Number:
		n, ok := e.(*reduction.Number)
		return ok && p.Integer == n.Integer && p.I == n.I && p.F == n.F
	case *reduction.Name:
		n, ok := e.(*reduction.Name)
		if !ok || !slices.Contains(dims, p.Name) {
			return ok && p.Name == n.Name
		}
		if before, known := at[p.Name]; known {
			return before == n.Name
		}
		at[p.Name] = n.Name
		return true
	case *reduction.Read:
		r, ok := e.(*reduction.Read)
		return ok && p.Array == r.Array && list(p.Index, r.Index)
	case *reduction.Call:
		c, ok := e.(*reduction.Call)
		return ok && p.Function == c.Function && list(p.Args, c.Args)
	case *reduction.Negate:
		n, ok := e.(*reduction.Negate)
		return ok && equal(p.X, n.X, dims, at)
	case *reduction.Binary:
		b, ok := e.(*reduction.Binary)
		return ok && p.Op == b.Op && equal(p.X, b.X, dims, at) && equal(p.Y, b.Y, dims, at)
	}
	return false
}
