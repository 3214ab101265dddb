package polyhedron

// Scan enumerates the points of a set for given values of its first variables.
// It is safe for concurrent use, unless it is limited.
type Scan struct {
	given, vars int
	levels      []level // one per variable after the given ones
	guard       Set     // what the given values have to fulfil
	limited     bool    // whether budget counts
	budget      int     // how many values may still be tried
}

// level has the rows that bound a variable, given those before it.
type level struct {
	lower, upper []Row
	zero         []Row
}

// NewScan prepares the enumeration of s for values of its first given variables.
// It fails with ErrUnbounded if a later variable has no bound once the variables
// before it are fixed; Unbounded names it.
func NewScan(s *Set, given int) (*Scan, error) {
	c := &Scan{given: given, vars: s.Vars, levels: make([]level, s.Vars-given)}
	p := s.Clone()
	if p.tidy() {
		p = empty(s.Vars)
	}
	for v := s.Vars - 1; v >= given; v-- {
		l := &c.levels[v-given]
		for _, r := range p.Zero {
			if r[v] != 0 {
				l.zero = append(l.zero, r)
			}
		}
		for _, r := range p.Positive {
			switch {
			case r[v] > 0:
				l.lower = append(l.lower, r)
			case r[v] < 0:
				l.upper = append(l.upper, r)
			}
		}
		q, _, err := p.Project(v)
		if err != nil {
			return nil, err
		}
		p = q
	}
	c.guard = *p
	if hollow, err := s.Empty(); err != nil || hollow {
		c.guard = *empty(s.Vars)
		return c, err
	}
	for v := range c.levels {
		if l := &c.levels[v]; len(l.zero) == 0 && (len(l.lower) == 0 || len(l.upper) == 0) {
			return nil, &UnboundedError{Var: given + v, Above: len(l.lower) > 0}
		}
	}
	return c, nil
}

// UnboundedError names a variable that a set does not bound; it matches
// ErrUnbounded.
type UnboundedError struct {
	Var   int
	Above bool // it has a lower bound but no upper one
}

func (e *UnboundedError) Error() string { return ErrUnbounded.Error() }

// Is makes the error match ErrUnbounded.
func (e *UnboundedError) Is(target error) bool { return target == ErrUnbounded }

// Points calls visit with each point whose first variables are given, in
// lexicographic order, until visit returns false. The slice is used again for the
// next point. Points with coordinates beyond 64 bits are left out, so a caller
// bounds its sizes.
func (c *Scan) Points(given []int64, visit func(x []int64) bool) {
	x := make([]int64, c.vars)
	copy(x, given)
	c.Scan(x, visit)
}

// Scan is Points with x as the memory for points: it has a number for each
// variable, of which the first ones are given.
func (c *Scan) Scan(x []int64, visit func(x []int64) bool) {
	if c.guard.Contains(x) {
		c.scan(x, c.given, visit)
	}
}

func (c *Scan) scan(x []int64, v int, visit func([]int64) bool) bool {
	if v == c.vars {
		return visit(x)
	}
	lo, hi, ok := c.levels[v-c.given].bounds(x, v)
	if !ok {
		return true
	}
	for k := lo; k <= hi; k++ {
		if c.limited {
			if c.budget == 0 {
				return false
			}
			c.budget--
		}
		x[v] = k
		if !c.scan(x, v+1, visit) {
			return false
		}
		if k == hi {
			break // hi may be the largest integer
		}
	}
	return true
}

// bounds returns the range of variable v, given the ones before it in x. It
// reports false if the range is empty.
func (l *level) bounds(x []int64, v int) (lo, hi int64, ok bool) {
	x[v] = 0
	lo, hi = -1<<63, 1<<63-1
	for _, r := range l.lower { // c*v + rest >= 0: v >= ceil(-rest/c)
		rest, fits := partial(r, x, v)
		if !fits {
			return 0, 0, false
		}
		lo = max(lo, -floorDiv(rest, r[v]))
	}
	for _, r := range l.upper { // -c*v + rest >= 0: v <= floor(rest/c)
		rest, fits := partial(r, x, v)
		if !fits {
			return 0, 0, false
		}
		hi = min(hi, floorDiv(rest, -r[v]))
	}
	for _, r := range l.zero {
		rest, fits := partial(r, x, v)
		if !fits || rest%r[v] != 0 {
			return 0, 0, false
		}
		k := -rest / r[v]
		lo, hi = max(lo, k), min(hi, k)
	}
	return lo, hi, lo <= hi
}

// Bounds returns the rows that bound variable v, which is not a given one, by the variables before it: its
// coefficient is positive in lower, negative in upper, and not 0 in zero.
func (c *Scan) Bounds(v int) (lower, upper, zero []Row) {
	l := &c.levels[v-c.given]
	return l.lower, l.upper, l.zero
}

// Guard returns what the given variables have to fulfil, as a set in all variables.
func (c *Scan) Guard() *Set { return &c.guard }
