package equations

import (
	"fmt"
	"slices"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/compile/reduction"
)

// term is a child of a sum: where its weight is among those that are summed.
type term struct {
	place int
	id    circuit.NodeID
	point []int64
}

// sum builds the sums of a += from level k on, over points that agree on the dimensions of
// the levels before it.
func (w *lowering) sum(r *source, k int, points [][]int64) (circuit.NodeID, error) {
	if k == len(r.levels) {
		if len(points) > 1 {
			return 0, r.refuse(points[1], "is not normalised: it is one of %d terms with the same weight; give the sum a weight for each", len(points))
		}
		factors, err := w.factors(r, points[0])
		if err != nil {
			return 0, err
		}
		slices.Reverse(factors)
		return w.product(r, points[0], factors)
	}
	l, s := &r.levels[k], r.shapes[k]
	given, extents, err := w.weights(r, l, s, points[0])
	if err != nil {
		return 0, err
	}
	var terms []term
	for from := 0; from < len(points); {
		to := from + 1
		for to < len(points) && l.agree(r, points[from], points[to]) {
			to++
		}
		t := term{point: points[from]}
		if t.place, err = w.place(r, l, s, extents, t.point); err != nil {
			return 0, err
		}
		terms = append(terms, t)
		if t.id, err = w.sum(r, k+1, points[from:to]); err != nil {
			return 0, err
		}
		terms[len(terms)-1] = t
		from = to
	}
	if err := checkNormalised(r, l, s, extents, terms); err != nil {
		return 0, err
	}
	return w.sumNode(r, l, s, given, terms)
}

// agree reports whether two points have the same values of the dimensions of l.
func (l *level) agree(r *source, p, q []int64) bool {
	for _, d := range l.dims {
		if k := slices.Index(r.Dims, d); p[k] != q[k] {
			return false
		}
	}
	return true
}

// weights returns the indices of a level's weight that are given, and the extents of those that
// are summed. Rows and columns are neither.
func (w *lowering) weights(r *source, l *level, s shape, point []int64) (given []int64, extents []int, err error) {
	for k := range l.weight.index {
		switch {
		case k == s.row || k == s.column:
		case l.summed[k]:
			extents = append(extents, w.extent(l.weight.array, k))
		default:
			x, err := w.indexAt(l.weight, k, r, point)
			if err != nil {
				return nil, nil, err
			}
			given = append(given, x)
		}
	}
	return given, extents, nil
}

// lookup returns the values of the dimensions at a point.
func (r *rule) lookup(point []int64) func(name string) int64 {
	return func(name string) int64 { return point[slices.Index(r.Dims, name)] }
}

// place returns where the summed indices of a weight are, in row-major order.
func (w *lowering) place(r *source, l *level, s shape, extents []int, point []int64) (int, error) {
	at, next := 0, 0
	for k := range l.weight.index {
		if !l.summed[k] || k == s.row || k == s.column {
			continue
		}
		x, err := w.indexAt(l.weight, k, r, point)
		if err != nil {
			return 0, err
		}
		if at > maxPoints {
			return 0, r.refuse(point, "is one of more than %d terms; choose smaller sizes", maxPoints)
		}
		at = at*extents[next] + int(x)
		next++
	}
	return at, nil
}

// checkNormalised wants each of the weights that are summed once.
func checkNormalised(r *source, l *level, s shape, extents []int, terms []term) error {
	slices.SortStableFunc(terms, func(x, y term) int { return x.place - y.place })
	all := 1
	for _, n := range extents {
		all *= min(n, maxPoints)
		if all > maxPoints {
			break
		}
	}
	name := reduction.Text(l.weight.Read)
	for k, t := range terms {
		if k > 0 && terms[k-1].place == t.place {
			return r.refuse(t.point, "is not normalised: %s is the weight of an earlier term of the sum", name)
		}
		if t.place != k {
			break
		}
	}
	if len(terms) < all {
		return r.refuse(terms[0].point, "is not normalised: the sum takes %d of the %d weights of %s over its summed indices; let the domain take all, as they sum to 1",
			len(terms), all, name)
	}
	return nil
}

// sumNode builds one sum of terms, whose places are ascending.
func (w *lowering) sumNode(r *source, l *level, s shape, given []int64, terms []term) (circuit.NodeID, error) {
	units := 1
	if s.row >= 0 {
		units = w.extent(l.weight.array, s.row)
	}
	children := make([]circuit.NodeID, len(terms))
	ones, inner := 0, 1 // inner are the units of the children
	for k, t := range terms {
		if children[k] = t.id; t.id == one {
			ones++
		} else {
			inner = w.graph.Nodes[t.id].Units
		}
	}
	switch {
	case ones == len(terms): // weights sum to 1
		return one, nil
	case ones > 0:
		k := slices.IndexFunc(terms, func(t term) bool { return t.id == one })
		return 0, r.refuse(terms[k].point, "is not smooth: this term of the sum is 1 and another has variables; all have the same variables")
	case len(terms) == 1 && (s.diagonal || units == 1 && inner == 1): // one weight is 1
		return children[0], nil
	}
	n := circuit.Node{Kind: circuit.Sum, Units: units, Children: children}
	if s.diagonal {
		n.Edges = &circuit.Edges{Rows: 1, Cols: 1}
		for u := range units {
			for k := range children {
				n.Edges.Pairs = append(n.Edges.Pairs, [2]int32{int32(u), int32(k*units + u)})
			}
		}
	}
	return w.add(r, terms[0].point, n, fmt.Sprint(l.weight.Array, given))
}
