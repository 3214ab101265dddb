package polyhedron

import (
	"math/big"
	"slices"
)

// maxPieces bounds the pieces of a count.
const maxPieces = 4096

// Count is the number of points of a set as a function of its parameters: a sum of
// products, one product for the dimensions that constraints connect.
type Count struct {
	// Exact is false if a bound has a coefficient other than 1 and -1 for the variable that it bounds. The number of
	// points is not a polynomial piece by piece then, and the count is one that grows with the same monomials:
	// its bounds are not rounded to integers.
	Exact bool

	params  int
	bounded []bool // parameters that the context bounds from above
	factors [][]Piece
}

// Piece is a polynomial in the parameters and the region of parameters where it
// counts. The regions of a factor are disjoint; elsewhere the factor is 0.
type Piece struct {
	Region *Set
	Points Polynomial
}

// Count returns the number of points of s for given values of its first params
// variables. context has what is known of these; it may be nil.
func (s *Set) Count(params int, context *Set) (*Count, error) {
	whole := s.Clone()
	if context != nil {
		whole = whole.Intersect(context.Widen(s.Vars))
	}
	out := &Count{Exact: true, params: params, bounded: make([]bool, params)}
	for v := range params {
		out.bounded[v] = context != nil && context.bounds(v)
	}
	for _, component := range components(whole, params) {
		start := Piece{Region: &Set{Vars: s.Vars}, Points: constantPolynomial(1)}
		start.Region.Zero = touching(whole.Zero, component, params)
		start.Region.Positive = touching(whole.Positive, component, params)
		pieces := []Piece{start}
		for k := len(component) - 1; k >= 0; k-- {
			var next []Piece
			for _, p := range pieces {
				parts, exact, err := p.sumOut(component[k])
				if err != nil {
					return nil, err
				}
				out.Exact = out.Exact && exact
				next = append(next, parts...)
			}
			if len(next) > maxPieces {
				return nil, ErrSize
			}
			pieces = next
		}
		out.factors = append(out.factors, pieces)
	}
	return out, nil
}

// widen makes a row of the parameters one of n variables.
func widen(r Row, n int) Row {
	w := make(Row, n+1)
	copy(w, r[:len(r)-1])
	w[n] = r[len(r)-1]
	return w
}

// components groups the variables after the parameters so that no constraint has
// two of different groups. The first group may be empty: it takes the constraints
// on parameters alone.
func components(s *Set, params int) [][]int {
	parent := make([]int, s.Vars)
	for v := range parent {
		parent[v] = v
	}
	var find func(v int) int
	find = func(v int) int {
		if parent[v] != v {
			parent[v] = find(parent[v])
		}
		return parent[v]
	}
	for _, r := range append(append([]Row{}, s.Zero...), s.Positive...) {
		first := -1
		for v := params; v < s.Vars; v++ {
			if r[v] == 0 {
				continue
			}
			if first >= 0 {
				parent[find(v)] = find(first)
			}
			first = v
		}
	}
	groups := [][]int{nil}
	at := map[int]int{}
	for v := params; v < s.Vars; v++ {
		root := find(v)
		k, ok := at[root]
		if !ok {
			k = len(groups)
			at[root] = k
			groups = append(groups, nil)
		}
		groups[k] = append(groups[k], v)
	}
	return groups
}

// touching returns copies of the rows that have a variable of the group, or only
// parameters.
func touching(rows []Row, group []int, params int) []Row {
	var out []Row
	for _, r := range rows {
		alone, own := true, false
		for v := params; v < len(r)-1; v++ {
			alone = alone && r[v] == 0
		}
		for _, v := range group {
			own = own || r[v] != 0
		}
		if own || alone {
			out = append(out, append(Row{}, r...))
		}
	}
	return out
}

// sumOut sums the polynomial over variable v: one part for each choice of the
// largest lower bound and the smallest upper one. It is exact if v has no coefficient but 1 and -1.
func (p Piece) sumOut(v int) (parts []Piece, exact bool, err error) {
	if p.Region.tidy() {
		return nil, true, nil
	}
	if k := pivot(p.Region.Zero, v); k >= 0 {
		e := p.Region.Zero[k]
		region, _, err := substitute(p.Region.Clone(), v, k)
		if err != nil {
			return nil, false, err
		}
		parts, err = keep([]Piece{{region, p.Points.substitute(v, bound(e, v))}})
		return parts, magnitude(e[v]) == 1, err
	}
	exact = true
	var lower, upper, rest []Row
	for _, r := range p.Region.Positive {
		switch c := r[v]; {
		case c == 0:
			rest = append(rest, r)
			continue
		case c > 0:
			lower = append(lower, r)
		default:
			upper = append(upper, r)
		}
		exact = exact && magnitude(r[v]) == 1
	}
	if len(lower) == 0 || len(upper) == 0 {
		return nil, false, ErrUnbounded
	}
	for i, l := range lower {
		for j, u := range upper {
			region := &Set{Vars: p.Region.Vars, Zero: p.Region.Zero, Positive: append([]Row{}, rest...)}
			for k, m := range lower { // l is the largest lower bound: v >= -l, so m - l >= 0; of equal ones the first
				if k != i {
					if err := region.require(m, l, v, -btoi(k < i)); err != nil {
						return nil, false, err
					}
				}
			}
			for k, m := range upper {
				if k != j {
					if err := region.require(m, u, v, -btoi(k < j)); err != nil {
						return nil, false, err
					}
				}
			}
			sum, err := combine(-u[v], l, l[v], u, false) // high - low
			if err != nil {
				return nil, false, err
			}
			region.Positive = append(region.Positive, sum)
			parts = append(parts, Piece{region.Clone(), p.Points.sumOver(v, bound(l, v), bound(u, v))})
		}
	}
	parts, err = keep(parts)
	return parts, exact, err
}

