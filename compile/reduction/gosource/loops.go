package gosource

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pce-engine/pce/compile/reduction"
	"github.com/pce-engine/pce/compile/reduction/polyhedron"
)

// scan writes loops over the points of set and calls inside to write what is done at each. The variables of set
// are the parameters, the times that outer loops fix, and vars. fixed gives the expressions of variables, by
// their place in vars, that are computed and not tried; guards are tested on the way. With deep, inside writes loops itself.
func (e *emitter) scan(set *polyhedron.Set, vars []string, tests []test, deep bool, inside func()) error {
	given := len(e.prog.Params) + len(e.times)
	s, err := polyhedron.NewScan(set, given)
	if err != nil || s.Guard().Hollow() { // an empty set need not have bounds
		return err
	}
	names := append(e.given(), vars...)
	open := e.guard(names, s.Guard())
	fixed := 0
	for _, t := range tests {
		if t.dim != "" {
			fixed++
		}
	}
	next := given + len(vars) - fixed
	if open == 0 && (given < next && unit(s, given) || given == next && len(tests) > 0 && tests[0].dim != "") {
		e.line("{") // a variable comes first, and what follows this set may have one of its name
		open++
	}
	last := next - 1 // the innermost loop
	for last >= given {
		if _, _, zero := s.Bounds(last); len(zero) == 0 {
			break
		}
		last--
	}
	for v := given; v < last; v++ {
		open += e.loop(names, s, v)
	}
	body := func() {
		open := 0
		for v := last + 1; v < next; v++ {
			open += e.loop(names, s, v)
		}
		open += e.tested(names, s, next, tests)
		inside()
		e.b.WriteString(closing(open))
	}
	late, whole := map[string]bool{}, true
	for v := last + 1; v < set.Vars; v++ {
		late[names[v]] = true
		if v < next {
			whole = whole && unit(s, v)
		}
	}
	switch {
	case last < given:
		body()
	case deep || !whole:
		open += e.loop(names, s, last)
		body()
	default:
		lower, upper, _ := s.Bounds(last)
		e.innermost(names[last], bounds(names, lower, last, "max"), bounds(names, upper, last, "min"), late, len(tests) == 0, body)
	}
	e.b.WriteString(closing(open))
	return nil
}

// tested writes the guards of a statement, of which the first that fixes a dimension fixes variable next. It returns how many
// blocks it opened.
func (e *emitter) tested(names []string, s *polyhedron.Scan, next int, tests []test) (open int) {
	for _, t := range tests {
		if t.dim == "" {
			e.line("if %s {", t.condition())
			open++
			continue
		}
		e.line("%s := %s\n_ = %s", names[next], t.value(), names[next])
		open += e.within(names, s, next)
		next++
	}
	return open
}

// within opens an if for what bounds variable v, which has a value. It returns how many blocks it opened.
func (e *emitter) within(names []string, s *polyhedron.Scan, v int) int {
	lower, upper, zero := s.Bounds(v)
	return e.guard(names, &polyhedron.Set{Vars: len(names), Positive: append(slices.Clone(lower), upper...), Zero: zero})
}

// closing ends blocks.
func closing(open int) string { return strings.Repeat("}\n", open) }

// test is a guard of a statement: a condition, or the value of a dimension that it fixes.
type test struct {
	condition, value func() string // written where it is evaluated
	dim              string
}

// unit reports whether an equality gives variable v an integer at all points before it.
func unit(s *polyhedron.Scan, v int) bool {
	_, _, zero := s.Bounds(v)
	return len(zero) > 0 && (zero[0][v] == 1 || zero[0][v] == -1)
}

// given names the parameters and the times of the loops that are open.
func (e *emitter) given() []string {
	var out []string
	for _, q := range e.prog.Params {
		out = append(out, param(q.Name))
	}
	return append(out, e.times...)
}

// guard opens an if for the rows of a set; it returns how many blocks it opened.
func (e *emitter) guard(names []string, set *polyhedron.Set) int {
	var all []string
	for _, r := range set.Zero {
		all = append(all, sum(names, r, -1)+" == 0")
	}
	for _, r := range set.Positive {
		if !e.implied(r) {
			all = append(all, sum(names, r, -1)+" >= 0")
		}
	}
	if len(all) == 0 {
		return 0
	}
	e.line("if %s {", strings.Join(all, " && "))
	return 1
}

// implied reports whether the context of the program says r.
func (e *emitter) implied(r polyhedron.Row) bool {
	params := len(e.prog.Params)
	for _, c := range r[params : len(r)-1] {
		if c != 0 {
			return false
		}
	}
	return e.context.Implies(append(slices.Clone(r[:params]), r[len(r)-1]))
}

