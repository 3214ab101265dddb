package reference

import (
	"errors"
	"math"
	"testing"
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
	if _, _, err := ev.MPE(nil); !errors.Is(err, ErrRow) {
		t.Errorf("empty row: %v", err)
	}
}
