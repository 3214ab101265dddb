package simplify

import (
	"fmt"
	"math/big"
	"slices"
	"sort"

	"github.com/pce-engine/pce/compile/reduction"
	"github.com/pce-engine/pce/compile/reduction/polyhedron"
)

// decompose divides sums over several dimensions: what depends on one of them is added up first, into an array of its
// own, and the rest of the body, which does not depend on it, multiplies the result. Guards are factors of 0 and 1. So
//
//	n[i,k,a] += 1 : {..., d, w} if doc[w] == d and y[d] == k and word[w] == a
//
// becomes the counts c[d,a] of the w with doc[w] == d and word[w] == a, and n[i,k,a] += c[d,a] if y[d] == k.
func (w *worker) decompose() error {
	for {
		if err := w.settle(); err != nil {
			return err
		}
		w.lacks = nil
		changed := false
		var statements []*reduction.Statement
		for _, s := range w.prog.Statements {
			first, rest, err := w.divide(s)
			if err != nil {
				return err
			}
			if first != nil {
				changed = true
				if w.name(first, rest) {
					statements = append(statements, first)
				}
				s = rest
			}
			statements = append(statements, s)
		}
		if !changed {
			return nil
		}
		w.prog.Statements = statements
		w.prog.Arrays = append(w.prog.Arrays, w.added...)
		w.added, w.inner = nil, nil
		if err := w.reparse(); err != nil { // what is left may be divided again
			return err
		}
	}
}

// settle notes the degrees of the statements that later passes leave as they are: = and draws.
func (w *worker) settle() error {
	w.settled = nil
	for _, s := range w.prog.Statements {
		if s.Op != reduction.Assign && !s.Op.Draws() {
			continue
		}
		d, _, err := w.points(true, s)
		if err != nil {
			return err
		}
		w.settled = append(w.settled, d...)
	}
	return nil
}

// divide returns two statements that do what s does with less work, or nil. The first one's array is not
// declared yet.
func (w *worker) divide(s *reduction.Statement) (first, rest *reduction.Statement, err error) {
	if s.Op != reduction.Add {
		return nil, nil, nil
	}
	sets, err := w.prog.Points(s)
	if err != nil || len(sets) != 1 {
		return nil, nil, err
	}
	for d := range s.Dims {
		for _, gather := range []bool{false, true} {
			candidate := s
			set := sets[0]
			if gather {
				if candidate = w.gather(s, d); candidate == nil {
					continue
				}
				if sets, err := w.prog.Points(candidate); err != nil || len(sets) != 1 {
					return nil, nil, err
				} else {
					set = sets[0]
				}
			}
			first, rest = w.divideAt(candidate, set, d)
			if first == nil {
				continue
			}
			better, err := w.better(s, first, rest, gather)
			if err != nil {
				return nil, nil, err
			}
			if better && w.fits(w.inner.extents) && (!gather || w.valid(s, candidate)) {
				w.report.Steps = append(w.report.Steps, Step{Kind: Decompose, Array: s.Array, Statement: s.String(),
					Text: fmt.Sprintf("%s: what depends on %s is added up first", s.Array, s.Dims[d])})
				return first, rest, nil
			}
		}
	}
	return nil, nil, nil
}

// valid reports whether the program may have another statement in the place of s. One with a dimension for the values of data reads
// its factors at all of them, also where guards of s leave some out.
func (w *worker) valid(s, other *reduction.Statement) bool {
	p := *w.prog
	p.Statements = slices.Clone(p.Statements)
	p.Statements[slices.Index(p.Statements, s)] = other
	_, err := reduction.Parse(p.String())
	return err == nil
}

