package schedule

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/pce-engine/pce/compile/reduction"
	"github.com/pce-engine/pce/compile/reduction/polyhedron"
	"github.com/pce-engine/pce/compile/reduction/simplex"
)

// ErrCycle means that no schedule was found: elements may need themselves.
var ErrCycle = errors.New("schedule: no order of the elements")

// CycleError names the arrays that need each other without an order. It matches ErrCycle.
type CycleError struct{ Arrays []string }

func (e *CycleError) Error() string {
	return fmt.Sprintf("schedule: no affine order of %s, which need each other", strings.Join(e.Arrays, ", "))
}

// Is makes the error match ErrCycle, and reduction.ErrProgram: it is the program that has to change.
func (e *CycleError) Is(target error) bool {
	return target == ErrCycle || target == reduction.ErrProgram
}

// Schedule says when elements are computed: at a lexicographic time for each array.
type Schedule struct {
	params int
	times  map[string][]Time
	small  bool // whether coefficients are to be small
}

// Time is a component of an array's time: an affine function of its indices, or, if Row is nil,
// the place of the array among the components that are computed one after the other.
type Time struct {
	Row   polyhedron.Row // parameters, indices, 1
	Place int64
}

// Times returns the components of the time of an array's elements, the most important
// first. Arrays may have different numbers of them.
func (s *Schedule) Times(array string) []Time { return s.times[array] }

// Direction compares the times of elements u and u+r of an array: 1 if u+r is later,
// -1 if it is earlier, 0 if the schedule computes both at one time.
func (s *Schedule) Direction(array string, r []int64) int {
	for _, t := range s.times[array] {
		if t.Row == nil {
			continue
		}
		d, ok := polyhedron.Dot(t.Row[s.params:len(t.Row)-1], r)
		switch {
		case !ok:
			return 0
		case d > 0:
			return 1
		case d < 0:
			return -1
		}
	}
	return 0
}

// New finds a schedule by which every element is later than what it needs, or fails with
// a CycleError. Components of arrays that need each other follow one another; within one,
// rows are found one at a time: every dependence that is open must not go back in time,
// as many as possible go forward by 1 or more and are closed, and the coefficients
// are small. What remains open is divided into components again.
func New(p *reduction.Program, deps []*Dependence) (*Schedule, error) {
	return find(p, deps, true)
}

// Any is New in less time: coefficients may be large. It fails where New does.
func Any(p *reduction.Program, deps []*Dependence) (*Schedule, error) {
	return find(p, deps, false)
}

func find(p *reduction.Program, deps []*Dependence, small bool) (*Schedule, error) {
	s := &Schedule{params: len(p.Params), times: map[string][]Time{}, small: small}
	var arrays []string
	for _, a := range p.Arrays {
		if !a.Input {
			arrays = append(arrays, a.Name)
		}
	}
	return s, s.order(p, arrays, deps)
}

// order appends times to those of the arrays until all dependences among them are closed.
func (s *Schedule) order(p *reduction.Program, arrays []string, deps []*Dependence) error {
	needs := map[string][]string{}
	for _, d := range deps {
		needs[d.Target] = append(needs[d.Target], d.Source)
	}
	for place, c := range components(arrays, needs) {
		inside := map[string]bool{}
		for _, a := range c {
			inside[a] = true
			s.times[a] = append(s.times[a], Time{Place: int64(place)})
		}
		var own []*Dependence
		for _, d := range deps {
			if inside[d.Target] && inside[d.Source] {
				own = append(own, d)
			}
		}
		if len(own) == 0 {
			continue
		}
		slices.Sort(c)
		choices, err := s.row(p, c, own)
		if err != nil {
			return err
		}
		if err := s.first(p, c, choices); err != nil {
			return err
		}
	}
	return nil
}

// first takes the first choice of rows with which the rest finds an order.
func (s *Schedule) first(p *reduction.Program, arrays []string, choices []choice) (err error) {
	before := map[string]int{}
	for _, a := range arrays {
		before[a] = len(s.times[a])
	}
	for _, c := range choices {
		for _, a := range arrays {
			s.times[a] = append(s.times[a][:before[a]], Time{Row: c.rows[a]})
		}
		if err = s.order(p, arrays, c.open); !errors.Is(err, ErrCycle) {
			return err
		}
	}
	return err
}

// row finds one row for each array of a component: choices, the best first. It tries without the parameters first.
func (s *Schedule) row(p *reduction.Program, arrays []string, deps []*Dependence) ([]choice, error) {
	for _, withParams := range []bool{false, true} {
		f := &farkas{prog: p, withParams: withParams, at: map[string]int{}}
		for _, a := range arrays {
			f.at[a] = f.n
			f.n += len(p.Array(a).Extents) + 1
			if withParams {
				f.n += len(p.Params)
			}
		}
		for _, d := range deps {
			if err := f.add(d); err != nil {
				return nil, err
			}
		}
		rows, forward := f.closeMost(len(deps))
		if !slices.Contains(forward, true) {
			continue
		}
		if s.small {
			rows = f.smallest(forward)
		}
		if rows == nil {
			return nil, polyhedron.ErrOverflow
		}
		var out []choice
		if s.small {
			out = f.late(arrays, deps, rows, forward)
		}
		return append(out, f.choose(arrays, deps, rows, forward)), nil
	}
	return nil, &CycleError{slices.Clone(arrays)}
}

// farkas collects what a row must fulfil. The unknowns are, for each array, the
// coefficients of its indices, of the parameters if wanted, and a constant. A function
// that is affine on a polyhedron is at least 0 there if and only if it is at least 0 at the
// points, and not falling along the rays, that generate it: the dual form of Farkas's lemma.
type farkas struct {
	prog       *reduction.Program
	withParams bool
	at         map[string]int // of an array's first unknown
	n          int
	keep       []condition
}

