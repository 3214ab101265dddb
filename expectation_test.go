package pce_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/pce-engine/pce"
	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/forest"
)

// bushy returns a forest of full trees over n features that compares their cells with what
// thresholds draws.
func bushy(rng *rand.Rand, n, trees, depth int, threshold func(feature int) float64) *forest.Forest {
	f := &forest.Forest{Features: n, Outputs: 2, Base: []float64{0.25, -1}, Alpha: 1, Link: forest.Softmax, Classes: 2}
	for range trees {
		t := forest.Tree{Weight: 1, Nodes: make([]forest.Node, 2<<depth-1)}
		for i := range t.Nodes {
			t.Nodes[i].ID = int32(i)
			if i >= 1<<depth-1 {
				first := int32(len(t.Values))
				t.Nodes[i].First, t.Nodes[i].Last = first, first+1
				t.Values = append(t.Values, forest.Value{Output: int32(rng.IntN(2)), Value: rng.NormFloat64()})
				continue
			}
			feature := rng.IntN(n)
			t.Nodes[i] = forest.Node{Test: forest.Less + forest.Test(rng.IntN(4)), Feature: int32(feature), Threshold: threshold(feature), MissingYes: rng.IntN(2) == 0, Yes: int32(2*i + 1), No: int32(2*i + 2), ID: int32(i)}
		}
		f.Trees = append(f.Trees, t)
	}
	return f
}

