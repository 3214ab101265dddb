package reduction

import "github.com/pce-engine/pce/compile/reduction/polyhedron"

// Points returns the points of s as disjoint sets, whose variables are the
// program's parameters and the statement's dimensions, in their order. The rows say
// what the context and the domain say; guards are left out.
func (p *Program) Points(s *Statement) ([]*polyhedron.Set, error) { return p.domain(s, nil) }

// Row returns a as a row of the program's parameters and the given dimensions.
func (p *Program) Row(a *Affine, dims []string) (polyhedron.Row, error) {
	return newVariables(p, nil, nil, dims).row(a)
}

// ExtentSet returns the indices of an array, 0 to its extents, as a set in the
// parameters and indices, with the context.
func (p *Program) ExtentSet(a *Array) (*polyhedron.Set, error) {
	set, err := p.ContextSet()
	if err != nil {
		return nil, err
	}
	params, n := len(p.Params), len(p.Params)+len(a.Extents)
	set = set.Widen(n)
	for k := range a.Extents {
		high, err := p.Row(&a.Extents[k], nil)
		if err != nil {
			return nil, err
		}
		low, wide := make(polyhedron.Row, n+1), make(polyhedron.Row, n+1)
		low[params+k] = 1
		copy(wide, high[:params])
		wide[n] = high[params] - 1
		wide[params+k] = -1
		set.Positive = append(set.Positive, low, wide)
	}
	return set, nil
}

// Unwritten returns the elements of an array that points are not sure to write, in the parameters and indices: no domain has them, or
// those that have them are kept out by guards.
func (p *Program) Unwritten(a *Array) (rest polyhedron.Union, err error) {
	extents, err := p.ExtentSet(a)
	if err != nil {
		return nil, err
	}
	all := polyhedron.Union{extents}
	for _, s := range p.Statements {
		if s.Array != a.Name || len(s.Guards) > 0 {
			continue
		}
		var index []polyhedron.Row
		for k := range s.Index {
			r, err := p.Row(&s.Index[k], s.Dims)
			if err != nil {
				return nil, err
			}
			index = append(index, r)
		}
		sets, err := p.Points(s)
		if err != nil {
			return nil, err
		}
		for _, set := range sets {
			image, exact, err := set.Image(index, len(p.Params))
			if err != nil || !exact { // it may have fewer elements
				continue
			}
			if less, err := all.Subtract(polyhedron.Union{image}); err == nil {
				all = less
			}
		}
	}
	for _, set := range all {
		if !set.Hollow() {
			rest = append(rest, set)
		}
	}
	return rest, nil
}

// ContextSet returns what is known of the parameters as a set in these. What != says is
// left out.
func (p *Program) ContextSet() (*polyhedron.Set, error) {
	v := newVariables(p, nil, nil, nil)
	known := []*polyhedron.Set{{Vars: v.count()}}
	for _, chain := range p.Context {
		for k, r := range chain.Relations {
			if r == NotEqual {
				continue
			}
			var err error
			if known, err = v.constrain(known, &chain.Terms[k], r, &chain.Terms[k+1]); err != nil {
				return nil, err
			}
		}
	}
	return known[0], nil
}

// AffineOf reads e as an affine expression. An error names the part that is not one.
// The names may be of anything, also of inputs.
func AffineOf(e Expr) (Affine, error) { return affine(e) }

// Walk calls visit with e and everything in it, outer expressions first.
func Walk(e Expr, visit func(Expr)) { walk(e, visit) }

// Mentions reports whether e has a name.
func Mentions(e Expr, name string) bool { return mentions(e, name, nil) }

// Expressions returns what the points of s evaluate: the body, the guards, and the
// argument of a draw.
func (s *Statement) Expressions() []Expr {
	out := append([]Expr{s.Body}, s.Guards...)
	if s.Uniform != nil {
		out = append(out, s.Uniform)
	}
	return out
}

// Drawn is the dimension that a draw is over, or -1.
func (s *Statement) Drawn() int {
	if !s.Op.Draws() {
		return -1
	}
	return s.drawn
}

// TypeOf returns the type of an expression of s.
func (p *Program) TypeOf(s *Statement, e Expr) Type {
	known := map[string]bool{}
	for _, q := range p.Params {
		known[q.Name] = true
	}
	for _, d := range s.Dims {
		known[d] = true
	}
	t := typer{prog: p, known: known}
	got, err := t.of(e)
	if err != nil { // Parse has found the types of all expressions of a program
		panic(err)
	}
	return got
}
