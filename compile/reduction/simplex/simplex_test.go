package simplex

import (
	"flag"
	"math/big"
	"math/rand/v2"
	"testing"
)

var many = flag.Int("cases", 600, "random programs for each test")

// howMany is the number of random cases of a test.
func howMany() int {
	if testing.Short() {
		return *many / 6
	}
	return *many
}

// brute finds the maximum of a program whose points are bounded: it is at the
// solution of some n of the constraints taken as equations.
func brute(p *Problem) (best *big.Rat) {
	rows := append([][]int64{}, p.Positive...)
	rows = append(rows, p.Zero...)
	chosen := make([]int, p.Vars)
	var rec func(k, from int)
	rec = func(k, from int) {
		if k == p.Vars {
			x := equations(rows, chosen)
			if x == nil {
				return
			}
			for i, r := range rows {
				if s := value(r, x).Sign(); s < 0 || s > 0 && i >= len(p.Positive) {
					return
				}
			}
			if v := value(append(append([]int64{}, p.Objective...), 0), x); best == nil || v.Cmp(best) > 0 {
				best = v
			}
			return
		}
		for i := from; i < len(rows); i++ {
			chosen[k] = i
			rec(k+1, i+1)
		}
	}
	rec(0, 0)
	return best
}

func value(r []int64, x []*big.Rat) *big.Rat {
	sum := big.NewRat(r[len(x)], 1)
	for j, v := range x {
		sum.Add(sum, new(big.Rat).Mul(big.NewRat(r[j], 1), v))
	}
	return sum
}

// equations solves the chosen rows by Gauss's elimination; nil if they are dependent.
func equations(rows [][]int64, chosen []int) []*big.Rat {
	n := len(chosen)
	m := make([][]*big.Rat, n)
	for i, c := range chosen {
		m[i] = make([]*big.Rat, n+1)
		for j := range m[i] {
			m[i][j] = big.NewRat(rows[c][j], 1)
		}
		m[i][n].Neg(m[i][n])
	}
	for k := range n {
		p := k
		for p < n && m[p][k].Sign() == 0 {
			p++
		}
		if p == n {
			return nil
		}
		m[k], m[p] = m[p], m[k]
		inverse := new(big.Rat).Inv(m[k][k])
		for j := range m[k] {
			m[k][j].Mul(m[k][j], inverse)
		}
		for i := range m {
			if f := new(big.Rat).Set(m[i][k]); i != k && f.Sign() != 0 {
				for j := range m[i] {
					m[i][j].Sub(m[i][j], new(big.Rat).Mul(f, m[k][j]))
				}
			}
		}
	}
	x := make([]*big.Rat, n)
	for k := range x {
		x[k] = m[k][n]
	}
	return x
}

// random returns a program with limit as the largest number; box bounds its points.
func random(r *rand.Rand, limit int64, box bool) *Problem {
	p := &Problem{Vars: 1 + r.IntN(3)}
	row := func(n int) []int64 {
		row := make([]int64, n)
		for j := range row {
			if r.IntN(3) > 0 {
				row[j] = r.Int64N(2*limit+1) - limit
			}
		}
		return row
	}
	for range r.IntN(4) {
		p.Positive = append(p.Positive, row(p.Vars+1))
	}
	if r.IntN(3) == 0 {
		p.Zero = append(p.Zero, row(p.Vars+1))
	}
	for j := range p.Vars {
		if box {
			low, high := make([]int64, p.Vars+1), make([]int64, p.Vars+1)
			low[j], low[p.Vars], high[j], high[p.Vars] = 1, 3, -1, 3
			p.Positive = append(p.Positive, low, high)
		}
	}
	p.Objective = row(p.Vars)
	return p
}

func TestMaximise(t *testing.T) {
	cases := howMany()
	for _, limit := range []int64{2, 9, 1 << 40} { // the last one overflows 64 bits
		r := rand.New(rand.NewPCG(uint64(limit), 1))
		infeasible := 0
		for range cases {
			p := random(r, limit, true)
			want := brute(p)
			s := p.Maximise()
			if want == nil {
				infeasible++
			}
			if (want == nil) != (s.Status == Infeasible) || s.Status == Unbounded {
				t.Fatalf("%+v: status %v, want a maximum of %v", p, s.Status, want)
			}
			if want == nil {
				continue
			}
			for i, row := range append(append([][]int64{}, p.Positive...), p.Zero...) {
				if v := value(row, s.Point).Sign(); v < 0 || v > 0 && i >= len(p.Positive) {
					t.Fatalf("%+v: %v breaks constraint %v", p, s.Point, row)
				}
			}
			if got := value(append(append([]int64{}, p.Objective...), 0), s.Point); got.Cmp(want) != 0 {
				t.Fatalf("%+v: %v at %v, want %v", p, got, s.Point, want)
			}
		}
		if infeasible < cases/20 || infeasible > cases*19/20 {
			t.Errorf("limit %d: %d of %d programs infeasible: the test says little", limit, infeasible, cases)
		}
	}
}

