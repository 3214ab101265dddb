package simplify

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pce-engine/pce/compile/reduction"
	"github.com/pce-engine/pce/compile/reduction/polyhedron"
	"github.com/pce-engine/pce/compile/reduction/schedule"
)

// sum is a reduction over one convex set.
type sum struct {
	stmt  *reduction.Statement // operator, body, dimensions and guards
	array string               // that it writes
	root  string               // the array of the program whose element has the time of this one's
	set   *polyhedron.Set      // without redundant rows
	index []polyhedron.Row
	text  string // of the program's statement; empty for what a step leaves
	key   string // of the convex part of the program's statement; empty for what a step leaves
}

// reuseSums simplifies every reduction of the program.
func (w *worker) reuseSums() (err error) {
	if w.all, err = w.reuse(); err != nil {
		return err
	}
	if w.deps, err = schedule.Dependences(w.prog); err != nil {
		return err
	}
	w.recursive = schedule.Recursive(w.deps)
	if w.times, err = w.anyOrder(w.deps); err != nil && !errors.Is(err, schedule.ErrCycle) {
		return err
	}
	if err != nil {
		w.times = nil
	}
	w.moved = map[string]moved{}
	sums := map[string]int{} // convex parts of the reductions of an array
	parts := make([][]*sum, len(w.prog.Statements))
	for k, s := range w.prog.Statements {
		if s.Op == reduction.Assign || s.Op.Draws() {
			continue
		}
		sets, err := w.prog.Points(s)
		if err != nil {
			return err
		}
		index, err := w.index(s)
		if err != nil {
			return err
		}
		for _, set := range sets {
			tight, err := set.Tighten()
			if err != nil {
				return err
			}
			part := &sum{stmt: s, array: s.Array, root: s.Array, set: tight, index: index, text: s.String()}
			part.key = w.statement(part).String()
			parts[k] = append(parts[k], part)
			sums[s.Array]++
		}
	}
	var statements []*reduction.Statement
	for k, s := range w.prog.Statements {
		done := len(w.report.Steps)
		var new []*reduction.Statement
		for _, part := range parts[k] {
			out, err := w.sum(part, sums[s.Array] == 1, 0)
			if err != nil {
				return err
			}
			new = append(new, out...)
		}
		if len(w.report.Steps) == done { // as it was, without its domain divided
			new = []*reduction.Statement{s}
		}
		statements = append(statements, new...)
	}
	w.prog.Statements = statements
	w.prog.Arrays = append(w.prog.Arrays, w.added...)
	w.added = nil
	return w.reparse()
}

