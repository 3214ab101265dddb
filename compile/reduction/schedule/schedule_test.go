package schedule

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pce-engine/pce/compile/reduction"
	"github.com/pce-engine/pce/compile/reduction/polyhedron"
)

func parse(t testing.TB, source string) *reduction.Program {
	t.Helper()
	p, err := reduction.Parse(source)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// shared returns the programs of ../shared/reduction by name.
func shared(t testing.TB) map[string]string {
	t.Helper()
	files, _ := filepath.Glob("../../../../shared/reduction/*.red")
	if len(files) == 0 {
		t.Skip("no programs in ../shared/reduction: put the .red files of the benchmarks there, beside the module")
	}
	out := map[string]string{}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		out[strings.TrimSuffix(filepath.Base(f), ".red")] = string(b)
	}
	return out
}

// time returns the time of an element, with 0 for components that it lacks.
func (s *Schedule) time(array string, params, index []int64) []int64 {
	var out []int64
	for _, c := range s.times[array] {
		v := c.Place
		if c.Row != nil {
			v, _ = c.Row.Eval(append(slices.Clone(params), index...))
		}
		out = append(out, v)
	}
	return out
}

// enumerate checks a schedule at every point of every dependence, at sizes up to most, and
// returns the number of points.
func enumerate(t *testing.T, p *reduction.Program, s *Schedule, deps []*Dependence, most int64) (points int) {
	t.Helper()
	params := make([]int64, len(p.Params))
	at := func(rows []polyhedron.Row, x []int64) []int64 {
		var out []int64
		for _, r := range rows {
			v, _ := r.Eval(x)
			out = append(out, v)
		}
		return out
	}
	var sizes func(k int)
	sizes = func(k int) {
		if k < len(params) {
			for params[k] = 1; params[k] <= most; params[k]++ {
				sizes(k + 1)
			}
			return
		}
		for _, d := range deps {
			scan, err := polyhedron.NewScan(d.Set, len(params))
			if err != nil {
				t.Fatal(err)
			}
			scan.Points(params, func(x []int64) bool {
				points++
				to, from := at(d.To, x), at(d.From, x)
				late, early := s.time(d.Target, params, to), s.time(d.Source, params, from)
				if slices.Compare(late, early) <= 0 {
					t.Fatalf("%s%v at %v needs %s%v at %v; sizes %v", d.Target, to, late, d.Source, from, early, params)
				}
				return true
			})
		}
	}
	sizes(0)
	return points
}

var whole = flag.Bool("whole", false, "also small coefficients for the largest programs")

// TestShared finds a schedule of every shared program and checks it at every dependence.
func TestShared(t *testing.T) {
	for name, source := range shared(t) {
		p := parse(t, source)
		deps, err := Dependences(p)
		if err != nil {
			t.Fatal(name, err)
		}
		finders := []func(*reduction.Program, []*Dependence) (*Schedule, error){Any}
		if len(p.Params) < 4 || *whole { // coefficients of the largest programs take a second to make small
			finders = append(finders, New)
		}
		for _, find := range finders {
			s, err := find(p, deps)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			most := int64(2)
			if len(p.Params) < 2 {
				most = 6
			}
			if n := enumerate(t, p, s, deps, most); n == 0 && len(deps) > 0 {
				t.Errorf("%s: no dependences at sizes up to %d", name, most)
			}
		}
	}
}

// ordersHead declares what orders use.
const ordersHead = "param N, M : N >= 1, M >= 1; input float x[N]; input int w[N] in [0,N);"

// orders are recurrences of several forms, with the arrays that need each other where there is no order.
var orders = []struct{ name, text, cycle string }{
	{"forward", "array float a[N]; output a; a[0] = 1 : { [] : }; a[i] = a[i-1] : { [i] : 1 <= i < N };", ""},
	{"backward", "array float a[N]; output a; a[N-1] = 1 : { [] : }; a[i] = a[i+1] : { [i] : 0 <= i < N-1 };", ""},
	{"skewed", "array float a[N,M]; output a; a[i,j] += a[i-1,j+1] + a[i,j-1] : { [i,j] : 1 <= i < N, 1 <= j < M-1 };", ""},
	{"two dimensions", "array float a[N,M]; output a; a[i,j] += a[i-1,k] : { [i,j,k] : 1 <= i < N, 0 <= j < M, 0 <= k < M }; a[i,j] += a[i,k] : { [i,j,k] : 0 <= i < N, 0 <= j < M, 0 <= k < j };", ""},
	{"with a parameter", "array float a[N], b[N]; output b; a[i] += b[N-i-2] : { [i] : 0 <= i < N-1 }; b[i] += a[N-1-i] : { [i] : 0 <= i < N };", ""},
	{"itself", "array float a[N]; output a; a[i] += a[i] : { [i] : 0 <= i < N };", "a"},
	{"both ways", "array float a[N], b[N]; output a; a[i] += b[j] : { [i,j] : 0 <= i < N, 0 <= j < N }; b[i] += a[i] : { [i] : 0 <= i < N };", "a, b"},
	{"by data", "array float a[N]; output a; a[i] += a[w[i]] : { [i] : 0 <= i < N };", "a"},
	{"guarded by data", "array float a[N]; output a; a[i] += a[j] : { [i,j] : 0 <= i < N, 0 <= j < i } if w[i] == j;", ""},
}

