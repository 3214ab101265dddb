package equations

import (
	"fmt"
	"maps"
	"slices"

	"github.com/pce-engine/pce/compile/reduction"
)

// place is an index of an array.
type place struct {
	array string
	index int
}

// chooseUnits chooses which index of each array becomes the units of its nodes. Indices
// that statements name by one dimension belong together; those that belong together
// are taken, the largest first, unless a statement treats their values unlike one another.
func (m *model) chooseUnits() error {
	m.units = map[string]int{}
	for _, class := range m.classes() {
		before := maps.Clone(m.units)
		for _, p := range class {
			if _, ok := m.units[p.array]; !ok {
				m.units[p.array] = p.index
			}
		}
		ok, err := m.fits()
		if err != nil {
			return err
		}
		if !ok {
			m.units = before
		}
	}
	return nil
}

// classes returns the indices that belong together, of at most one per array, by their
// extent. An index that is not always a dimension by itself belongs to none.
func (m *model) classes() [][]place {
	parent := map[place]place{}
	var find func(place) place
	find = func(p place) place {
		if parent[p] == p {
			return p
		}
		parent[p] = find(parent[p])
		return parent[p]
	}
	broken := map[place]bool{}
	for _, r := range m.rules {
		by := map[string]place{} // a dimension to an index that it is
		note := func(p place, d string) {
			if _, ok := parent[p]; !ok {
				parent[p] = p
			}
			if d == "" {
				broken[p] = true
			} else if q, ok := by[d]; ok {
				parent[find(p)] = find(q)
			} else {
				by[d] = p
			}
		}
		for k := range r.Index {
			d := plain(&r.Index[k])
			if !slices.Contains(r.Dims, d) {
				d = ""
			}
			note(place{r.Array, k}, d)
		}
		for _, f := range r.values {
			for k := range f.index {
				d := f.plain(k)
				if !slices.Contains(r.Dims, d) {
					d = ""
				}
				note(place{f.Array, k}, d)
			}
		}
	}
	groups := map[place][]place{}
	for _, a := range m.prog.Arrays { // in their order, so that the choice is always the same
		for k := range a.Extents {
			p := place{a.Name, k}
			if _, ok := parent[p]; !ok || broken[p] {
				continue
			}
			root := find(p)
			if list := groups[root]; len(list) == 0 || list[len(list)-1].array != a.Name {
				groups[root] = append(list, p)
			}
		}
	}
	classes := slices.Collect(maps.Values(groups))
	slices.SortFunc(classes, func(x, y []place) int {
		if d := m.size(y[0]) - m.size(x[0]); d != 0 {
			return d
		}
		return m.number(x[0]) - m.number(y[0])
	})
	return classes
}

func (m *model) size(p place) int { return m.extent(m.prog.Array(p.array), p.index) }

// number is the place of p in the order of the arrays.
func (m *model) number(p place) int {
	const most = 1 << 16 // indices of an array
	return slices.Index(m.prog.Arrays, m.prog.Array(p.array))*most + p.index
}

// fits reports whether every statement is one of nodes with the units chosen.
func (m *model) fits() (bool, error) {
	layouts := map[string]string{} // of weights
	for _, r := range m.rules {
		shapes, ok := m.shapes(r)
		if !ok {
			return false, nil
		}
		for _, d := range m.unitDims(r) {
			if full, err := m.full(r, d); err != nil || !full {
				return false, err
			}
		}
		for k, s := range shapes {
			w := r.levels[k].weight.Array
			layout := fmt.Sprint(s.row, s.column, s.diagonal)
			if first, ok := layouts[w]; ok && first != layout {
				return false, nil
			}
			layouts[w] = layout
		}
	}
	return true, nil
}

// unitDim returns the dimension at the units of a value.
func (m *model) unitDim(f *factor) string {
	if k, ok := m.units[f.Array]; ok {
		return f.plain(k)
	}
	return ""
}

// leftDim returns the dimension at the units of the array that r writes.
func (m *model) leftDim(r *rule) string {
	if k, ok := m.units[r.Array]; ok {
		return plain(&r.Index[k])
	}
	return ""
}

// unitDims returns the dimensions of a statement that are units.
func (m *model) unitDims(r *rule) (dims []string) {
	list := []string{m.leftDim(r)}
	for k := range r.values {
		list = append(list, m.unitDim(&r.values[k]))
	}
	for _, d := range list {
		if d != "" && !slices.Contains(dims, d) {
			dims = append(dims, d)
		}
	}
	return dims
}