// TestUnbounded compares programs without bounds with the same ones in two large boxes: the maximum
// grows with the box if and only if it has no bound.
func TestUnbounded(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 1))
	cases := howMany()
	count := map[Status]int{}
	for range cases {
		p := random(r, 3, false)
		got := p.Maximise().Status
		count[got]++
		var at [2]*big.Rat
		for k, reach := range []int64{1000, 2000} {
			b := *p
			for j := range p.Vars {
				low, high := make([]int64, p.Vars+1), make([]int64, p.Vars+1)
				low[j], low[p.Vars], high[j], high[p.Vars] = 1, reach, -1, reach
				b.Positive = append(b.Positive[:len(b.Positive):len(b.Positive)], low, high)
			}
			at[k] = brute(&b)
		}
		want := Optimal
		switch {
		case at[0] == nil:
			want = Infeasible
		case at[0].Cmp(at[1]) != 0:
			want = Unbounded
		}
		if got != want {
			t.Fatalf("%+v: status %v, want %v (%v, %v)", p, got, want, at[0], at[1])
		}
	}
	if len(count) != 3 {
		t.Errorf("outcomes %v: the test says little", count)
	}
}

// TestDegenerate is the program of Beale on which the largest-coefficient rule cycles.
func TestDegenerate(t *testing.T) {
	p := &Problem{Vars: 4, Objective: []int64{75, -15000, 2, -600}, Positive: [][]int64{
		{-25, 6000, 4, -900, 0}, {-50, 9000, 2, -300, 0}, {0, 0, -1, 0, 1},
		{1, 0, 0, 0, 0}, {0, 1, 0, 0, 0}, {0, 0, 1, 0, 0}, {0, 0, 0, 1, 0},
	}}
	s := p.Maximise()
	if s.Status != Optimal || value(append(append([]int64{}, p.Objective...), 0), s.Point).Cmp(big.NewRat(5, 1)) != 0 {
		t.Errorf("status %v at %v, want 5", s.Status, s.Point)
	}
}

// TestMachine compares integers of 64 bits, of all sizes and about the powers of two at which products stop to fit, with
// integers of any size: where the result fits it is the same, and where it does not that is said.
func TestMachine(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 1))
	draw := func() int64 {
		x := int64(1)<<r.IntN(63) + r.Int64N(3) - 1
		if r.IntN(3) == 0 {
			x = r.Int64() >> r.IntN(63)
		}
		if r.IntN(2) == 0 {
			return -x
		}
		return x
	}
	m, u := machine{}, unlimited{}
	large, refused := 0, 0
	for range 20000 {
		a, p, b, c := draw(), draw(), draw(), draw()
		if r.IntN(8) == 0 {
			b, c = 1, 0
		}
		want, _ := u.cross(u.of(a), u.of(p), u.of(b), u.of(c), u.of(1))
		fits := true
		for _, x := range []*big.Int{new(big.Int).Mul(u.of(a), u.of(p)), new(big.Int).Mul(u.of(b), u.of(c)), want} {
			fits = fits && x.IsInt64() && x.Int64() != -1<<63
		}
		got, ok := m.cross(a, p, b, c, 1)
		if ok != fits || ok && got != want.Int64() {
			t.Fatalf("%d*%d - %d*%d: %d (fits: %t), want %v", a, p, b, c, got, ok, want)
		}
		if !ok {
			refused++
		} else if !small(a) || !small(p) || !small(b) || !small(c) {
			large++
		}
		b, p = max(b, -b), max(p, -p)
		if got, want := m.compareProducts(a, p, c, b), u.compareProducts(u.of(a), u.of(p), u.of(c), u.of(b)); got != want {
			t.Fatalf("%d*%d beside %d*%d: %d, want %d", a, p, c, b, got, want)
		}
	}
	if large < 2000 || refused < 2000 {
		t.Errorf("%d large numbers and %d that do not fit: the test says little", large, refused)
	}
}

func TestNothing(t *testing.T) {
	for _, c := range []struct {
		p    Problem
		want Status
	}{
		{Problem{}, Optimal},
		{Problem{Positive: [][]int64{{-1}}}, Infeasible},
		{Problem{Zero: [][]int64{{1}}}, Infeasible},
		{Problem{Positive: [][]int64{{0}}, Zero: [][]int64{{0}}}, Optimal},
		{Problem{Vars: 1}, Optimal},
		{Problem{Vars: 1, Objective: []int64{-1}}, Unbounded},
		{Problem{Vars: 1, Objective: []int64{1}, Positive: [][]int64{{-1, -1 << 62}}}, Optimal},
	} {
		if got := c.p.Maximise().Status; got != c.want {
			t.Errorf("%+v: status %v, want %v", c.p, got, c.want)
		}
	}
}
