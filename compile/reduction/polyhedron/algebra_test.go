package polyhedron

import (
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
)

func key(x []int64) [3]int64 { return [3]int64(append(slices.Clone(x), 0, 0, 0)[:3]) }

func points(s *Set) map[[3]int64]bool {
	out := map[[3]int64]bool{}
	for _, x := range members(s) {
		out[key(x)] = true
	}
	return out
}

func randomUnion(r *rand.Rand, n int) (u Union) {
	for range 1 + r.IntN(2) {
		u = append(u, randomSet(r, n, 2))
	}
	return u
}

// holds counts the sets of u that hold x.
func (u Union) holds(x []int64) (n int) {
	for _, s := range u {
		if s.Contains(x) {
			n++
		}
	}
	return n
}

// TestAlgebra compares subtraction, intersection, shifts, tightening, equality and inclusion
// with the points of a box.
func TestAlgebra(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 1))
	equal := 0
	for range howMany() / 2 {
		n := 1 + r.IntN(2)
		u, v := randomUnion(r, n), randomUnion(r, n)
		if r.IntN(3) == 0 { // the same points in other words
			parts, err := append(u, v...).Disjoint()
			if err != nil {
				t.Fatal(err)
			}
			u, v = append(u, v...), parts
		}
		minus, err := u.Subtract(v)
		if err != nil {
			t.Fatal(err)
		}
		both, err := u.Intersect(v)
		if err != nil {
			t.Fatal(err)
		}
		apart, err := u.Disjoint()
		if err != nil {
			t.Fatal(err)
		}
		tight, err := u[0].Tighten()
		if err != nil {
			t.Fatal(err)
		}
		by := make([]int64, n)
		for k := range by {
			by[k] = r.Int64N(5) - 2
		}
		moved, err := u[0].Shift(by)
		if err != nil {
			t.Fatal(err)
		}
		sub, same := true, true
		box(n, func(x []int64) {
			a, b := u.holds(x) > 0, v.holds(x) > 0
			sub, same = sub && (!a || b), same && a == b
			if got := minus.holds(x) > 0; got != (a && !b) {
				t.Fatalf("%v of %v less %v: %v", x, u, v, got)
			}
			if got := both.holds(x) > 0; got != (a && b) {
				t.Fatalf("%v of %v and %v: %v", x, u, v, got)
			}
			if got := apart.holds(x); got > 1 || (got == 1) != a {
				t.Fatalf("%v of the disjoint parts of %v: %d", x, u, got)
			}
			if got := tight.Contains(x); got != u[0].Contains(x) {
				t.Fatalf("%v of %v, tightened to %v: %v", x, u[0], tight, got)
			}
			y := slices.Clone(x)
			for k := range y {
				y[k] += by[k]
			}
			if got := moved.Contains(y); got != u[0].Contains(x) {
				t.Fatalf("%v of %v shifted by %v: %v", y, u[0], by, got)
			}
		})
		for _, s := range u {
			for _, q := range minus {
				if len(u) == 1 && q.Hollow() {
					t.Fatalf("%v less %v has the empty part %v", s, v, q)
				}
			}
		}
		gotSub, err := u.Subset(v)
		if err != nil {
			t.Fatal(err)
		}
		gotSame, err := u.Equal(v)
		if err != nil {
			t.Fatal(err)
		}
		if gotSub && !sub || gotSame && !same {
			t.Fatalf("%v and %v: subset %v, want %v; equal %v, want %v", u, v, gotSub, sub, gotSame, same)
		}
		if same && gotSame {
			equal++
		}
	}
	if equal < howMany()/30 {
		t.Errorf("%d pairs of equal sets were found equal: the test says little", equal)
	}
}

// TestTighten checks that no row of a tightened set is redundant or saturated, over the rational
// numbers: each inequality excludes a point that the others allow.
func TestTighten(t *testing.T) {
	r := rand.New(rand.NewPCG(12, 1))
	for range howMany() / 2 {
		s := randomSet(r, 1+r.IntN(3), 2)
		c, err := s.Tighten()
		if err != nil {
			t.Fatal(err)
		}
		if c.Hollow() {
			if len(c.Positive) != 1 || len(members(s)) > 0 {
				t.Fatalf("%v is tightened to %v", s, c)
			}
			continue
		}
		for k, row := range c.Positive {
			rest := &Set{Vars: c.Vars, Zero: c.Zero, Positive: slices.Delete(slices.Clone(c.Positive), k, k+1)}
			if rest.Implies(row) || c.Saturated(row) {
				t.Fatalf("%v is tightened to %v, with %v", s, c, row)
			}
		}
	}
}

