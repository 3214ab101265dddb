package gosource

import (
	"fmt"
	"slices"

	"github.com/pce-engine/pce/compile/reduction"
	"github.com/pce-engine/pce/compile/reduction/polyhedron"
)

// elements writes the computation of the elements of an array at the times that are open.
func (e *emitter) elements(name string) error {
	var own []*reduction.Statement
	for _, s := range e.prog.Statements {
		if s.Array == name && e.prog.Carries(s) == nil {
			own = append(own, s)
		}
	}
	op := e.operator(name)
	switch {
	case op.Draws():
		for _, s := range own {
			if err := e.draw(s); err != nil {
				return err
			}
		}
		return nil
	case op == reduction.LogSumExp:
		return e.logSumExp(name, own)
	case e.prog.Array(name).Fold == nil && identity(op) != "0": // in place: the values of the elements before
		if err := e.each(name, func(at []coordinate) { e.line("%s = %s", e.slot(array(name), name, at, true), identity(op)) }); err != nil {
			return err
		}
	}
	for _, s := range own {
		if err := e.alone(s, func() error { return e.points(s, func() { e.update(s) }) }); err != nil {
			return err
		}
	}
	if e.prog.Array(name).Range == nil || op == reduction.Assign { // update looks at what is assigned
		return nil
	}
	return e.each(name, func(at []coordinate) { e.line("%s", e.ranged(name, e.slot(array(name), name, at, false))) })
}

// ranged writes a look at a value of an array with a range, whose text is x.
func (e *emitter) ranged(name, x string) string {
	r := e.prog.Array(name).Range
	if r == nil {
		return x
	}
	return fmt.Sprintf("ranged(%s, %s, %s, %q)", x, e.affine(&r.Low), e.affine(&r.High), name)
}

// identity is the value of an element that no point reaches.
func identity(op reduction.Operator) string {
	switch op {
	case reduction.Multiply:
		return "1"
	case reduction.Max, reduction.LogSumExp:
		return "math.Inf(-1)"
	case reduction.Min:
		return "math.Inf(1)"
	}
	return "0"
}

// update writes what a point of s does to its element.
func (e *emitter) update(s *reduction.Statement) {
	to := e.slot(array(s.Array), s.Array, coordinates(s.Index), true)
	x := e.expression(s, s.Body, e.prog.Array(s.Array).Type)
	switch s.Op {
	case reduction.Assign:
		e.assign(s, x)
	case reduction.Max:
		e.line("%s = math.Max(%s, %s)", to, to, x)
	case reduction.Min:
		e.line("%s = math.Min(%s, %s)", to, to, x)
	case reduction.Multiply:
		e.line("%s *= %s", to, x)
	default:
		e.line("%s += %s", to, x)
	}
}

// each writes a loop over all elements of an array at the times that are open.
func (e *emitter) each(name string, inside func(at []coordinate)) error {
	a := e.prog.Array(name)
	extents, err := e.prog.ExtentSet(a)
	if err != nil {
		return err
	}
	params := len(e.prog.Params)
	var dims, vars []string
	var index []polyhedron.Row
	var at []reduction.Affine
	for k := range a.Extents {
		name := fmt.Sprintf("u%d", k)
		dims, vars = append(dims, dim(name)), append(vars, dim(name))
		at = append(at, reduction.Affine{Terms: []reduction.Term{{Name: name, Coefficient: 1}}})
		r := make(polyhedron.Row, params+len(a.Extents)+1)
		r[params+k] = 1
		index = append(index, r)
	}
	return e.scan(e.space(extents, index, name, dims, vars), vars, nil, false, func() { inside(coordinates(at)) })
}

// pieces returns the points of s as disjoint sets, without the empty ones, as one half of a != may be.
func (e *emitter) pieces(s *reduction.Statement) (pieces []*polyhedron.Set, err error) {
	sets, err := e.prog.Points(s)
	if err != nil {
		return nil, err
	}
	for _, set := range sets {
		empty, err := set.Empty()
		if err != nil {
			return nil, err
		}
		if !empty {
			pieces = append(pieces, set)
		}
	}
	return pieces, nil
}

// points writes the loops over the points of s whose guards hold, at the times that are open.
func (e *emitter) points(s *reduction.Statement, inside func()) error {
	sets, err := e.pieces(s)
	if err != nil || len(sets) == 0 {
		return err
	}
	tests, fixed := e.tests(s)
	var order []string
	for _, d := range s.Dims {
		if !slices.Contains(fixed, d) {
			order = append(order, d)
		}
	}
	if b := e.bucketOf(s, sets, order, fixed, tests); b != nil {
		return e.bucketed(s, sets[0], b, fixed, tests, inside)
	}
	return e.ordered(s, sets, order, fixed, tests, false, inside)
}