// TestOrders finds schedules of recurrences and enumerates their dependences.
func TestOrders(t *testing.T) {
	for _, c := range orders {
		p := parse(t, ordersHead+c.text)
		deps, err := Dependences(p)
		if err != nil {
			t.Fatal(c.name, err)
		}
		s, err := New(p, deps)
		any, quick := Any(p, deps)
		if (quick == nil) != (err == nil) {
			t.Errorf("%s: Any says %v, New %v", c.name, quick, err)
		} else if err == nil {
			enumerate(t, p, any, deps, 5)
		}
		if c.cycle != "" {
			want := "schedule: no affine order of " + c.cycle + ", which need each other"
			if !errors.Is(err, ErrCycle) || err.Error() != want {
				t.Errorf("%s: error %v, want %s", c.name, err, want)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if enumerate(t, p, s, deps, 5) == 0 {
			t.Errorf("%s: no dependences", c.name)
		}
	}
}

func TestDirection(t *testing.T) {
	p := parse(t, shared(t)["ps"])
	deps, err := Dependences(p)
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(p, deps)
	if err != nil {
		t.Fatal(err)
	}
	for r, want := range map[int64]int{1: 1, -1: -1, 0: 0, 3: 1} {
		if got := s.Direction("B", []int64{r}); got != want {
			t.Errorf("direction of %d: %d, want %d", r, got, want)
		}
	}
}

// TestLate: an array is computed in the step that first reads it, if that is as much later for all elements, and
// unless it is an output or needs itself.
func TestLate(t *testing.T) {
	for _, c := range []struct {
		name, text string
		output     string
		steps      int64 // between s[3] and o[3]
	}{
		{"read once", "o[k] = s[k] : { [k] : 2 <= k < N };", "o", 0},
		{"read again", "o[k] = s[k] + s[k-1] : { [k] : 2 <= k < N };", "o", 0},
		{"read at two distances", "o[k] = s[k] : { [k] : 2 <= k < N }; o[k] = s[k-N] : { [k] : N <= k < M };", "o", 1},
		{"output", "o[k] = s[k] : { [k] : 2 <= k < N };", "o, s", 1},
		{"needs itself", "o[k] = s[k] : { [k] : 2 <= k < N }; s[k] += s[k-1]/2 : { [k] : 2 <= k < N };", "o", 1},
	} {
		p := parse(t, "param N, M : N >= 4, M >= N, M <= 2*N; size N = 6, M = 9; input float x[N]; array float s[N], o[M]; output "+c.output+`;
o[k] = 1 : { [k] : 0 <= k < 2 };
s[k] += x[k]*o[k-1] : { [k] : 1 <= k < N };
`+c.text)
		deps, err := Dependences(p)
		if err != nil {
			t.Fatal(c.name, err)
		}
		s, err := New(p, deps)
		if err != nil {
			t.Fatal(c.name, err)
		}
		if enumerate(t, p, s, deps, 5) == 0 {
			t.Errorf("%s: no dependences", c.name)
		}
		at := func(array string) int64 { return s.time(array, []int64{6, 9}, []int64{3})[1] }
		if got := at("o") - at("s"); got != c.steps {
			t.Errorf("%s: read %d steps later, want %d", c.name, got, c.steps)
		}
	}
}

// TestInPlace wants the elements of an array that is kept in place in their order, also those that are not read.
func TestInPlace(t *testing.T) {
	for mark, want := range map[string]int{"up": 1, "down": -1} {
		from := map[string]string{"up": "h[k-1] : { [k] : 1 <= k < N }", "down": "h[k+1] : { [k] : 0 <= k < N-1 }"}[mark]
		p := parse(t, "param N : N >= 2; input float x[N]; array float h[N "+mark+"], y[]; output y; h[k] += "+from+
			"; h[k] += x[k] : { [k] : 0 <= k < N }; y[] = 1 : { [] : };")
		deps, err := Dependences(p)
		if err != nil {
			t.Fatal(err)
		}
		s, err := New(p, deps)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Direction("h", []int64{1}); got != want {
			t.Errorf("%s: h[k+1] is %d from h[k], want %d", mark, got, want)
		}
	}
}
