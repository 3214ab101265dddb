package engine_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/engine"
	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/tensor"
)

func (m *model) logLikelihood(t testing.TB, b *dataset.Batch) []float64 {
	t.Helper()
	ll := make([]float64, b.Rows)
	if err := m.eng.LogLikelihood(context.Background(), b, ll); err != nil {
		t.Fatal(err)
	}
	return ll
}

func (m *model) compare(t *testing.T, rows [][]float64, ll []float64) {
	t.Helper()
	for r, row := range rows {
		want, err := m.ref.LogLikelihood(row)
		if err != nil {
			t.Fatal(err)
		}
		// The bound of float32 mantissas.
		if !near(ll[r], want, 1e-5*max(1, math.Abs(want))) {
			t.Errorf("row %d %v: log-likelihood %v, want %v", r, row, ll[r], want)
		}
	}
}

// TestLogLikelihoodOfStructures evaluates more rows than a launch takes, with
// missing cells.
func TestLogLikelihoodOfStructures(t *testing.T) {
	structured(t, func(name string, g *circuit.Graph) {
		t.Run(name, func(t *testing.T) {
			m := build(t, g, engine.Options{Rows: 32})
			rng := rand.New(rand.NewPCG(1, 2))
			rows := reference.RandomRows(g, rng, 101, 0.3)
			rows[50] = reference.MissingRow(g.NumVars) // the marginal of nothing is 1
			ll := m.logLikelihood(t, m.batch(rows))
			m.compare(t, rows, ll)
			if !near(ll[50], 0, 1e-6) {
				t.Errorf("a row without evidence has log-likelihood %v, want 0", ll[50])
			}
		})
	})
}

// mixedGraph has leaves that read codes and leaves that read values.
func mixedGraph() *circuit.Graph {
	g := &circuit.Graph{NumVars: 4, Root: 5}
	for v, l := range []circuit.Leaf{circuit.Categorical{Categories: 4}, circuit.Gaussian{}, circuit.Poisson{}, circuit.Binomial{Trials: 3}} {
		g.Nodes = append(g.Nodes, circuit.Node{Kind: circuit.Input, Units: 3, Var: v, Leaf: l})
	}
	g.Nodes = append(g.Nodes,
		circuit.Node{Kind: circuit.Product, Units: 3, Children: []circuit.NodeID{0, 1, 2, 3}},
		circuit.Node{Kind: circuit.Sum, Units: 1, Children: []circuit.NodeID{4}})
	return g
}

// TestCodesAndValues gives the same cells as codes and as values.
func TestCodesAndValues(t *testing.T) {
	g := mixedGraph()
	m := build(t, g, engine.Options{Rows: 8})
	rng := rand.New(rand.NewPCG(3, 4))
	rows := make([][]float64, 21)
	for r := range rows {
		rows[r] = []float64{float64(rng.IntN(4)), float64(rng.IntN(3)), float64(rng.IntN(5)), float64(rng.IntN(4))}
		for v := range rows[r] {
			if rng.IntN(4) == 0 {
				rows[r][v] = missing
			}
		}
	}
	codes, values := &dataset.Batch{Rows: len(rows)}, &dataset.Batch{Rows: len(rows)}
	for v := range g.NumVars {
		c, x := dataset.Codes{Narrow: make([]uint16, len(rows))}, make([]float32, len(rows))
		for r, row := range rows {
			x[r] = float32(row[v])
			if row[v] == row[v] {
				c.Set(r, int(row[v]))
			} else {
				c.Set(r, dataset.Missing)
			}
		}
		codes.Columns = append(codes.Columns, dataset.Cells{Codes: c})
		values.Columns = append(values.Columns, dataset.Cells{Values: x})
	}
	a, b := m.logLikelihood(t, codes), m.logLikelihood(t, values)
	m.compare(t, rows, a)
	for r := range a {
		if a[r] != b[r] {
			t.Errorf("row %d: %v from codes and %v from values", r, a[r], b[r])
		}
	}
}