// divideAt divides s at dimension d: the first statement sums over d alone what mentions it. It returns nil where the
// domain is not a product in d, every other dimension is mentioned with it, or one of these has no range of its own.
func (w *worker) divideAt(s *reduction.Statement, set *polyhedron.Set, d int) (first, rest *reduction.Statement) {
	name := s.Dims[d]
	for k := range s.Index {
		for _, t := range s.Index[k].Terms {
			if t.Name == name {
				return nil, nil
			}
		}
	}
	params := len(w.prog.Params)
	if !separate(set, params, d) {
		return nil, nil
	}
	var inner, outer []reduction.Expr // factors, then guards
	for _, f := range factors(s.Body) {
		if reduction.Mentions(f, name) {
			inner = append(inner, f)
		} else {
			outer = append(outer, f)
		}
	}
	first = &reduction.Statement{Pos: s.Pos, Op: reduction.Add, Body: product(inner, s.Pos)}
	rest = &reduction.Statement{Pos: s.Pos, Array: s.Array, Index: s.Index, Op: s.Op, Dims: slices.Delete(slices.Clone(s.Dims), d, d+1)}
	before := 0 // guards of rest that come before all of first
	for _, g := range s.Guards {
		if reduction.Mentions(g, name) {
			first.Guards = append(first.Guards, g)
			continue
		}
		if rest.Guards = append(rest.Guards, g); len(first.Guards) == 0 {
			before++
		}
	}
	// A half is evaluated at points that only a guard of the other one keeps out.
	if len(rest.Guards) > 0 && w.daring(s, append(slices.Clone(inner), first.Guards...)...) ||
		len(first.Guards) > 0 && w.daring(s, append(slices.Clone(outer), rest.Guards...)...) {
		return nil, nil
	}
	read := &reduction.Read{Pos: s.Pos}
	var extents []reduction.Affine
	all := true
	domain := set // where first is evaluated: the dimensions that it lacks are projected out
	for k, other := range s.Dims {
		used := slices.ContainsFunc(append(slices.Clone(inner), first.Guards...), func(e reduction.Expr) bool { return reduction.Mentions(e, other) })
		all = all && (used || k == d)
		if k != d && !used {
			var exact bool
			var err error
			if domain, exact, err = domain.Project(params + k); err != nil || !exact {
				return nil, nil
			}
			continue
		}
		if k != d {
			high, ok := w.extent(set, params+k)
			if !ok {
				return nil, nil
			}
			extents = append(extents, w.widened(w.names(s.Dims).affine(extentOf(high, params+k), params)))
			first.Index = append(first.Index, reduction.Affine{Terms: []reduction.Term{{Name: other, Coefficient: 1}}})
			read.Index = append(read.Index, &reduction.Name{Name: other})
		}
		first.Dims = append(first.Dims, other)
	}
	if all {
		return nil, nil
	}
	domain, err := domain.Tighten()
	if err != nil {
		return nil, nil
	}
	first.Domain = w.chains(domain, s.Dims)
	outerSet, _, err := set.Project(params + d) // without sizes at which d has no values: there s looks at nothing
	if err != nil {
		return nil, nil
	}
	rest.Domain = w.chains(without(outerSet, params+d), rest.Dims)
	rest.Body = product(append(outer, read), s.Pos)
	if len(first.Guards) > 0 {
		nonzero := &reduction.Binary{Pos: s.Pos, Op: "!=", X: read, Y: &reduction.Number{Pos: s.Pos, Integer: true}}
		later := rest.Guards[before:]
		switch {
		case w.lacking(later...) && w.lacking(append(slices.Clone(inner), first.Guards...)...): // each half keeps the other from what is not there
			return nil, nil
		case w.lacking(later...):
			rest.Guards = slices.Insert(rest.Guards, before, reduction.Expr(nonzero))
		case w.lacking(outer...) || slices.ContainsFunc(outer, func(e reduction.Expr) bool { return !w.finite(s, e) }):
			rest.Guards = append(rest.Guards, nonzero)
		}
	}
	w.inner = &innerArray{read: read, extents: extents, kind: w.prog.TypeOf(s, product(inner, s.Pos))}
	return first, rest
}

// finite reports whether an expression of s is of dimensions, written numbers, counts, and inputs of integers alone. Others, such as the
// log of a probability, may be infinite at points that no guard lets through, where 0 times their value would be NaN.
func (w *worker) finite(s *reduction.Statement, e reduction.Expr) bool {
	ok := true
	reduction.Walk(e, func(e reduction.Expr) {
		switch e := e.(type) {
		case *reduction.Call:
			ok = false
		case *reduction.Binary:
			ok = ok && e.Op != "/"
		case *reduction.Name:
			ok = ok && w.prog.TypeOf(s, e) == reduction.Int
		case *reduction.Read:
			a := w.prog.Array(e.Array)
			ok = ok && a.Type == reduction.Int && (a.Input || w.first(a).Op == reduction.Add)
		}
	})
	return ok
}

// innerArray is the array of a sum that divideAt has made, before it has a name.
type innerArray struct {
	read    *reduction.Read
	extents []reduction.Affine
	kind    reduction.Type
}

// name names the array of first, and reports whether first is needed: not if an earlier statement is the same.
func (w *worker) name(first, rest *reduction.Statement) bool {
	inner := w.inner
	first.Array = "*"
	text := inner.kind.String() + canonical(first) // sums of other types are other arrays
	if name, ok := w.sums[text]; ok {
		inner.read.Array = name
		return false
	}
	name := w.unused(rest.Array)
	w.sums[text] = name
	w.added = append(w.added, &reduction.Array{Name: name, Type: inner.kind, Extents: inner.extents})
	first.Array, inner.read.Array = name, name
	return true
}