// bound is the value of variable v where a row is 0.
func bound(r Row, v int) Polynomial {
	others := append(Row{}, r...)
	others[v] = 0
	return Polynomial{}.plus(rowPolynomial(others), big.NewRat(-1, r[v]))
}

// require says that bound l of variable v holds where m does, and that they differ by -constant or more; the signs of v in
// them are the same.
func (s *Set) require(m, l Row, v int, constant int64) error {
	d, err := combine(int64(magnitude(l[v])), m, -int64(magnitude(m[v])), l, false)
	if err != nil {
		return err
	}
	d[s.Vars] += constant
	s.Positive = append(s.Positive, d)
	return nil
}

func btoi(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// keep drops the pieces whose region is empty.
func keep(pieces []Piece) ([]Piece, error) {
	out := pieces[:0]
	for _, p := range pieces {
		hollow, err := p.Region.Empty()
		if err != nil {
			return nil, err
		}
		if !hollow {
			out = append(out, p)
		}
	}
	return out, nil
}

// Eval returns the number of points at the given parameters, about that many if the count is not exact.
func (c *Count) Eval(params []int64) *big.Int {
	product := big.NewInt(1)
	for _, f := range c.factors {
		sum := new(big.Rat)
		for _, p := range f {
			x := make([]int64, p.Region.Vars)
			copy(x, params)
			if p.Region.Contains(x) {
				sum.Add(sum, p.Points.Eval(x))
			}
		}
		product.Mul(product, sum.Num().Quo(sum.Num(), sum.Denom())) // the denominator of an exact count is 1
	}
	return product
}

// Degree returns the monomials of the parameters that the count grows with: the
// leading ones of the pieces in whose region all unbounded parameters can grow
// together, in all proportions near some; where there is no such piece, of those whose region is as narrow as N = M.
// It is empty if the set has no points there.
func (c *Count) Degree() ([]Monomial, error) {
	total := []Monomial{make(Monomial, c.params)}
	for _, f := range c.factors {
		var leading []Monomial
		for _, strict := range []bool{true, false} {
			for k := range f {
				grows, err := c.grows(&f[k], strict)
				if err != nil {
					return nil, err
				}
				if grows {
					leading = append(leading, f[k].Points.Leading(c.params)...)
				}
			}
			if len(leading) > 0 {
				break
			}
		}
		var next []Monomial
		for _, m := range total {
			for _, n := range Maximal(leading) {
				sum := make(Monomial, c.params)
				for v := range sum {
					sum[v] = m[v] + n[v]
				}
				next = append(next, sum)
			}
		}
		total = Maximal(next)
	}
	return total, nil
}

// grows reports whether the region of p has a direction in which every parameter
// grows that the context does not bound from above. With strict, directions near it are to lead into the region
// too: its polynomial may cancel along a narrow one.
func (c *Count) grows(p *Piece, strict bool) (bool, error) {
	cone := &Set{Vars: c.params}
	flat := func(r Row) Row {
		d := make(Row, c.params+1)
		copy(d, r[:c.params])
		return d
	}
	moves := func(d Row) bool { return slices.ContainsFunc(d, func(x int64) bool { return x != 0 }) }
	for _, r := range p.Region.Zero {
		d := flat(r)
		if strict && moves(d) {
			return false, nil
		}
		cone.Zero = append(cone.Zero, d)
	}
	for _, r := range p.Region.Positive {
		d := flat(r)
		if strict && moves(d) {
			d[c.params] = -1
		}
		cone.Positive = append(cone.Positive, d)
	}
	for v := range c.params {
		least := make(Row, c.params+1)
		if least[v] = 1; !c.bounded[v] {
			least[c.params] = -1
		}
		cone.Positive = append(cone.Positive, least)
	}
	hollow, err := cone.Empty()
	return !hollow, err
}

// bounds reports whether a row bounds variable v from above by itself.
func (s *Set) bounds(v int) bool {
	for _, r := range s.Positive {
		if r[v] < 0 && only(r, v) {
			return true
		}
	}
	for _, r := range s.Zero {
		if only(r, v) {
			return true
		}
	}
	return false
}

// only reports whether v is the one variable of r.
func only(r Row, v int) bool {
	for k, c := range r[:len(r)-1] {
		if (c != 0) != (k == v) {
			return false
		}
	}
	return true
}