// sum returns the statements that take the place of s. alone says that no other statement writes its array.
// depth counts the faces that s is on already.
func (w *worker) sum(s *sum, alone bool, depth int) ([]*reduction.Statement, error) {
	same := []*reduction.Statement{w.statement(s)}
	if s.set.Hollow() {
		return same, nil
	}
	m, err := w.best(s, depth)
	if err != nil || m == nil {
		return same, err
	}
	var out []*reduction.Statement
	if !alone {
		own := w.newArray(s)
		copied, err := w.copyInto(s, own)
		if err != nil {
			return nil, err
		}
		out = append(out, copied)
		part := *s
		part.array = own
		s = &part
	}
	w.report.Steps = append(w.report.Steps, Step{Kind: Reuse, Array: s.array, Statement: w.source(s),
		Face: w.face(s.set, s.stmt.Dims), Vector: m.r, Subtracts: len(m.less) > 0, Text: w.describe(s, m)})
	if s.key != "" {
		w.moved[s.array] = moved{s.key, m.ru, w.counts(s.stmt.Body)}
	}
	out = append(out, w.neighbour(s, m))
	for _, piece := range m.more {
		more, err := w.sum(&sum{stmt: s.stmt, array: s.array, root: s.root, set: piece, index: s.index}, false, depth+1)
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	negated := *s.stmt
	negated.Body = &reduction.Negate{Pos: s.stmt.Body.Position(), X: s.stmt.Body}
	for _, piece := range m.less {
		less, err := w.sum(&sum{stmt: &negated, array: s.array, root: s.root, set: piece, index: m.lessIndex}, false, depth+1)
		if err != nil {
			return nil, err
		}
		out = append(out, less...)
	}
	return out, nil
}

// source is the statement that a report names.
func (w *worker) source(s *sum) string {
	if s.text != "" {
		return s.text
	}
	return w.statement(s).String()
}

// statement writes a sum as a statement.
func (w *worker) statement(s *sum) *reduction.Statement {
	c := *s.stmt
	c.Array = s.array
	n := w.names(c.Dims)
	c.Index = nil
	for _, r := range s.index {
		c.Index = append(c.Index, n.affine(r, len(w.prog.Params)))
	}
	c.Domain = w.chains(s.set, c.Dims)
	return &c
}

// describe says what a step does.
func (w *worker) describe(s *sum, m *move) string {
	n := w.names(m.dims)
	var from []string
	for k := range m.dims {
		r := make(polyhedron.Row, len(n)+1)
		r[len(w.prog.Params)+k], r[len(n)] = 1, -m.ru[k]
		a := n.affine(r, len(w.prog.Params))
		from = append(from, a.String())
	}
	text := fmt.Sprintf("%s from %s[%s], along %s", s.array, s.array, strings.Join(from, ","), vectorText(m.r))
	if len(m.less) > 0 {
		text += ", with subtraction"
	}
	if f := w.face(s.set, s.stmt.Dims); f != "" {
		text += ", on " + f
	}
	return text
}

// newArray declares an array like that of s for a part of its sum.
func (w *worker) newArray(s *sum) string {
	a := w.prog.Array(s.root)
	name := w.unused(s.root)
	w.added = append(w.added, &reduction.Array{Name: name, Type: a.Type, Extents: a.Extents})
	if made := w.bins[s.root]; made != nil {
		w.bins[name] = made
	}
	return name
}

// unused returns a name for a part of an array.
func (w *worker) unused(array string) string {
	for k := 1; ; k++ {
		name := fmt.Sprintf("%s_%d", array, k)
		taken := func(b *reduction.Array) bool { return b.Name == name }
		if !w.reserved(name) && !slices.ContainsFunc(w.added, taken) {
			return name
		}
	}
}

// reserved reports whether the program has the name.
func (w *worker) reserved(name string) bool {
	if w.prog.Array(name) != nil {
		return true
	}
	for _, q := range w.prog.Params {
		if q.Name == name {
			return true
		}
	}
	for _, s := range w.prog.Statements {
		if slices.Contains(s.Dims, name) {
			return true
		}
	}
	return false
}

// copyInto adds the elements of array own to those of the array of s.
func (w *worker) copyInto(s *sum, own string) (*reduction.Statement, error) {
	u, _, err := s.set.Image(s.index, len(w.prog.Params))
	if err != nil {
		return nil, err
	}
	dims := w.indexNames(s)
	c := &reduction.Statement{Pos: s.stmt.Pos, Array: s.array, Op: s.stmt.Op, Dims: dims, Domain: w.chains(u, dims)}
	read := &reduction.Read{Pos: s.stmt.Pos, Array: own}
	for _, d := range dims {
		c.Index = append(c.Index, reduction.Affine{Terms: []reduction.Term{{Name: d, Coefficient: 1}}})
		read.Index = append(read.Index, &reduction.Name{Name: d})
	}
	c.Body = read
	return c, nil
}

// neighbour adds to each element the one that the move takes it from.
func (w *worker) neighbour(s *sum, m *move) *reduction.Statement {
	c := &reduction.Statement{Pos: s.stmt.Pos, Array: s.array, Op: s.stmt.Op, Dims: m.dims, Domain: w.chains(m.common, m.dims)}
	read := &reduction.Read{Pos: s.stmt.Pos, Array: s.array}
	for k, d := range m.dims {
		c.Index = append(c.Index, reduction.Affine{Terms: []reduction.Term{{Name: d, Coefficient: 1}}})
		var x reduction.Expr = &reduction.Name{Name: d}
		switch r := m.ru[k]; {
		case r > 0:
			x = &reduction.Binary{Op: "-", X: x, Y: &reduction.Number{Integer: true, I: r}}
		case r < 0:
			x = &reduction.Binary{Op: "+", X: x, Y: &reduction.Number{Integer: true, I: -r}}
		}
		read.Index = append(read.Index, x)
	}
	c.Body = read
	return c
}

// indexNames names the indices of an array as dimensions: the dimension of s that an index is, else u1, u2 and so on.
func (w *worker) indexNames(s *sum) []string {
	params := len(w.prog.Params)
	var out []string
	for k, r := range s.index {
		name := ""
		if v := last(r); v >= params && r[v] == 1 {
			alone := r[len(r)-1] == 0
			for x, c := range r[:len(r)-1] {
				alone = alone && (c == 0 || x == v)
			}
			if alone {
				name = s.stmt.Dims[v-params]
			}
		}
		for n := k + 1; name == "" || slices.Contains(out, name); n++ {
			if name = fmt.Sprintf("u%d", n); w.prog.Array(name) != nil || slices.ContainsFunc(w.prog.Params, func(q reduction.Param) bool { return q.Name == name }) {
				name = ""
			}
		}
		out = append(out, name)
	}
	return out
}
