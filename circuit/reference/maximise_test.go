package reference

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/pce-engine/pce/circuit"
)

// TestMaximiseQueries: maxima exchange, so the value of a row is the largest
// value of its completions, the returned one has it, and the bound is above all.
func TestMaximiseQueries(t *testing.T) {
	below := 0
	for seed := range uint64(60) {
		g, ev, rng := random(t, seed, RandomOptions{Vars: 2 + int(seed%3), MaxUnits: 5, MaxCodes: 4, Discrete: true})
		for _, given := range RandomRows(g, rng, 4, 0.6) {
			states, err := States(g, given)
			if err != nil {
				t.Fatal(err)
			}
			best, most := math.Inf(-1), math.Inf(-1)
			for state := range states {
				if _, top, err := ev.Maximise(state); err == nil {
					best = max(best, top)
				}
				ll, err := ev.LogLikelihood(state)
				if err != nil {
					t.Fatal(err)
				}
				most = max(most, ll)
			}
			bound, err := ev.Bound(given)
			if err != nil || !(bound >= most-1e-12) {
				t.Errorf("seed %d: bound %v is below the mode's %v: %v", seed, bound, most, err)
			}
			row, top, err := ev.Maximise(given)
			if math.IsInf(best, -1) {
				if !errors.Is(err, ErrRow) {
					t.Errorf("seed %d: %v is impossible: %v, want ErrRow", seed, given, err)
				}
				continue
			}
			if err != nil || !near(top, best, 1e-9) {
				t.Fatalf("seed %d: value %v, want %v: %v", seed, top, best, err)
			}
			for v, x := range given {
				if !math.IsNaN(x) && row[v] != x {
					t.Errorf("seed %d: variable %d was %v, is %v", seed, v, x, row[v])
				}
			}
			if _, again, err := ev.Maximise(row); err != nil || !near(again, top, 1e-9) {
				t.Errorf("seed %d: %v has the value %v, want %v: %v", seed, row, again, top, err)
			}
			if ll, err := ev.LogLikelihood(row); err != nil || !(ll >= top-1e-9) {
				t.Errorf("seed %d: %v has log-likelihood %v below the value %v: %v", seed, row, ll, top, err)
			}
			if top < most-1e-3 {
				below++
			}
		}
	}
	if below == 0 {
		t.Error("maxima are modes in all circuits; want some in which they are not")
	}
}

// TestExactMPEQueries compares with the mode where the units of a
// chain say which code a variable has, so that one product of a sum is not 0.
func TestExactMPEQueries(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 9))
	for vars := 1; vars <= 6; vars++ {
		g, p := Chain(rng, vars, 3)
		ev, err := New(g, p)
		if err != nil {
			t.Fatal(err)
		}
		for _, given := range RandomRows(g, rng, 10, 0.6) {
			want, ll, err := ev.MPE(given)
			if err != nil {
				t.Fatal(err)
			}
			row, top, err := ev.Maximise(given)
			if err != nil || !near(top, ll, 1e-9) {
				t.Fatalf("%d variables: value %v, want %v: %v", vars, top, ll, err)
			}
			for v := range row {
				if row[v] != want[v] {
					t.Errorf("%d variables: %v, want %v", vars, row, want)
					break
				}
			}
		}
	}
}

// TestMaximiseQueriesByHand has a product that a sum of two equal edges beats, which maxima
// do not see, a tie, and densities above 1.
func TestMaximiseQueriesByHand(t *testing.T) {
	g := &circuit.Graph{NumVars: 2, Root: 3, Nodes: []circuit.Node{
		{Kind: circuit.Input, Units: 3, Var: 0, Leaf: circuit.Categorical{Categories: 3}},
		{Kind: circuit.Input, Units: 3, Var: 1, Leaf: circuit.Gaussian{}},
		{Kind: circuit.Product, Units: 3, Children: []circuit.NodeID{0, 1}},
		{Kind: circuit.Sum, Units: 1, Children: []circuit.NodeID{2}},
	}}
	p := Params{{0, 0.5, 0.5, 0.125, 0.125, 0.75, 0, 0.5, 0.5}, {1, 0.125, -1, 0.25, 2, 0.125}, nil, {0.25, 0.5, 0.25}}
	ev, err := New(g, p)
	if err != nil {
		t.Fatal(err)
	}
	nan, peak := math.NaN(), 1/math.Sqrt(2*math.Pi)
	for _, tc := range []struct {
		given, want []float64
		value       float64
	}{
		{[]float64{nan, nan}, []float64{2, -1}, 0.5 * 0.75 * 4 * peak},
		{[]float64{1, nan}, []float64{1, 1}, 0.25 * 0.5 * 8 * peak}, // the last unit has as much
		{[]float64{0, nan}, []float64{0, -1}, 0.5 * 0.125 * 4 * peak},
		{[]float64{nan, 2}, []float64{1, 2}, 0.25 * 0.5 * 8 * peak},
	} {
		row, top, err := ev.Maximise(tc.given)
		if err != nil || row[0] != tc.want[0] || row[1] != tc.want[1] || !near(top, math.Log(tc.value), 1e-12) {
			t.Errorf("%v: %v with %v, want %v with %v: %v", tc.given, row, top, tc.want, math.Log(tc.value), err)
		}
	}
	// Without evidence every unit has its own mode: ¼·½·8 + ½·¾·4 + ¼·½·8.
	if got, err := ev.Bound([]float64{nan, nan}); err != nil || !near(got, math.Log(3.5*peak), 1e-12) {
		t.Errorf("bound %v, want %v: %v", got, math.Log(3.5*peak), err)
	}
}
