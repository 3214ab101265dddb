package reduction

import (
	"errors"
	"fmt"
	"math/big"
	"strings"

	"github.com/pce-engine/pce/compile/reduction/polyhedron"
)

// Cost is how many points the statements of a program have, as a function of its
// parameters.
type Cost struct {
	params  []Param
	context *polyhedron.Set
	counts  [][]*polyhedron.Count // by statement, one for each piece of its domain
}

// Cost counts the points of every statement. With guardsOnce a dimension that a
// guard fixes, as d in 'if doc[w] == d', counts as one point instead of its whole
// extent: code that computes doc[w] visits no other d.
func (p *Program) Cost(guardsOnce bool) (*Cost, error) {
	c := &Cost{params: p.Params}
	var err error
	if c.context, err = p.ContextSet(); err != nil {
		return nil, err
	}
	for _, s := range p.Statements {
		counts, err := p.Counts(s, guardsOnce)
		if e := (*Error)(nil); err != nil && !errors.As(err, &e) {
			err = errorf(s.Pos, "the number of points: %v", err)
		}
		if err != nil {
			return nil, err
		}
		c.counts = append(c.counts, counts)
	}
	return c, nil
}

// fix projects out the dimensions of s that guards fix.
func fix(set *polyhedron.Set, s *Statement, params int) (*polyhedron.Set, error) {
	for _, d := range s.fixed() {
		v := params + d
		var err error
		if set, _, err = set.Project(v); err != nil {
			return nil, err
		}
		one := make(polyhedron.Row, set.Vars+1) // keeps a place for it, with one value
		one[v] = 1
		set.Zero = append(set.Zero, one)
	}
	return set, nil
}

// fixed returns the dimensions d for which a guard says e == d, where e mentions
// neither d nor another dimension that a guard fixes.
func (s *Statement) fixed() []int {
	var out []int
	taken := map[string]bool{}
	for _, g := range s.Guards {
		b, ok := g.(*Binary)
		if !ok || b.Op != "==" {
			continue
		}
		for _, side := range [2][2]Expr{{b.X, b.Y}, {b.Y, b.X}} {
			n, ok := side[0].(*Name)
			if !ok || taken[n.Name] {
				continue
			}
			d := position(s.Dims, n.Name)
			if d < 0 || mentions(side[1], n.Name, taken) {
				continue
			}
			taken[n.Name] = true
			out = append(out, d)
			break
		}
	}
	return out
}

// mentions reports whether e has a name that is d or one of taken.
func mentions(e Expr, d string, taken map[string]bool) bool {
	found := false
	walk(e, func(e Expr) {
		if n, ok := e.(*Name); ok && (n.Name == d || taken[n.Name]) {
			found = true
		}
	})
	return found
}

func position(list []string, s string) int {
	for k, x := range list {
		if x == s {
			return k
		}
	}
	return -1
}

// Points returns how many points statement k has at the given sizes.
func (c *Cost) Points(k int, sizes map[string]int64) *big.Int {
	x := make([]int64, len(c.params))
	for i, q := range c.params {
		x[i] = sizes[q.Name]
	}
	sum := new(big.Int)
	for _, n := range c.counts[k] {
		sum.Add(sum, n.Eval(x))
	}
	return sum
}

// Exact reports whether numbers of points are exact: that every bound has a coefficient of 1 or -1 for the
// dimension that it bounds. Degrees always are.
func (c *Cost) Exact() bool {
	for _, list := range c.counts {
		for _, n := range list {
			if !n.Exact {
				return false
			}
		}
	}
	return true
}

// Total returns how many points all statements have at the given sizes.
func (c *Cost) Total(sizes map[string]int64) *big.Int {
	sum := new(big.Int)
	for k := range c.counts {
		sum.Add(sum, c.Points(k, sizes))
	}
	return sum
}

// Degree returns the monomials that the points of all statements grow with.
func (c *Cost) Degree() (Degree, error) {
	return c.degree(c.counts...)
}

// StatementDegree is Degree of statement k alone.
func (c *Cost) StatementDegree(k int) (Degree, error) {
	return c.degree(c.counts[k])
}

func (c *Cost) degree(counts ...[]*polyhedron.Count) (Degree, error) {
	d := Degree{params: c.params}
	var all []polyhedron.Monomial
	for _, list := range counts {
		for _, n := range list {
			m, err := n.Degree()
			if err != nil {
				return d, fmt.Errorf("%w: %v", ErrProgram, err)
			}
			all = append(all, m...)
		}
	}
	d.Monomials = polyhedron.Maximal(all)
	return d, nil
}

// Degree is a sum of monomials in the parameters, none of which divides another.
type Degree struct {
	params    []Param
	Monomials []polyhedron.Monomial // exponents in the order of the parameters
}

// String writes a degree as N^2*K + N*K^2, or 0 if there are no points.
func (d Degree) String() string {
	if len(d.Monomials) == 0 {
		return "0"
	}
	var sum []string
	for _, m := range d.Monomials {
		var product []string
		for k, e := range m {
			switch e {
			case 0:
			case 1:
				product = append(product, d.params[k].Name)
			default:
				product = append(product, fmt.Sprintf("%s^%d", d.params[k].Name, e))
			}
		}
		if len(product) == 0 {
			product = []string{"1"}
		}
		sum = append(sum, strings.Join(product, "*"))
	}
	return strings.Join(sum, " + ")
}

// Counts returns the points of s, which need not be a statement of p but has its names, one count for each
// piece of its domain. With guardsOnce a dimension that a guard fixes counts as one point. The copy of an array that is kept in
// place has no points.
func (p *Program) Counts(s *Statement, guardsOnce bool) ([]*polyhedron.Count, error) {
	if p.Carries(s) != nil {
		return nil, nil
	}
	context, err := p.ContextSet()
	if err != nil {
		return nil, err
	}
	pieces, err := p.domain(s, nil)
	if err != nil {
		return nil, err
	}
	var counts []*polyhedron.Count
	for _, set := range pieces {
		if guardsOnce {
			if set, err = fix(set, s, len(p.Params)); err != nil {
				return nil, err
			}
		}
		n, err := set.Count(len(p.Params), context)
		if err != nil {
			return nil, err
		}
		counts = append(counts, n)
	}
	return counts, nil
}
