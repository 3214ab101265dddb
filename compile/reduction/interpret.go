package reduction

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/pce-engine/pce/compile/reduction/polyhedron"
)

// Options says how a program is interpreted.
type Options struct {
	// Sizes are the values of the parameters; those that are left out are the
	// program's own.
	Sizes map[string]int64
	// Inputs are the program's inputs by name.
	Inputs map[string]*Tensor
	// MaxMemory bounds the bytes of arrays; 0: 1 GiB.
	MaxMemory int64
}

// DefaultMaxMemory bounds the arrays of a program that is interpreted.
const DefaultMaxMemory = 1 << 30

// Outcome is what interpreting a program gives.
type Outcome struct {
	Outputs map[string]*Tensor
	// Points is how often each statement was evaluated, guards included, in the
	// order of Program.Statements. Elements that no output needs are not computed. What keeping an array in place
	// makes needless (Fold) does not count.
	Points []int64
}

// Interpret computes the outputs of p. It starts from their elements and evaluates
// the points that write them, then what these points read, each element once; so
// it needs no order of statements, and reports elements that need themselves. Each
// element that is read has to be within its array, and an element of an = array
// has to be written, by one point.
func Interpret(ctx context.Context, p *Program, o Options) (*Outcome, error) {
	m := &machine{prog: p, ctx: ctx, sizes: p.DefaultSizes(), points: make([]int64, len(p.Statements))}
	for name, n := range o.Sizes {
		m.sizes[name] = n
	}
	if o.MaxMemory == 0 {
		o.MaxMemory = DefaultMaxMemory
	}
	if err := m.prepare(&o); err != nil {
		return nil, err
	}
	out := &Outcome{Outputs: map[string]*Tensor{}, Points: m.points}
	for _, name := range p.Outputs {
		a := m.arrays[name]
		for k := 0; k < a.elements(); k++ {
			if err := m.demand(element{a, k}); err != nil {
				return nil, err
			}
		}
		out.Outputs[name] = a.Tensor
	}
	return out, nil
}

// machine interprets a program at fixed sizes.
type machine struct {
	prog   *Program
	ctx    context.Context
	sizes  map[string]int64
	arrays map[string]*storage
	points []int64

	active []element // elements that are being computed, each needed by the one before
	frames [][]int64 // memory for a point at each depth
	steps  int       // points until the context is looked at
}

// storage is an array while it is computed.
type storage struct {
	*Tensor
	decl    *Array
	state   []state // nil for inputs
	writers []*writer
	ranged  bool // values are from low to below high, an int's
	low     int64
	high    int64
}

// state is how far an element is.
type state uint8

const (
	unknown state = iota
	busy          // being computed
	waiting       // put off until an element that it needs is there
	done
)

// element is an element of an array, by its place in row-major order.
type element struct {
	of *storage
	at int
}

// writer enumerates the points of a statement that write an element.
type writer struct {
	stmt    *Statement
	number  int // of the statement
	given   int // indices, which come first in a point
	scans   []*polyhedron.Scan
	body    expression
	uniform expression
	guards  []condition
	free    bool // its points do not count
}

// prepare makes the arrays and writers.
func (m *machine) prepare(o *Options) error {
	if err := m.prog.CheckSizes(m.sizes); err != nil {
		return err
	}
	m.arrays = map[string]*storage{}
	left := o.MaxMemory
	for _, a := range m.prog.Arrays {
		e, n, err := extents(a, m.sizes, left/9)
		if err != nil {
			return err
		}
		left -= 9 * n
		s := &storage{decl: a, ranged: a.Range != nil}
		if s.ranged {
			if s.low, s.high, err = a.Range.bounds(m.sizes); err != nil {
				return err
			}
		}
		if a.Input {
			if s.Tensor, err = m.input(a, s, o.Inputs[a.Name], e, n); err != nil {
				return err
			}
		} else {
			s.Tensor, s.state = newTensor(a.Type, e, n), make([]state, n)
		}
		m.arrays[a.Name] = s
	}
	for k, s := range m.prog.Statements {
		w, err := m.writer(s, k)
		if err != nil {
			return err
		}
		to := m.arrays[s.Array]
		to.writers = append(to.writers, w)
	}
	return nil
}

