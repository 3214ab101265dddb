package simplify

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pce-engine/pce/compile/reduction"
	"github.com/pce-engine/pce/compile/reduction/polyhedron"
)

// running lets sums over the index of an array run with the array, so that it is kept in place. In
//
//	s[i] += s[i+1]     : {[i] : 0 <= i < N-1}
//	s[i] += x[i]       : {[i] : 0 <= i < N}
//	g[]  += y[i]/s[i]  : {[i] : 0 <= i < N}
//
// the element of g is computed at one time and needs all N elements of s. As
//
//	g_1[i] += g_1[i+1]  : {[i] : 0 <= i < N-1}
//	g_1[i] += y[i]/s[i] : {[i] : 0 <= i < N}
//	g[]    += g_1[i]    : {[i] : i = 0}
//
// both arrays are kept in place. Nothing changes if some array of a sum would not be.
func (w *worker) running() error {
	other, err := w.clone()
	if err != nil {
		return err
	}
	var wanted []string
	for _, a := range other.prog.Arrays {
		if s := other.first(a); a.Fold == nil && s != nil && reduction.CarryOf(s) != nil && !slices.Contains(other.prog.Outputs, a.Name) {
			if found, _, err := other.prog.Restarts(a, reduction.CarryOf(s)); err != nil || found {
				if err != nil {
					return err
				}
				continue
			}
			wanted = append(wanted, a.Name)
		}
	}
	var statements []*reduction.Statement
	steps := len(other.report.Steps)
	for _, s := range other.prog.Statements {
		run, err := other.runWith(s, wanted)
		if err != nil {
			return err
		}
		if run == nil {
			run = []*reduction.Statement{s}
		}
		statements = append(statements, run...)
	}
	if len(other.report.Steps) == steps {
		return nil
	}
	for _, a := range other.added {
		wanted = append(wanted, a.Name)
	}
	other.prog.Statements = statements
	other.prog.Arrays = append(other.prog.Arrays, other.added...)
	other.added = nil
	if err := other.reparse(); err != nil {
		return err
	}
	if err := other.fold(); err != nil {
		return err
	}
	for _, name := range wanted {
		if other.prog.Array(name).Fold == nil {
			return nil
		}
	}
	other.report.Refused = slices.DeleteFunc(other.report.Refused, func(r Refusal) bool {
		return slices.Contains(wanted, r.Array) && strings.HasPrefix(r.Reason, notInPlace)
	})
	w.take(other)
	return nil
}

// runWith returns the statements that take the place of s if it is a sum over the index along which one of the arrays that it
// reads could be kept in place, and nil for others.
func (w *worker) runWith(s *reduction.Statement, wanted []string) ([]*reduction.Statement, error) {
	if s.Op == reduction.Assign || s.Op == reduction.LogSumExp || s.Op.Draws() || w.prog.Array(s.Array).Fold != nil {
		return nil, nil
	}
	for k := range s.Index {
		if ownDimension(s, k) < 0 {
			return nil, nil
		}
	}
	d, along, from := -1, (*reduction.Fold)(nil), (*reduction.Array)(nil)
	for _, e := range s.Expressions() {
		reduction.Walk(e, func(e reduction.Expr) {
			r, ok := e.(*reduction.Read)
			if !ok || d >= 0 || !slices.Contains(wanted, r.Array) || r.Array == s.Array {
				return
			}
			a := w.prog.Array(r.Array)
			f := reduction.CarryOf(w.first(a))
			if n, ok := r.Index[f.Index].(*reduction.Name); ok && !slices.ContainsFunc(s.Index, func(x reduction.Affine) bool { return x.Terms[0].Name == n.Name }) {
				d, along, from = slices.Index(s.Dims, n.Name), f, a
			}
		})
	}
	sets, err := w.prog.Points(s)
	if err != nil || d < 0 || len(sets) != 1 {
		return nil, err
	}
	return w.run(s, sets[0], d, along, from.Extents[along.Index])
}

