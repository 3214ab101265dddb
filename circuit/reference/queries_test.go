package reference

import (
	"errors"
	"math"
	"testing"

	"github.com/pce-engine/pce/circuit"
)

// TestQueriesAgreeWithEnumeration compares conditionals, moments and the mode
// with sums over all states.
func TestQueriesAgreeWithEnumeration(t *testing.T) {
	for seed := range uint64(30) {
		g, ev, rng := random(t, seed, RandomOptions{Vars: 3, MaxUnits: 5, MaxCodes: 4, Discrete: true, Positive: true})
		given := RandomRows(g, rng, 1, 0)[0]
		given[0], given[1] = math.NaN(), math.NaN()
		states, err := States(g, given)
		if err != nil {
			t.Fatal(err)
		}
		share, mass, mean, square, top := map[float64]float64{}, 0.0, 0.0, 0.0, 0.0
		for row := range states {
			ll, err := ev.LogLikelihood(row)
			if err != nil {
				t.Fatal(err)
			}
			p, x := math.Exp(ll), row[0]
			share[x] += p
			mass, mean, square, top = mass+p, mean+p*x, square+p*x*x, max(top, p)
		}
		p, err := ev.Conditional(given, 0)
		if err != nil {
			t.Fatal(err)
		}
		const tol = 1e-5 // float32 parameters are normalised to 2^-24 a layer
		for c, got := range p {
			if !near(got, share[float64(c)]/mass, tol) {
				t.Errorf("seed %d: conditional of %d is %v, want %v", seed, c, got, share[float64(c)]/mass)
			}
		}
		m, v, err := ev.Moments(given)
		if err != nil {
			t.Fatal(err)
		}
		if !near(m[0], mean/mass, tol) || !near(v[0], square/mass-mean*mean/mass/mass, tol) {
			t.Errorf("seed %d: moments %v, %v; want %v, %v", seed, m[0], v[0], mean/mass, square/mass-mean*mean/mass/mass)
		}
		if m[2] != given[2] || v[2] != 0 {
			t.Errorf("seed %d: observed cell %v has moments %v, %v", seed, given[2], m[2], v[2])
		}
		best, ll, err := ev.MPE(given)
		if err != nil || !near(math.Exp(ll), top, 1e-12) || best[2] != given[2] {
			t.Errorf("seed %d: MPE %v with %v, %v; want %v", seed, best, math.Exp(ll), err, top)
		}
	}
}

// TestConditionalsAgreeWithEnumeration compares all conditionals at once with sums over
// all states, and with one variable at a time.
func TestConditionalsAgreeWithEnumeration(t *testing.T) {
	const tol = 1e-9
	for seed := range uint64(80) {
		g, ev, rng := random(t, seed, RandomOptions{Vars: 1 + int(seed%5), MaxUnits: 5, MaxCodes: 4, Discrete: true})
		normalise(ev)
		for _, given := range RandomRows(g, rng, 3, 0.6) {
			mass, err := ev.Mass(given)
			if err != nil {
				t.Fatal(err)
			}
			got, err := ev.Conditionals(given)
			if mass == 0 {
				if !errors.Is(err, ErrRow) {
					t.Errorf("seed %d: %v is impossible: %v, want ErrRow", seed, given, err)
				}
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			want := make([][]float64, g.NumVars)
			for v, codes := range circuit.Domains(g) {
				want[v] = make([]float64, max(0, codes))
			}
			states, err := States(g, given)
			if err != nil {
				t.Fatal(err)
			}
			for state := range states {
				ll, err := ev.LogLikelihood(state)
				if err != nil {
					t.Fatal(err)
				}
				for v := range want {
					if len(want[v]) > 0 {
						want[v][int(state[v])] += math.Exp(ll) / mass
					}
				}
			}
			for v := range want {
				if len(got[v]) != len(want[v]) {
					t.Fatalf("seed %d: variable %d has %d probabilities, want %d", seed, v, len(got[v]), len(want[v]))
				}
				for c, p := range got[v] {
					if !near(p, want[v][c], tol) {
						t.Errorf("seed %d: variable %d is %d with %v, want %v", seed, v, c, p, want[v][c])
					}
				}
				if len(want[v]) == 0 || !math.IsNaN(given[v]) {
					continue
				}
				alone, err := ev.Conditional(given, v)
				if err != nil {
					t.Fatal(err)
				}
				for c, p := range alone {
					if !near(got[v][c], p, tol) {
						t.Errorf("seed %d: variable %d is %d with %v, alone with %v", seed, v, c, got[v][c], p)
					}
				}
			}
		}
	}
}

// normalise makes the weights of units, and the tables of inputs, add up to 1 in
// float64; as float32 numbers they do to 2^-24 only.
func normalise(ev *Evaluator) {
	scale := func(p []float64, places []int) {
		sum := 0.0
		for _, k := range places {
			sum += p[k]
		}
		for _, k := range places {
			p[k] /= sum
		}
	}
	for i := range ev.g.Nodes {
		n := &ev.g.Nodes[i]
		if !ev.g.OwnsParams(circuit.NodeID(i)) {
			continue
		}
		for u := range n.Units {
			var places []int
			if n.Kind == circuit.Sum {
				for _, e := range ev.edges[i][u] {
					places = append(places, e.param)
				}
			} else {
				for c := range n.Leaf.NumParams() {
					places = append(places, u*n.Leaf.NumParams()+c)
				}
			}
			switch n.Leaf.(type) {
			case nil, circuit.Bernoulli, circuit.Categorical, circuit.Histogram:
				scale(ev.p[i], places)
			}
		}
	}
}

func TestQueriesRefuse(t *testing.T) {
	g, ev, _ := random(t, 3, RandomOptions{Vars: 2, Discrete: true})
	if _, err := ev.Conditional(MissingRow(g.NumVars), 2); !errors.Is(err, ErrDomain) {
		t.Errorf("variable outside: %v", err)
	}
	if _, err := ev.Conditional(nil, 0); !errors.Is(err, ErrRow) {
		t.Errorf("empty row: %v", err)
	}
	if _, _, err := ev.Moments([]float64{0.5, 0}); !errors.Is(err, ErrRow) {
		t.Errorf("half a code: %v", err)
	}
	if _, err := ev.Conditionals(nil); !errors.Is(err, ErrRow) {
		t.Errorf("empty row: %v", err)
	}
	if _, err := ev.Bound([]float64{0.5, 0}); !errors.Is(err, ErrRow) {
		t.Errorf("half a code: %v", err)
	}
	if _, _, err := ev.Maximise(nil); !errors.Is(err, ErrRow) {
		t.Errorf("empty row: %v", err)
	}
	if _, _, err := ev.MPE(nil); !errors.Is(err, ErrRow) {
		t.Errorf("empty row: %v", err)
	}
}
