package simplify

import (
	"errors"
	"slices"

	"github.com/pce-engine/pce/compile/reduction"
	"github.com/pce-engine/pce/compile/reduction/polyhedron"
	"github.com/pce-engine/pce/compile/reduction/schedule"
)

// move is one way to compute the elements of a sum from their neighbours.
type move struct {
	r, ru     []int64          // in the dimensions of the sum, and in the indices of its array
	dims      []string         // names of the indices
	more      polyhedron.Union // points whose values the neighbour lacks
	less      polyhedron.Union // points whose values it has too much
	lessIndex []polyhedron.Row // what these write
	common    *polyhedron.Set  // elements that have a neighbour
}

// maxVectors bounds the vectors that are tried for a statement.
const maxVectors = 80

// best returns the move to make for s, or nil if there is none; then the report has the
// reasons, unless s is what another step left.
func (w *worker) best(s *sum, depth int) (*move, error) {
	refuse := func(r []int64, reason string) {
		w.report.Refused = append(w.report.Refused, Refusal{Array: s.array, Statement: w.source(s), Face: w.face(s.set, s.stmt.Dims), Vector: r, Reason: reason})
	}
	before, err := w.degree(s.set)
	if err != nil {
		return nil, err
	}
	elements, _, err := s.set.Image(s.index, len(w.prog.Params))
	if err != nil {
		return nil, err
	}
	after, err := w.degree(elements)
	if err != nil {
		return nil, err
	}
	if dominated(before, after) {
		if depth == 0 {
			refuse(nil, "it has as many points as elements, up to a factor")
		}
		return nil, nil
	}
	vectors, reason, err := w.vectors(s)
	if err != nil {
		return nil, err
	}
	if len(vectors) == 0 {
		refuse(nil, reason)
		return nil, nil
	}
	var moves []*move
	for _, r := range vectors {
		m, reason, err := w.move(s, r, before)
		if err != nil {
			return nil, err
		}
		if m == nil {
			refuse(r, reason)
			continue
		}
		moves = append(moves, m)
	}
	away := w.turned[s.key]
	slices.SortStableFunc(moves, func(a, b *move) int { return slices.Compare(a.rank(away), b.rank(away)) })
	for _, m := range moves {
		reason, err := w.order(s, m)
		if err != nil {
			return nil, err
		}
		if reason == "" {
			w.other(s, m, moves, refuse)
			return m, w.keep(s, m)
		}
		refuse(m.r, reason)
	}
	return nil, nil
}

// rank orders moves, the best first: from the neighbour opposite to away, if that is given; without subtraction, of few
// pieces, along a short vector.
func (m *move) rank(away []int64) []int64 {
	k := []int64{0, 0, int64(len(m.more) + len(m.less)), 0}
	if !opposite(m.ru, away) {
		k[0] = 1
	}
	if len(m.less) > 0 {
		k[1] = 1
	}
	for _, x := range m.r {
		k[3] += max(x, -x)
	}
	return k
}

// opposite reports whether a is -b.
func opposite(a, b []int64) bool {
	return slices.EqualFunc(a, b, func(x, y int64) bool { return x == -y })
}

// vectors returns vectors along which s computes the same values and its domain extends, and that move its
// elements: combinations of a basis with coefficients -1, 0 and 1. Where there is none the
// reason is returned.
func (w *worker) vectors(s *sum) (out [][]int64, reason string, err error) {
	params := len(w.prog.Params)
	rows := w.share(s.stmt, w.all)
	for _, r := range s.set.Zero {
		rows = append(rows, r[params:len(r)-1])
	}
	basis, err := polyhedron.Kernel(rows, len(s.stmt.Dims))
	if err != nil {
		return nil, "", err
	}
	reason = "its body changes along every vector of the domain"
	if len(basis) > 0 {
		reason = "along every vector on which its body does not change, its elements do not change either, or its domain is thin"
	}
	combination := make([]int64, len(s.stmt.Dims))
	var rec func(k int)
	rec = func(k int) {
		if k < len(basis) {
			for _, c := range []int64{0, 1, -1} {
				for d, x := range basis[k] {
					combination[d] += c * x
				}
				rec(k + 1)
				for d, x := range basis[k] {
					combination[d] -= c * x
				}
			}
			return
		}
		ru, fail := image(s.index, combination, params)
		if fail != nil {
			err = fail
			return
		}
		if slices.ContainsFunc(ru, func(x int64) bool { return x != 0 }) && len(out) < maxVectors && s.set.Extends(append(make([]int64, params), combination...)) {
			out = append(out, slices.Clone(combination))
		}
	}
	rec(0)
	return out, reason, err
}

// move works out what s leaves to do if each element starts from its neighbour along r, or says why that is
// not worth it or not possible. before is the degree of s.
func (w *worker) move(s *sum, r []int64, before []polyhedron.Monomial) (m *move, reason string, err error) {
	var extents *polyhedron.Set
	if ru, err := image(s.index, r, len(w.prog.Params)); err != nil {
		return nil, "", err
	} else if away := w.turned[s.key]; away != nil && opposite(ru, away) && w.counts(s.stmt.Body) {
		if extents, err = w.prog.ExtentSet(w.prog.Array(s.root)); err != nil {
			return nil, "", err
		}
	}
	m, exact, err := split(s.set, s.index, r, len(w.prog.Params), extents)
	switch {
	case err != nil:
		return nil, "", err
	case m == nil:
		return nil, "no two points are that far apart", nil
	case !exact:
		return nil, "which elements have a neighbour is not exact over the integers", nil
	case len(m.less) > 0 && s.stmt.Op != reduction.Add:
		return nil, "the neighbour has terms too much, and " + s.stmt.Op.String() + " has no inverse", nil
	}
	m.dims = w.indexNames(s)
	var after []polyhedron.Monomial
	for _, set := range append(append(polyhedron.Union{m.common}, m.more...), m.less...) {
		d, err := w.degree(set)
		if err != nil {
			return nil, "", err
		}
		after = append(after, d...)
	}
	if !dominated(after, before) || dominated(before, after) {
		return nil, "it leaves as much to do", nil
	}
	return m, "", nil
}

