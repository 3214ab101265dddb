package polyhedron

import (
	"errors"
	"flag"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
)

var cases = flag.Int("cases", 1000, "random sets for each operation")

// howMany is the number of random cases of a test.
func howMany() int {
	if testing.Short() {
		return *cases / 6
	}
	return *cases
}

// reach bounds the coordinates of random sets.
const reach = 3

// randomSet returns a set in n variables, within a box, with coefficients of at
// most limit.
func randomSet(r *rand.Rand, n int, limit int64) *Set {
	s := &Set{Vars: n}
	row := func() Row {
		row := make(Row, n+1)
		for v := range n {
			if r.IntN(2) == 0 {
				row[v] = r.Int64N(2*limit+1) - limit
			}
		}
		row[n] = r.Int64N(9) - 4
		return row
	}
	for range r.IntN(2) {
		s.Zero = append(s.Zero, row())
	}
	for range r.IntN(4) {
		s.Positive = append(s.Positive, row())
	}
	for v := range n {
		low, high := make(Row, n+1), make(Row, n+1)
		low[v], low[n], high[v], high[n] = 1, reach, -1, reach
		s.Positive = append(s.Positive, low, high)
	}
	return s
}

// box calls visit with every point of the box of random sets.
func box(n int, visit func(x []int64)) {
	x := make([]int64, n)
	var rec func(v int)
	rec = func(v int) {
		if v == n {
			visit(x)
			return
		}
		for k := int64(-reach); k <= reach; k++ {
			x[v] = k
			rec(v + 1)
		}
	}
	rec(0)
}

// members lists the points of s in lexicographic order.
func members(s *Set) (out [][]int64) {
	box(s.Vars, func(x []int64) {
		if s.Contains(x) {
			out = append(out, slices.Clone(x))
		}
	})
	return out
}

func TestProject(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	exactly := 0
	for range howMany() {
		n := 2 + r.IntN(2)
		s := randomSet(r, n, 2)
		v := r.IntN(n)
		p, exact, err := s.Project(v)
		if err != nil {
			t.Fatal(err)
		}
		shadow := map[[3]int64]bool{}
		for _, x := range members(s) {
			x[v] = 0
			shadow[[3]int64(append(x, 0, 0)[:3])] = true
		}
		for _, rows := range [][]Row{p.Zero, p.Positive} {
			for _, row := range rows {
				if row[v] != 0 {
					t.Fatalf("projection of %v along %d mentions it: %v", s, v, row)
				}
			}
		}
		box(n, func(x []int64) {
			if x[v] != 0 {
				return
			}
			in := shadow[[3]int64(append(slices.Clone(x), 0, 0)[:3])]
			if got := p.Contains(x); in && !got || exact && got != in {
				t.Fatalf("%v along %d, exact %v: %v is in the projection: %v, want %v", s, v, exact, x, got, in)
			}
		})
		if exact {
			exactly++
		}
	}
	if exactly < howMany()/4 {
		t.Errorf("%d of %d projections exact: the test says little", exactly, howMany())
	}
}

func TestEmpty(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 1))
	hollow, missed := 0, 0
	for range howMany() {
		s := randomSet(r, 1+r.IntN(3), 2)
		got, err := s.Empty()
		if err != nil {
			t.Fatal(err)
		}
		points := members(s)
		if got && len(points) > 0 {
			t.Fatalf("%v is called empty and holds %v", s, points[0])
		}
		if len(points) == 0 {
			hollow++
			if !got {
				missed++
			}
		}
	}
	if hollow == 0 || missed*10 > hollow {
		t.Errorf("%d of %d empty sets were not found to be", missed, hollow)
	}
}

func TestScan(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	for range howMany() {
		n := 1 + r.IntN(3)
		s := randomSet(r, n, 2)
		given := r.IntN(n + 1)
		c, err := NewScan(s, given)
		if err != nil {
			t.Fatal(err)
		}
		var got [][]int64
		box(given, func(x []int64) {
			c.Points(x, func(x []int64) bool {
				got = append(got, slices.Clone(x))
				return true
			})
		})
		if want := members(s); !slices.EqualFunc(got, want, slices.Equal) {
			t.Fatalf("%v, %d given:\n%v, want\n%v", s, given, got, want)
		}
	}
}

