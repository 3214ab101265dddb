package schedule

import (
	"slices"

	"github.com/pce-engine/pce/compile/reduction"
	"github.com/pce-engine/pce/compile/reduction/polyhedron"
)

// Dependence says that elements of an array need elements of another: at each point of
// Set, element To of array Target needs element From of array Source.
type Dependence struct {
	Target, Source string
	Set            *polyhedron.Set // parameters first
	To, From       []polyhedron.Row
}

// Dependences lists what the statements of p read, one for each read and convex part of a
// domain. An index that is not affine may be any of the array: a further variable of the
// set. Reads of inputs are left out, and guards do not shrink a set. An array that is kept in
// place (reduction.Fold) also needs that what reads an element is done before it is updated.
func Dependences(p *reduction.Program) ([]*Dependence, error) {
	var out []*Dependence
	for _, s := range p.Statements {
		if p.Carries(s) != nil {
			continue // inPlace says more
		}
		sets, err := p.Points(s)
		if err != nil {
			return nil, err
		}
		var to []polyhedron.Row
		for k := range s.Index {
			r, err := p.Row(&s.Index[k], s.Dims)
			if err != nil {
				return nil, err
			}
			to = append(to, r)
		}
		for _, read := range Reads(p, s) {
			if p.Array(read.Array).Input {
				continue
			}
			for _, set := range sets {
				d, err := read.dependence(p, s.Array, set, to)
				if err != nil {
					return nil, err
				}
				out = append(out, d)
			}
		}
	}
	reads := out
	for _, a := range p.Arrays {
		if a.Fold == nil {
			continue
		}
		own, err := inPlace(p, a, reads)
		if err != nil {
			return nil, err
		}
		out = append(out, own...)
	}
	return out, nil
}

// inPlace lists what array a, which is kept in place, needs besides deps: an element the one before it, whose memory it
// takes, and all that reads the one before. deps are what statements read, without the copies that folds make
// needless.
func inPlace(p *reduction.Program, a *reduction.Array, deps []*Dependence) ([]*Dependence, error) {
	whole, err := p.ExtentSet(a)
	if err != nil {
		return nil, err
	}
	params := len(p.Params)
	next := func(from []polyhedron.Row) []polyhedron.Row { // the element after
		to := slices.Clone(from)
		r := slices.Clone(to[a.Fold.Index])
		r[len(r)-1] += a.Fold.Step
		to[a.Fold.Index] = r
		return to
	}
	var here []polyhedron.Row
	for k := range a.Extents {
		r := make(polyhedron.Row, whole.Vars+1)
		r[params+k] = 1
		here = append(here, r)
	}
	reads := []*Dependence{{Target: a.Name, Set: whole, To: here, From: here}}
	for _, d := range deps {
		if d.Source == a.Name {
			reads = append(reads, d)
		}
	}
	var out []*Dependence
	for _, d := range reads {
		n := &Dependence{Target: a.Name, Source: d.Target, To: next(d.From), From: d.To}
		within, err := whole.Preimage(n.To, d.Set.Vars, params)
		if err != nil {
			return nil, err
		}
		n.Set = d.Set.Intersect(within)
		out = append(out, n)
	}
	return out, nil
}

// Read is an array that a statement reads, and at which index. An index that is not
// affine in parameters and dimensions is nil.
type Read struct {
	Array string
	Index []polyhedron.Row
}

// Reads lists the arrays that s reads with brackets, in the order of its source.
func Reads(p *reduction.Program, s *reduction.Statement) []Read {
	var out []Read
	for _, e := range s.Expressions() {
		reduction.Walk(e, func(e reduction.Expr) {
			r, ok := e.(*reduction.Read)
			if !ok {
				return
			}
			read := Read{Array: r.Array}
			for _, x := range r.Index {
				read.Index = append(read.Index, AffineIndex(p, s, x))
			}
			out = append(out, read)
		})
	}
	return out
}

// AffineIndex returns x as a row of the parameters and the dimensions of s, or nil if it is
// not affine in these.
func AffineIndex(p *reduction.Program, s *reduction.Statement, x reduction.Expr) polyhedron.Row {
	a, err := reduction.AffineOf(x)
	if err != nil {
		return nil
	}
	for _, t := range a.Terms {
		if p.Array(t.Name) != nil {
			return nil
		}
	}
	row, err := p.Row(&a, s.Dims)
	if err != nil {
		return nil
	}
	return row
}

// dependence adds a variable for each index that is not affine.
func (r *Read) dependence(p *reduction.Program, target string, set *polyhedron.Set, to []polyhedron.Row) (*Dependence, error) {
	free := 0
	for _, x := range r.Index {
		if x == nil {
			free++
		}
	}
	n := set.Vars + free
	d := &Dependence{Target: target, Source: r.Array, Set: set.Widen(n)}
	widen := func(r polyhedron.Row) polyhedron.Row {
		w := make(polyhedron.Row, n+1)
		copy(w, r[:len(r)-1])
		w[n] = r[len(r)-1]
		return w
	}
	for _, x := range to {
		d.To = append(d.To, widen(x))
	}
	next := set.Vars
	for _, x := range r.Index {
		if x != nil {
			d.From = append(d.From, widen(x))
			continue
		}
		own := make(polyhedron.Row, n+1)
		own[next] = 1
		d.From = append(d.From, own)
		next++
	}
	extents, err := p.ExtentSet(p.Array(r.Array))
	if err != nil {
		return nil, err
	}
	within, err := extents.Preimage(d.From, n, len(p.Params))
	if err != nil {
		return nil, err
	}
	if free > 0 { // affine indices are within the array as they are
		d.Set = d.Set.Intersect(within)
	}
	return d, nil
}