// CheckSizes returns an error for a size of what is not a parameter, for a parameter without a
// size, and for sizes that the context of the program excludes.
func (p *Program) CheckSizes(sizes map[string]int64) error {
	for name := range sizes {
		if !slices.ContainsFunc(p.Params, func(q Param) bool { return q.Name == name }) {
			return errorf(Pos{}, "a size is given for %s, which is not a parameter", name)
		}
	}
	for _, q := range p.Params {
		if _, ok := sizes[q.Name]; !ok {
			return errorf(q.Pos, "parameter %s has no size", q.Name)
		}
	}
	v := newVariables(p, sizes, nil, nil)
	for _, c := range p.Context {
		for k, r := range c.Relations {
			sets, err := v.constrain([]*polyhedron.Set{{}}, &c.Terms[k], r, &c.Terms[k+1])
			if err != nil {
				return err
			}
			holds := false
			for _, s := range sets {
				holds = holds || s.Contains(nil)
			}
			if !holds {
				return errorf(c.Pos, "%s does not hold at these sizes", chainsText([]Chain{c}))
			}
		}
	}
	return nil
}

// input checks the values of an input.
func (m *machine) input(a *Array, s *storage, t *Tensor, e []int64, n int64) (*Tensor, error) {
	switch {
	case t == nil:
		return nil, errorf(a.Pos, "input %s is missing", a.Name)
	case a.Type == Int && t.Floats != nil || a.Type == Float && t.Ints != nil:
		return nil, errorf(a.Pos, "input %s has values of another type; want %v", a.Name, a.Type)
	case int64(t.elements()) != n || fmt.Sprint(t.Extents) != fmt.Sprint(e):
		return nil, errorf(a.Pos, "input %s has extents %v; want %v", a.Name, t.Extents, e)
	}
	if s.ranged {
		for k, x := range t.Ints {
			if x < s.low || x >= s.high {
				return nil, errorf(a.Pos, "input %s has the value %d at %v; want %d to %d", a.Name, x, unravel(k, e), s.low, s.high-1)
			}
		}
	}
	return t, nil
}

// writer prepares the enumeration of the points of s by the element they write.
func (m *machine) writer(s *Statement, number int) (*writer, error) {
	w := &writer{stmt: s, number: number, given: len(s.Index), free: m.prog.Carries(s) != nil}
	extra := make([]string, len(s.Index))
	for k := range extra {
		extra[k] = fmt.Sprint(k) // no identifier, so no dimension
	}
	v := newVariables(m.prog, m.sizes, extra, s.Dims)
	pieces, err := m.prog.domain(s, m.sizes)
	if err != nil {
		return nil, err
	}
	for _, piece := range pieces {
		set := &polyhedron.Set{Vars: v.count()}
		shift := func(rows []polyhedron.Row) (out []polyhedron.Row) {
			for _, r := range rows {
				out = append(out, append(make(polyhedron.Row, len(extra)), r...))
			}
			return out
		}
		set.Zero, set.Positive = shift(piece.Zero), shift(piece.Positive)
		for k := range s.Index {
			r, err := v.row(&s.Index[k])
			if err != nil {
				return nil, err
			}
			r[k]-- // the affine index, less the index that is given, is 0
			set.Zero = append(set.Zero, r)
		}
		scan, err := polyhedron.NewScan(set, len(extra))
		if err != nil {
			return nil, errorf(s.Pos, "%v", err)
		}
		w.scans = append(w.scans, scan)
	}
	c := &compiler{m: m, place: v.place}
	w.body = c.expression(s.Body)
	if s.Uniform != nil {
		w.uniform = c.expression(s.Uniform)
	}
	for _, g := range s.Guards {
		w.guards = append(w.guards, c.condition(g))
	}
	return w, nil
}

// unravel returns the indices of the element at a place in row-major order.
func unravel(at int, extents []int64) []int64 {
	index := make([]int64, len(extents))
	for k := len(extents) - 1; k >= 0; k-- {
		index[k] = int64(at) % extents[k]
		at = int(int64(at) / extents[k])
	}
	return index
}

// String names the element as the source would.
func (e element) String() string {
	s := e.of.decl.Name + "["
	for k, x := range unravel(e.at, e.of.Extents) {
		if k > 0 {
			s += ","
		}
		s += fmt.Sprint(x)
	}
	return s + "]"
}

// identity is what a reduction of nothing gives.
func (o Operator) identity() float64 {
	switch o {
	case Multiply:
		return 1
	case Max, LogSumExp:
		return math.Inf(-1)
	case Min:
		return math.Inf(1)
	}
	return 0
}