// condition says that the unknowns times row are at least 0 or, where the dependence is
// to go forward, at least height.
type condition struct {
	dependence int
	row        []int64
	height     int64 // 0 along a ray
	line       bool  // the row is to be 0
}

// add appends the conditions of a dependence.
func (f *farkas) add(d *Dependence) error {
	number := 0
	if len(f.keep) > 0 {
		number = f.keep[len(f.keep)-1].dependence + 1
	}
	g, err := d.Set.Generators()
	if err != nil {
		return err
	}
	before := len(f.keep)
	for k, x := range append(slices.Clone(g.Lines), g.Rays...) {
		c := condition{dependence: number, row: make([]int64, f.n), height: x[d.Set.Vars], line: k < len(g.Lines)}
		for _, end := range []struct {
			array string
			index []polyhedron.Row
			sign  int64
		}{{d.Target, d.To, 1}, {d.Source, d.From, -1}} {
			u := f.at[end.array]
			place := func(v int64) {
				c.row[u] += end.sign * v
				u++
			}
			for _, r := range end.index {
				v, ok := polyhedron.Dot(r, x)
				if !ok || v > 1<<40 || v < -1<<40 {
					return polyhedron.ErrOverflow
				}
				place(v)
			}
			if f.withParams {
				for q := range f.prog.Params {
					place(x[q])
				}
			}
			place(x[d.Set.Vars])
		}
		f.keep = append(f.keep, c)
	}
	if len(f.keep) == before { // an empty set: nothing to fulfil, but a place for its number
		f.keep = append(f.keep, condition{dependence: number, row: make([]int64, f.n)})
	}
	return nil
}

// closeMost finds the most dependences that a row can close at once. Unknowns may be
// multiplied by any positive number, so a dependence that can go forward at all can go
// forward by 1. It returns such a row too.
func (f *farkas) closeMost(deps int) (row []int64, forward []bool) {
	lp := &simplex.Problem{Vars: f.n + deps, Objective: make([]int64, f.n+deps)}
	for k := range deps {
		lp.Objective[f.n+k] = 1
		low, high := make([]int64, lp.Vars+1), make([]int64, lp.Vars+1)
		low[f.n+k], high[f.n+k], high[lp.Vars] = 1, -1, 1
		lp.Positive = append(lp.Positive, low, high)
	}
	for _, c := range f.keep {
		r := make([]int64, lp.Vars+1)
		copy(r, c.row)
		if c.line {
			lp.Zero = append(lp.Zero, r)
			continue
		}
		r[f.n+c.dependence] = -c.height
		lp.Positive = append(lp.Positive, r)
	}
	lp.Positive, lp.Zero = distinct(lp.Positive), distinct(lp.Zero)
	x := lp.Maximise().Point // all 0 is a point, and the objective is at most deps
	forward = make([]bool, deps)
	for k := range forward {
		forward[k] = x[f.n+k].Cmp(big.NewRat(1, 1)) == 0
	}
	return integers(x[:f.n]), forward
}

// smallest finds the row with the least sum of magnitudes that closes the given
// dependences, and multiplies it until it is of integers.
func (f *farkas) smallest(forward []bool) []int64 {
	n := 2 * f.n // each unknown, and a bound of its magnitude
	lp := &simplex.Problem{Vars: n, Objective: make([]int64, n)}
	for k := range f.n {
		lp.Objective[f.n+k] = -1
		for _, sign := range []int64{1, -1} {
			r := make([]int64, n+1)
			r[k], r[f.n+k] = sign, 1
			lp.Positive = append(lp.Positive, r)
		}
	}
	for _, c := range f.keep {
		r := make([]int64, n+1)
		copy(r, c.row)
		switch {
		case c.line:
			lp.Zero = append(lp.Zero, r)
			continue
		case forward[c.dependence]:
			r[n] = -c.height
		}
		lp.Positive = append(lp.Positive, r)
	}
	lp.Positive, lp.Zero = distinct(lp.Positive), distinct(lp.Zero)
	return integers(lp.Maximise().Point[:f.n]) // closeMost found a point
}

// integers multiplies a vector by the least number that makes it one of integers; nil if these do
// not fit into 64 bits.
func integers(x []*big.Rat) []int64 {
	scale := big.NewInt(1)
	for _, v := range x {
		g := new(big.Int).GCD(nil, nil, scale, v.Denom())
		scale.Mul(scale, new(big.Int).Quo(v.Denom(), g))
	}
	out := make([]int64, len(x))
	for k, v := range x {
		q := new(big.Int).Mul(v.Num(), scale)
		if q.Quo(q, v.Denom()); !q.IsInt64() || q.Int64() == -1<<63 {
			return nil
		}
		out[k] = q.Int64()
	}
	return out
}

// distinct returns the rows without repetitions.
func distinct(rows [][]int64) (out [][]int64) {
	seen := map[string]bool{}
	for _, r := range rows {
		if key := fmt.Sprint(r); !seen[key] {
			seen[key] = true
			out = append(out, r)
		}
	}
	return out
}

// timeRow arranges the unknowns of an array as a row of parameters and indices.
func (f *farkas) timeRow(array string, x []int64) polyhedron.Row {
	x = x[f.at[array]:]
	params, rank := len(f.prog.Params), len(f.prog.Array(array).Extents)
	r := make(polyhedron.Row, params+rank+1)
	copy(r[params:], x[:rank])
	x = x[rank:]
	if f.withParams {
		copy(r, x[:params])
		x = x[params:]
	}
	r[params+rank] = x[0]
	return r
}