func TestSample(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 1))
	for range howMany() / 10 {
		s := randomSet(r, 1+r.IntN(3), 2)
		x, err := s.Sample(reach, 10000)
		if err != nil {
			t.Fatal(err)
		}
		if (x == nil) != (len(members(s)) == 0) || x != nil && !s.Contains(x) {
			t.Fatalf("%v: sample %v of %v", s, x, members(s))
		}
	}
	far := &Set{Vars: 6, Positive: []Row{{1, 1, 1, 1, 1, 1, -36}}}
	if x, err := far.Sample(6, 5); x != nil || err != nil {
		t.Errorf("found %v, %v with a budget of 5 values", x, err)
	}
	if x, err := far.Sample(6, 6); !slices.Equal(x, []int64{6, 6, 6, 6, 6, 6}) || err != nil {
		t.Errorf("found %v, %v", x, err)
	}
}

// TestCorner looks for points of sets that are far from 0, of which most have corners that are not of integers.
func TestCorner(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 2))
	for range howMany() / 10 {
		s := randomSet(r, 1+r.IntN(3), 3)
		away := make([]int64, s.Vars)
		for v := range away {
			away[v] = r.Int64N(1<<40) - 1<<39
		}
		far, err := s.Shift(away)
		if err != nil {
			t.Fatal(err)
		}
		if x := far.Corner(1000); (x == nil) != (len(members(s)) == 0) || x != nil && !far.Contains(x) {
			t.Fatalf("%v: point %v, of %v", far, x, members(s))
		}
	}
}

func TestCount(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 1))
	counted := 0
	for range howMany() {
		params := 1 + r.IntN(2)
		n := params + 1 + r.IntN(3)
		s := randomSet(r, n, 1)
		for k := range s.Positive { // no bounds but 0 and a parameter
			for v := range n {
				if s.Positive[k][v] == -1 && s.Positive[k][n] == reach && only(s.Positive[k], v) {
					s.Positive[k][n] = 0
					s.Positive[k][r.IntN(params)]++
				}
			}
		}
		c, err := s.Count(params, nil)
		if errors.Is(err, ErrUnbounded) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if !c.Exact {
			continue
		}
		counted++
		scan, err := NewScan(s, params)
		if err != nil {
			t.Fatal(err)
		}
		box(params, func(x []int64) {
			want := int64(0)
			scan.Points(x, func([]int64) bool { want++; return true })
			if got := c.Eval(x); got.Cmp(big.NewInt(want)) != 0 {
				t.Fatalf("%v at %v: %v points, want %d", s, x, got, want)
			}
		})
	}
	if counted < howMany()/3 {
		t.Errorf("%d of %d sets counted: the test says little", counted, howMany())
	}
}

// TestDegree has sets whose growth is known: 0 <= i < N, 0 <= j < M in several ways.
func TestDegree(t *testing.T) {
	box := []Row{ // N, M, i, j
		{0, 0, 1, 0, 0}, {1, 0, -1, 0, -1},
		{0, 0, 0, 1, 0}, {0, 1, 0, -1, -1},
	}
	for _, c := range []struct {
		name  string
		rows  []Row
		zero  []Row
		want  []Monomial
		count int64 // at N = 5, M = 3
		exact bool
	}{
		{"box", nil, nil, []Monomial{{1, 1}}, 15, true},
		{"diagonal", nil, []Row{{0, 0, 1, -1, 0}}, []Monomial{{1, 0}, {0, 1}}, 3, true},
		{"i < 4", []Row{{0, 0, -1, 0, 3}}, nil, []Monomial{{0, 1}}, 12, true},
		{"i + j < 4", []Row{{0, 0, -1, -1, 3}}, nil, []Monomial{{0, 0}}, 9, true},
		{"i < j < 4", []Row{{0, 0, -1, 1, -1}, {0, 0, 0, -1, 3}}, nil, []Monomial{{0, 0}}, 3, true},
		{"2i < N", []Row{{1, 0, -2, 0, -1}}, nil, []Monomial{{1, 1}}, 9, false},
		{"i <= 2j <= i+1", []Row{{0, 0, -1, 2, 0}, {0, 0, 1, -2, 1}}, nil, []Monomial{{1, 0}, {0, 1}}, 5, false},
		{"i <= 3j <= 4", []Row{{0, 0, -1, 3, 0}, {0, 0, 0, -3, 4}}, nil, []Monomial{{0, 0}}, 5, false},
		{"2i = 3j", nil, []Row{{0, 0, 2, -3, 0}}, []Monomial{{1, 0}, {0, 1}}, 2, false},
		{"nothing", []Row{{0, 0, -1, 0, -1}}, nil, nil, 0, true},
	} {
		s := &Set{Vars: 4, Zero: c.zero, Positive: append(append([]Row{}, box...), c.rows...)}
		n, err := s.Count(2, &Set{Vars: 2, Positive: []Row{{1, 0, -1}, {0, 1, -1}}})
		if err != nil {
			t.Fatal(c.name, err)
		}
		d, err := n.Degree()
		if err != nil || !slices.EqualFunc(d, c.want, func(a, b Monomial) bool { return slices.Equal(a, b) }) {
			t.Errorf("%s: degree %v, %v; want %v", c.name, d, err, c.want)
		}
		points, err := NewScan(s, 2)
		if err != nil {
			t.Fatal(err)
		}
		got := int64(0)
		points.Points([]int64{5, 3}, func([]int64) bool { got++; return true })
		if got != c.count || n.Exact != c.exact || n.Exact && n.Eval([]int64{5, 3}).Int64() != c.count {
			t.Errorf("%s: %d points, counted %v, exact %t; want %d, exact %t", c.name, got, n.Eval([]int64{5, 3}), n.Exact, c.count, c.exact)
		}
	}
}

