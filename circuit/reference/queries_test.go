package reference

import (
	"errors"
	"math"
	"testing"

	"github.com/pce-engine/pce/circuit"
)

// TestQueriesAgreeWithEnumeration compares all queries of circuits of every leaf with sums and
// integrals over all completions: of rows with no cells, some and all, in circuits with
// structural zeros and without.
func TestQueriesAgreeWithEnumeration(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(24) {
		o := RandomOptions{Vars: 2 + int(seed%3), MaxUnits: 4, MaxCodes: 4, MaxNodes: 24, Discrete: seed%2 == 0}
		g, ev, rng := random(t, seed, o)
		ev = normalised(t, ev)
		rows := append(RandomRows(g, rng, 3, 0.5), RandomRows(g, rng, 1, 0)[0])
		if seed%2 == 0 {
			rows = append(rows, MissingRow(g.NumVars))
		}
		for _, given := range rows {
			checkQueries(t, ev, given, seen)
		}
		for i := range g.Nodes {
			if g.Nodes[i].Kind == circuit.Input {
				seen[g.Nodes[i].Leaf.Name()]++
			}
		}
	}
	for _, what := range []string{"impossible", "gaussian", "poisson", "log-normal", "indicator", "categorical", "moments"} {
		if seen[what] == 0 {
			t.Errorf("nothing of the kind %q was compared", what)
		}
	}
}

// checkQueries compares what the reference says of a row with sums over its completions.
func checkQueries(t *testing.T, ev *Evaluator, given []float64, seen map[string]int) {
	t.Helper()
	const tol = 1e-9
	points, err := ev.Points(given)
	if errors.Is(err, ErrDomain) { // two narrow normals make too many points
		seen["beyond"]++
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	n := ev.g.NumVars
	mass, top := 0.0, math.Inf(-1)
	mean, square, codes := make([]float64, n), make([]float64, n), make([]map[int]float64, n)
	for v := range codes {
		codes[v] = map[int]float64{}
	}
	for row, weight := range points {
		ll, err := ev.LogLikelihood(row)
		if err != nil {
			t.Fatal(err)
		}
		p := weight * math.Exp(ll)
		top = max(top, ll)
		mass += p
		for v, x := range row {
			mean[v] += p * x
			square[v] += p * x * x
			codes[v][int(x)] += p
		}
	}
	ll, err := ev.LogLikelihood(given)
	if err != nil || !near(math.Exp(ll), mass, tol*max(1, mass)) {
		t.Errorf("row %v has likelihood %v, its completions %v: %v", given, math.Exp(ll), mass, err)
	}
	means, variances, err := ev.Moments(given)
	if mass == 0 {
		seen["impossible"]++
		if _, also := ev.Conditionals(given); !errors.Is(err, ErrRow) || !errors.Is(also, ErrRow) {
			t.Errorf("row %v is impossible: %v, %v; want ErrRow", given, err, also)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	all, err := ev.Conditionals(given)
	if err != nil {
		t.Fatal(err)
	}
	finite := true
	for v, domain := range circuit.Domains(ev.g) {
		if domain < 0 {
			continue
		}
		finite = finite && (domain > 0 || !math.IsNaN(given[v]))
		m, s := mean[v]/mass, square[v]/mass
		seen["moments"]++
		if !near(means[v], m, tol*max(1, math.Abs(m))) || !near(variances[v], s-m*m, tol*max(1, s)) {
			t.Errorf("row %v: variable %d has mean %v and variance %v, want %v and %v", given, v, means[v], variances[v], m, s-m*m)
		}
		for c, p := range all[v] {
			if want := codes[v][c] / mass; !near(p, want, tol) {
				t.Errorf("row %v: variable %d is %d with %v, want %v", given, v, c, p, want)
			}
		}
	}
	if finite {
		best, ll, err := ev.MPE(given)
		if err != nil || !near(ll, top, tol) {
			t.Errorf("row %v: the best completion is %v with %v, want %v: %v", given, best, ll, top, err)
		}
	}
}

// TestConditionalQueries compares all conditionals at once with sums over
// all states, and with one variable at a time.
func TestConditionalQueries(t *testing.T) {
	const tol = 1e-9
	for seed := range uint64(80) {
		g, ev, rng := random(t, seed, RandomOptions{Vars: 1 + int(seed%5), MaxUnits: 5, MaxCodes: 4, Discrete: true})
		ev = normalised(t, ev)
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

// normalised returns an evaluator of the same circuit where the weights of units, and the tables
// of inputs, add up to 1 in float64; as float32 numbers they do to 2^-24 only.
func normalised(t *testing.T, ev *Evaluator) *Evaluator {
	t.Helper()
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
	ev, err := New(ev.g, ev.p)
	if err != nil {
		t.Fatal(err)
	}
	return ev
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
