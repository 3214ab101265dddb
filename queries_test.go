package pce_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/pce-engine/pce"
	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
)

// TestRowQueries compares what a model is asked about rows with the reference.
func TestRowQueries(t *testing.T) {
	compared := 0
	for seed := range uint64(12) {
		g, ev, m := random(t, seed, reference.RandomOptions{Vars: 4, MaxCodes: 4, Positive: true}, pce.Options{Rows: 5})
		rows := reference.RandomRows(g, rand.New(rand.NewPCG(seed, 3)), 9, 0.3)
		given, err := m.LogLikelihoodGiven(t.Context(), rows, 0, 2)
		if err != nil {
			t.Fatal(err)
		}
		for i, row := range rows {
			evidence := append([]float64{}, row...)
			evidence[1], evidence[3] = math.NaN(), math.NaN()
			all, err := ev.LogLikelihood(row)
			if err != nil {
				t.Fatal(err)
			}
			known, err := ev.LogLikelihood(evidence)
			if err != nil {
				t.Fatal(err)
			}
			if want := all - known; !(math.Abs(given[i]-want) <= 1e-5*max(1, math.Abs(all))) {
				t.Errorf("seed %d, row %d: %v given two columns, want %v", seed, i, given[i], want)
			}
		}
		for v, codes := range circuit.Domains(g) {
			p, err := m.Classify(t.Context(), rows, v)
			if codes <= 0 {
				if !errors.Is(err, pce.ErrOptions) {
					t.Errorf("seed %d: classes of a column without categories: %v, %v", seed, p, err)
				}
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			for i, row := range rows {
				want, err := ev.Conditional(row, v)
				if err != nil {
					t.Fatal(err)
				}
				for c, x := range want {
					compared++
					if !near(p[i][c], x) {
						t.Errorf("seed %d, row %d: column %d is %d with probability %v, want %v", seed, i, v, c, p[i][c], x)
					}
				}
			}
		}
	}
	if compared < 100 {
		t.Errorf("only %d probabilities were compared", compared)
	}
}

// TestQueryRefuses wants errors for queries that cannot be answered.
func TestQueryRefuses(t *testing.T) {
	m := openText(t, "circuit 2\na = input x0 bernoulli 0.25\nb = input x1 gaussian 0 1\np = product a b\n")
	rows := [][]float64{{0, 1}}
	for _, column := range []int{-1, 1, 2} {
		if _, err := m.Classify(t.Context(), rows, column); !errors.Is(err, pce.ErrOptions) {
			t.Errorf("classes of column %d: %v", column, err)
		}
		if column == 1 {
			continue
		}
		if _, err := m.LogLikelihoodGiven(t.Context(), rows, column); !errors.Is(err, pce.ErrOptions) {
			t.Errorf("given column %d: %v", column, err)
		}
	}
	if _, err := m.NewQuery("fortune"); !errors.Is(err, pce.ErrOptions) {
		t.Errorf("an unknown query: %v", err)
	}
	if p, err := m.Classify(t.Context(), nil, 0); err != nil || len(p) != 0 {
		t.Errorf("no rows: %v, %v", p, err)
	}
	if ll, err := m.LogLikelihoodGiven(t.Context(), rows); err != nil || len(ll) != 1 || !near(ll[0], math.Log(0.75)-0.5-0.5*math.Log(2*math.Pi)) {
		t.Errorf("given nothing: %v, %v", ll, err)
	}
}