// sum writes a row without one of its variables.
func sum(names []string, r polyhedron.Row, without int) string {
	var b strings.Builder
	for v, c := range r[:len(r)-1] {
		if c == 0 || v == without {
			continue
		}
		switch {
		case c < 0:
			b.WriteString(" - ")
			c = -c
		case b.Len() > 0:
			b.WriteString(" + ")
		}
		if c != 1 {
			fmt.Fprintf(&b, "%d*", c)
		}
		b.WriteString(names[v])
	}
	switch c := r[len(r)-1]; {
	case b.Len() == 0:
		return fmt.Sprintf("int64(%d)", c)
	case c != 0:
		fmt.Fprintf(&b, " %+d", c)
	}
	return strings.TrimSpace(b.String())
}

// loop opens the loop of variable v, or computes it where an equality gives it. It returns how many blocks it
// opened.
func (e *emitter) loop(names []string, s *polyhedron.Scan, v int) int {
	lower, upper, zero := s.Bounds(v)
	if len(zero) > 0 {
		z := zero[0]
		if unit(s, v) { // what else bounds v is a guard of the variables before it
			e.line("%s := %s\n_ = %s", names[v], solved(names, z, v), names[v])
			return 0
		}
		c, value := z[v], sum(names, z, v)
		e.line("if (%s)%%%d == 0 {", value, c)
		open := 1
		e.line("%s := -(%s)/%d\n_ = %s", names[v], value, c, names[v])
		rest := &polyhedron.Set{Vars: len(z) - 1, Positive: append(slices.Clone(lower), upper...), Zero: zero[1:]}
		return open + e.guard(names, rest)
	}
	low, high := bounds(names, lower, v, "max"), bounds(names, upper, v, "min")
	last := e.fresh("last")
	e.line("for %s, %s := %s, %s; %s <= %s; %s++ {", names[v], last, low, high, names[v], last, names[v])
	return 1
}

// bounds writes the largest lower or the smallest upper bound of variable v.
func bounds(names []string, rows []polyhedron.Row, v int, which string) string {
	var all []string
	for _, r := range rows {
		value := sum(names, r, v)
		switch c := r[v]; {
		case c == 1, c == -1:
			all = append(all, solved(names, r, v))
		case c > 0: // c*v + value >= 0
			all = append(all, fmt.Sprintf("-div(%s, %d)", value, c))
		default:
			all = append(all, fmt.Sprintf("div(%s, %d)", value, -c))
		}
	}
	if len(all) == 1 {
		return all[0]
	}
	return which + "(" + strings.Join(all, ", ") + ")"
}

// solved is the value of variable v where a row is 0; its coefficient is 1 or -1.
func solved(names []string, r polyhedron.Row, v int) string {
	others := slices.Clone(r)
	for k := range others {
		others[k] *= -r[v]
	}
	return sum(names, others, v)
}

// widened puts a row of the parameters and dims into the space of the parameters, the open times, and vars.
func (e *emitter) widened(r polyhedron.Row, dims, vars []string) polyhedron.Row {
	params := len(e.prog.Params)
	n := params + len(e.times) + len(vars)
	w := make(polyhedron.Row, n+1)
	copy(w, r[:params])
	w[n] = r[len(r)-1]
	for k, d := range dims {
		w[params+len(e.times)+slices.Index(vars, d)] += r[params+k]
	}
	return w
}

// space puts a set of dims into the space of widened, at the times that are open: the time of the element that index
// names is that of the loops.
func (e *emitter) space(set *polyhedron.Set, index []polyhedron.Row, array string, dims, vars []string) *polyhedron.Set {
	params := len(e.prog.Params)
	n := params + len(e.times) + len(vars)
	out := &polyhedron.Set{Vars: n}
	for _, r := range set.Zero {
		out.Zero = append(out.Zero, e.widened(r, dims, vars))
	}
	for _, r := range set.Positive {
		out.Positive = append(out.Positive, e.widened(r, dims, vars))
	}
	for k := range e.times {
		row := e.rows[array][k]
		at := make(polyhedron.Row, params+len(dims)+1)
		copy(at, row[:params])
		at[params+len(dims)] = row[len(row)-1]
		for j, x := range index {
			for v, c := range x[params:] {
				at[params+v] += row[params+j] * c
			}
			for v, c := range x[:params] {
				at[v] += row[params+j] * c
			}
		}
		z := e.widened(at, dims, vars)
		z[params+k]--
		out.Zero = append(out.Zero, z)
	}
	return out
}

// indexRows returns the indices of s as rows.
func (e *emitter) indexRows(s *reduction.Statement) ([]polyhedron.Row, error) {
	var out []polyhedron.Row
	for k := range s.Index {
		r, err := e.prog.Row(&s.Index[k], s.Dims)
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}