// canonical writes a statement with its dimensions numbered, so that equal sums have equal texts.
func canonical(s *reduction.Statement) string {
	number := map[string]string{}
	for k, d := range s.Dims {
		number[d] = fmt.Sprintf("#%d", k)
	}
	c := *s
	c.Dims = nil
	for _, d := range s.Dims {
		c.Dims = append(c.Dims, number[d])
	}
	affine := func(a reduction.Affine) reduction.Affine {
		a.Terms = slices.Clone(a.Terms)
		for k, t := range a.Terms {
			if n, ok := number[t.Name]; ok {
				a.Terms[k].Name = n
			}
		}
		return a
	}
	c.Index = nil
	for _, a := range s.Index {
		c.Index = append(c.Index, affine(a))
	}
	c.Domain = nil
	for _, chain := range s.Domain {
		var terms []reduction.Affine
		for _, a := range chain.Terms {
			terms = append(terms, affine(a))
		}
		c.Domain = append(c.Domain, reduction.Chain{Terms: terms, Relations: chain.Relations})
	}
	return rewrite(&c, func(e reduction.Expr) reduction.Expr {
		return transform(e, func(e reduction.Expr) reduction.Expr {
			if n, ok := e.(*reduction.Name); ok && number[n.Name] != "" {
				n := *n
				n.Name = number[n.Name]
				return &n
			}
			return e
		})
	}).String()
}

// better reports whether the two statements have less to do than s. Guards are not counted, but at the program's
// sizes, if it has them, counting guards once has to give less too. What a gather makes has to be less with guards counted
// once, but for what statements that stay as they are have to do anyway.
func (w *worker) better(s, first, rest *reduction.Statement, gather bool) (bool, error) {
	before, pointsBefore, err := w.points(gather, s)
	if err != nil {
		return false, err
	}
	after, pointsAfter, err := w.points(gather, first, rest)
	if err != nil {
		return false, err
	}
	allowed := before
	if gather {
		allowed = append(slices.Clone(before), w.settled...)
	}
	if !dominated(after, allowed) || dominated(before, after) {
		return false, nil
	}
	return pointsBefore == nil || pointsAfter.Cmp(pointsBefore) < 0, nil
}

// maxElements bounds an array that a step adds, at the program's sizes.
const maxElements = 1 << 27

// fits reports whether an array has at most maxElements at the program's sizes, where they are given.
func (w *worker) fits(extents []reduction.Affine) bool {
	total := big.NewInt(1)
	for _, a := range extents {
		n := big.NewInt(a.Constant)
		for _, t := range a.Terms {
			size, ok := w.prog.Sizes[t.Name]
			if !ok {
				return true
			}
			n.Add(n, new(big.Int).Mul(big.NewInt(t.Coefficient), big.NewInt(size)))
		}
		total.Mul(total, n)
	}
	return total.Cmp(big.NewInt(maxElements)) <= 0
}

// points returns what statements grow with, and about how many points they have at the program's sizes with
// guards counted once, or nil if a size is not given.
func (w *worker) points(guardsOnce bool, list ...*reduction.Statement) (degree []polyhedron.Monomial, points *big.Int, err error) {
	points = new(big.Int)
	var sizes []int64
	for _, q := range w.prog.Params {
		n, ok := w.prog.Sizes[q.Name]
		if !ok {
			points = nil
		}
		sizes = append(sizes, n)
	}
	for _, s := range list {
		counts, err := w.prog.Counts(s, guardsOnce)
		if err != nil {
			return nil, nil, err
		}
		for _, c := range counts {
			d, err := c.Degree()
			if err != nil {
				return nil, nil, err
			}
			degree = append(degree, d...)
		}
		if counts, err = w.prog.Counts(s, true); err != nil {
			return nil, nil, err
		}
		for _, c := range counts {
			if points != nil {
				points.Add(points, c.Eval(sizes))
			}
		}
	}
	return degree, points, nil
}

