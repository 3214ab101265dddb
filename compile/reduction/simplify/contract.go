package simplify

import (
	"fmt"
	"slices"

	"github.com/pce-engine/pce/compile/reduction"
	"github.com/pce-engine/pce/compile/reduction/polyhedron"
)

// contract drops an index of every array whose elements do not depend on it, until there is none:
// Y[..,d,..] becomes Y[..,..], computed once at d = 0. Outputs keep their shape.
func (w *worker) contract() error {
	for {
		all, err := w.reuse()
		if err != nil {
			return err
		}
		dropped := map[string]int{}
		for _, a := range w.prog.Arrays {
			if a.Input || slices.Contains(w.prog.Outputs, a.Name) {
				continue
			}
			for k := range a.Extents {
				ok, err := w.contractible(a, k, all[a.Name])
				if err != nil {
					return err
				}
				if ok {
					dropped[a.Name] = k
					break
				}
			}
		}
		if len(dropped) == 0 {
			return nil
		}
		for _, a := range w.prog.Arrays {
			if k, ok := dropped[a.Name]; ok {
				w.report.Steps = append(w.report.Steps, Step{Kind: Contract, Array: a.Name,
					Text: fmt.Sprintf("%s loses index %d of %d: its elements do not depend on it", a, k+1, len(a.Extents))})
			}
		}
		if err := w.drop(dropped); err != nil {
			return err
		}
	}
}

// contractible reports whether index k of an array can be dropped: no element changes with it, and
// every statement that writes the array has a dimension for it alone, over all of its values, of which there is
// at least one.
func (w *worker) contractible(a *reduction.Array, k int, across space) (bool, error) {
	for _, r := range across {
		if r[k] != 0 {
			return false, nil
		}
	}
	extent, err := w.prog.Row(&a.Extents[k], nil)
	if err != nil {
		return false, err
	}
	one := slices.Clone(extent)
	one[len(one)-1]--
	if !w.context.Implies(one) {
		return false, nil
	}
	for _, s := range w.prog.Statements {
		if s.Array != a.Name {
			continue
		}
		d := ownDimension(s, k)
		if d < 0 {
			return false, nil
		}
		sets, err := w.prog.Points(s)
		if err != nil {
			return false, err
		}
		if len(sets) > 1 && s.Op.Draws() { // a statement for each would draw an element more than once
			return false, nil
		}
		for _, set := range sets {
			if !spans(set, len(w.prog.Params), d, extent) {
				return false, nil
			}
		}
	}
	return true, nil
}

// ownDimension returns the dimension that is index k of s and in no other index, or -1.
func ownDimension(s *reduction.Statement, k int) int {
	x := &s.Index[k]
	if len(x.Terms) != 1 || x.Terms[0].Coefficient != 1 || x.Constant != 0 {
		return -1
	}
	for j := range s.Index {
		for _, t := range s.Index[j].Terms {
			if j != k && t.Name == x.Terms[0].Name {
				return -1
			}
		}
	}
	return slices.Index(s.Dims, x.Terms[0].Name)
}

// spans reports whether all that a set says of dimension d is that it is from 0 to below an extent.
func spans(set *polyhedron.Set, params, d int, extent polyhedron.Row) bool {
	v := params + d
	low, high := false, false
	for _, r := range set.Zero {
		if r[v] != 0 {
			return false
		}
	}
	for _, r := range set.Positive {
		if r[v] == 0 {
			continue
		}
		want := make(polyhedron.Row, set.Vars+1)
		if r[v] == 1 {
			want[v], low = 1, true
		} else {
			copy(want, extent[:params])
			want[v], want[set.Vars], high = -1, extent[params]-1, true
		}
		if !slices.Equal(r, want) {
			return false
		}
	}
	return low && high
}

