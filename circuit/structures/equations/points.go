package equations

import (
	"math"
	"slices"

	"github.com/pce-engine/pce/compile/reduction"
	"github.com/pce-engine/pce/compile/reduction/polyhedron"
)

// points returns the domain of r at the sizes, as sets in its dimensions.
func (m *model) points(r *rule) ([]*polyhedron.Set, error) {
	sets, err := m.prog.Points(r.Statement)
	if err != nil {
		return nil, err
	}
	params := len(m.prog.Params)
	at := func(rows []polyhedron.Row) (out []polyhedron.Row, err error) {
		for _, row := range rows {
			x, err := m.substitute(row[:params], row[len(row)-1], r.Pos)
			if err != nil {
				return nil, err
			}
			out = append(out, append(slices.Clone(row[params:len(row)-1]), x))
		}
		return out, nil
	}
	for k, s := range sets {
		t := &polyhedron.Set{Vars: s.Vars - params}
		if t.Zero, err = at(s.Zero); err != nil {
			return nil, err
		}
		if t.Positive, err = at(s.Positive); err != nil {
			return nil, err
		}
		sets[k] = t
	}
	return sets, nil
}

// substitute returns a constant and multiples of the parameters, at the sizes.
func (m *model) substitute(row polyhedron.Row, constant int64, at reduction.Pos) (int64, error) {
	sum, rough := constant, math.Abs(float64(constant))
	for k, c := range row {
		n := m.sizes[m.prog.Params[k].Name]
		sum, rough = sum+c*n, rough+math.Abs(float64(c)*float64(n))
	}
	if rough > 1<<61 {
		return 0, refuse(at, "a bound of the domain is beyond 2^61 at these sizes")
	}
	return sum, nil
}

// scan enumerates the points of a statement that write an element.
type scan struct {
	order  []int // the dimensions, in the order in which they are enumerated
	given  int   // indices of the element, less the units
	pieces []*polyhedron.Scan
}

// scanOf prepares the enumeration of the points of r: dimensions that the element fixes
// first, then those of each level, then the others. Dimensions that are units are 0.
func (m *model) scanOf(r *rule) (*scan, error) {
	sets, err := m.points(r)
	if err != nil {
		return nil, err
	}
	s := &scan{}
	var last []int
	for _, l := range r.levels {
		for _, d := range l.dims {
			last = append(last, slices.Index(r.Dims, d))
		}
	}
	known := r.known()
	for pass := range 3 {
		for k, d := range r.Dims {
			level := slices.Contains(last, k)
			if pass == 0 && known[d] && !level || pass == 2 && !known[d] && !level {
				s.order = append(s.order, k)
			}
		}
		if pass == 1 {
			s.order = append(s.order, last...)
		}
	}
	var index []reduction.Affine
	for k := range r.Index {
		if u, ok := m.units[r.Array]; !ok || u != k {
			index = append(index, r.Index[k])
		}
	}
	s.given = len(index)
	unit := m.unitDims(r)
	for _, set := range sets {
		t := &polyhedron.Set{Vars: s.given + len(r.Dims)}
		place := func(rows []polyhedron.Row) (out []polyhedron.Row) {
			for _, row := range rows {
				to := make(polyhedron.Row, t.Vars+1)
				for k, from := range s.order {
					to[s.given+k] = row[from]
				}
				to[t.Vars] = row[set.Vars]
				out = append(out, to)
			}
			return out
		}
		t.Zero, t.Positive = place(set.Zero), place(set.Positive)
		for k := range index { // the index less what is given is 0
			to := make(polyhedron.Row, t.Vars+1)
			to[k] = -1
			constant := index[k]
			constant.Terms = nil
			for _, term := range index[k].Terms {
				if at := slices.Index(r.Dims, term.Name); at >= 0 {
					to[s.given+slices.Index(s.order, at)] += term.Coefficient
				} else {
					constant.Terms = append(constant.Terms, term)
				}
			}
			if to[t.Vars], err = m.eval(&constant, nil); err != nil {
				return nil, err
			}
			t.Zero = append(t.Zero, to)
		}
		for _, d := range unit {
			to := make(polyhedron.Row, t.Vars+1)
			to[s.given+slices.Index(s.order, slices.Index(r.Dims, d))] = 1
			t.Zero = append(t.Zero, to)
		}
		piece, err := polyhedron.NewScan(t, s.given)
		if err != nil {
			return nil, refuse(r.Pos, "%v", err)
		}
		s.pieces = append(s.pieces, piece)
	}
	return s, nil
}

// of returns the points that write the element with an index, in the order of their
// statement's dimensions, those that agree on the first levels one after another. It stops
// after more than a limit.
func (s *scan) of(index []int64, limit int) (points [][]int64) {
	for _, piece := range s.pieces {
		piece.Points(index, func(x []int64) bool {
			p := make([]int64, len(s.order))
			for k, at := range s.order {
				p[at] = x[s.given+k]
			}
			points = append(points, p)
			return len(points) <= limit
		})
	}
	if len(s.pieces) > 1 {
		slices.SortFunc(points, func(p, q []int64) int {
			for _, at := range s.order {
				if p[at] != q[at] {
					return int(max(-1, min(1, p[at]-q[at])))
				}
			}
			return 0
		})
	}
	return points
}
