package gosource

import (
	"slices"

	"github.com/pce-engine/pce/compile/reduction"
	"github.com/pce-engine/pce/compile/reduction/polyhedron"
	"github.com/pce-engine/pce/compile/reduction/schedule"
)

// An array is brief in a time loop if what reads an element is computed in the pass of the loop that computes the element: it
// needs memory for the elements of one pass only, without the index that the time of the pass fixes. In
//
//	s[k,m]  = l[k,m] + r[k,m]
//	z[k]   += f(s[k,m])
//	l[k,m] += g(z[k-1])
//
// with time k, s is brief and has K elements in place of N*K.

// briefly finds the arrays among those of the time loop that is just opened that are brief in it.
func (e *emitter) briefly(group []string) (out []string, err error) {
	level := len(e.times) - 1
	for _, name := range group {
		a := e.prog.Array(name)
		if len(e.brief[name]) != level || slices.Contains(e.prog.Outputs, name) {
			continue
		}
		index := e.fixedIndex(a, level)
		if index < 0 || folded(a, index) {
			continue
		}
		ok, err := e.readAtOnce(name, group)
		if err != nil {
			return nil, err
		}
		if ok {
			e.brief[name] = append(e.brief[name], index)
			out = append(out, name)
		}
	}
	return out, nil
}

// fixedIndex returns the index of an array that the time at a level fixes, or -1: no other index has a part in it.
func (e *emitter) fixedIndex(a *reduction.Array, level int) int {
	row := e.rows[a.Name][level]
	params := len(e.prog.Params)
	fixed := -1
	for k := range a.Extents {
		switch row[params+k] {
		case 0:
		case 1, -1:
			if fixed >= 0 {
				return -1
			}
			fixed = k
		default:
			return -1
		}
	}
	return fixed
}

// readAtOnce reports whether all that reads an array is computed at the times of the open loops that the element has.
func (e *emitter) readAtOnce(name string, group []string) (bool, error) {
	for _, s := range e.prog.Statements {
		if !e.live[s.Array] || e.prog.Carries(s) != nil {
			continue
		}
		for _, r := range schedule.Reads(e.prog, s) {
			if r.Array != name {
				continue
			}
			if !slices.Contains(group, s.Array) {
				return false, nil
			}
			ok, err := e.atOnce(s, r)
			if !ok || err != nil {
				return false, err
			}
		}
	}
	return true, nil
}

// atOnce reports whether the times of the element that s writes and of the one that it reads are the same at all points.
func (e *emitter) atOnce(s *reduction.Statement, r schedule.Read) (bool, error) {
	sets, err := e.prog.Points(s)
	if err != nil {
		return false, err
	}
	index, err := e.indexRows(s)
	if err != nil {
		return false, err
	}
	for level := range e.times {
		own, ok := e.timeAt(s.Array, level, index, len(s.Dims))
		if !ok {
			return false, nil
		}
		other, ok := e.timeAt(r.Array, level, r.Index, len(s.Dims))
		if !ok {
			return false, nil
		}
		later, earlier := make(polyhedron.Row, len(own)), make(polyhedron.Row, len(own))
		for v := range own {
			later[v], earlier[v] = own[v]-other[v], other[v]-own[v]
		}
		for _, set := range sets {
			if !set.Implies(later) || !set.Implies(earlier) {
				return false, nil
			}
		}
	}
	return true, nil
}

// timeAt is the time at a level of the element of an array at an index, as a row of the parameters and the dimensions of the
// statement that has it. It fails where the time depends on an index that data gives.
func (e *emitter) timeAt(array string, level int, index []polyhedron.Row, dims int) (polyhedron.Row, bool) {
	params := len(e.prog.Params)
	row := e.rows[array][level]
	out := make(polyhedron.Row, params+dims+1)
	copy(out, row[:params])
	out[params+dims] = row[len(row)-1]
	for k, x := range index {
		c := row[params+k]
		if c == 0 {
			continue
		}
		if x == nil {
			return nil, false
		}
		for v := range x {
			out[v] += c * x[v]
		}
	}
	return out, true
}

// restart gives brief arrays the values that a pass starts with. What the statements of an array overwrite is left.
func (e *emitter) restart(names []string) {
	for _, name := range names {
		a, op := e.prog.Array(name), e.operator(name)
		switch none := identity(op); {
		case op == reduction.Assign, op.Draws():
			if e.partial[name] { // what a point of the pass before has written
				e.line("clear(%s)", array(name))
			}
			e.lack(a)
			if e.notes(name) {
				e.line("clear(%s)", noted(name))
			}
		case op == reduction.LogSumExp:
			e.line("clear(s_%s)", name)
		case none == "0":
			e.line("clear(%s)", array(name))
		case a.Fold != nil: // others are written where their elements are
			e.line("for k := range %s {\n%s[k] = %s\n}", array(name), array(name), none)
		}
	}
}