// ordered writes loops over sets, over the dimensions of order and then those that tests fix. With deep, inside writes
// loops itself, and the order of dimensions is the given one.
func (e *emitter) ordered(s *reduction.Statement, sets []*polyhedron.Set, order, fixed []string, tests []test, deep bool, inside func()) error {
	index, err := e.indexRows(s)
	if err != nil {
		return err
	}
	variables := func(list []string) (out []string) {
		for _, d := range list {
			out = append(out, dim(d))
		}
		return out
	}
	dims := variables(s.Dims)
	for _, set := range sets {
		tight, err := set.Tighten()
		if err != nil {
			return err
		}
		loops := order
		if !deep {
			loops = e.arrange(s, e.space(tight, index, s.Array, dims, variables(append(slices.Clone(order), fixed...))), order)
		}
		vars := variables(append(slices.Clone(loops), fixed...))
		if err := e.scan(e.space(tight, index, s.Array, dims, vars), vars, tests, deep, inside); err != nil {
			return fmt.Errorf("%d:%d: %w", s.Line, s.Column, err)
		}
	}
	return nil
}

// tests returns the guards of s in their order, with the dimensions that some of them fix.
func (e *emitter) tests(s *reduction.Statement) (out []test, fixed []string) {
	chosen := e.chosen(s)
	for k, g := range s.Guards {
		d, ok := chosen[k]
		if !ok {
			out = append(out, test{condition: func() string { return e.expression(s, g, reduction.Condition) }})
			continue
		}
		out = append(out, test{dim: d, value: func() string { return e.expression(s, other(g, d), reduction.Int) }})
		fixed = append(fixed, d)
	}
	return out, fixed
}

// chosen returns which dimension each guard of s fixes. A guard x == d, where x is an integer of dimensions that
// are known when it is tested, fixes dimension d, which is then computed and not tried.
func (e *emitter) chosen(s *reduction.Statement) map[int]string {
	if known, ok := e.fixing[s]; ok {
		return known
	}
	later := map[string]bool{} // dimensions that guards not looked at yet may fix: known only if they do not
	free := func(x reduction.Expr) bool {
		ok := true
		reduction.Walk(x, func(x reduction.Expr) {
			if n, is := x.(*reduction.Name); is && later[n.Name] {
				ok = false
			}
		})
		return ok
	}
	chosen := map[int]string{}
	for k, g := range s.Guards {
		if d := e.fixes(s, g); d != "" && !later[d] {
			later[d] = true
			chosen[k] = d
		}
	}
	// A guard may mention only dimensions that loops or earlier guards give; others are not fixed.
	for again := true; again; {
		again = false
		given := map[string]bool{}
		for k, g := range s.Guards {
			later = map[string]bool{}
			for j, d := range chosen {
				if j >= k && !given[d] {
					later[d] = true
				}
			}
			mentioned := g
			if d, ok := chosen[k]; ok {
				mentioned = other(g, d)
			}
			if !free(mentioned) {
				for j, d := range chosen { // the dimension that it needs is tried in a loop
					if j >= k && reduction.Mentions(mentioned, d) {
						delete(chosen, j)
						again = true
					}
				}
				break
			}
			if d, ok := chosen[k]; ok {
				given[d] = true
			}
		}
		if again {
			continue
		}
		if k := e.gap(s, chosen); k >= 0 {
			delete(chosen, k)
			again = true
		}
	}
	e.fixing[s] = chosen
	return chosen
}

// gap returns a guard of those chosen to fix a dimension whose bounds leave out points of the loops over the others, as 2*k = i leaves
// out the odd i, or -1. At such a point the guard's value may be an element outside of its array.
func (e *emitter) gap(s *reduction.Statement, chosen map[int]string) int {
	if len(chosen) == 0 {
		return -1
	}
	sets, err := e.pieces(s)
	if err != nil {
		return -1 // it comes where the loops are written
	}
	for _, set := range sets {
		if set, err = set.Tighten(); err != nil {
			return -1
		}
		for k := len(s.Guards) - 1; k >= 0; k-- { // in the order in which bounds of loops are found
			d, ok := chosen[k]
			if !ok {
				continue
			}
			exact := false
			if set, exact, err = set.Project(len(e.prog.Params) + slices.Index(s.Dims, d)); err != nil {
				return -1
			}
			if !exact {
				return k
			}
		}
	}
	return -1
}

// fixes returns the dimension that a guard gives an integer value that does not mention it, or "".
func (e *emitter) fixes(s *reduction.Statement, g reduction.Expr) string {
	b, ok := g.(*reduction.Binary)
	if !ok || b.Op != "==" || e.prog.TypeOf(s, b.X) != reduction.Int || e.prog.TypeOf(s, b.Y) != reduction.Int {
		return ""
	}
	for _, side := range [2][2]reduction.Expr{{b.X, b.Y}, {b.Y, b.X}} {
		if n, ok := side[0].(*reduction.Name); ok && slices.Contains(s.Dims, n.Name) && !reduction.Mentions(side[1], n.Name) {
			return n.Name
		}
	}
	return ""
}

