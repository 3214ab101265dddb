package simplify

import (
	"flag"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

var programs = flag.Int("programs", 100, "random programs whose degree is compared with the best")

// TestOptimal compares the degree that Simplify reaches on random programs with the best that there is: a search over
// faces and vectors of coefficients from -2 to 2, which works on lists of points at a few sizes and shares
// nothing with Simplify. An order is legal if the elements at two sizes have no cycle.
func TestOptimal(t *testing.T) {
	n := *programs
	if testing.Short() {
		n /= 40
	}
	for _, op := range []string{"+=", "max="} {
		r := rand.New(rand.NewPCG(19, 5))
		reached, better, missed, stuck, linked, ordered := 0, 0, 0, 0, 0, 0
		for reached+better+missed < n {
			e := randomEquations(r)
			if e == nil {
				continue
			}
			source := e.source(op)
			p := parse(t, source)
			before := e.written()
			if before == e.least() { // nothing to gain
				continue
			}
			best := e.best(op == "+=")
			if best == before {
				stuck++
			}
			if slices.ContainsFunc(e, func(q *equation) bool {
				return slices.ContainsFunc(q.reads, func(a access) bool { return a.array >= 0 })
			}) {
				linked++
			}
			q, report, err := Simplify(p)
			if err != nil {
				t.Fatalf("%v in\n%s", err, source)
			}
			if slices.ContainsFunc(report.Refused, func(r Refusal) bool { return strings.Contains(r.Reason, "before they are there") }) {
				ordered++
			}
			c, err := q.Cost(true)
			if err != nil {
				t.Errorf("%v in\n%s, from\n%s%v", err, q, source, report.Steps)
				missed++
				continue
			}
			d, err := c.Degree()
			if err != nil {
				t.Fatal(err)
			}
			got := 0
			for _, m := range d.Monomials {
				got = max(got, m[0])
			}
			switch {
			case got == best:
				reached++
			case got < best:
				better++
			case op == "+=":
				missed++
				t.Errorf("degree %d, want %d, written %d:\n%s%v\n%v", got, best, before, source, report.Steps, report.Refused)
			default:
				missed++
				t.Logf("%s: degree %d, the best is %d, written %d:\n%s", op, got, best, before, source)
			}
			if err := same(p, q, map[string]int64{"N": 5}, uint64(reached), 1e-9); err != nil {
				t.Errorf("%v in\n%s", err, source)
			}
		}
		t.Logf("%s: %d programs reach the best degree, %d a better one by decomposing sums, %d do not; %d cannot be simplified, in %d arrays need arrays, in %d the order forbids a vector", op, reached, better, missed, stuck, linked, ordered)
		if stuck > n/2 || linked < n/4 {
			t.Error("the test says little")
		}
	}
}

// sizes are those at which points are counted, whose differences tell a degree up to 3, and then two at which orders are
// checked.
var sizes = []int{8, 10, 12, 14, 5, 7}

const counted = 4

// point packs the coordinates of a point, or of an element, each of which is from -8 to 23.
type point int32

func pack(z []int) (p point) {
	for _, x := range z {
		p = p<<5 | point(x+8)
	}
	return p
}

func unpack(p point, n int) []int {
	z := make([]int, n)
	for k := n - 1; k >= 0; k-- {
		z[k] = int(p&31) - 8
		p >>= 5
	}
	return z
}

// delta is what a move by r adds to a point.
func delta(r []int) point { return pack(r) - pack(make([]int, len(r))) }

// shifted is z + sign*r.
func shifted(z []int, sign int, r []int) []int {
	y := slices.Clone(z)
	for d := range y {
		y[d] += sign * r[d]
	}
	return y
}

// points lists the points of q at a size.
func (q *equation) points(n int) (out []point) {
	z := make([]int, q.dims)
	var walk func(d int)
	walk = func(d int) {
		if d == q.dims {
			if !slices.ContainsFunc(q.rows, func(row []int) bool { return evaluate(row, z, n) < 0 }) {
				out = append(out, pack(z))
			}
			return
		}
		for z[d] = 0; z[d] < n; z[d]++ {
			walk(d + 1)
		}
	}
	walk(0)
	return out
}

// element is what a point writes.
func (q *equation) element(p point) (u point) {
	for _, d := range q.index {
		u = u<<5 | p>>(5*(q.dims-1-d))&31
	}
	return u
}

// growth is the degree in N of the numbers of points at the sizes: the order of the last difference that is not 0.
func growth(lists [][]point) int {
	counts := make([]int, counted)
	for k := range counts {
		counts[k] = len(lists[k])
	}
	degree := 0
	for d := 0; len(counts) > 0; d++ {
		if slices.ContainsFunc(counts, func(c int) bool { return c != 0 }) {
			degree = d
		}
		var next []int
		for k := 1; k < len(counts); k++ {
			next = append(next, counts[k]-counts[k-1])
		}
		counts = next
	}
	return degree
}

// written is the degree of the program as it is.
func (e equations) written() (degree int) {
	for _, q := range e {
		degree = max(degree, q.whole.degree())
	}
	return degree
}

// least is the degree of what has to be written in any case.
func (e equations) least() (degree int) {
	for _, q := range e {
		degree = max(degree, len(q.index))
	}
	return degree
}

// face is a part of the points of a reduction, at each size, with tests that tell whether a point is of it. A point
// writes the element of the reduction that is by away from its own.
type face struct {
	q     *equation
	array int
	at    [][]point
	in    [][]bool
	tests []func(z []int, n int) bool
	by    []int
	steps []*step // filled when it is asked for
}

// all is the face of all points of the equation of an array.
func (q *equation) all(array int) *face {
	f := &face{q: q, array: array, by: make([]int, len(q.index))}
	for _, n := range sizes {
		f.at = append(f.at, q.points(n))
	}
	for _, row := range q.rows {
		f.tests = append(f.tests, func(z []int, n int) bool { return evaluate(row, z, n) >= 0 })
	}
	return f.ready()
}

// ready marks the points.
func (f *face) ready() *face {
	for _, list := range f.at {
		in := make([]bool, 1<<(5*f.q.dims))
		for _, p := range list {
			in[p] = true
		}
		f.in = append(f.in, in)
	}
	return f
}

func (f *face) degree() int { return growth(f.at) }

// step is a start of the elements of a face from their neighbours.
type step struct {
	ru      []int
	parts   []*face   // what is left to do
	lacking bool      // whether a neighbour has too much
	common  [][]point // elements that have a neighbour
}

// split makes the step along r.
func (f *face) split(r []int) *step {
	q, by := f.q, delta(r)
	s := &step{}
	for _, d := range q.index {
		s.ru = append(s.ru, r[d])
	}
	shared := make([][]bool, len(sizes))
	for k := range sizes {
		shared[k] = make([]bool, 1<<(5*len(q.index)))
		s.common = append(s.common, nil)
		for _, p := range f.at[k] {
			if u := q.element(p); f.in[k][p-by] && !shared[k][u] {
				shared[k][u] = true
				s.common[k] = append(s.common[k], u)
			}
		}
	}
	parts := map[[2]int]*face{} // by the sign of the move, and the first test that fails then
	place := func(k, sign int, p point) *face {
		y := shifted(unpack(p, q.dims), sign, r)
		which := slices.IndexFunc(f.tests, func(t func([]int, int) bool) bool { return !t(y, sizes[k]) })
		g := parts[[2]int{sign, which}]
		if g == nil {
			g = &face{q: q, array: f.array, at: make([][]point, len(sizes)), by: f.by, tests: slices.Clone(f.tests)}
			for j, t := range f.tests[:which+1] {
				g.tests = append(g.tests, func(z []int, n int) bool { return t(shifted(z, sign, r), n) == (j < which) })
			}
			parts[[2]int{sign, which}] = g
			s.parts = append(s.parts, g)
		}
		g.at[k] = append(g.at[k], p)
		return g
	}
	for k := range sizes {
		for _, p := range f.at[k] {
			if !f.in[k][p-by] {
				place(k, -1, p)
			}
			if f.in[k][p+by] || !shared[k][q.element(p+by)] {
				continue
			}
			s.lacking = true
			if g := place(k, 1, p); len(g.by) > 0 && &g.by[0] == &f.by[0] { // a new one
				g.by = shifted(f.by, 1, s.ru)
				g.tests = append(g.tests, func(z []int, n int) bool { return shared[slices.Index(sizes, n)][q.element(pack(z)+by)] })
			}
		}
	}
	for _, g := range s.parts {
		g.ready()
	}
	return s
}

// all returns the steps of a face that leave less to do.
func (f *face) all() []*step {
	if f.steps == nil {
		f.steps = []*step{}
		for _, r := range f.q.vectors() {
			s := f.split(r)
			if !slices.ContainsFunc(s.parts, func(g *face) bool { return g.degree() >= f.degree() }) {
				f.steps = append(f.steps, s)
			}
		}
	}
	return f.steps
}

// vectors lists those along which a reduction's body does not change and its elements do.
func (q *equation) vectors() (out [][]int) {
	r := make([]int, q.dims)
	var walk func(d int)
	walk = func(d int) {
		if d < q.dims {
			for r[d] = -2; r[d] <= 2; r[d]++ {
				walk(d + 1)
			}
			return
		}
		for _, a := range q.reads {
			for _, x := range a.index {
				sum := 0
				for d, c := range r {
					sum += c * x[d]
				}
				if sum != 0 {
					return
				}
			}
		}
		if slices.ContainsFunc(q.index, func(d int) bool { return r[d] != 0 }) {
			out = append(out, slices.Clone(r))
		}
	}
	walk(0)
	return out
}

// work is a face that may have to be simplified, below the step of another, or of none.
type work struct {
	face  *face
	below *chosen
}

// chosen is a step that was taken.
type chosen struct {
	work
	*step
}

// best is the least degree of a choice of steps, for all faces of all reductions, that leaves an order.
func (e equations) best(inverse bool) int {
	for degree := e.least(); ; degree++ {
		var open []*work
		possible := true
		for _, q := range e {
			w := &work{q.whole, nil}
			open = append(open, w)
			possible = possible && e.search([]*work{w}, nil, degree, inverse, false)
		}
		if possible && e.search(open, nil, degree, inverse, true) {
			return degree
		}
	}
}

// search reports whether steps can be found so that all open faces have a degree, with an order if ordered.
func (e equations) search(open []*work, taken []*chosen, degree int, inverse, ordered bool) bool {
	if len(open) == 0 {
		return true
	}
	w, rest := open[0], open[1:]
	if w.face.degree() <= degree {
		return e.search(rest, taken, degree, inverse, ordered)
	}
	for _, s := range w.face.all() {
		if s.lacking && !inverse || growth(s.common) > degree {
			continue
		}
		c := &chosen{*w, s}
		next := append(slices.Clone(taken), c)
		if ordered && e.cyclic(next) {
			continue
		}
		more := slices.Clone(rest)
		for _, g := range s.parts {
			more = append(more, &work{g, c})
		}
		if e.search(more, next, degree, inverse, ordered) {
			return true
		}
	}
	return false
}

// cyclic reports whether an element needs itself, with the steps that are taken, at a size of those for orders.
func (e equations) cyclic(taken []*chosen) bool {
	type node struct {
		owner any // an equation, or a step of a part of it
		u     point
	}
	for k := counted; k < len(sizes); k++ {
		needs := map[node][]node{}
		read := func(owner any, f *face) {
			for _, p := range f.at[k] {
				z := unpack(p, f.q.dims)
				from := node{owner, f.q.element(p) + delta(f.by)}
				for _, a := range f.q.reads {
					if a.array < 0 {
						continue
					}
					var u []int
					for _, x := range a.index {
						u = append(u, evaluate(x, z, sizes[k]))
					}
					needs[from] = append(needs[from], node{e[a.array], pack(u)})
				}
			}
		}
		for _, q := range e {
			read(q, q.whole)
		}
		owner := func(c *chosen) any {
			if c.below == nil {
				return c.face.q
			}
			return c
		}
		for _, c := range taken {
			if c.below != nil {
				read(c, c.face)
				for _, p := range c.face.at[k] {
					u := c.face.q.element(p) + delta(c.face.by)
					from := node{owner(c.below), u}
					needs[from] = append(needs[from], node{c, u})
				}
			}
			for _, u := range c.common[k] {
				from := node{owner(c), u + delta(c.face.by)}
				needs[from] = append(needs[from], node{owner(c), from.u - delta(c.ru)})
			}
		}
		state := map[node]int{} // 1: being visited, 2: done
		var visit func(x node) bool
		visit = func(x node) bool {
			if state[x] != 0 {
				return state[x] == 1
			}
			state[x] = 1
			if slices.ContainsFunc(needs[x], visit) {
				return true
			}
			state[x] = 2
			return false
		}
		for x := range needs {
			if visit(x) {
				return true
			}
		}
	}
	return false
}
