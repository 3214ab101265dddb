package reduction

import (
	"fmt"
	"strings"

	"github.com/pce-engine/pce/compile/reduction/polyhedron"
)

// What a search for an offending point may cost; beyond it the question is left to
// the run, which checks every index and every write.
const (
	sampleReach  = 12
	sampleBudget = 200000
	cornerBudget = 200
)

// checkAccess reports indices that leave their array and elements that two points
// write, at whatever sizes the parameters' context allows. Guards do not count:
// what a guard keeps from happening is kept from happening by a constraint of the
// domain as well. An index that is not affine is checked when the program runs.
func checkAccess(p *Program) error {
	for _, s := range p.Statements {
		if err := checkIndices(p, s, s.Array, s.Index, s.Pos); err != nil {
			return err
		}
		for _, e := range append([]Expr{s.Body}, s.Guards...) {
			if err := checkReads(p, s, e); err != nil {
				return err
			}
		}
		if s.Uniform != nil {
			if err := checkReads(p, s, s.Uniform); err != nil {
				return err
			}
		}
	}
	return checkWrites(p)
}

// checkReads checks the affine indices of every element that e reads.
func checkReads(p *Program, s *Statement, e Expr) error {
	var first error
	walk(e, func(e Expr) {
		r, ok := e.(*Read)
		if !ok || first != nil {
			return
		}
		for k, x := range r.Index {
			a, err := affine(x)
			if err != nil || !inDomain(p, s, &a) {
				continue // known only when the program runs
			}
			if first = checkIndex(p, s, r.Array, k, &a, r.Pos); first != nil {
				return
			}
		}
	})
	return first
}

// inDomain reports whether a is of parameters and dimensions alone.
func inDomain(p *Program, s *Statement, a *Affine) bool {
	for _, t := range a.Terms {
		if p.byName[t.Name] != nil {
			return false
		}
	}
	return true
}

func checkIndices(p *Program, s *Statement, array string, index []Affine, at Pos) error {
	for k := range index {
		if err := checkIndex(p, s, array, k, &index[k], at); err != nil {
			return err
		}
	}
	return nil
}

// checkIndex reports a point of s at which index k of an array is outside.
func checkIndex(p *Program, s *Statement, array string, k int, a *Affine, at Pos) error {
	extent := &p.byName[array].Extents[k]
	zero := &Affine{}
	v := newVariables(p, nil, nil, s.Dims)
	for _, side := range []struct {
		x, y *Affine
	}{{a, zero}, {&Affine{Pos: a.Pos, Terms: extent.Terms, Constant: extent.Constant - 1}, a}} {
		pieces, err := p.domain(s, nil)
		if err != nil {
			return err
		}
		if pieces, err = v.constrain(pieces, side.x, Less, side.y); err != nil {
			return err
		}
		for _, set := range pieces {
			x := offending(set)
			if x == nil {
				continue
			}
			i, _ := a.value(func(name string) int64 { return x[v.place[name]] })
			n, _ := extent.value(func(name string) int64 { return x[v.place[name]] })
			return errorf(at, "index %s of %s is %d, want 0 to %d%s", a, array, i, n-1, p.where(s, x))
		}
	}
	return nil
}

// offending returns a point of set, or nil if it is empty or none was found.
func offending(set *polyhedron.Set) []int64 {
	if hollow, err := set.Empty(); err != nil || hollow {
		return nil
	}
	if x, err := set.Sample(sampleReach, sampleBudget); err == nil && x != nil {
		return x
	}
	return set.Corner(cornerBudget) // of a set without points near 0
}

// where names the sizes and the point of x, which begins with the parameters.
func (p *Program) where(s *Statement, x []int64) string {
	var parts []string
	for k, q := range p.Params {
		parts = append(parts, fmt.Sprintf("%s = %d", q.Name, x[k]))
	}
	for k, d := range s.Dims {
		parts = append(parts, fmt.Sprintf("%s = %d", d, x[len(p.Params)+k]))
	}
	if len(parts) == 0 {
		return ""
	}
	return ", at " + strings.Join(parts, ", ")
}