// other is the side of an equality that is not dimension d.
func other(g reduction.Expr, d string) reduction.Expr {
	b := g.(*reduction.Binary)
	if n, ok := b.X.(*reduction.Name); ok && n.Name == d {
		return b.Y
	}
	return b.X
}

// logSumExp writes two passes over the points: the maximum of each element, then the sum of what is
// above e to the power of it.
func (e *emitter) logSumExp(name string, own []*reduction.Statement) error {
	most, sum := array(name), "s_"+name
	if err := e.each(name, func(at []coordinate) { e.line("%s = math.Inf(-1)", e.slot(most, name, at, true)) }); err != nil {
		return err
	}
	for _, s := range own {
		if err := e.points(s, func() {
			to := e.slot(most, name, coordinates(s.Index), true)
			e.line("%s = math.Max(%s, %s)", to, to, e.expression(s, s.Body, reduction.Float))
		}); err != nil {
			return err
		}
	}
	for _, s := range own {
		if err := e.points(s, func() {
			to, m := e.slot(sum, name, coordinates(s.Index), true), e.slot(most, name, coordinates(s.Index), false)
			e.line("%s += math.Exp(%s - %s)", to, e.expression(s, s.Body, reduction.Float), m)
		}); err != nil {
			return err
		}
	}
	return e.each(name, func(at []coordinate) {
		to, from := e.slot(most, name, at, true), e.slot(sum, name, at, false)
		e.line("if m := %s; !math.IsInf(m, 0) && !math.IsNaN(m) { %s = m + math.Log(%s) }", to, to, from)
	})
}

// draw writes, for each element, a loop that collects its weights.
func (e *emitter) draw(s *reduction.Statement) error {
	sets, err := e.pieces(s)
	if err != nil || len(sets) == 0 {
		return err
	}
	if len(sets) != 1 {
		return fmt.Errorf("%w: %d:%d: a draw over a domain with != cannot be written as Go; write it as a guard, such as if i != j", reduction.ErrProgram, s.Line, s.Column)
	}
	drawn := s.Dims[s.Drawn()]
	var order []string
	for _, d := range s.Dims {
		if d != drawn {
			order = append(order, d)
		}
	}
	outer, _, err := sets[0].Project(len(e.prog.Params) + s.Drawn())
	if err != nil {
		return err
	}
	zero := make(polyhedron.Row, outer.Vars+1)
	zero[len(e.prog.Params)+s.Drawn()] = 1
	outer.Zero = append(outer.Zero, zero) // one value, so that the loop is not there twice
	var fail error
	err = e.ordered(s, []*polyhedron.Set{outer}, append(order, drawn), nil, nil, true, func() {
		e.line("weights, places = weights[:0], places[:0]")
		e.line("u := math.NaN()")
		saved := e.times
		fail = e.weights(s, sets[0], order, drawn)
		e.times = saved
		if e.partial[s.Array] { // an element that has no points is not drawn
			e.line("if len(places) > 0 {")
			defer e.line("}")
		}
		e.assign(s, fmt.Sprintf("draw(weights, places, u, %v, %q)", s.Op == reduction.DrawLog, s.Array))
	})
	if err == nil {
		err = fail
	}
	return err
}

// weights writes the loop of a draw over its dimension, inside of the loops over the others.
func (e *emitter) weights(s *reduction.Statement, set *polyhedron.Set, order []string, drawn string) error {
	dims := make([]string, len(s.Dims))
	for k, d := range s.Dims {
		dims[k] = dim(d)
	}
	e.times = nil
	for _, d := range order {
		e.times = append(e.times, dim(d)) // given, like the times of loops
	}
	vars := []string{dim(drawn)}
	params := len(e.prog.Params)
	n := params + len(order) + 1
	out := &polyhedron.Set{Vars: n}
	place := func(r polyhedron.Row) polyhedron.Row {
		w := make(polyhedron.Row, n+1)
		copy(w, r[:params])
		w[n] = r[len(r)-1]
		for k, d := range s.Dims {
			at := n - 1
			if j := slices.Index(order, d); j >= 0 {
				at = params + j
			}
			w[at] += r[params+k]
		}
		return w
	}
	for _, r := range set.Zero {
		out.Zero = append(out.Zero, place(r))
	}
	for _, r := range set.Positive {
		out.Positive = append(out.Positive, place(r))
	}
	var tests []test
	for _, g := range s.Guards {
		tests = append(tests, test{condition: func() string { return e.expression(s, g, reduction.Condition) }})
	}
	return e.scan(out, vars, tests, false, func() {
		e.line("if len(weights) == 0 { u = %s }", e.expression(s, s.Uniform, reduction.Float))
		e.line("weights, places = append(weights, %s), append(places, %s)", e.expression(s, s.Body, reduction.Float), dim(drawn))
	})
}