// TestImageAndPreimage compares images under random affine maps with the points of a box.
func TestImageAndPreimage(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 1))
	exactly := 0
	for range howMany() / 2 {
		n := 2 + r.IntN(2)
		given := r.IntN(2)
		s := randomSet(r, n, 1)
		f := make([]Row, 1+r.IntN(n-given))
		for k := range f {
			f[k] = make(Row, n+1)
			for v := range n + 1 {
				f[k][v] = r.Int64N(3) - 1
			}
		}
		at := func(x []int64) []int64 {
			y := slices.Clone(x[:given])
			for _, row := range f {
				v, _ := row.Eval(x)
				y = append(y, v)
			}
			return y
		}
		image, exact, err := s.Image(f, given)
		if err != nil {
			t.Fatal(err)
		}
		want := map[[3]int64]bool{}
		for _, x := range members(s) {
			y := at(x)
			want[key(y)] = true
			if !image.Contains(y) {
				t.Fatalf("%v of %v has the image %v, which %v lacks", x, s, y, image)
			}
		}
		if exact {
			exactly++
			box(image.Vars, func(y []int64) {
				if image.Contains(y) && !want[key(y)] {
					t.Fatalf("%v is in the image %v of %v under %v, of no point", y, image, s, f)
				}
			})
		}
		back, err := image.Preimage(f, n, given)
		if err != nil {
			t.Fatal(err)
		}
		box(n, func(x []int64) {
			if got := back.Contains(x); got != image.Contains(at(x)) {
				t.Fatalf("%v is in the preimage of %v under %v: %v", x, image, f, got)
			}
		})
	}
	if exactly < howMany()/8 {
		t.Errorf("%d of %d images exact: the test says little", exactly, howMany()/2)
	}
}

// TestHermite checks the form, and that both matrices generate the same lattice.
func TestHermite(t *testing.T) {
	r := rand.New(rand.NewPCG(14, 1))
	for range howMany() {
		n := 1 + r.IntN(3)
		m := make([][]int64, r.IntN(4))
		for i := range m {
			m[i] = make([]int64, n)
			for j := range m[i] {
				m[i][j] = r.Int64N(9) - 4
			}
		}
		h, err := Hermite(m, n)
		if err != nil {
			t.Fatal(err)
		}
		before := -1
		for i, row := range h {
			p := slices.IndexFunc(row, func(x int64) bool { return x != 0 })
			if p <= before || row[p] < 0 {
				t.Fatalf("%v has the form %v", m, h)
			}
			for _, above := range h[:i] {
				if above[p] < 0 || above[p] >= row[p] {
					t.Fatalf("%v has the form %v", m, h)
				}
			}
			before = p
		}
		box(n, func(x []int64) {
			if generates(h, x) != generates(m, x) {
				t.Fatalf("%v is generated by one of %v and %v", x, m, h)
			}
		})
		kernel, err := Kernel(m, n)
		if err != nil {
			t.Fatal(err)
		}
		box(n, func(x []int64) {
			want := true
			for _, row := range m {
				d, _ := Dot(row, x)
				want = want && d == 0
			}
			if generates(kernel, x) != want {
				t.Fatalf("%v is in the kernel %v of %v: %v", x, kernel, m, !want)
			}
		})
	}
}

// generates reports whether x is an integer combination of rows, by Hermite forms: adding x
// leaves the determinant of a basis, which is the product of the pivots, as it is.
func generates(rows [][]int64, x []int64) bool {
	size := func(m [][]int64) (rank int, det int64) {
		// Integer elimination that is not Hermite's: gcds of all minors of full rank.
		n := len(x)
		for rank = min(len(m), n); rank > 0; rank-- {
			if det = minors(m, n, rank); det != 0 {
				return rank, det
			}
		}
		return 0, 1
	}
	r1, d1 := size(rows)
	r2, d2 := size(append(slices.Clone(rows), x))
	return r1 == r2 && d1 == d2
}

// minors is the greatest common divisor of the minors of k rows and columns, at most 3.
func minors(m [][]int64, n, k int) int64 {
	var g uint64
	var rec func(rows, cols []int)
	rec = func(rows, cols []int) {
		switch {
		case len(rows) < k:
			from := 0
			if len(rows) > 0 {
				from = rows[len(rows)-1] + 1
			}
			for i := from; i < len(m); i++ {
				rec(append(slices.Clone(rows), i), cols)
			}
		case len(cols) < k:
			from := 0
			if len(cols) > 0 {
				from = cols[len(cols)-1] + 1
			}
			for j := from; j < n; j++ {
				rec(rows, append(slices.Clone(cols), j))
			}
		default:
			a := func(i, j int) int64 { return m[rows[i]][cols[j]] }
			var d int64
			switch k {
			case 1:
				d = a(0, 0)
			case 2:
				d = a(0, 0)*a(1, 1) - a(0, 1)*a(1, 0)
			case 3:
				d = a(0, 0)*(a(1, 1)*a(2, 2)-a(1, 2)*a(2, 1)) - a(0, 1)*(a(1, 0)*a(2, 2)-a(1, 2)*a(2, 0)) + a(0, 2)*(a(1, 0)*a(2, 1)-a(1, 1)*a(2, 0))
			}
			g = gcd(g, magnitude(d))
		}
	}
	rec(nil, nil)
	return int64(g)
}