// TestBadCells sees each kind of bad cell named with row and variable.
func TestBadCells(t *testing.T) {
	for _, tc := range []struct {
		name  string
		edit  func(b *dataset.Batch)
		words []string
	}{
		{"code out of range", func(b *dataset.Batch) { b.Columns[0].Codes.Set(5, 4) }, []string{"row 5", "variable 0", "4 is not a category (want 0..3)"}},
		{"last code but one past the domain", func(b *dataset.Batch) { b.Columns[0].Codes.Set(5, 65534) }, []string{"row 5", "65534 is not a category (want 0..3)"}},
		{"code out of range in a later launch", func(b *dataset.Batch) { b.Columns[3].Codes.Set(9, 77) }, []string{"row 9", "variable 3", "77", "0..3"}},
		{"value that is no code", func(b *dataset.Batch) {
			b.Columns[0] = dataset.Cells{Values: make([]float32, 10)}
			b.Columns[0].Values[2] = 1.5
		},
			[]string{"row 2", "variable 0", "1.5 is not a category"}},
		{"value one past the last code", func(b *dataset.Batch) {
			b.Columns[0] = dataset.Cells{Values: make([]float32, 10)}
			b.Columns[0].Values[2] = 4
		},
			[]string{"row 2", "variable 0", "4 is not a category (want 0..3)"}},
		{"value just below 0", func(b *dataset.Batch) {
			b.Columns[0] = dataset.Cells{Values: make([]float32, 10)}
			b.Columns[0].Values[2] = -0x1p-60
		},
			[]string{"row 2", "variable 0", "is not a category (want 0..3)"}},
		{"negative value for a code", func(b *dataset.Batch) {
			b.Columns[0] = dataset.Cells{Values: make([]float32, 10)}
			b.Columns[0].Values[2] = -1
		},
			[]string{"row 2", "variable 0", "-1 is not a category"}},
		{"infinite value for a code", func(b *dataset.Batch) {
			b.Columns[0] = dataset.Cells{Values: make([]float32, 10)}
			b.Columns[0].Values[2] = float32(math.Inf(1))
		}, []string{"row 2", "variable 0", "+Inf is not a category"}},
		{"infinite value", func(b *dataset.Batch) { b.Columns[1].Values[8] = float32(math.Inf(-1)) }, []string{"row 8", "variable 1", "infinite"}},
		{"short column", func(b *dataset.Batch) { b.Columns[1].Values = b.Columns[1].Values[:9] }, []string{"variable 1", "9 cells", "10 rows"}},
		{"column without cells", func(b *dataset.Batch) { b.Columns[2] = dataset.Cells{} }, []string{"variable 2", "0 cells"}},
		{"too few columns", func(b *dataset.Batch) { b.Columns = b.Columns[:3] }, []string{"3 columns", "4 variables"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := mixedGraph()
			m := build(t, g, engine.Options{Rows: 4, Train: true})
			b := m.batch(reference.RandomRows(g, rand.New(rand.NewPCG(5, 6)), 10, 0))
			tc.edit(b)
			ctx := context.Background()
			check := func(what string, err error) {
				t.Helper()
				if !errors.Is(err, dataset.ErrFormat) {
					t.Fatalf("%s: %v, want dataset.ErrFormat", what, err)
				}
				for _, w := range tc.words {
					if !strings.Contains(err.Error(), w) {
						t.Errorf("%s: %q lacks %q", what, err, w)
					}
				}
				if strings.Contains(err.Error(), "\n") {
					t.Errorf("%s: %q is more than one line", what, err)
				}
			}
			check("LogLikelihood", m.eng.LogLikelihood(ctx, b, make([]float64, b.Rows)))
			check("Sample", m.eng.Sample(ctx, b, 1, 0))
		})
	}
}

// TestBadCellsOfQueries wants every query to name a bad cell by its row of the batch, also those that ask about a few rows at a time,
// or about each of them with other cells; what the class says does not count.
func TestBadCellsOfQueries(t *testing.T) {
	g := mixedGraph()
	m := build(t, g, engine.Options{Rows: 16, Queries: true})
	ctx := t.Context()
	rows := reference.RandomRows(g, rand.New(rand.NewPCG(7, 8)), 40, 0.3)
	bad := m.batch(rows)
	bad.Columns[0].Codes.Set(33, 4)
	room := func() []float64 { return make([]float64, 40*16) }
	product := []engine.Polynomial{{Terms: []engine.Term{{Factor: 1, Variables: []int{1, 2}}}}}
	for name, ask := range map[string]func(b *dataset.Batch) error{
		"log-likelihood": func(b *dataset.Batch) error { return m.eng.LogLikelihood(ctx, b, room()) },
		"conditional":    func(b *dataset.Batch) error { return m.eng.Conditional(ctx, b, []int{0, 1}, room()) },
		"moments":        func(b *dataset.Batch) error { return m.eng.Moments(ctx, b, room()) },
		"quantiles":      func(b *dataset.Batch) error { return m.eng.Quantiles(ctx, b, []int{1}, []float64{0.5}, room()) },
		"covariance":     func(b *dataset.Batch) error { return m.eng.Covariance(ctx, b, []int{1, 2}, room()) },
		"expect":         func(b *dataset.Batch) error { return m.eng.Expect(ctx, b, product, room()) },
		"classify":       func(b *dataset.Batch) error { return m.eng.Classify(ctx, b, 3, room()) },
		"mpe": func(b *dataset.Batch) error {
			return m.eng.MPE(ctx, b, engine.MPEOptions{Candidates: 1}, room(), room())
		},
	} {
		if err := ask(bad); !errors.Is(err, dataset.ErrFormat) || !strings.Contains(err.Error(), "row 33, variable 0, both counted from 0: 4 is not a category") {
			t.Errorf("%s: %v, want an error about row 33", name, err)
		}
		if err := ask(m.batch(rows)); err != nil {
			t.Errorf("%s of good rows: %v", name, err)
		}
	}
	if err := m.eng.Classify(ctx, bad, 0, room()); err != nil {
		t.Errorf("a class that the column does not have: %v", err)
	}
}

