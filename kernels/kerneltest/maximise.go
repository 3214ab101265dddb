package kerneltest

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/kernels/tensor"
	"github.com/pce-engine/pce/layers"
)

// testMaximise compares the values of rows by maxima, their bounds and the completions
// that are chosen with those of the reference.
func testMaximise(t *testing.T, open Open, depth Depth) {
	t.Run("random", func(t *testing.T) {
		cases(t, depth.count(60), func(t *testing.T, c *randomCase) {
			checkMaximise(t, open, c, queried(c))
		})
	})
	t.Run("structures", func(t *testing.T) {
		eachQueried(t, depth, func(t *testing.T, c *randomCase, rows [][]float64) { checkMaximise(t, open, c, rows) })
	})
	t.Run("deterministic", func(t *testing.T) { testModes(t, open) })
	t.Run("ties", func(t *testing.T) { testTies(t, open) })
	t.Run("alone", func(t *testing.T) { testMaximiseAlone(t, open) })
}

// completion is what Maximise makes of a row.
type completion struct {
	row        []float64
	log, bound float64
	units      []int32 // of the functions
}

// same wants another completion of row r to be equal in every bit.
func (c *completion) same(t testing.TB, r int, other completion) {
	t.Helper()
	a, b := append(c.row, c.log, c.bound), append(other.row, other.log, other.bound)
	for i, x := range a {
		if math.Float64bits(x) != math.Float64bits(b[i]) {
			t.Fatalf("row %d is completed as %v with value and bound %v, %v; want %v with %v, %v", r, other.row, other.log, other.bound, c.row, c.log, c.bound)
		}
	}
}

// maximise completes the first rows of a launch, which have given cells.
func (l *launch) maximise(t testing.TB, given [][]float64) []completion {
	t.Helper()
	functions, rows := l.prog.Functions(), len(given)
	a := tensor.MaximiseArgs{
		Params: l.args.Params, Codes: l.args.Codes, Values: l.args.Values,
		Log: make([]float64, rows), Bound: make([]float64, rows), Units: make([]int32, rows*len(functions)),
	}
	for _, f := range functions {
		in := &l.prog.Inputs[f]
		for u := range l.prog.Vectors[in.Vector].Units {
			p, leaf := l.unitParams(in, int(u)), in.Family.(circuit.Leaf)
			a.Modes = append(a.Modes, leaf.LogProb(p, leaf.Mode(p)))
		}
	}
	must(t, l.own.Maximise(context.Background(), rows, &a))
	codes := l.readCodes(t)
	list := make([]completion, rows)
	for r := range list {
		c := &list[r]
		c.row, c.log, c.bound = append([]float64{}, given[r]...), a.Log[r], a.Bound[r]
		for _, col := range l.prog.Columns {
			if col.Codes == 0 {
				continue
			}
			if code := codes[int(col.Slot)*l.rows+r]; int32(code) != col.Codes {
				c.row[col.Var] = float64(code)
			}
		}
		for i, f := range functions {
			in, u := &l.prog.Inputs[f], a.Units[i*rows+r]
			c.units = append(c.units, u)
			if v := l.prog.Columns[in.Column].Var; u >= 0 && math.IsNaN(given[r][v]) {
				c.row[v] = in.Family.(circuit.Leaf).Mode(l.unitParams(in, int(u)))
			}
		}
	}
	return list
}

// checkMaximise compares values and bounds with the reference, within the rounding of
// log-likelihoods. By the reference, too, a completion has the value.
func checkMaximise(t *testing.T, open Open, c *randomCase, rows [][]float64) {
	t.Helper()
	dev := open(t)
	defer dev.Close()
	ev := c.evaluator(t)
	l := newLaunch(t, dev, c, rows, layers.Module{Queries: true})
	for r, got := range l.maximise(t, rows) {
		given := rows[r]
		bound, err := ev.Bound(given)
		must(t, err)
		_, want, err := ev.Maximise(given)
		if errors.Is(err, reference.ErrRow) {
			if !math.IsInf(got.log, -1) || !math.IsInf(got.bound, -1) {
				t.Errorf("row %d is impossible: value %v, bound %v", r, got.log, got.bound)
			}
			for v, x := range got.row {
				if math.Float64bits(x) != math.Float64bits(given[v]) {
					t.Errorf("row %d is impossible, variable %d was %v, is %v", r, v, given[v], x)
				}
			}
			for i, u := range got.units {
				if u != -1 {
					t.Errorf("row %d is impossible and takes unit %d of function %d", r, u, i)
				}
			}
			continue
		}
		must(t, err)
		if want < leastFinite && math.IsInf(got.log, -1) {
			continue
		}
		tol := 1e-5 * max(1, math.Abs(want))
		if !near(got.log, want, tol) || !near(got.bound, bound, 1e-5*max(1, math.Abs(bound))) {
			t.Errorf("row %d: value %v, bound %v; want %v, %v (%v)", r, got.log, got.bound, want, bound, given)
		}
		for v, x := range got.row {
			if !math.IsNaN(given[v]) && x != given[v] {
				t.Errorf("row %d: variable %d was %v, is %v", r, v, given[v], x)
			}
			if math.IsNaN(x) && l.column(v) >= 0 {
				t.Errorf("row %d: variable %d is missing still", r, v)
			}
		}
		if _, value, err := ev.Maximise(got.row); err != nil || !near(value, want, 2*tol) {
			t.Errorf("row %d: %v has the value %v, want %v: %v", r, got.row, value, want, err)
		}
	}
}