// TestGenerators checks that every generator keeps the rows, that the points and rays span
// the maximum of random objectives that the simplex method finds, and that vertices are those of
// enumeration.
func TestGenerators(t *testing.T) {
	r := rand.New(rand.NewPCG(15, 1))
	unbounded := 0
	for range howMany() / 2 {
		n := 1 + r.IntN(3)
		s := randomSet(r, n, 2)
		if r.IntN(2) == 0 { // without some bounds of the box
			s.Positive = slices.DeleteFunc(s.Positive, func(Row) bool { return r.IntN(3) == 0 })
		}
		g, err := s.Generators()
		if err != nil {
			t.Fatal(err)
		}
		pointed := false
		for _, x := range g.Rays {
			pointed = pointed || x[n] > 0
			for i, row := range append(slices.Clone(s.Positive), s.Zero...) {
				if d, _ := Dot(row, x); d < 0 || d > 0 && i >= len(s.Positive) || x[n] < 0 {
					t.Fatalf("generator %v of %v breaks %v", x, s, row)
				}
			}
		}
		for _, x := range g.Lines {
			for _, row := range append(slices.Clone(s.Positive), s.Zero...) {
				if d, _ := Dot(row, x); d != 0 || x[n] != 0 {
					t.Fatalf("line %v of %v changes %v", x, s, row)
				}
			}
		}
		if c := s.Clone(); pointed == (c.tidy() || c.Hollow()) && len(points(s)) > 0 {
			t.Fatalf("%v has points and no generator that is one: %v", s, g)
		}
		if !pointed {
			continue
		}
		p := s.program()
		p.Objective = make([]int64, n)
		for k := range p.Objective {
			p.Objective[k] = r.Int64N(5) - 2
		}
		var best *big.Rat
		grows := false
		for _, x := range g.Rays {
			d, _ := Dot(p.Objective, x[:n])
			if x[n] == 0 {
				grows = grows || d > 0
			} else if q := big.NewRat(d, x[n]); best == nil || q.Cmp(best) > 0 {
				best = q
			}
		}
		for _, x := range g.Lines {
			d, _ := Dot(p.Objective, x[:n])
			grows = grows || d != 0
		}
		found := p.Maximise()
		if grows {
			unbounded++
			if found.Point != nil {
				t.Fatalf("%v: %v grows without a bound along the generators %v; the simplex method stops at %v", s, p.Objective, g, found.Point)
			}
			continue
		}
		got := new(big.Rat)
		for k, x := range found.Point {
			got.Add(got, new(big.Rat).Mul(x, big.NewRat(p.Objective[k], 1)))
		}
		if found.Point == nil || got.Cmp(best) != 0 {
			t.Fatalf("%v: the maximum of %v is %v at the generators %v, %v by the simplex method", s, p.Objective, best, g, got)
		}
	}
	if unbounded < howMany()/30 {
		t.Errorf("%d unbounded sets: the test says little", unbounded)
	}
}

// TestExtends has sets whose thickness is known.
func TestExtends(t *testing.T) {
	s := &Set{Vars: 3, Positive: []Row{{0, 1, 0, 0}, {1, -1, 0, -1}, {0, 0, 1, 0}, {0, 0, -1, 4}, {1, 0, 0, -1}}} // N; 0 <= i < N, 0 <= j <= 4
	for _, c := range []struct {
		r    []int64
		want bool
	}{{[]int64{0, 1, 0}, true}, {[]int64{0, -1, 0}, true}, {[]int64{0, 0, 1}, false}, {[]int64{0, 1, 1}, false}, {[]int64{0, 0, 0}, true}} {
		if got := s.Extends(c.r); got != c.want {
			t.Errorf("extends along %v: %v, want %v", c.r, got, c.want)
		}
	}
	if empty(2).Extends([]int64{1, 0}) {
		t.Error("an empty set extends")
	}
}

// TestRoundedAway wants no parts that have rational points and, once equalities are found, no integer ones.
func TestRoundedAway(t *testing.T) {
	diagonal := &Set{Vars: 2, Positive: []Row{{1, 1, -1}, {-1, -1, 1}, {1, -1, 0}}} // x+y = 1, x >= y
	below := &Set{Vars: 2, Positive: []Row{{1, -1, -1}}}                            // x > y
	if parts, err := diagonal.Subtract(below); err != nil || len(parts) > 0 {
		t.Errorf("less: %v, %v", parts, err)
	}
	if both, err := (Union{diagonal}).Intersect(Union{{Vars: 2, Positive: []Row{{-1, 1, 0}}}}); err != nil || len(both) > 0 {
		t.Errorf("and: %v, %v", both, err)
	}
}