// TestBadLaunches sees wrong ranges of rows refused.
func TestBadLaunches(t *testing.T) {
	g := mixedGraph()
	m := build(t, g, engine.Options{Rows: 4, Train: true})
	b := m.batch(reference.RandomRows(g, rand.New(rand.NewPCG(5, 6)), 10, 0))
	ctx := context.Background()
	ll := make([]float64, 10)
	rule := tensor.Rule{Step: 1}
	for _, r := range []struct{ lo, hi, room int }{{0, 5, 10}, {-1, 2, 10}, {8, 11, 10}, {3, 3, 10}, {4, 2, 10}, {0, 4, 3}} {
		if err := m.eng.Step(ctx, b, r.lo, r.hi, rule, ll[:r.room]); !errors.Is(err, dataset.ErrFormat) {
			t.Errorf("Step of rows %d..%d with room for %d: %v", r.lo, r.hi, r.room, err)
		}
		if err := m.eng.Accumulate(ctx, b, r.lo, r.hi, ll[:r.room]); !errors.Is(err, dataset.ErrFormat) {
			t.Errorf("Accumulate of rows %d..%d with room for %d: %v", r.lo, r.hi, r.room, err)
		}
	}
	if err := m.eng.LogLikelihood(ctx, b, ll[:9]); !errors.Is(err, dataset.ErrFormat) {
		t.Errorf("LogLikelihood with too little room: %v", err)
	}
	if err := m.eng.Step(ctx, b, 0, 4, rule, ll); err != nil {
		t.Errorf("a good step after the bad ones: %v", err)
	}
	for _, rows := range []int{-1, 2049} { // one more than MaxShardRows
		if _, err := engine.New(ctx, nil, m.eng.Program(), engine.Options{Rows: rows}); !errors.Is(err, kernels.ErrDevice) {
			t.Errorf("an engine of %d rows: %v", rows, err)
		}
	}
}

// TestEmptyBatch evaluates and samples nothing.
func TestEmptyBatch(t *testing.T) {
	g := mixedGraph()
	m := build(t, g, engine.Options{})
	b := m.batch(nil)
	if err := m.eng.LogLikelihood(context.Background(), b, nil); err != nil {
		t.Error(err)
	}
	if err := m.eng.Sample(context.Background(), b, 1, 0); err != nil {
		t.Error(err)
	}
}

// TestCancelled stops before the next launch.
func TestCancelled(t *testing.T) {
	g := mixedGraph()
	m := build(t, g, engine.Options{Rows: 4})
	b := m.batch(reference.RandomRows(g, rand.New(rand.NewPCG(5, 6)), 10, 0.5))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := m.eng.LogLikelihood(ctx, b, make([]float64, 10)); !errors.Is(err, context.Canceled) {
		t.Errorf("LogLikelihood: %v", err)
	}
	if err := m.eng.Sample(ctx, b, 1, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("Sample: %v", err)
	}
}

// TestImpossibleRows gives -Inf and no flows.
func TestImpossibleRows(t *testing.T) {
	g := &circuit.Graph{NumVars: 1, Root: 1, Nodes: []circuit.Node{
		{Kind: circuit.Input, Units: 2, Leaf: circuit.Categorical{Categories: 3}},
		{Kind: circuit.Sum, Units: 1, Children: []circuit.NodeID{0}},
	}}
	params := reference.Params{{0.5, 0.5, 0, 1, 0, 0}, {0.25, 0.75}}
	m := buildWith(t, g, params, engine.Options{Rows: 8, Train: true})
	b := m.batch([][]float64{{0}, {2}, {1}, {2}})
	ll := m.logLikelihood(t, b)
	for r, want := range []float64{math.Log(0.875), math.Inf(-1), math.Log(0.125), math.Inf(-1)} {
		if !near(ll[r], want, 1e-6) {
			t.Errorf("row %d: log-likelihood %v, want %v", r, ll[r], want)
		}
	}
	ctx := context.Background()
	if err := m.eng.Accumulate(ctx, b, 0, 4, ll); err != nil {
		t.Fatal(err)
	}
	p := m.eng.Program()
	norm := make([]int64, 1)
	if err := m.eng.ReadFlows(ctx, p.SumNorm(0), norm); err != nil {
		t.Fatal(err)
	}
	if got := float64(norm[0]) * m.eng.Grid(); got != 2 {
		t.Errorf("the root's flow is %v, want 2: one for each possible row", got)
	}
}
