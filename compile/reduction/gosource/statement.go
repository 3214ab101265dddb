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
		if s.Array == name {
			own = append(own, s)
		}
	}
	op := own[0].Op
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
	case op == reduction.Multiply, op == reduction.Max, op == reduction.Min:
		if err := e.each(name, func(at string) { e.line("%s[%s] = %s", array(name), at, identity(e.prog.Array(name).Type, op)) }); err != nil {
			return err
		}
	}
	for _, s := range own {
		if err := e.points(s, func() { e.line("%s", e.update(s)) }); err != nil {
			return err
		}
	}
	return nil
}

// identity is the value of an element that no point reaches.
func identity(t reduction.Type, op reduction.Operator) string {
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
func (e *emitter) update(s *reduction.Statement) string {
	to := fmt.Sprintf("%s[%s]", array(s.Array), e.target(s))
	x := e.expression(s, s.Body, e.prog.Array(s.Array).Type)
	switch s.Op {
	case reduction.Assign:
		return to + " = " + x
	case reduction.Max:
		return fmt.Sprintf("%s = math.Max(%s, %s)", to, to, x)
	case reduction.Min:
		return fmt.Sprintf("%s = math.Min(%s, %s)", to, to, x)
	case reduction.Multiply:
		return to + " *= " + x
	}
	return to + " += " + x
}

// each writes a loop over all elements of an array at the times that are open.
func (e *emitter) each(name string, inside func(at string)) error {
	a := e.prog.Array(name)
	extents, err := e.prog.ExtentSet(a)
	if err != nil {
		return err
	}
	params := len(e.prog.Params)
	var dims, vars []string
	var index []polyhedron.Row
	at := "0"
	for k := range a.Extents {
		dims = append(dims, fmt.Sprintf("u%d", k))
		vars = append(vars, fmt.Sprintf("u%d", k))
		r := make(polyhedron.Row, params+len(a.Extents)+1)
		r[params+k] = 1
		index = append(index, r)
		if k == 0 {
			at = "u0"
		} else {
			at = fmt.Sprintf("(%s)*%s + u%d", at, extent(name, k), k)
		}
	}
	return e.scan(e.space(extents, index, name, dims, vars), vars, nil, func() { inside(at) })
}

// points writes the loops over the points of s whose guards hold, at the times that are open.
func (e *emitter) points(s *reduction.Statement, inside func()) error {
	sets, err := e.prog.Points(s)
	if err != nil {
		return err
	}
	tests, fixed := e.tests(s)
	var order []string
	for _, d := range s.Dims {
		if !slices.Contains(fixed, d) {
			order = append(order, d)
		}
	}
	order = append(order, fixed...)
	return e.ordered(s, sets, order, tests, inside)
}

// ordered writes loops over sets with the dimensions in the given order.
func (e *emitter) ordered(s *reduction.Statement, sets []*polyhedron.Set, order []string, tests []test, inside func()) error {
	index, err := e.indexRows(s)
	if err != nil {
		return err
	}
	vars := make([]string, len(order))
	for k, d := range order {
		vars[k] = dim(d)
	}
	dims := make([]string, len(s.Dims))
	for k, d := range s.Dims {
		dims[k] = dim(d)
	}
	for _, set := range sets {
		tight, err := set.Tighten()
		if err != nil {
			return err
		}
		if err := e.scan(e.space(tight, index, s.Array, dims, vars), vars, tests, inside); err != nil {
			return fmt.Errorf("%d:%d: %w", s.Line, s.Column, err)
		}
	}
	return nil
}

// tests returns the guards of s in their order. A guard x == d, where x is an integer of dimensions that
// are known when it is tested, fixes dimension d, which is then computed and not tried.
func (e *emitter) tests(s *reduction.Statement) (out []test, fixed []string) {
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
					if j >= k && mentions(mentioned, d) {
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
	}
	for k, g := range s.Guards {
		d, ok := chosen[k]
		if !ok {
			out = append(out, test{condition: e.expression(s, g, reduction.Condition)})
			continue
		}
		out = append(out, test{dim: d, value: e.expression(s, other(g, d), reduction.Int)})
		fixed = append(fixed, d)
	}
	return out, fixed
}

// fixes returns the dimension that a guard gives an integer value that does not mention it, or "".
func (e *emitter) fixes(s *reduction.Statement, g reduction.Expr) string {
	b, ok := g.(*reduction.Binary)
	if !ok || b.Op != "==" || e.prog.TypeOf(s, b.X) != reduction.Int || e.prog.TypeOf(s, b.Y) != reduction.Int {
		return ""
	}
	for _, side := range [2][2]reduction.Expr{{b.X, b.Y}, {b.Y, b.X}} {
		if n, ok := side[0].(*reduction.Name); ok && slices.Contains(s.Dims, n.Name) && !mentions(side[1], n.Name) {
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

func mentions(x reduction.Expr, name string) bool {
	found := false
	reduction.Walk(x, func(x reduction.Expr) {
		if n, ok := x.(*reduction.Name); ok && n.Name == name {
			found = true
		}
	})
	return found
}

// logSumExp writes two passes over the points: the maximum of each element, then the sum of what is
// above e to the power of it.
func (e *emitter) logSumExp(name string, own []*reduction.Statement) error {
	most, sum := array(name), "s_"+name
	if err := e.each(name, func(at string) { e.line("%s[%s] = math.Inf(-1)", most, at) }); err != nil {
		return err
	}
	for _, s := range own {
		if err := e.points(s, func() {
			e.line("%s[%s] = math.Max(%s[%s], %s)", most, e.target(s), most, e.target(s), e.expression(s, s.Body, reduction.Float))
		}); err != nil {
			return err
		}
	}
	for _, s := range own {
		if err := e.points(s, func() {
			e.line("%s[%s] += math.Exp(%s - %s[%s])", sum, e.target(s), e.expression(s, s.Body, reduction.Float), most, e.target(s))
		}); err != nil {
			return err
		}
	}
	return e.each(name, func(at string) {
		e.line("if m := %s[%s]; !math.IsInf(m, 0) && !math.IsNaN(m) { %s[%s] = m + math.Log(%s[%s]) }", most, at, most, at, sum, at)
	})
}

// draw writes, for each element, a loop that collects its weights.
func (e *emitter) draw(s *reduction.Statement) error {
	sets, err := e.prog.Points(s)
	if err != nil {
		return err
	}
	if len(sets) != 1 {
		return fmt.Errorf("%w: %d:%d: a draw over a domain with != cannot be written as Go; divide the domain", reduction.ErrProgram, s.Line, s.Column)
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
	err = e.ordered(s, []*polyhedron.Set{outer}, append(order, drawn), nil, func() {
		e.line("weights, places = weights[:0], places[:0]")
		e.line("u := math.NaN()")
		saved := e.times
		fail = e.inner(s, sets[0], order, drawn)
		e.times = saved
		e.line("%s[%s] = draw(weights, places, u, %v, %q)", array(s.Array), e.target(s), s.Op == reduction.DrawLog, s.Array)
	})
	if err == nil {
		err = fail
	}
	return err
}

// inner writes the loop of a draw over its dimension, inside of the loops over the others.
func (e *emitter) inner(s *reduction.Statement, set *polyhedron.Set, order []string, drawn string) error {
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
		tests = append(tests, test{condition: e.expression(s, g, reduction.Condition)})
	}
	return e.scan(out, vars, tests, func() {
		e.line("if len(weights) == 0 { u = %s }", e.expression(s, s.Uniform, reduction.Float))
		e.line("weights, places = append(weights, %s), append(places, %s)", e.expression(s, s.Body, reduction.Float), dim(drawn))
	})
}
