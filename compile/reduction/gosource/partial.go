package gosource

import (
	"slices"

	"github.com/pce-engine/pce/compile/reduction"
	"github.com/pce-engine/pce/compile/reduction/polyhedron"
	"github.com/pce-engine/pce/compile/reduction/schedule"
)

// An array of = or of a draw is partial if it may have elements that no point writes, because no domain has them or a guard does not
// hold. The interpreter refuses to give such an element. The emitted program computes also what no output needs, so it refuses an
// output that lacks an element, and one that a point reads whose own element outputs are sure to need (reads.go); it notes what is
// written for that. Elsewhere a float that lacks is NaN, or 0 where NaN could stop it.

// partials finds the partial arrays among those that are computed, and those of them of which such an element may be read.
func (e *emitter) partials() error {
	e.partial, e.lacks = map[string]bool{}, map[string]bool{}
	missing := map[string]polyhedron.Union{}
	for _, a := range e.prog.Arrays {
		if a.Input || !e.live[a.Name] {
			continue
		}
		if op := e.operator(a.Name); op != reduction.Assign && !op.Draws() {
			continue
		}
		rest, err := e.prog.Unwritten(a)
		if err != nil {
			return err
		}
		e.partial[a.Name], missing[a.Name] = len(rest) > 0, rest
		if e.lacks[a.Name], err = e.reads(a, rest); err != nil {
			return err
		}
		e.lacks[a.Name] = e.lacks[a.Name] && !e.stops(a.Name)
	}
	return e.needs(missing)
}

// stops reports whether NaN in an array may stop the program, also in an element that no output needs: the floor of a number, or a
// draw, is computed from it, directly or not.
func (e *emitter) stops(name string) bool {
	list := []string{name}
	for k := 0; k < len(list); k++ {
		for _, s := range e.prog.Statements {
			if !e.live[s.Array] || !slices.ContainsFunc(schedule.Reads(e.prog, s), func(r schedule.Read) bool { return r.Array == list[k] }) {
				continue
			}
			if s.Op.Draws() || slices.ContainsFunc(s.Expressions(), func(x reduction.Expr) bool { return e.floors(s, x) }) {
				return true
			}
			if !slices.Contains(list, s.Array) {
				list = append(list, s.Array)
			}
		}
	}
	return false
}

// floors reports whether an expression of s has the floor of a float.
func (e *emitter) floors(s *reduction.Statement, x reduction.Expr) (found bool) {
	reduction.Walk(x, func(x reduction.Expr) {
		c, ok := x.(*reduction.Call)
		found = found || ok && c.Function == "floor" && e.prog.TypeOf(s, c.Args[0]) == reduction.Float
	})
	return found
}

// reads reports whether a statement may read one of some elements of an array.
func (e *emitter) reads(a *reduction.Array, of polyhedron.Union) (bool, error) {
	for _, s := range e.prog.Statements {
		for _, r := range schedule.Reads(e.prog, s) {
			if r.Array != a.Name || !e.live[s.Array] {
				continue
			}
			if found, err := e.meets(s, r, of); found || err != nil {
				return found, err
			}
		}
	}
	return false, nil
}

// meets reports whether what a statement reads may be one of some elements of the array.
func (e *emitter) meets(s *reduction.Statement, r schedule.Read, of polyhedron.Union) (bool, error) {
	if len(of) == 0 {
		return false, nil
	}
	sets, err := e.pieces(s)
	if err != nil || slices.ContainsFunc(r.Index, func(x polyhedron.Row) bool { return x == nil }) {
		return true, err
	}
	for _, set := range sets {
		for _, u := range of {
			at, err := u.Preimage(r.Index, set.Vars, len(e.prog.Params))
			if err != nil || !set.Intersect(at).Hollow() {
				return true, nil
			}
		}
	}
	return false, nil
}

// noted is the variable that says which elements of a partial output are written.
func noted(name string) string { return "w_" + name }

// notes reports whether an array has such a variable.
func (e *emitter) notes(name string) bool {
	return e.partial[name] && (slices.Contains(e.prog.Outputs, name) || e.looked[name])
}

// lack writes NaN to all elements of an array of floats of which one that is not written may be read.
func (e *emitter) lack(a *reduction.Array) {
	if e.lacks[a.Name] && a.Type == reduction.Float {
		e.line("for k := range %s {\n%s[k] = math.NaN()\n}", array(a.Name), array(a.Name))
	}
}

// assign writes a value to an element of an array, and notes that for a partial output.
func (e *emitter) assign(s *reduction.Statement, value string) {
	at := coordinates(s.Index)
	e.line("%s = %s", e.slot(array(s.Array), s.Array, at, true), e.ranged(s.Array, value))
	if e.notes(s.Array) {
		e.line("%s = true", e.slot(noted(s.Array), s.Array, at, true))
	}
}
