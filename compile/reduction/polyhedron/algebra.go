package polyhedron

// Intersect returns the points that are in both sets.
func (s *Set) Intersect(t *Set) *Set {
	c := s.Clone()
	d := t.Clone()
	c.Zero = append(c.Zero, d.Zero...)
	c.Positive = append(c.Positive, d.Positive...)
	return c
}

// Widen returns s as a set in n variables: the further ones have no rows.
func (s *Set) Widen(n int) *Set {
	c := &Set{Vars: n}
	for _, r := range s.Zero {
		c.Zero = append(c.Zero, widen(r, n))
	}
	for _, r := range s.Positive {
		c.Positive = append(c.Positive, widen(r, n))
	}
	return c
}

// Shift returns the set of x + r for x in s.
func (s *Set) Shift(r []int64) (*Set, error) {
	c := s.Clone()
	for _, rows := range [][]Row{c.Zero, c.Positive} {
		for _, a := range rows {
			d, ok := Dot(a[:s.Vars], r)
			if !ok {
				return nil, ErrOverflow
			}
			if a[s.Vars], ok = add(a[s.Vars], -d); !ok || d == -1<<63 || a[s.Vars] == -1<<63 {
				return nil, ErrOverflow
			}
		}
	}
	return c, nil
}

// Subtract returns the points of s that are not in t, as disjoint sets: for each
// row of t, the points that break it and keep the rows before it. Rows that s
// implies give no set.
func (s *Set) Subtract(t *Set) ([]*Set, error) {
	var out []*Set
	rest := s
	cut := func(r Row) error {
		outside := rest.with(opposite(r))
		if !outside.Hollow() {
			tight, err := outside.Tighten()
			if err != nil {
				return err
			}
			if !tight.Clone().tidy() { // rounding on the way may leave nothing
				out = append(out, tight)
			}
		}
		rest = rest.with(r)
		return nil
	}
	for _, r := range t.Zero {
		negative := make(Row, len(r))
		for k, c := range r {
			negative[k] = -c
		}
		if err := cut(r); err != nil {
			return nil, err
		}
		if err := cut(negative); err != nil {
			return nil, err
		}
	}
	for _, r := range t.Positive {
		if err := cut(r); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Union is a union of sets in the same variables.
type Union []*Set

// maxParts bounds the sets of a union.
const maxParts = 256

// Subtract returns the points of u that are in no set of v.
func (u Union) Subtract(v Union) (Union, error) {
	for _, t := range v {
		var next Union
		for _, s := range u {
			parts, err := s.Subtract(t)
			if err != nil {
				return nil, err
			}
			next = append(next, parts...)
		}
		if u = next; len(u) > maxParts {
			return nil, ErrSize
		}
	}
	return u, nil
}

// Intersect returns the points that are in both unions, without redundant rows.
func (u Union) Intersect(v Union) (Union, error) {
	var out Union
	for _, s := range u {
		for _, t := range v {
			both := s.Intersect(t)
			if both.Hollow() {
				continue
			}
			tight, err := both.Tighten()
			if err != nil {
				return nil, err
			}
			if !tight.Clone().tidy() {
				out = append(out, tight)
			}
		}
	}
	if len(out) > maxParts {
		return nil, ErrSize
	}
	return out, nil
}

// Disjoint returns the same points as sets without common points.
func (u Union) Disjoint() (Union, error) {
	var out Union
	for _, s := range u {
		parts, err := Union{s}.Subtract(out)
		if err != nil {
			return nil, err
		}
		out = append(out, parts...)
	}
	return out, nil
}

// Subset reports whether every point of u is in v. Where only rational points are
// outside it may report false.
func (u Union) Subset(v Union) (bool, error) {
	rest, err := u.Subtract(v)
	if err != nil {
		return false, err
	}
	for _, s := range rest {
		hollow, err := s.Empty()
		if err != nil || !hollow {
			return false, err
		}
	}
	return true, nil
}

// Equal reports whether u and v have the same points, with the caution of Subset.
func (u Union) Equal(v Union) (bool, error) {
	below, err := u.Subset(v)
	if err != nil || !below {
		return false, err
	}
	return v.Subset(u)
}

// Image returns the points f(x) for x in s, where row k of f gives coordinate k. The first
// given variables are parameters: they stay, and the image is in these and the coordinates of
// f. exact reports that the image holds no other integer points.
func (s *Set) Image(f []Row, given int) (image *Set, exact bool, err error) {
	wide := &Set{Vars: s.Vars + len(f)} // parameters, coordinates, the other variables
	place := func(r Row) Row {
		w := make(Row, wide.Vars+1)
		copy(w, r[:given])
		copy(w[given+len(f):], r[given:])
		return w
	}
	for _, r := range s.Zero {
		wide.Zero = append(wide.Zero, place(r))
	}
	for _, r := range s.Positive {
		wide.Positive = append(wide.Positive, place(r))
	}
	for k, r := range f {
		e := place(r)
		e[given+k]--
		wide.Zero = append(wide.Zero, e)
	}
	exact = true
	for v := wide.Vars - 1; v >= given+len(f); v-- {
		var sure bool
		if wide, sure, err = wide.Project(v); err != nil {
			return nil, false, err
		}
		exact = exact && sure
	}
	image = &Set{Vars: given + len(f)}
	narrow := func(r Row) Row {
		return append(append(Row{}, r[:image.Vars]...), r[wide.Vars])
	}
	for _, r := range wide.Zero {
		image.Zero = append(image.Zero, narrow(r))
	}
	for _, r := range wide.Positive {
		image.Positive = append(image.Positive, narrow(r))
	}
	image, err = image.Tighten()
	return image, exact, err
}

// Preimage returns the points x of n variables for which f(x) is in s; f is as in
// Image.
func (s *Set) Preimage(f []Row, n, given int) (*Set, error) {
	out := &Set{Vars: n}
	pull := func(r Row) (Row, error) {
		p := make(Row, n+1)
		copy(p, r[:given])
		p[n] = r[s.Vars]
		for k, g := range f {
			var err error
			if p, err = combine(1, p, r[given+k], g, true); err != nil {
				return nil, err
			}
		}
		return p, nil
	}
	for _, r := range s.Zero {
		p, err := pull(r)
		if err != nil {
			return nil, err
		}
		out.Zero = append(out.Zero, p)
	}
	for _, r := range s.Positive {
		p, err := pull(r)
		if err != nil {
			return nil, err
		}
		out.Positive = append(out.Positive, p)
	}
	return out, nil
}