// run makes sum s, whose points are set, run along its dimension d. It returns nil if the ends of d are not the same for all
// other dimensions.
func (w *worker) run(s *reduction.Statement, set *polyhedron.Set, d int, along *reduction.Fold, extent reduction.Affine) ([]*reduction.Statement, error) {
	set, err := set.Tighten()
	if err != nil {
		return nil, err
	}
	params := len(w.prog.Params)
	index, err := w.index(s)
	if err != nil {
		return nil, err
	}
	own := make(polyhedron.Row, set.Vars+1)
	own[params+d] = 1
	elements, exact, err := set.Image(append([]polyhedron.Row{own}, index...), params)
	if err != nil || !exact {
		return nil, err
	}
	if elements, err = elements.Tighten(); err != nil {
		return nil, err
	}
	first, last := w.firstAndLast(elements, along.Step)
	if first == nil || last == nil {
		return nil, nil
	}
	dims := []string{s.Dims[d]}
	for k := range s.Index {
		dims = append(dims, s.Index[k].Terms[0].Name)
	}
	at := make([]reduction.Affine, len(dims))
	for k, name := range dims {
		at[k] = reduction.Affine{Terms: []reduction.Term{{Name: name, Coefficient: 1}}}
	}
	array := w.prog.Array(s.Array)
	name := w.unused(s.Array)
	w.added = append(w.added, &reduction.Array{Name: name, Type: array.Type, Extents: append([]reduction.Affine{extent}, array.Extents...)})
	read := func(step int64) *reduction.Read {
		r := &reduction.Read{Pos: s.Pos, Array: name}
		for k, n := range dims {
			var x reduction.Expr = &reduction.Name{Pos: s.Pos, Name: n}
			if k == 0 && step > 0 {
				x = &reduction.Binary{Pos: s.Pos, Op: "-", X: x, Y: &reduction.Number{Pos: s.Pos, Integer: true, I: step}}
			} else if k == 0 && step < 0 {
				x = &reduction.Binary{Pos: s.Pos, Op: "+", X: x, Y: &reduction.Number{Pos: s.Pos, Integer: true, I: -step}}
			}
			r.Index = append(r.Index, x)
		}
		return r
	}
	others := elements.Clone()
	beyond := slices.Clone(first)
	beyond[len(beyond)-1]--
	others.Positive = append(others.Positive, beyond)
	if others, err = others.Tighten(); err != nil {
		return nil, err
	}
	ended := elements.Clone()
	ended.Zero = append(ended.Zero, last)
	sum, carry, end := *s, *s, *s
	sum.Array, sum.Index = name, at
	carry.Array, carry.Index, carry.Dims, carry.Guards, carry.Body, carry.Domain = name, at, dims, nil, read(along.Step), w.chains(others, dims)
	if ended, err = ended.Tighten(); err != nil {
		return nil, err
	}
	end.Dims, end.Guards, end.Body, end.Domain = dims, nil, read(0), w.chains(ended, dims)
	w.report.Steps = append(w.report.Steps, Step{Kind: Running, Array: s.Array, Statement: s.String(),
		Text: fmt.Sprintf("%s is added up in %s as %s goes %v", s.Array, name, dims[0], along)})
	return []*reduction.Statement{&carry, &sum, &end}, nil
}

// firstAndLast returns the rows that are 0 where the first index of a set is at its first and at its last value, in the order of step,
// and positive elsewhere. They are nil if these values depend on other indices, or if the set may be empty along the index.
func (w *worker) firstAndLast(set *polyhedron.Set, step int64) (first, last polyhedron.Row) {
	params := len(w.prog.Params)
	if slices.ContainsFunc(set.Zero, func(r polyhedron.Row) bool { return r[params] != 0 }) {
		return nil, nil
	}
	var low, high polyhedron.Row
	for _, r := range set.Positive {
		switch {
		case r[params] == 0:
			continue
		case slices.ContainsFunc(r[params+1:len(r)-1], func(c int64) bool { return c != 0 }):
			return nil, nil
		case r[params] == 1 && low == nil:
			low = r
		case r[params] == -1 && high == nil:
			high = r
		default:
			return nil, nil
		}
	}
	if low == nil || high == nil {
		return nil, nil
	}
	some := make(polyhedron.Row, params+1) // high less low
	for v := range params {
		some[v] = low[v] + high[v]
	}
	some[params] = low[len(low)-1] + high[len(high)-1]
	if !w.context.Implies(some) {
		return nil, nil
	}
	if step > 0 {
		return low, high
	}
	return high, low
}
