package simplify

import (
	"slices"

	"github.com/pce-engine/pce/compile/reduction"
	"github.com/pce-engine/pce/compile/reduction/polyhedron"
	"github.com/pce-engine/pce/compile/reduction/schedule"
)

// space is a set of vectors: those that are orthogonal to all of its rows.
type space [][]int64

// spaces has, for each array, the vectors along which its elements do not change: elements
// u and u+v that are both there are equal. An input has only the vector 0.
type spaces map[string]space

// reuse computes the spaces of all arrays as the greatest ones that are consistent: it starts with every
// vector for every array and drops what a statement that writes the array contradicts, until
// nothing changes. By induction along the dependences what is left holds, also through
// recurrences.
func (w *worker) reuse() (spaces, error) {
	all := spaces{}
	for _, a := range w.prog.Arrays {
		all[a.Name] = space{}
		if a.Input {
			for k := range a.Extents {
				unit := make([]int64, len(a.Extents))
				unit[k] = 1
				all[a.Name] = append(all[a.Name], unit)
			}
		}
	}
	ends, err := w.ends()
	if err != nil {
		return nil, err
	}
	for changed := true; changed; {
		changed = false
		for _, a := range w.prog.Arrays {
			if a.Input {
				continue
			}
			var rows space
			for k, s := range w.prog.Statements {
				if s.Array != a.Name {
					continue
				}
				r, err := w.reuseOf(s, all, ends[k])
				if err != nil {
					return nil, err
				}
				rows = append(rows, r...)
			}
			h, err := polyhedron.Hermite(rows, len(a.Extents))
			if err != nil {
				return nil, err
			}
			if !slices.EqualFunc(h, all[a.Name], slices.Equal) {
				all[a.Name], changed = h, true
			}
		}
	}
	return all, nil
}

// ends returns for each statement the rows, in its dimensions, that a vector has to keep so that it
// does not leave the statement's domain other than at the ends of the whole array. It is nothing
// for the only statement of an = array, where no other element is there.
func (w *worker) ends() ([]space, error) {
	writers := map[string]int{}
	for _, s := range w.prog.Statements {
		writers[s.Array]++
	}
	params := len(w.prog.Params)
	var out []space
	for _, s := range w.prog.Statements {
		sets, err := w.prog.Points(s)
		if err != nil {
			return nil, err
		}
		var keep space
		if s.Op != reduction.Assign || writers[s.Array] > 1 || len(sets) > 1 {
			index, err := w.index(s)
			if err != nil {
				return nil, err
			}
			extents, err := w.prog.ExtentSet(w.prog.Array(s.Array))
			if err != nil {
				return nil, err
			}
			whole, err := extents.Preimage(index, params+len(s.Dims), params)
			if err != nil {
				return nil, err
			}
			for _, set := range sets {
				tight, err := set.Tighten()
				if err != nil {
					return nil, err
				}
				for _, r := range tight.Zero {
					keep = append(keep, r[params:len(r)-1])
				}
				for _, r := range tight.Positive {
					if !whole.Implies(r) {
						keep = append(keep, r[params:len(r)-1])
					}
				}
			}
		}
		out = append(out, keep)
	}
	return out, nil
}

// reuseOf returns what statement s leaves of the space of its array.
func (w *worker) reuseOf(s *reduction.Statement, all spaces, keep space) (space, error) {
	rank := len(s.Index)
	rows := append(w.share(s, all), keep...)
	vectors, err := polyhedron.Kernel(rows, len(s.Dims))
	if err != nil {
		return nil, err
	}
	index, err := w.index(s)
	if err != nil {
		return nil, err
	}
	var moved [][]int64
	for _, v := range vectors {
		m, err := image(index, v, len(w.prog.Params))
		if err != nil {
			return nil, err
		}
		moved = append(moved, m)
	}
	moved, err = polyhedron.Hermite(moved, rank)
	if err != nil {
		return nil, err
	}
	across, err := polyhedron.Kernel(moved, rank)
	if err != nil {
		return nil, err
	}
	lattice, err := polyhedron.Kernel(across, rank)
	if err != nil {
		return nil, err
	}
	if !slices.EqualFunc(lattice, moved, slices.Equal) { // integer vectors of the space that no integer vector of s gives
		return polyhedron.Kernel(nil, rank)
	}
	return across, nil
}

// image returns how the indices change along v.
func image(index []polyhedron.Row, v []int64, params int) ([]int64, error) {
	out := make([]int64, len(index))
	for k, r := range index {
		d, ok := polyhedron.Dot(r[params:len(r)-1], v)
		if !ok {
			return nil, polyhedron.ErrOverflow
		}
		out[k] = d
	}
	return out, nil
}

// share returns the rows that a vector has to be orthogonal to so that what s evaluates, guards
// included, is the same at two points that are that vector apart: for an array it is in the array's space,
// and a dimension that is used as a value does not change.
func (w *worker) share(s *reduction.Statement, all spaces) space {
	var rows space
	params := len(w.prog.Params)
	pin := func(d int) {
		unit := make([]int64, len(s.Dims))
		unit[d] = 1
		rows = append(rows, unit)
	}
	var visit func(e reduction.Expr)
	visit = func(e reduction.Expr) {
		switch e := e.(type) {
		case *reduction.Name:
			if d := slices.Index(s.Dims, e.Name); d >= 0 {
				pin(d)
			}
		case *reduction.Read:
			index := make([]polyhedron.Row, len(e.Index))
			for k, x := range e.Index {
				if index[k] = schedule.AffineIndex(w.prog, s, x); index[k] == nil {
					visit(x)
				}
			}
			for _, across := range all[e.Array] {
				row := make([]int64, len(s.Dims))
				for k, c := range across {
					for d := range row {
						if index[k] != nil {
							row[d] += c * index[k][params+d]
						}
					}
				}
				rows = append(rows, row)
			}
		case *reduction.Call:
			for _, x := range e.Args {
				visit(x)
			}
		case *reduction.Negate:
			visit(e.X)
		case *reduction.Binary:
			visit(e.X)
			visit(e.Y)
		}
	}
	for _, e := range s.Expressions() {
		visit(e)
	}
	if d := s.Drawn(); d >= 0 { // its value is what is drawn
		pin(d)
	}
	return rows
}
