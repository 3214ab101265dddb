package gosource

import (
	"fmt"
	"slices"

	"github.com/pce-engine/pce/compile/reduction"
	"github.com/pce-engine/pce/compile/reduction/polyhedron"
	"github.com/pce-engine/pce/compile/reduction/schedule"
)

// needs finds the arrays of which outputs need all elements, which are outputs and what points of such arrays read as a whole, and the
// partial arrays of which these may read a missing element: what a point reads whose own element is needed has to be there. Looks take
// time, and notes memory, that elements which are there for certain spare.
func (e *emitter) needs(missing map[string]polyhedron.Union) error {
	e.whole, e.looked = map[string]bool{}, map[string]bool{}
	if !slices.ContainsFunc(e.prog.Arrays, func(a *reduction.Array) bool { return e.partial[a.Name] }) {
		return nil
	}
	list := slices.Clone(e.prog.Outputs)
	for _, name := range list {
		e.whole[name] = true
	}
	for ; len(list) > 0; list = list[1:] {
		for _, s := range e.prog.Statements {
			if s.Array != list[0] {
				continue
			}
			for _, r := range schedule.Reads(e.prog, s) { // those that were not read as a whole by others alone
				a := e.prog.Array(r.Array)
				if a.Input || e.whole[a.Name] || !e.live[a.Name] {
					continue
				}
				whole, err := e.readWhole(a)
				if err != nil {
					return err
				}
				if whole {
					e.whole[a.Name], list = true, append(list, a.Name)
				}
			}
		}
	}
	for _, s := range e.prog.Statements {
		for _, r := range schedule.Reads(e.prog, s) {
			if !e.whole[s.Array] || e.looked[r.Array] {
				continue
			}
			found, err := e.meets(s, r, missing[r.Array])
			if err != nil {
				return err
			}
			e.looked[r.Array] = found
		}
	}
	return nil
}

// readWhole reports whether statements of arrays that are needed as a whole are sure to read all elements of an array.
func (e *emitter) readWhole(a *reduction.Array) (bool, error) {
	extents, err := e.prog.ExtentSet(a)
	if err != nil {
		return false, err
	}
	rest := polyhedron.Union{extents}
	for _, s := range e.prog.Statements {
		if !e.whole[s.Array] || len(s.Guards) > 0 {
			continue
		}
		always := e.always(s, a.Name)
		if len(always) == 0 {
			continue
		}
		sets, err := e.pieces(s)
		if err != nil {
			return false, err
		}
		for _, index := range always {
			for _, set := range sets {
				image, exact, err := set.Image(index, len(e.prog.Params))
				if err != nil || !exact { // it may have fewer elements
					continue
				}
				if less, err := rest.Subtract(polyhedron.Union{image}); err == nil {
					rest = less
				}
			}
		}
	}
	return !slices.ContainsFunc(rest, func(set *polyhedron.Set) bool { return !set.Hollow() }), nil
}

// always returns the indices at which s reads an array at each of its points, as far as data does not give them.
func (e *emitter) always(s *reduction.Statement, array string) (out [][]polyhedron.Row) {
	var visit func(x reduction.Expr)
	visit = func(x reduction.Expr) {
		switch x := x.(type) {
		case *reduction.Read:
			var index []polyhedron.Row
			for _, k := range x.Index {
				index = append(index, schedule.AffineIndex(e.prog, s, k))
				visit(k)
			}
			if x.Array == array && !slices.ContainsFunc(index, func(r polyhedron.Row) bool { return r == nil }) {
				out = append(out, index)
			}
		case *reduction.Call:
			list := x.Args
			if x.Function == "select" { // which takes one of the others
				list = list[:1]
			}
			for _, a := range list {
				visit(a)
			}
		case *reduction.Negate:
			visit(x.X)
		case *reduction.Binary:
			visit(x.X)
			visit(x.Y)
		}
	}
	for _, x := range s.Expressions() {
		visit(x)
	}
	return out
}

// there writes an element that s reads of a partial array, with a look at whether a point has written it, and "" where it need not be
// there.
func (e *emitter) there(s *reduction.Statement, name string, at []coordinate) string {
	if !e.whole[s.Array] || !e.looked[name] {
		return ""
	}
	return fmt.Sprintf("%s[there(%s, %s, %q)]", array(name), noted(name), e.offset(e.inMemory(name, at)), name)
}
