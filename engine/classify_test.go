package engine_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/engine"
)

// randomModels yields models of random circuits of all leaves, some with structural
// zeros, and rows with missing cells; many rows are impossible.
func randomModels(t *testing.T, count uint64, rows int, do func(m *model, rng *rand.Rand, rows [][]float64)) {
	t.Helper()
	for seed := range count {
		rng := rand.New(rand.NewPCG(seed, 51))
		g := reference.Random(rng, reference.RandomOptions{Vars: 1 + rng.IntN(6), MaxUnits: 12, MaxCodes: 5, Discrete: seed%3 == 0})
		m := build(t, g, engine.Options{Rows: 1 + rng.IntN(40)})
		do(m, rng, reference.RandomRows(g, rng, rows, 0.4))
	}
}

// without returns a row without its cells in some columns.
func without(row []float64, drop func(v int) bool) []float64 {
	out := append([]float64{}, row...)
	for v := range out {
		if drop(v) {
			out[v] = missing
		}
	}
	return out
}

func (m *model) wantLL(t *testing.T, row []float64) float64 {
	t.Helper()
	ll, err := m.ref.LogLikelihood(row)
	if err != nil {
		t.Fatal(err)
	}
	return ll
}

// TestClassifyQueries compares classes with Bayes' rule by the reference, for every
// variable that has codes.
func TestClassifyQueries(t *testing.T) {
	impossible, cells := 0, 0
	check := func(m *model, rows [][]float64) {
		for v, codes := range circuit.Domains(m.graph) {
			if codes <= 0 {
				continue
			}
			p := make([]float64, len(rows)*codes)
			if err := m.eng.Classify(context.Background(), m.batch(rows), v, p); err != nil {
				t.Fatal(err)
			}
			for r, row := range rows {
				want, err := m.ref.Conditional(row, v)
				got := p[r*codes : (r+1)*codes]
				if errors.Is(err, reference.ErrRow) {
					impossible++
					for _, x := range got {
						if !math.IsNaN(x) {
							t.Errorf("row %v is impossible, and variable %d has %v", row, v, got)
						}
					}
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				for c, x := range want {
					cells++
					if !near(got[c], x, 1e-5) {
						t.Errorf("row %v: variable %d is %d with probability %v, want %v", row, v, c, got[c], x)
					}
				}
			}
		}
	}
	structured(t, func(_ string, g *circuit.Graph) {
		check(build(t, g, engine.Options{Rows: 7}), reference.RandomRows(g, rand.New(rand.NewPCG(1, 2)), 9, 0.5))
	})
	randomModels(t, 40, 12, func(m *model, _ *rand.Rand, rows [][]float64) { check(m, rows) })
	if impossible < 10 || cells < 1000 {
		t.Errorf("only %d impossible rows and %d probabilities were compared", impossible, cells)
	}
}

// TestGivenQueries compares log-likelihoods of some columns given others with the
// difference by the reference.
func TestGivenQueries(t *testing.T) {
	kinds := map[string]int{}
	randomModels(t, 80, 20, func(m *model, rng *rand.Rand, rows [][]float64) {
		given := make([]bool, m.graph.NumVars)
		for v := range given {
			given[v] = rng.IntN(2) == 0
		}
		b, ll := m.batch(rows), make([]float64, len(rows))
		if err := engine.LogLikelihoodGiven(context.Background(), m.eng, b, given, ll); err != nil {
			t.Fatal(err)
		}
		for r, row := range rows {
			evidence := m.wantLL(t, without(row, func(v int) bool { return !given[v] }))
			want := m.wantLL(t, row) - evidence
			switch {
			case math.IsInf(evidence, -1):
				kinds["given cells impossible"]++
				if !math.IsNaN(ll[r]) {
					t.Errorf("row %v, given %v: %v of impossible evidence", row, given, ll[r])
				}
			case math.IsInf(want, -1):
				kinds["the others impossible"]++
				fallthrough
			default:
				kinds["compared"]++
				if !near(ll[r], want, 2e-5*max(1, math.Abs(want))) {
					t.Errorf("row %v, given %v: %v, want %v", row, given, ll[r], want)
				}
			}
		}
	})
	for _, kind := range []string{"given cells impossible", "the others impossible", "compared"} {
		if kinds[kind] == 0 {
			t.Errorf("no row of the kind %q", kind)
		}
	}
}

// TestClassifyRefuses wants errors for variables without codes and for too little room,
// and nothing to happen for no rows.
func TestClassifyRefuses(t *testing.T) {
	g := reference.Random(rand.New(rand.NewPCG(3, 51)), reference.RandomOptions{Vars: 3, Discrete: true})
	m := build(t, g, engine.Options{Rows: 4})
	ctx, none := context.Background(), m.batch(nil)
	if err := m.eng.Classify(ctx, none, 0, nil); err != nil {
		t.Errorf("no rows: %v", err)
	}
	if err := engine.LogLikelihoodGiven(ctx, m.eng, none, make([]bool, 3), nil); err != nil {
		t.Errorf("no rows: %v", err)
	}
	one := m.batch([][]float64{reference.MissingRow(3)})
	for _, v := range []int{-1, 3} {
		if err := m.eng.Classify(ctx, one, v, make([]float64, 99)); !errors.Is(err, dataset.ErrSetting) {
			t.Errorf("variable %d: %v", v, err)
		}
	}
	counts := &circuit.Graph{NumVars: 2, Root: 2, Nodes: []circuit.Node{
		{Kind: circuit.Input, Units: 1, Var: 0, Leaf: circuit.Poisson{}},
		{Kind: circuit.Input, Units: 1, Var: 1, Leaf: circuit.Categorical{Categories: 2}},
		{Kind: circuit.Product, Units: 1, Children: []circuit.NodeID{0, 1}},
	}}
	count := buildSoft(t, counts, 8, engine.Options{Rows: 4})
	if err := count.eng.Classify(ctx, count.batch([][]float64{reference.MissingRow(2)}), 0, make([]float64, 99)); !errors.Is(err, dataset.ErrSetting) {
		t.Errorf("classes of counts, of which cells may be evidence: %v", err)
	}
	if err := m.eng.Classify(ctx, one, 0, make([]float64, circuit.Domains(g)[0]-1)); !errors.Is(err, dataset.ErrFormat) {
		t.Errorf("no room: %v", err)
	}
	for _, n := range []int{2, 4} {
		if err := engine.LogLikelihoodGiven(ctx, m.eng, one, make([]bool, n), make([]float64, 1)); !errors.Is(err, dataset.ErrFormat) {
			t.Errorf("%d columns of 3: %v", n, err)
		}
	}
	few := &dataset.Batch{Rows: 1, Columns: one.Columns[:2]}
	if err := engine.LogLikelihoodGiven(ctx, m.eng, few, make([]bool, 2), make([]float64, 1)); !errors.Is(err, dataset.ErrFormat) {
		t.Errorf("rows of 2 columns of 3: %v", err)
	}
}