// drop removes an index of each given array.
func (w *worker) drop(dropped map[string]int) error {
	var statements []*reduction.Statement
	for _, s := range w.prog.Statements {
		k, ok := dropped[s.Array]
		if !ok {
			c := *s
			statements = append(statements, rewrite(&c, func(e reduction.Expr) reduction.Expr { return dropIndices(e, dropped) }))
			continue
		}
		sets, err := w.prog.Points(s)
		if err != nil {
			return err
		}
		d := ownDimension(s, k)
		name := s.Dims[d]
		for _, set := range sets {
			set = set.Clone()
			v := len(w.prog.Params) + d
			zero := make(polyhedron.Row, set.Vars+1)
			zero[v] = 1
			set.Zero = append(set.Zero, zero)
			set, _, err := set.Project(v)
			if err != nil {
				return err
			}
			c := *s
			c.Dims = slices.Delete(slices.Clone(s.Dims), d, d+1)
			c.Index = slices.Delete(slices.Clone(s.Index), k, k+1)
			c.Domain = w.chains(without(set, v), c.Dims)
			statements = append(statements, rewrite(&c, func(e reduction.Expr) reduction.Expr {
				return dropIndices(setZero(e, name), dropped)
			}))
		}
	}
	for _, a := range w.prog.Arrays {
		if k, ok := dropped[a.Name]; ok {
			a.Extents = slices.Delete(slices.Clone(a.Extents), k, k+1)
		}
	}
	w.prog.Statements = statements
	return w.reparse()
}

// without removes a variable that no row mentions.
func without(set *polyhedron.Set, v int) *polyhedron.Set {
	c := &polyhedron.Set{Vars: set.Vars - 1}
	for _, r := range set.Zero {
		c.Zero = append(c.Zero, slices.Delete(slices.Clone(r), v, v+1))
	}
	for _, r := range set.Positive {
		c.Positive = append(c.Positive, slices.Delete(slices.Clone(r), v, v+1))
	}
	return c
}

// dropIndices removes indices of reads.
func dropIndices(e reduction.Expr, dropped map[string]int) reduction.Expr {
	return transform(e, func(e reduction.Expr) reduction.Expr {
		if r, ok := e.(*reduction.Read); ok {
			if k, ok := dropped[r.Array]; ok {
				r.Index = slices.Delete(slices.Clone(r.Index), k, k+1)
			}
		}
		return e
	})
}

// setZero puts 0 in place of a dimension.
func setZero(e reduction.Expr, dim string) reduction.Expr {
	return transform(e, func(e reduction.Expr) reduction.Expr {
		if n, ok := e.(*reduction.Name); ok && n.Name == dim {
			return &reduction.Number{Pos: n.Pos, Integer: true}
		}
		return e
	})
}

// rewrite applies f to what s evaluates.
func rewrite(s *reduction.Statement, f func(reduction.Expr) reduction.Expr) *reduction.Statement {
	s.Body = f(s.Body)
	if s.Uniform != nil {
		s.Uniform = f(s.Uniform)
	}
	guards := make([]reduction.Expr, len(s.Guards))
	for k, g := range s.Guards {
		guards[k] = f(g)
	}
	s.Guards = guards
	return s
}

// transform copies e with f applied to every part of it, inner ones first.
func transform(e reduction.Expr, f func(reduction.Expr) reduction.Expr) reduction.Expr {
	list := func(l []reduction.Expr) []reduction.Expr {
		out := make([]reduction.Expr, len(l))
		for k, x := range l {
			out[k] = transform(x, f)
		}
		return out
	}
	switch e := e.(type) {
	case *reduction.Read:
		return f(&reduction.Read{Pos: e.Pos, Array: e.Array, Index: list(e.Index)})
	case *reduction.Call:
		return f(&reduction.Call{Pos: e.Pos, Function: e.Function, Args: list(e.Args)})
	case *reduction.Negate:
		return f(&reduction.Negate{Pos: e.Pos, X: transform(e.X, f)})
	case *reduction.Binary:
		return f(&reduction.Binary{Pos: e.Pos, Op: e.Op, X: transform(e.X, f), Y: transform(e.Y, f)})
	}
	return f(e)
}
