package gosource

import (
	"bytes"
	"slices"

	"github.com/pce-engine/pce/compile/reduction"
	"github.com/pce-engine/pce/compile/reduction/polyhedron"
)

// bucket has the values of dimension loop that a guard by == h[loop], where h is an input, lets through, for each value
// of dimension by.
type bucket struct {
	by, loop string
	test     int // the guard, among the tests of the statement
	key      reduction.Expr
	set      *polyhedron.Set // of by and loop, after the parameters
}

// bucketOf returns a bucket for a statement whose elements at one time are those of one value of a dimension that a
// guard fixes: a loop over all points at each time would try each point at every time. It returns nil for others.
func (e *emitter) bucketOf(s *reduction.Statement, sets []*polyhedron.Set, order, fixed []string, tests []test) *bucket {
	if len(e.times) == 0 || len(sets) != 1 || len(order) != 1 {
		return nil
	}
	params := len(e.prog.Params)
	for k, g := range s.Guards {
		by := tests[k].dim
		if by == "" { // it fixes none, or one that another guard fixes
			continue
		}
		r, ok := other(g, by).(*reduction.Read)
		if !ok || !e.prog.Array(r.Array).Input || slices.ContainsFunc(fixed, func(d string) bool { return reduction.Mentions(r, d) }) {
			continue
		}
		if k > 0 && slices.ContainsFunc(r.Index, func(x reduction.Expr) bool { return !e.known(x) }) {
			continue // a guard before this one may keep the index within the array
		}
		index, err := e.indexRows(s)
		if err != nil {
			return nil
		}
		at := e.space(sets[0], index, s.Array, s.Dims, s.Dims)
		own := params + len(e.times) + slices.Index(s.Dims, by)
		if !slices.ContainsFunc(at.Zero[len(sets[0].Zero):], func(row polyhedron.Row) bool {
			alone := row[own] != 0
			for v := params + len(e.times); v < at.Vars; v++ {
				alone = alone && (v == own || row[v] == 0)
			}
			return alone
		}) {
			continue
		}
		two := []polyhedron.Row{make(polyhedron.Row, sets[0].Vars+1), make(polyhedron.Row, sets[0].Vars+1)}
		two[0][params+slices.Index(s.Dims, by)], two[1][params+slices.Index(s.Dims, order[0])] = 1, 1
		set, _, err := sets[0].Image(two, params)
		if err != nil {
			return nil
		}
		return &bucket{by, order[0], k, r, set}
	}
	return nil
}

// fill writes, before the time loops, the filling of a bucket, and returns the names of its slice and of the first value.
func (e *emitter) fill(s *reduction.Statement, b *bucket) (slice, low string, err error) {
	slice, low = e.fresh("bucket"), e.fresh("low")
	e.buckets[slice], e.buckets[low] = "[][]int64", "int64"
	times, whole := e.times, e.b
	e.times, e.b = nil, bytes.Buffer{}
	defer func() { e.times, e.b = times, whole }()
	params := len(e.prog.Params)
	names := append(e.given(), dim(b.by), dim(b.loop))
	ends := func(v int) (lower, upper string, err error) { // by the parameters alone
		own := make(polyhedron.Row, b.set.Vars+1)
		own[params+v] = 1
		set, _, err := b.set.Image([]polyhedron.Row{own}, params)
		if err != nil {
			return "", "", err
		}
		c, err := polyhedron.NewScan(set, params)
		if err != nil {
			return "", "", err
		}
		l, u, zero := c.Bounds(params)
		for _, z := range zero {
			l, u = append(l, z), append(u, z)
		}
		return bounds(names, l, params, "max"), bounds(names, u, params, "min"), nil
	}
	first, last, err := ends(0)
	if err != nil {
		return "", "", err
	}
	e.line("%s := %s", low, first)
	e.line("%s := make([][]int64, max(0, %s-%s+1))", slice, last, low)
	if first, last, err = ends(1); err != nil {
		return "", "", err
	}
	all, err := polyhedron.NewScan(b.set, params)
	if err != nil {
		return "", "", err
	}
	open := e.guard(names, all.Guard()) // at sizes without points the key may be outside of its array
	e.line("for %s, last := %s, %s; %s <= last; %s++ {", dim(b.loop), first, last, dim(b.loop), dim(b.loop))
	e.line("if k := %s - %s; k >= 0 && k < int64(len(%s)) { %s[k] = append(%s[k], %s) }", e.expression(s, b.key, reduction.Int), low, slice, slice, slice, dim(b.loop))
	e.line("}")
	e.b.WriteString(closing(open))
	e.before.Write(e.b.Bytes())
	return slice, low, nil
}

// bucketed writes the loops of a statement over the points in a bucket.
func (e *emitter) bucketed(s *reduction.Statement, set *polyhedron.Set, b *bucket, fixed []string, tests []test, inside func()) error {
	slice, low, err := e.fill(s, b)
	if err != nil {
		return err
	}
	index, err := e.indexRows(s)
	if err != nil {
		return err
	}
	order := []string{b.by, b.loop}
	for _, d := range fixed {
		if d != b.by {
			order = append(order, d)
		}
	}
	c, err := polyhedron.NewScan(e.space(set, index, s.Array, s.Dims, order), len(e.prog.Params)+len(e.times))
	if err != nil {
		return err
	}
	names := e.given()
	for _, d := range order {
		names = append(names, dim(d))
	}
	given := len(e.prog.Params) + len(e.times)
	open := e.guard(names, c.Guard()) + e.loop(names, c, given) + 2
	// The loops have rational bounds, so that they may come to a value that no point has.
	e.line("if k := %s - %s; k >= 0 && k < int64(len(%s)) {", names[given], low, slice)
	e.line("for _, %s := range %s[k] {", names[given+1], slice)
	open += e.within(names, c, given+1)
	open += e.tested(names, c, given+2, slices.Delete(slices.Clone(tests), b.test, b.test+1))
	inside()
	e.b.WriteString(closing(open))
	return nil
}