// checkWrites reports an element of an = array that two points write, and one that is drawn at two points of the dimensions that a
// draw is not over.
func checkWrites(p *Program) error {
	for i, s := range p.Statements {
		if s.Op != Assign && !s.Op.Draws() {
			continue
		}
		for _, t := range p.Statements[i:] {
			if t.Array != s.Array {
				continue
			}
			if err := checkPair(p, s, t); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkPair reports an element that a point of s and another point of t write.
func checkPair(p *Program, s, t *Statement) error {
	dims := append(append([]string{}, s.Dims...), primed(t.Dims)...)
	v := newVariables(p, nil, nil, dims)
	common, err := p.twoPoints(s, t, v)
	if err != nil {
		return nil // too large to decide
	}
	order := [][]*polyhedron.Set{common}
	if s == t { // two points of a statement differ first in some dimension
		order = nil
		for k := range s.Dims {
			if k == s.Drawn() {
				continue
			}
			sets := clone(common)
			for j := 0; j <= k; j++ {
				if j == s.Drawn() {
					continue
				}
				r := Equal
				if j == k {
					r = Less
				}
				x, y := name(s.Dims[j]), name(s.Dims[j]+"'")
				if sets, err = v.constrain(sets, &x, r, &y); err != nil {
					return nil
				}
			}
			order = append(order, sets)
		}
	}
	for _, sets := range order {
		for _, set := range sets {
			x := offending(set)
			if x == nil {
				continue
			}
			e := s.Array + "["
			for k := range s.Index {
				i, _ := s.Index[k].value(func(name string) int64 { return x[v.place[name]] })
				e += [...]string{"", ","}[btoi(k > 0)] + fmt.Sprint(i)
			}
			n := len(p.Params) + len(s.Dims)
			how := [...]string{"written", "drawn"}[btoi(s.Op.Draws())]
			return errorf(t.Pos, "%s] is %s twice: by %d:%d%s, and by %d:%d at %v", e, how, s.Line, s.Column, p.where(s, x[:n]), t.Line, t.Column, x[n:])
		}
	}
	return nil
}

// twoPoints returns the pairs of points of s and t that write one element.
func (p *Program) twoPoints(s, t *Statement, v *variables) ([]*polyhedron.Set, error) {
	sets := []*polyhedron.Set{{Vars: v.count()}}
	var err error
	add := func(chains []Chain, dims []string) {
		for _, c := range chains {
			for k, r := range c.Relations {
				if err != nil {
					return
				}
				x, y := prime(&c.Terms[k], dims), prime(&c.Terms[k+1], dims)
				sets, err = v.constrain(sets, &x, r, &y)
			}
		}
	}
	add(p.Context, nil)
	add(s.Domain, nil)
	add(t.Domain, t.Dims)
	for k := range s.Index {
		if err == nil {
			y := prime(&t.Index[k], t.Dims)
			sets, err = v.constrain(sets, &s.Index[k], Equal, &y)
		}
	}
	return sets, err
}

func clone(sets []*polyhedron.Set) []*polyhedron.Set {
	out := make([]*polyhedron.Set, len(sets))
	for k, s := range sets {
		out[k] = s.Clone()
	}
	return out
}

// primed names the dimensions of a second point.
func primed(dims []string) []string {
	out := make([]string, len(dims))
	for k, d := range dims {
		out[k] = d + "'"
	}
	return out
}

// prime returns a with its dimensions renamed to those of a second point.
func prime(a *Affine, dims []string) Affine {
	b := Affine{Pos: a.Pos, Constant: a.Constant}
	for _, t := range a.Terms {
		if contains(dims, t.Name) {
			t.Name += "'"
		}
		b.Terms = append(b.Terms, t)
	}
	return b
}

func name(n string) Affine { return Affine{Terms: []Term{{n, 1}}} }