// split divides the points of set, which write the elements index, for a start from the neighbour along r. The
// sum of an element u is then the sum of more over the points that write u, plus, if u is in common, the sum of the
// neighbour u-ru, less the sum of less over the points for which lessIndex is u. It needs values that are the
// same at points that are r apart. exact reports that common has only elements that points write. If no two
// points are r apart, split returns nil. With extents, common has all elements within these whose neighbour has points, also
// those that have none themselves: all is taken away from them.
func split(set *polyhedron.Set, index []polyhedron.Row, r []int64, params int, extents *polyhedron.Set) (m *move, exact bool, err error) {
	full := append(make([]int64, params), r...)
	back := make([]int64, len(full))
	for k, x := range full {
		back[k] = -x
	}
	m = &move{r: r}
	if m.ru, err = image(index, r, params); err != nil {
		return nil, false, err
	}
	shifted, err := set.Shift(full)
	if err != nil {
		return nil, false, err
	}
	both := set.Intersect(shifted)
	if both.Hollow() {
		return nil, false, nil
	}
	if both, err = both.Tighten(); err != nil {
		return nil, false, err
	}
	reached := both
	if extents != nil {
		reached = shifted
	}
	if m.common, exact, err = reached.Image(index, params); err != nil {
		return nil, false, err
	}
	if extents != nil {
		if m.common, err = m.common.Intersect(extents).Tighten(); err != nil {
			return nil, false, err
		}
	}
	if m.more, err = (polyhedron.Union{set}).Subtract(polyhedron.Union{shifted}); err != nil {
		return nil, false, err
	}
	fibres, err := m.common.Preimage(index, set.Vars, params)
	if err != nil {
		return nil, false, err
	}
	left, err := (polyhedron.Union{shifted}).Subtract(polyhedron.Union{set})
	if err != nil {
		return nil, false, err
	}
	if left, err = left.Intersect(polyhedron.Union{fibres}); err != nil {
		return nil, false, err
	}
	for _, piece := range left { // written at z-r, where the values are defined
		if piece, err = piece.Shift(back); err != nil {
			return nil, false, err
		}
		m.less = append(m.less, piece)
	}
	for k, row := range index {
		moved := slices.Clone(row)
		moved[len(moved)-1] += m.ru[k]
		m.lessIndex = append(m.lessIndex, moved)
	}
	return m, exact, nil
}

// order returns why elements cannot be computed after their neighbours, or nothing if they can.
func (w *worker) order(s *sum, m *move) (reason string, err error) {
	if !w.recursive[s.root] {
		return "", nil
	}
	if w.times == nil {
		return "the program has no affine order", nil
	}
	if w.times.Direction(s.root, m.ru) > 0 {
		return "", nil
	}
	_, err = w.anyOrder(append(w.deps[:len(w.deps):len(w.deps)], w.needs(s, m)))
	if errors.Is(err, schedule.ErrCycle) {
		return "its elements would be needed before they are there: " + err.Error(), nil
	}
	return "", err
}

// other reports why the opposite direction was not taken, where it is not legal.
func (w *worker) other(s *sum, taken *move, moves []*move, refuse func(r []int64, reason string)) {
	for _, m := range moves {
		if opposite(m.r, taken.r) {
			if reason, err := w.order(s, m); err == nil && reason != "" {
				refuse(m.r, reason)
			}
		}
	}
}

// keep makes later steps respect the order that m needs.
func (w *worker) keep(s *sum, m *move) (err error) {
	if !w.recursive[s.root] {
		return nil
	}
	w.deps = append(w.deps, w.needs(s, m))
	if w.times.Direction(s.root, m.ru) <= 0 {
		w.times, err = w.anyOrder(w.deps)
	}
	return err
}

// needs is the dependence of an element on its neighbour.
func (w *worker) needs(s *sum, m *move) *schedule.Dependence {
	n, params := m.common.Vars, len(w.prog.Params)
	d := &schedule.Dependence{Target: s.root, Source: s.root, Set: m.common}
	for k, x := range m.ru {
		here := make(polyhedron.Row, n+1)
		here[params+k] = 1
		there := slices.Clone(here)
		there[n] = -x
		d.To, d.From = append(d.To, here), append(d.From, there)
	}
	return d
}

// degree returns the monomials that the points of a set grow with.
func (w *worker) degree(set *polyhedron.Set) ([]polyhedron.Monomial, error) {
	c, err := set.Count(len(w.prog.Params), w.context)
	if err != nil {
		return nil, err
	}
	return c.Degree()
}

// dominated reports whether each monomial of a divides one of b.
func dominated(a, b []polyhedron.Monomial) bool {
	for _, m := range a {
		if !slices.ContainsFunc(b, func(n polyhedron.Monomial) bool {
			for k := range m {
				if m[k] > n[k] {
					return false
				}
			}
			return true
		}) {
			return false
		}
	}
	return true
}
