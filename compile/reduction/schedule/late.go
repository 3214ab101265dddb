package schedule

import (
	"slices"

	"github.com/pce-engine/pce/compile/reduction"
	"github.com/pce-engine/pce/compile/reduction/polyhedron"
)

// choice is a row for each array of a component, and the dependences that the rows leave open.
type choice struct {
	rows map[string]polyhedron.Row
	open []*Dependence
}

// choose makes the rows of arrays from the unknowns.
func (f *farkas) choose(arrays []string, deps []*Dependence, unknowns []int64, forward []bool) choice {
	c := choice{rows: map[string]polyhedron.Row{}}
	for _, a := range arrays {
		c.rows[a] = f.timeRow(a, unknowns)
	}
	for k, d := range deps {
		if !forward[k] {
			c.open = append(c.open, d)
		}
	}
	return c
}

// late moves arrays to the time at which they are first read: an array whose elements are read a number of time steps
// after they are computed, the same for all elements, is computed that much later. Its elements can then take the memory of those of the time
// before. Outputs, arrays that are kept in place, and those that need themselves stay. It returns no choice if nothing moves.
func (f *farkas) late(arrays []string, deps []*Dependence, unknowns []int64, forward []bool) []choice {
	unknowns, forward = slices.Clone(unknowns), slices.Clone(forward)
	moved := map[string]bool{}
	for again := true; again; {
		again = false
		for _, a := range arrays {
			if moved[a] || !f.movable(a, deps) {
				continue
			}
			steps := f.delay(a, deps, unknowns)
			if steps < 1 {
				continue
			}
			unknowns[f.constant(a)] += steps
			moved[a], again = true, true
		}
	}
	if len(moved) == 0 {
		return nil
	}
	for k, d := range deps {
		if moved[d.Source] || moved[d.Target] {
			forward[k] = f.least(k, unknowns) >= 1
		}
	}
	return []choice{f.choose(arrays, deps, unknowns, forward)}
}

// constant is the unknown that is the constant of an array's row.
func (f *farkas) constant(array string) int {
	n := f.at[array] + len(f.prog.Array(array).Extents)
	if f.withParams {
		n += len(f.prog.Params)
	}
	return n
}

// movable reports whether an array can be computed later without more than its readers having to do with it.
func (f *farkas) movable(array string, deps []*Dependence) bool {
	a := f.prog.Array(array)
	if a.Fold != nil || slices.Contains(f.prog.Outputs, array) || slices.ContainsFunc(f.prog.Statements, func(s *reduction.Statement) bool { return s.Array == array && s.Op.Draws() }) {
		return false
	}
	return !slices.ContainsFunc(deps, func(d *Dependence) bool { return d.Source == array && d.Target == array })
}

// delay is the number of steps between an array and what first reads it, 0 if it is not the same for all elements.
func (f *farkas) delay(array string, deps []*Dependence, unknowns []int64) int64 {
	least := int64(-1)
	for k, d := range deps {
		if d.Source != array {
			continue
		}
		steps, same := f.steps(k, unknowns)
		if !same {
			return 0
		}
		if least < 0 || steps < least {
			least = steps
		}
	}
	return least
}

// steps is the number of steps between the ends of a dependence, if it is the same at all of its points.
func (f *farkas) steps(dependence int, unknowns []int64) (steps int64, same bool) {
	found := false
	for _, c := range f.keep {
		if c.dependence != dependence {
			continue
		}
		v, ok := polyhedron.Dot(c.row, unknowns)
		switch {
		case !ok:
			return 0, false
		case c.height == 0:
			if v != 0 {
				return 0, false
			}
		case v%c.height != 0 || found && v/c.height != steps:
			return 0, false
		default:
			steps, found = v/c.height, true
		}
	}
	return steps, found
}

// least is a lower bound of the steps between the ends of a dependence, rounded down to 0 or 1.
func (f *farkas) least(dependence int, unknowns []int64) int64 {
	for _, c := range f.keep {
		if c.dependence != dependence {
			continue
		}
		if v, ok := polyhedron.Dot(c.row, unknowns); !ok || v < c.height {
			return 0
		}
	}
	return 1
}
