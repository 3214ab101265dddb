package polyhedron

// maxGenerators bounds the vertices and rays of a set.
const maxGenerators = 4096

// Generators describes the rational points of a set as sums: a convex combination of
// points, plus multiples of rays that are at least 0, plus any multiples of lines. A
// vector of n+1 numbers ends with 0 for rays and lines; for a point it ends with a positive
// number, which the others have to be divided by.
type Generators struct {
	Lines [][]int64
	Rays  [][]int64 // points and rays
}

// Generators finds the generators of s by the double description method: it adds the
// rows one after the other and keeps the extreme rays of the cone of multiples of (x, 1).
// An empty set has no point among its rays.
func (s *Set) Generators() (*Generators, error) {
	n := s.Vars + 1
	g := &description{}
	for j := range n {
		line := make([]int64, n)
		line[j] = 1
		g.lines = append(g.lines, line)
	}
	last := make(Row, n)
	last[s.Vars] = 1
	if err := g.cut(last, false); err != nil {
		return nil, err
	}
	for _, r := range s.Zero {
		if err := g.cut(r, true); err != nil {
			return nil, err
		}
	}
	for _, r := range s.Positive {
		if err := g.cut(r, false); err != nil {
			return nil, err
		}
	}
	out := &Generators{Lines: g.lines}
	for _, r := range g.rays {
		out.Rays = append(out.Rays, r.x)
	}
	return out, nil
}

// description is a cone while rows are added.
type description struct {
	lines [][]int64
	rays  []extreme
	rows  int // that were added
}

// extreme is an extreme ray and the rows that are 0 on it.
type extreme struct {
	x    []int64
	zero []bool
}

// cut adds row r, as an equality or as an inequality.
func (g *description) cut(r Row, equality bool) error {
	defer func() { g.rows++ }()
	values := func(x []int64) (int64, error) {
		v, ok := Dot(r, x)
		if !ok || v == -1<<63 {
			return 0, ErrOverflow
		}
		return v, nil
	}
	for k, l := range g.lines {
		v, err := values(l)
		if err != nil {
			return err
		}
		if v != 0 {
			return g.cutLine(k, v, values, equality)
		}
	}
	var above, on, below []extreme
	at := map[*int64]int64{}
	for _, e := range g.rays {
		v, err := values(e.x)
		if err != nil {
			return err
		}
		at[&e.x[0]] = v
		switch {
		case v > 0:
			e.zero = append(e.zero, false)
			above = append(above, e)
		case v < 0:
			below = append(below, e)
		default:
			e.zero = append(e.zero, true)
			on = append(on, e)
		}
	}
	next := on
	if !equality {
		next = append(next[:len(next):len(next)], above...)
	}
	for _, p := range above {
		for _, q := range below {
			if !g.adjacent(p, q) {
				continue
			}
			x, err := balance(at[&p.x[0]], q.x, -at[&q.x[0]], p.x)
			if err != nil {
				return err
			}
			zero := make([]bool, g.rows+1)
			for k := range g.rows {
				zero[k] = p.zero[k] && q.zero[k]
			}
			zero[g.rows] = true
			next = append(next, extreme{x, zero})
			if len(next) > maxGenerators {
				return ErrSize
			}
		}
	}
	g.rays = next
	return nil
}

// cutLine adds a row that is v, not 0, on line k: the line becomes a ray, or is
// dropped, and everything else is moved along it until the row is 0 there.
func (g *description) cutLine(k int, v int64, values func([]int64) (int64, error), equality bool) error {
	line := g.lines[k]
	if v < 0 {
		line = append([]int64{}, line...)
		for j := range line {
			line[j] = -line[j]
		}
		v = -v
	}
	move := func(x []int64) ([]int64, error) {
		w, err := values(x)
		if err != nil {
			return nil, err
		}
		return balance(v, x, -w, line)
	}
	g.lines = append(g.lines[:k:k], g.lines[k+1:]...)
	var err error
	for i := range g.lines {
		if g.lines[i], err = move(g.lines[i]); err != nil {
			return err
		}
	}
	for i := range g.rays {
		if g.rays[i].x, err = move(g.rays[i].x); err != nil {
			return err
		}
		g.rays[i].zero = append(g.rays[i].zero, true)
	}
	if !equality {
		zero := make([]bool, g.rows+1)
		for i := range g.rows {
			zero[i] = true
		}
		g.rays = append(g.rays, extreme{line, zero})
	}
	return nil
}

// adjacent reports whether p and q span a face of dimension two: no other ray is on all
// rows that both are on.
func (g *description) adjacent(p, q extreme) bool {
	for _, e := range g.rays {
		if &e.x[0] == &p.x[0] || &e.x[0] == &q.x[0] {
			continue
		}
		common := true
		for k := 0; k < g.rows && common; k++ {
			common = !p.zero[k] || !q.zero[k] || e.zero[k]
		}
		if common {
			return false
		}
	}
	return true
}

// balance returns a*x + b*y, divided by the greatest common divisor of its entries.
func balance(a int64, x []int64, b int64, y []int64) ([]int64, error) {
	r, err := combine(a, append(append(Row{}, x...), 0), b, append(append(Row{}, y...), 0), false)
	if err != nil {
		return nil, err
	}
	normalise(r, false)
	return r[:len(x)], nil
}