// gather makes the data that s is read by at dimension d a dimension of its own: a factor t[c,h[w]] becomes t[c,b]
// with a guard h[w] == b, for the one int array h with a range from 0 that the body reads at d. It returns nil where there is
// none.
func (w *worker) gather(s *reduction.Statement, d int) *reduction.Statement {
	var key reduction.Expr // h[w]
	var array *reduction.Array
	reduction.Walk(s.Body, func(e reduction.Expr) {
		r, ok := e.(*reduction.Read)
		if !ok {
			return
		}
		for _, x := range r.Index {
			h, ok := x.(*reduction.Read)
			if !ok || !reduction.Mentions(h, s.Dims[d]) {
				continue
			}
			if a := w.prog.Array(h.Array); key == nil && a.Type == reduction.Int && a.Range != nil && len(a.Range.Low.Terms) == 0 && a.Range.Low.Constant == 0 {
				key, array = h, a
			}
		}
	})
	if key == nil || len(s.Dims) >= reduction.MaxDims {
		return nil
	}
	bin := "b"
	for w.reserved(bin) {
		bin += "b"
	}
	text := reduction.Text(key)
	c := *s
	c.Dims = append(slices.Clone(s.Dims), bin)
	c.Body = transform(s.Body, func(e reduction.Expr) reduction.Expr {
		if reduction.Text(e) == text {
			return &reduction.Name{Name: bin}
		}
		return e
	})
	zero, high := reduction.Affine{}, array.Range.High
	c.Domain = append(slices.Clone(s.Domain), reduction.Chain{
		Terms:     []reduction.Affine{zero, {Terms: []reduction.Term{{Name: bin, Coefficient: 1}}}, high},
		Relations: []reduction.Relation{reduction.LessEqual, reduction.Less},
	})
	c.Guards = append(slices.Clone(s.Guards), &reduction.Binary{Op: "==", X: key, Y: &reduction.Name{Name: bin}})
	return &c
}

// separate reports whether no row of a set has dimension d and another one.
func separate(set *polyhedron.Set, params, d int) bool {
	for _, rows := range [][]polyhedron.Row{set.Zero, set.Positive} {
		for _, r := range rows {
			if r[params+d] == 0 {
				continue
			}
			for v := params; v < set.Vars; v++ {
				if v != params+d && r[v] != 0 {
					return false
				}
			}
		}
	}
	return true
}

// extent returns a row that says v < an extent of parameters, which holds on the set, where 0 <= v does too.
func (w *worker) extent(set *polyhedron.Set, v int) (high polyhedron.Row, ok bool) {
	params := len(w.prog.Params)
	own := make(polyhedron.Row, set.Vars+1)
	own[v] = 1
	values, _, err := set.Image([]polyhedron.Row{own}, params)
	if err != nil || len(values.Zero) > 0 || !set.Implies(own) {
		return nil, false
	}
	for _, r := range values.Positive {
		if r[params] == -1 {
			high = make(polyhedron.Row, set.Vars+1)
			copy(high, r[:params])
			high[v], high[set.Vars] = -1, r[params+1]
			return high, true
		}
	}
	return nil, false
}

// mostWidened bounds by how much an extent grows so that it is not below 0.
const mostWidened = 1 << 20

// widened returns an extent that is at least 0 wherever those of the program's arrays are: of points that are fewer than the elements of an
// array by some, such as N-1, an extent of their own would refuse the sizes at which both are empty. Where no number is enough to add,
// as for N-M, it is the extent of an array that is not below it.
func (w *worker) widened(extent reduction.Affine) reduction.Affine {
	own, err := w.prog.Row(&extent, nil)
	if err != nil {
		return extent
	}
	sizes := w.context.Clone()
	var others []reduction.Affine
	for _, a := range w.prog.Arrays {
		for k := range a.Extents {
			if r, err := w.prog.Row(&a.Extents[k], nil); err == nil {
				sizes.Positive, others = append(sizes.Positive, r), append(others, a.Extents[k])
			}
		}
	}
	enough := func(more int) bool {
		r := slices.Clone(own)
		r[len(r)-1] += int64(more)
		return sizes.Implies(r)
	}
	if enough(0) {
		return extent
	}
	if enough(mostWidened) {
		extent.Constant += int64(sort.Search(mostWidened, enough))
		return extent
	}
	for _, other := range others {
		r, err := w.prog.Row(&other, nil)
		if err != nil {
			continue
		}
		for k, c := range own {
			r[k] -= c
		}
		if sizes.Implies(r) {
			return other
		}
	}
	return extent
}

// extentOf is the extent that a row v < extent gives.
func extentOf(r polyhedron.Row, v int) polyhedron.Row { return rest(r, v, 1, 1) }

// factors divides a body into what is multiplied.
func factors(e reduction.Expr) []reduction.Expr {
	if b, ok := e.(*reduction.Binary); ok && b.Op == "*" {
		return append(factors(b.X), factors(b.Y)...)
	}
	return []reduction.Expr{e}
}

// product multiplies; nothing gives 1.
func product(list []reduction.Expr, at reduction.Pos) reduction.Expr {
	if len(list) == 0 {
		return &reduction.Number{Pos: at, Integer: true, I: 1}
	}
	out := list[0]
	for _, e := range list[1:] {
		if n, ok := out.(*reduction.Number); ok && n.Integer && n.I == 1 {
			out = e
			continue
		}
		out = &reduction.Binary{Pos: at, Op: "*", X: out, Y: e}
	}
	return out
}