func TestOverflow(t *testing.T) {
	const huge = 1 << 62
	// Eliminating x multiplies coefficients to 2^124, without a common divisor.
	s := &Set{Vars: 3, Positive: []Row{{huge, -1, 5, 0}, {-3, huge - 1, 7, 0}}}
	if _, _, err := s.Project(0); !errors.Is(err, ErrOverflow) {
		t.Errorf("error %v, want ErrOverflow", err)
	}
	// The common divisor of what comes out brings it back into 64 bits.
	s = &Set{Vars: 2, Positive: []Row{{huge, huge, 0}, {-huge, huge, huge}}}
	p, _, err := s.Project(0)
	if err != nil || !p.Contains([]int64{0, 0}) || p.Contains([]int64{0, -1}) {
		t.Errorf("%v, %v; want 2y >= -1", p, err)
	}
	for _, c := range []struct {
		x, y int64
		ok   bool
	}{{1 << 32, 1 << 30, true}, {1 << 32, 1 << 31, false}, {-1 << 32, 1 << 31, true}, {-1 << 32, -1 << 31, false}, {-1 << 63, 1, true}, {-1 << 63, -1, false}, {0, -1 << 63, true}} {
		got, ok := mul(c.x, c.y)
		if ok != c.ok || ok && got != c.x*c.y {
			t.Errorf("%d * %d = %d, %v; want %v", c.x, c.y, got, ok, c.ok)
		}
	}
}

// TestLargePoints wants points in their set whose rows have values beyond 64 bits, and such a point outside of it.
func TestLargePoints(t *testing.T) {
	const large = 5e18
	s := &Set{Vars: 2, Zero: []Row{{2, -1, -large}}, Positive: []Row{{3, -2, 0}}}
	for _, c := range []struct {
		x, y int64
		in   bool
	}{{large, large, true}, {4e18, 3e18, true}, {4e18, 4e18, false}, {-large, -large, false}} {
		if s.Contains([]int64{c.x, c.y}) != c.in {
			t.Errorf("%d, %d: want %v", c.x, c.y, c.in)
		}
	}
	// 0 <= i < N, 0 <= j < 3N - 2M, j < N + M
	s = &Set{Vars: 4, Positive: []Row{{0, 0, 1, 0, 0}, {1, 0, -1, 0, -1}, {0, 0, 0, 1, 0}, {3, -2, 0, -1, -1}, {1, 1, 0, -1, -1}}}
	count, err := s.Count(2, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := new(big.Int).Mul(big.NewInt(large), big.NewInt(large+1))
	if got := count.Eval([]int64{large, 1}); got.Cmp(want) != 0 {
		t.Errorf("%v points; want %v", got, want)
	}
}

func TestUnbounded(t *testing.T) {
	for _, c := range []struct {
		rows  []Row
		above bool
	}{{[]Row{{0, 1, 0}}, true}, {[]Row{{0, -1, 0}}, false}} {
		s := &Set{Vars: 2, Positive: append(c.rows, Row{1, 0, 0}, Row{-1, 0, 5})}
		_, err := NewScan(s, 0)
		var u *UnboundedError
		if !errors.As(err, &u) || !errors.Is(err, ErrUnbounded) || u.Var != 1 || u.Above != c.above {
			t.Errorf("error %v (%+v), want variable 1, above %v", err, u, c.above)
		}
	}
	if _, err := NewScan(&Set{Vars: 1, Positive: []Row{{1, 0}, {0, -1}}}, 0); err != nil {
		t.Errorf("an empty set has no unbounded variables: %v", err)
	}
}

func TestMaxRows(t *testing.T) {
	s := &Set{Vars: 2}
	for k := int64(1); k <= 70; k++ {
		s.Positive = append(s.Positive, Row{1, k, k * k}, Row{-1, k * 3, k*k + 1})
	}
	if _, _, err := s.Project(0); !errors.Is(err, ErrSize) {
		t.Errorf("error %v, want ErrSize", err)
	}
}
