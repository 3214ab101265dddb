package simplify

import (
	"slices"
	"strings"

	"github.com/pce-engine/pce/compile/reduction"
	"github.com/pce-engine/pce/compile/reduction/polyhedron"
)

// names has the names of the variables of rows: the program's parameters, then dimensions.
type names []string

func (w *worker) names(dims []string) names {
	var n names
	for _, q := range w.prog.Params {
		n = append(n, q.Name)
	}
	return append(n, dims...)
}

// affine returns a row as an expression of the source: dimensions first, then parameters.
func (n names) affine(r polyhedron.Row, params int) reduction.Affine {
	a := reduction.Affine{Constant: r[len(n)]}
	for k := range n {
		v := (k + params) % len(n)
		if r[v] != 0 {
			a.Terms = append(a.Terms, reduction.Term{Name: n[v], Coefficient: r[v]})
		}
	}
	return a
}

// chains writes the rows of a set as constraints that Parse reads to the same set: lower and upper
// bounds of a dimension by the ones before it as a chain, everything else by itself, and what the context
// says about parameters not at all.
func (w *worker) chains(set *polyhedron.Set, dims []string) []reduction.Chain {
	n, params := w.names(dims), len(w.prog.Params)
	var out []reduction.Chain
	for _, r := range set.Zero {
		if !w.known(r, params, true) {
			out = append(out, n.relation(r, reduction.Equal, params))
		}
	}
	lower, upper := make([][]polyhedron.Row, len(n)), make([][]polyhedron.Row, len(n))
	for _, r := range set.Positive {
		if w.known(r, params, false) {
			continue
		}
		v := last(r)
		switch {
		case v >= params && r[v] == 1:
			lower[v] = append(lower[v], r)
		case v >= params && r[v] == -1:
			upper[v] = append(upper[v], r)
		default:
			out = append(out, n.relation(r, reduction.GreaterEqual, params))
		}
	}
	for v := range n {
		for k := range max(len(lower[v]), len(upper[v])) {
			var c reduction.Chain
			if k < len(lower[v]) { // v + rest >= 0
				c.Terms = append(c.Terms, n.affine(rest(lower[v][k], v, -1, 0), params))
				c.Relations = append(c.Relations, reduction.LessEqual)
			}
			c.Terms = append(c.Terms, reduction.Affine{Terms: []reduction.Term{{Name: n[v], Coefficient: 1}}})
			if k < len(upper[v]) { // rest - v >= 0
				c.Terms = append(c.Terms, n.affine(rest(upper[v][k], v, 1, 1), params))
				c.Relations = append(c.Relations, reduction.Less)
			}
			out = append(out, c)
		}
	}
	return out
}

// rest is a row without variable v, times sign, plus a constant.
func rest(r polyhedron.Row, v int, sign, constant int64) polyhedron.Row {
	o := make(polyhedron.Row, len(r))
	for k, c := range r {
		o[k] = sign * c
	}
	o[v] = 0
	o[len(o)-1] += constant
	return o
}

// last is the last variable of a row, or -1.
func last(r polyhedron.Row) int {
	for v := len(r) - 2; v >= 0; v-- {
		if r[v] != 0 {
			return v
		}
	}
	return -1
}

// relation writes a row with its positive terms on the left and the others on the right.
func (n names) relation(r polyhedron.Row, op reduction.Relation, params int) reduction.Chain {
	left, right := make(polyhedron.Row, len(r)), make(polyhedron.Row, len(r))
	for k, c := range r {
		if c > 0 {
			left[k] = c
		} else {
			right[k] = -c
		}
	}
	return reduction.Chain{Terms: []reduction.Affine{n.affine(left, params), n.affine(right, params)}, Relations: []reduction.Relation{op}}
}

// known reports whether the context says r already.
func (w *worker) known(r polyhedron.Row, params int, equality bool) bool {
	if last(r) >= params {
		return false
	}
	c := append(slices.Clone(r[:params]), r[len(r)-1])
	negative := make(polyhedron.Row, len(c))
	for k, x := range c {
		negative[k] = -x
	}
	return w.context.Implies(c) && (!equality || w.context.Implies(negative))
}

// face writes the equalities of a set.
func (w *worker) face(set *polyhedron.Set, dims []string) string {
	n := w.names(dims)
	var parts []string
	for _, r := range set.Zero {
		c := n.relation(r, reduction.Equal, len(w.prog.Params))
		parts = append(parts, c.Terms[0].String()+" = "+c.Terms[1].String())
	}
	return strings.Join(parts, ", ")
}