// expect opens a forest beside a density, and returns the expected scores of rows.
func expect(t *testing.T, f *forest.Forest, density *pce.Model, rows []float64) []float64 {
	t.Helper()
	m, err := pce.NewForest(f, pce.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	e, err := pce.NewExpectation(m, density)
	if err != nil {
		t.Fatal(err)
	}
	out := make([]float64, len(rows)/f.Features*f.Outputs)
	if err := e.Margins(t.Context(), rows, out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestExpectation: expected scores are the means over all completions of a row, weighted by the
// circuit's probabilities; a row without missing cells has the bits of the forest's own scores.
func TestExpectation(t *testing.T) {
	seeds := uint64(12)
	if testing.Short() {
		seeds = 4
	}
	for seed := range seeds {
		rng := rand.New(rand.NewPCG(seed, 92))
		vars := []int{12, 3, 5}[seed%3]
		g := reference.Random(rng, reference.RandomOptions{Vars: vars, MaxUnits: 4, MaxCodes: 2 + int(seed%3), Discrete: true, Positive: true})
		density, err := pce.New(t.Context(), g, start(t, g), pce.Options{Soft: true})
		if err != nil {
			t.Fatal(err)
		}
		domains := make([]int, vars)
		states := 1
		for v, c := range density.Schema().Columns {
			domains[v] = c.Categories
			states *= c.Categories
		}
		all, whole := make([][]float64, states), make([]float64, 0, states*vars)
		for s := range all {
			for v, rest := 0, s; v < vars; v++ {
				all[s] = append(all[s], float64(rest%domains[v]))
				rest /= domains[v]
			}
			whole = append(whole, all[s]...)
		}
		ll, err := density.LogLikelihood(t.Context(), all)
		if err != nil {
			t.Fatal(err)
		}
		// Of the small forests many tests come out the same for all that a cell may be, as those of
		// XGBoost do that ask whether it is missing.
		for _, f := range []*forest.Forest{
			bushy(rng, vars, 30, 6, func(int) float64 { return float64(rng.IntN(5)) / 2 }),
			bushy(rng, vars, 2, 1, func(int) float64 { return float64(rng.IntN(9)-2) / 2 }),
		} {
			scores := make([]float64, 2*states)
			if err := forest.Evaluate(f, forest.Margin, whole, scores); err != nil {
				t.Fatal(err)
			}
			rows := make([]float64, 0, 70*vars) // more than are held at once
			for range 70 {
				row := slices.Clone(all[rng.IntN(states)])
				for v := range row {
					if rng.IntN(3) == 0 {
						row[v] = math.NaN()
					}
				}
				rows = append(rows, row...)
			}
			got := expect(t, f, density, rows)
			for r := range 70 {
				row := rows[r*vars : (r+1)*vars]
				mass, want, last := 0.0, [2]float64{}, 0
				for s, full := range all {
					if slices.EqualFunc(row, full, func(a, b float64) bool { return math.IsNaN(a) || a == b }) {
						p := math.Exp(ll[s])
						mass += p
						last = s
						want[0] += p * scores[2*s]
						want[1] += p * scores[2*s+1]
					}
				}
				complete := !slices.ContainsFunc(row, math.IsNaN)
				for o := range want {
					want := want[o] / mass
					if complete {
						want = scores[2*last+o]
					}
					if complete && got[2*r+o] != want || math.Abs(got[2*r+o]-want) > 1e-4 {
						t.Fatalf("seed %d, row %v: the expected score %d is %v, the mean over its completions %v", seed, row, o, got[2*r+o], want)
					}
				}
			}
		}
		if err := density.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestExpectationOneWay: where all that a missing cell may be goes one way, scores are those of
// this way and not of the other, which a missing cell takes; a row whose known cell is impossible
// has no expected score.
func TestExpectationOneWay(t *testing.T) {
	g := &circuit.Graph{NumVars: 2, Root: 2, Nodes: []circuit.Node{
		{Kind: circuit.Input, Units: 1, Leaf: circuit.Categorical{Categories: 3}},
		{Kind: circuit.Input, Units: 1, Var: 1, Leaf: circuit.Indicator{Domain: 2, Value: 1}},
		{Kind: circuit.Product, Units: 1, Children: []circuit.NodeID{0, 1}},
	}}
	density, err := pce.New(t.Context(), g, start(t, g), pce.Options{Soft: true})
	if err != nil {
		t.Fatal(err)
	}
	defer density.Close()
	f := &forest.Forest{Features: 2, Outputs: 1, Base: []float64{0}, Alpha: 1, Trees: []forest.Tree{{
		Nodes: []forest.Node{{Test: forest.Less, Threshold: 5, Yes: 1, No: 2}, {ID: 1, Last: 1}, {ID: 2, First: 1, Last: 2}}, Values: []forest.Value{{Value: 1}, {Value: 100}}, Weight: 1,
	}}}
	nan := math.NaN()
	got := expect(t, f, density, []float64{nan, 1, nan, nan, 2, 0, nan, 0})
	if !slices.Equal(got[:3], []float64{1, 1, 1}) || !math.IsNaN(got[3]) {
		t.Errorf("expected scores %v, want 1, 1, 1 and NaN", got)
	}
}

// TestExpectationOfValues: features of numbers, in a column of bins and in one whose numbers are
// stored in other units.
func TestExpectationOfValues(t *testing.T) {
	density := histogram(t, pce.Options{Soft: true}) // size in [0, 1) by bins, height about 500 ± 20
	rng := rand.New(rand.NewPCG(1, 93))
	f := bushy(rng, 2, 5, 3, func(feature int) float64 {
		return []float64{float64(rng.IntN(9)+1) / 10, 460 + 10*float64(rng.IntN(9))}[feature]
	})
	const parts, step = 20, 0.5
	var all [][]float64
	var whole []float64
	for k := range parts {
		for height := 350.0; height < 650; height += step {
			all = append(all, []float64{(float64(k) + 0.5) / parts, height + step/2})
			whole = append(whole, all[len(all)-1]...)
		}
	}
	ll, err := density.LogLikelihood(t.Context(), all)
	if err != nil {
		t.Fatal(err)
	}
	scores := make([]float64, 2*len(all))
	if err := forest.Evaluate(f, forest.Margin, whole, scores); err != nil {
		t.Fatal(err)
	}
	got := expect(t, f, density, []float64{math.NaN(), math.NaN()})
	for o := range 2 {
		want, mass := 0.0, 0.0
		for s := range all {
			p := math.Exp(ll[s])
			mass += p
			want += p * scores[2*s+o]
		}
		if math.Abs(got[o]-want/mass) > 1e-3 {
			t.Errorf("the expected score %d is %v, the mean over a grid %v", o, got[o], want/mass)
		}
	}
	f.Names = []string{" size", "height\t"} // without the blanks in a table in text, from which the density has its names
	if named := expect(t, f, density, []float64{math.NaN(), math.NaN()}); !slices.Equal(named, got) {
		t.Errorf("by names with blanks around them the expected scores are %v, want %v", named, got)
	}
}

// TestExpectationRefused: pairs of models that do not fit, and cells that the density lacks.
func TestExpectationRefused(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 94))
	g := reference.Random(rng, reference.RandomOptions{Vars: 3, MaxUnits: 2, MaxCodes: 2, Discrete: true, Positive: true})
	open := func(g *circuit.Graph, o pce.Options) *pce.Model {
		m, err := pce.New(t.Context(), g, start(t, g), o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { m.Close() })
		return m
	}
	of := func(f *forest.Forest) *pce.Model {
		m, err := pce.NewForest(f, pce.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { m.Close() })
		return m
	}
	half := func(int) float64 { return 0.5 }
	soft, three := open(g, pce.Options{Soft: true}), of(bushy(rng, 3, 2, 2, half))
	unread := open(&circuit.Graph{NumVars: 3, Root: 2, Nodes: []circuit.Node{
		{Kind: circuit.Input, Units: 1, Leaf: circuit.Gaussian{}},
		{Kind: circuit.Input, Units: 1, Var: 2, Leaf: circuit.Gaussian{}},
		{Kind: circuit.Product, Units: 1, Children: []circuit.NodeID{0, 1}},
	}}, pce.Options{Soft: true})
	minimum := bushy(rng, 3, 2, 2, half)
	minimum.Combine = forest.Min
	for name, tc := range map[string]struct {
		forest, density *pce.Model
		want            error
	}{
		"a circuit for a forest":    {soft, soft, pce.ErrKind},
		"a forest for a density":    {three, three, pce.ErrKind},
		"a density without Soft":    {three, open(g, pce.Options{}), pce.ErrOptions},
		"another number of columns": {of(bushy(rng, 4, 2, 2, half)), soft, dataset.ErrSetting},
		"a column without a leaf":   {three, unread, dataset.ErrSetting},
		"minima over trees":         {of(minimum), soft, forest.ErrRequest},
	} {
		if _, err := pce.NewExpectation(tc.forest, tc.density); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, want %v", name, err, tc.want)
		}
	}
	e, err := pce.NewExpectation(three, soft)
	if err != nil {
		t.Fatal(err)
	}
	out := make([]float64, 2)
	if err := e.Margins(t.Context(), []float64{7, math.NaN(), math.NaN()}, out); !errors.Is(err, dataset.ErrFormat) {
		t.Errorf("a cell that is not a category: %v, want an error", err)
	}
	if err := e.Margins(t.Context(), []float64{1, 1}, out); !errors.Is(err, forest.ErrRequest) {
		t.Errorf("two cells for three features: %v, want an error", err)
	}
	if err := e.Margins(t.Context(), nil, nil); err != nil {
		t.Errorf("no rows: %v", err)
	}
}

// TestExpectationNamesRows: a known cell that leaves of the density do not take is an error that names its row and feature, as one
// that its column lacks as a category.
func TestExpectationNamesRows(t *testing.T) {
	g := &circuit.Graph{NumVars: 3, Root: 3, Nodes: []circuit.Node{
		{Kind: circuit.Input, Units: 1, Leaf: circuit.Poisson{}},
		{Kind: circuit.Input, Units: 1, Var: 1, Leaf: circuit.LogNormal{}},
		{Kind: circuit.Input, Units: 1, Var: 2, Leaf: circuit.Gaussian{}},
		{Kind: circuit.Product, Units: 1, Children: []circuit.NodeID{0, 1, 2}},
	}}
	density, err := pce.New(t.Context(), g, start(t, g), pce.Options{Soft: true})
	if err != nil {
		t.Fatal(err)
	}
	defer density.Close()
	m, err := pce.NewForest(bushy(rand.New(rand.NewPCG(4, 95)), 3, 9, 2, func(int) float64 { return 1 }), pce.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	e, err := pce.NewExpectation(m, density)
	if err != nil {
		t.Fatal(err)
	}
	nan := math.NaN()
	for _, tc := range []struct {
		cells []float64
		says  string
	}{
		{[]float64{3, 0.5, nan}, ""},
		{[]float64{0, nan, -2}, ""},
		{[]float64{2.5, 1, nan}, "row 5: "},
		{[]float64{-1, 1, nan}, "feature 1 is -1"},
		{[]float64{1, 0, nan}, "feature 2 is 0"},
		{[]float64{nan, 1, math.Inf(1)}, "feature 3 is +Inf"},
		{[]float64{nan, 1, 1e39}, "row 5: "},
	} {
		rows := append(slices.Repeat([]float64{1, nan, nan}, 4), tc.cells...)
		err := e.Margins(t.Context(), rows, make([]float64, 2*len(rows)/3))
		if tc.says == "" {
			if err != nil {
				t.Errorf("%v: %v", tc.cells, err)
			}
			continue
		}
		if !errors.Is(err, dataset.ErrFormat) || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%v: %v, want an error with %q", tc.cells, err, tc.says)
		}
	}
}

// heapWatch is a context that collects garbage and notes the largest heap whenever it is asked for its error, as for each of the
// circuit's batches.
type heapWatch struct {
	context.Context
	most *uint64
}

func (w heapWatch) Err() error {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	*w.most = max(*w.most, m.HeapAlloc)
	return w.Context.Err()
}

// TestExpectationMemory wants the boxes of few rows to be held at a time: those of a row without cells are nearly as many as the forest
// has leaves, of 512 outputs each here, so that a few rows fill what the circuit is asked at once.
func TestExpectationMemory(t *testing.T) {
	const vars, outputs, rows = 9, 512, 60
	rng := rand.New(rand.NewPCG(5, 93))
	f := bushy(rng, vars, 1, 9, func(int) float64 { return rng.NormFloat64() })
	f.Outputs, f.Base, f.Link, f.Classes = outputs, make([]float64, outputs), forest.Identity, 0
	g := &circuit.Graph{NumVars: vars}
	p := reference.Params{}
	for v := range vars {
		g.Nodes = append(g.Nodes, circuit.Node{Kind: circuit.Input, Units: 1, Var: v, Leaf: circuit.Gaussian{}})
		p = append(p, []float64{0, 1})
	}
	all := circuit.Node{Kind: circuit.Product, Units: 1}
	for v := range vars {
		all.Children = append(all.Children, circuit.NodeID(v))
	}
	g.Nodes = append(g.Nodes, all, circuit.Node{Kind: circuit.Sum, Units: 1, Children: []circuit.NodeID{circuit.NodeID(vars)}})
	g.Root = circuit.NodeID(vars + 1)
	density, err := pce.New(t.Context(), g, append(p, nil, []float64{1}).Read, pce.Options{Soft: true, Engines: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer density.Close()
	m, err := pce.NewForest(f, pce.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	e, err := pce.NewExpectation(m, density)
	if err != nil {
		t.Fatal(err)
	}
	missing := slices.Repeat([]float64{math.NaN()}, rows*vars)
	n, err := e.Boxes(missing[:vars])
	if err != nil {
		t.Fatal(err)
	}
	var few, many uint64
	out := make([]float64, rows*outputs)
	if err := e.Margins(heapWatch{t.Context(), &few}, missing[:vars], out[:outputs]); err != nil {
		t.Fatal(err)
	}
	if err := e.Margins(heapWatch{t.Context(), &many}, missing, out); err != nil {
		t.Fatal(err)
	}
	row := 8 * outputs * uint64(n)
	if few == 0 || row < 1<<19 || many > few+40*row {
		t.Errorf("%d boxes of a row take %d bytes: the heap has %d with one row and %d with %d", n, row, few, many, rows)
	}
	for r := range rows {
		if !slices.Equal(out[r*outputs:][:outputs], out[:outputs]) {
			t.Fatalf("row %d has other scores than row 1, of the same cells", r+1)
		}
	}
}