// full reports whether the domain of r lets d be any index of the arrays whose units
// it is, whatever the other dimensions are.
func (m *model) full(r *rule, d string) (bool, error) {
	extent := -1
	note := func(array *reduction.Array, k int) bool {
		n := m.extent(array, k)
		if extent < 0 {
			extent = n
		}
		return extent == n
	}
	ok := true
	if m.leftDim(r) == d {
		ok = note(m.prog.Array(r.Array), m.units[r.Array])
	}
	for k := range r.values {
		if f := &r.values[k]; m.unitDim(f) == d {
			ok = ok && note(f.array, m.units[f.Array])
		}
	}
	for _, w := range r.weights {
		for k := range w.index {
			if w.plain(k) == d {
				ok = ok && note(w.array, k)
			}
		}
	}
	if !ok {
		return false, nil
	}
	pieces, err := m.points(r)
	if err != nil {
		return false, err
	}
	at := slices.Index(r.Dims, d)
	for _, set := range pieces {
		low, high := int64(-maxSize), int64(maxSize)
		for _, row := range set.Zero {
			if row[at] != 0 {
				return false, nil
			}
		}
		for _, row := range set.Positive {
			if row[at] == 0 {
				continue
			}
			for k, c := range row[:set.Vars] {
				if k != at && c != 0 {
					return false, nil
				}
			}
			switch c := row[set.Vars]; row[at] { // both bounds of affine constraints of one dimension
			case 1:
				low = max(low, -c)
			case -1:
				high = min(high, c)
			default:
				return false, nil
			}
		}
		if low != 0 || high != int64(extent)-1 {
			return false, nil
		}
	}
	return true, nil
}

// shape says how a level is a node.
type shape struct {
	rows        string // the dimension that is its units, "" for one unit
	columns     string // the dimension that is the units of its children
	diagonal    bool   // whether each unit reads its own in each child
	row, column int    // the indices of the weight that are rows and columns, -1 for none
}

// shapes returns how the levels of r are nodes, from the outermost; it reports false if
// the chosen units do not allow that. Units go from those of the element on the left
// to those of the values: a sum keeps them, or sums over new ones.
func (m *model) shapes(r *rule) ([]shape, bool) {
	left, inner := m.leftDim(r), ""
	for k := range r.values {
		d := m.unitDim(&r.values[k])
		if k > 0 && d != inner {
			return nil, false
		}
		inner = d
	}
	if left != "" { // it is in no other index, of the element and of values
		if count(r.Index, left) != 1 {
			return nil, false
		}
	}
	for k := range r.values {
		f := &r.values[k]
		if inner != "" && count(f.index, inner) != 1 || left != "" && left != inner && f.uses(left) {
			return nil, false
		}
	}
	if inner != "" && inner != left && count(r.Index, inner) != 0 {
		return nil, false
	}
	var list []shape
	at := left
	for k := range r.levels {
		l := &r.levels[k]
		s := shape{rows: at, row: -1, column: -1}
		if left != inner && at == left {
			switch {
			case inner != "" && slices.Contains(l.dims, inner):
				at = inner
			case !usedLater(r.levels[k+1:], left):
				at = ""
			}
		} else if at == "" && slices.Contains(l.dims, inner) {
			at = inner
		}
		s.columns, s.diagonal = at, at != "" && at == s.rows
		w := l.weight
		for i := range w.index {
			if s.rows != "" && w.plain(i) == s.rows {
				s.row = i
			}
			if at != "" && !s.diagonal && w.plain(i) == at {
				s.column = i
			}
		}
		if s.rows != "" && (s.row < 0 || count(w.index, s.rows) != 1) ||
			at != "" && !s.diagonal && (s.column < 0 || count(w.index, at) != 1) ||
			at != s.rows && usedLater(r.levels[k+1:], s.rows) {
			return nil, false
		}
		list = append(list, s)
	}
	return list, at == inner || len(r.values) == 0
}

func usedLater(levels []level, d string) bool {
	return d != "" && slices.ContainsFunc(levels, func(l level) bool { return l.weight.uses(d) })
}

// count returns how many indices have the dimension d.
func count(index []reduction.Affine, d string) (n int) {
	for k := range index {
		if mentions(&index[k], d) {
			n++
		}
	}
	return n
}
