package polyhedron

import (
	"github.com/pce-engine/pce/compile/reduction/simplex"
)

// program returns the linear program with the rows of s as constraints.
func (s *Set) program() *simplex.Problem {
	p := &simplex.Problem{Vars: s.Vars}
	for _, r := range s.Zero {
		p.Zero = append(p.Zero, r)
	}
	for _, r := range s.Positive {
		p.Positive = append(p.Positive, r)
	}
	return p
}

// Hollow reports whether s holds no rational point, and so no integer one. It
// answers as Empty does but for the rounding of constants that elimination does on
// its way, and takes polynomial space.
func (s *Set) Hollow() bool {
	c := s.Clone()
	return c.tidy() || c.program().Maximise().Status == simplex.Infeasible
}

// opposite returns the row that holds at the integer points at which r does not:
// -r - 1 >= 0.
func opposite(r Row) Row {
	o := make(Row, len(r))
	for k, c := range r {
		o[k] = -c
	}
	o[len(r)-1]--
	return o
}

// with returns s with further rows.
func (s *Set) with(positive ...Row) *Set {
	c := s.Clone()
	c.Positive = append(c.Positive, positive...)
	return c
}

// Implies reports whether r is at least 0 at every integer point of s. It may
// report false where only rational points of s are against it.
func (s *Set) Implies(r Row) bool { return s.with(opposite(r)).Hollow() }

// Saturated reports whether r is 0 at every integer point of s, where r is at least
// 0 on s.
func (s *Set) Saturated(r Row) bool {
	above := append(Row{}, r...)
	above[s.Vars]--
	return s.with(above).Hollow()
}

// Tighten returns s with the same integer points and no redundant rows: an
// inequality that is 0 on s becomes an equality, one that the other rows imply is
// dropped, and equalities are in Hermite normal form. An empty set becomes a row that
// never holds.
func (s *Set) Tighten() (*Set, error) {
	c := s.Clone()
	for again := true; again; { // what is rounded on the way may saturate another row
		if c.tidy() {
			return empty(s.Vars), nil
		}
		if err := c.reduceEqualities(); err != nil {
			return nil, err
		}
		if c.tidy() || c.program().Maximise().Status == simplex.Infeasible {
			return empty(s.Vars), nil
		}
		var open []Row
		for _, r := range c.Positive {
			if c.Saturated(r) {
				c.Zero = append(c.Zero, r)
			} else {
				open = append(open, r)
			}
		}
		again = len(open) < len(c.Positive)
		c.Positive = open
	}
	for k := 0; k < len(c.Positive); {
		rest := &Set{Vars: c.Vars, Zero: c.Zero}
		rest.Positive = append(append([]Row{}, c.Positive[:k]...), c.Positive[k+1:]...)
		if rest.Implies(c.Positive[k]) {
			c.Positive = rest.Positive
			continue
		}
		k++
	}
	return c, nil
}

// reduceEqualities brings the equalities into Hermite normal form, with the last
// variables as pivots where their coefficient is 1, and removes these variables from the
// inequalities.
func (s *Set) reduceEqualities() error {
	reversed := func(r Row) Row {
		o := append(Row{}, r...)
		for i, j := 0, s.Vars-1; i < j; i, j = i+1, j-1 {
			o[i], o[j] = o[j], o[i]
		}
		return o
	}
	var m [][]int64
	for _, r := range s.Zero {
		m = append(m, reversed(r))
	}
	h, err := Hermite(m, s.Vars+1)
	if err != nil {
		return err
	}
	s.Zero = s.Zero[:0]
	for _, r := range h {
		e := reversed(r)
		s.Zero = append(s.Zero, e)
		v := pivotOf(e)
		if v < 0 || magnitude(e[v]) != 1 {
			continue
		}
		for k, p := range s.Positive {
			if p[v] == 0 {
				continue
			}
			if s.Positive[k], err = combine(1, p, -p[v]*e[v], e, false); err != nil {
				return err
			}
		}
	}
	return nil
}

// pivotOf is the last variable with a coefficient, or -1.
func pivotOf(r Row) int {
	for v := len(r) - 2; v >= 0; v-- {
		if r[v] != 0 {
			return v
		}
	}
	return -1
}

// Extends reports whether s is unbounded in thickness along r, a vector of its
// variables: whether two points of s may be any multiple of r apart.
func (s *Set) Extends(r []int64) bool {
	n := s.Vars
	p := &simplex.Problem{Vars: n + 1, Objective: make([]int64, n+1)} // the point, and t
	p.Objective[n] = 1
	rows := func(list []Row) (out [][]int64, ok bool) {
		for _, a := range list {
			slope, fits := Dot(a[:n], r)
			if !fits {
				return nil, false
			}
			here := append(append([]int64{}, a[:n]...), 0, a[n])
			there := append(append([]int64{}, a[:n]...), slope, a[n])
			out = append(out, here, there)
		}
		return out, true
	}
	var ok, ok2 bool
	p.Zero, ok = rows(s.Zero)
	p.Positive, ok2 = rows(s.Positive)
	return ok && ok2 && p.Maximise().Status == simplex.Unbounded
}
