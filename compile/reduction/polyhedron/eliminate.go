package polyhedron

import "slices"

// Project returns the projection of s along variable v: a set in the same
// variables whose rows do not mention v. It holds every point that some integer v
// extends to a point of s; exact reports that it holds no other. The elimination
// is exact where, in each pair of bounds that it combines, one of the two has 1 or
// -1 for v.
func (s *Set) Project(v int) (p *Set, exact bool, err error) {
	p = s.Clone()
	if p.tidy() {
		return empty(s.Vars), true, nil
	}
	if k := pivot(p.Zero, v); k >= 0 {
		return substitute(p, v, k)
	}
	var lower, upper, rest []Row
	for _, r := range p.Positive {
		switch {
		case r[v] > 0:
			lower = append(lower, r)
		case r[v] < 0:
			upper = append(upper, r)
		default:
			rest = append(rest, r)
		}
	}
	if len(rest)+len(lower)*len(upper) > MaxRows {
		return nil, false, ErrSize
	}
	exact = true
	for _, l := range lower {
		for _, u := range upper {
			exact = exact && (l[v] == 1 || u[v] == -1)
			r, err := combine(-u[v], l, l[v], u, false)
			if err != nil {
				return nil, false, err
			}
			rest = append(rest, r)
		}
	}
	p.Positive = rest
	if p.tidy() {
		return empty(s.Vars), exact, nil
	}
	return p, exact, nil
}

// pivot chooses the equality that v is eliminated with: the one with the smallest
// coefficient, or -1 if none mentions v.
func pivot(zero []Row, v int) int {
	best := -1
	for k, r := range zero {
		if r[v] != 0 && (best < 0 || magnitude(r[v]) < magnitude(zero[best][v])) {
			best = k
		}
	}
	return best
}

// substitute eliminates v from p with equality k, which it drops.
func substitute(p *Set, v, k int) (*Set, bool, error) {
	e := p.Zero[k]
	c, sign := int64(magnitude(e[v])), int64(1)
	if e[v] < 0 {
		sign = -1
	}
	p.Zero = slices.Delete(p.Zero, k, k+1)
	for _, rows := range []*[]Row{&p.Zero, &p.Positive} {
		for i, r := range *rows {
			if r[v] == 0 {
				continue
			}
			n, err := combine(c, r, -sign*r[v], e, rows == &p.Zero)
			if err != nil {
				return nil, false, err
			}
			(*rows)[i] = n
		}
	}
	exact := c == 1
	if p.tidy() {
		return empty(p.Vars), exact, nil
	}
	return p, exact, nil
}

func empty(n int) *Set {
	return &Set{Vars: n, Positive: []Row{falseRow(n)}}
}

// Empty reports whether s holds no rational point, and so no integer one. A set
// that is not empty by this test may still hold no integer point.
func (s *Set) Empty() (bool, error) {
	p := s.Clone()
	if p.tidy() {
		return true, nil
	}
	for v := s.Vars - 1; v >= 0; v-- {
		var err error
		if p, _, err = p.Project(v); err != nil {
			return false, err
		}
		if len(p.Positive) == 1 && normalise(p.Positive[0], false) == never {
			return true, nil
		}
	}
	return p.tidy(), nil
}