// testModes compares completions with the most probable ones where maxima find them.
func testModes(t *testing.T, open Open) {
	rng := rand.New(rand.NewPCG(81, 82))
	for vars := 1; vars <= 7; vars++ {
		g, p := reference.Chain(rng, vars, 3)
		c := &randomCase{graph: g, params: p}
		rows := reference.RandomRows(g, rng, 9, 0.6)
		dev := open(t)
		ev := c.evaluator(t)
		for r, got := range newLaunch(t, dev, c, rows, layers.Module{Queries: true}).maximise(t, rows) {
			want, ll, err := ev.MPE(rows[r])
			must(t, err)
			if !near(got.log, ll, 1e-5*max(1, math.Abs(ll))) {
				t.Errorf("%d variables: value %v, want %v", vars, got.log, ll)
			}
			for v, x := range got.row {
				if x != want[v] {
					t.Errorf("%d variables: %v is completed as %v, want %v", vars, rows[r], got.row, want)
					break
				}
			}
		}
		must(t, dev.Close())
	}
}

// testTies wants the first of equal operands and codes.
func testTies(t *testing.T, open Open) {
	nan := math.NaN()
	g, p := &circuit.Graph{NumVars: 3}, reference.Params{}
	half := []float64{0.5, 0.5}
	x := product(g, &p, leaves(g, &p, 0, 0, 1), leaves(g, &p, 1, half...))
	y := product(g, &p, leaves(g, &p, 0, 1, 0), leaves(g, &p, 1, half...))
	normals := normal(g, &p, 2, 1, 1, -1, 1, 2, 1, -2, 1)
	lower := sum(g, &p, 4, []float64{
		0.25, 0.25, 0.25, 0.25,
		0, 0.5, 0.25, 0.25,
		0, 0, 0.5, 0.5,
		0.25, 0.25, 0, 0.5,
	}, x, y)
	sum(g, &p, 1, []float64{0.25, 0.25, 0.25, 0.25}, product(g, &p, lower, normals))
	dev := open(t)
	defer dev.Close()
	c := &randomCase{graph: g, params: p}
	rows := [][]float64{{nan, nan, nan}, {1, nan, nan}, {0, 1, nan}, {0, nan, nan}}
	for r, got := range newLaunch(t, dev, c, rows, layers.Module{Queries: true}).maximise(t, rows) {
		// Units 1, 2 and 3 have an operand of weight one half: 0 with 1, 1 with 2, 1 with 3.
		want := [][]float64{{1, 0, -1}, {1, 0, -1}, {0, 1, 2}, {0, 0, 2}}[r]
		for v, x := range got.row {
			if x != want[v] {
				t.Errorf("%v is completed as %v, want %v", rows[r], got.row, want)
				break
			}
		}
	}
}

// testMaximiseAlone wants the same bits of rows in launches of other sizes.
func testMaximiseAlone(t *testing.T, open Open) {
	rng := rand.New(rand.NewPCG(83, 84))
	for _, o := range []reference.RandomOptions{{MaxUnits: 20}, {Vars: 7, MaxUnits: 40}} {
		g := reference.Random(rng, o)
		c := &randomCase{graph: g, params: initial(t, g)}
		rows := gaps(rng, reference.RandomRows(g, rng, 90, 0.5), 0)
		complete := func(size int) (list []completion) {
			dev := open(t)
			defer dev.Close()
			for lo := 0; lo < len(rows); lo += size {
				part := rows[lo:min(lo+size, len(rows))]
				list = append(list, newLaunch(t, dev, c, part, layers.Module{Queries: true}).maximise(t, part)...)
			}
			return list
		}
		want := complete(len(rows))
		for _, size := range []int{65, 31} {
			for r, got := range complete(size) {
				want[r].same(t, r, got)
			}
		}
	}
}
