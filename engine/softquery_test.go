package engine_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/engine"
)

// TestSoftSample compares the frequencies of drawn cells with their distributions: of codes each,
// of values in quarters of equal probability. The bound on chi-square is passed once in 10^6 runs.
func TestSoftSample(t *testing.T) {
	check := func(t *testing.T, g *circuit.Graph, seed uint64) (tested int) {
		const draws = 4000
		m := buildSoft(t, g, 8, engine.Options{Rows: 256})
		rng := rand.New(rand.NewPCG(seed, 47))
		one := reference.RandomRows(g, rng, 1, 0.3)
		known := reference.RandomSoft(g, rng, one, 0.8)
		if ll, err := m.ref.SoftLogLikelihood(one[0], known[0]); err != nil || math.IsInf(ll, -1) {
			return 0
		}
		rows, soft := slices.Repeat(one, draws), slices.Repeat(known, draws)
		b := m.softBatch(rows, soft)
		again := m.softBatch(rows[:1], soft[:1])
		ctx := context.Background()
		if err := m.eng.Sample(ctx, b, 11, 0); err != nil {
			t.Fatal(err)
		}
		if err := m.eng.Sample(ctx, again, 11, 0); err != nil {
			t.Fatal(err)
		}
		drawn := reference.Rows(b)
		if first := reference.Rows(again)[0]; !slices.Equal(first, drawn[0]) {
			t.Errorf("alone the first row is %v, in a batch %v", first, drawn[0])
		}
		for v, e := range known[0] {
			if e == nil {
				continue
			}
			values, p := m.distribution(t, one[0], known[0], v)
			parts, cum, of := []float64{}, 0.0, make([]int, len(values))
			for i := range values { // values of codes each, else those of a quarter together
				if e.Runs != nil || m.leaf(v).Name() == "poisson" {
					of[i] = i
				} else {
					of[i] = min(3, int(4*(cum+p[i]/2)))
				}
				cum += p[i]
				for len(parts) <= of[i] {
					parts = append(parts, 0)
				}
				parts[of[i]] += p[i]
			}
			counts := make([]float64, len(parts))
			for _, row := range drawn {
				i, exact := slices.BinarySearch(values, row[v])
				if !exact && e.Runs == nil && m.leaf(v).Name() != "poisson" {
					if i > 0 && (i == len(values) || row[v]-values[i-1] < values[i]-row[v]) {
						i--
					}
				} else if !exact {
					t.Fatalf("variable %d: %v is not a value of %v", v, row[v], text(known[0]))
				}
				counts[of[i]]++
			}
			chi, free := 0.0, -1.0
			for i, x := range parts {
				want := draws * x
				if want < 5 {
					if counts[i] > want+30 {
						t.Errorf("variable %d: %v draws of a part that has %v", v, counts[i], want)
					}
					continue
				}
				chi += (counts[i] - want) * (counts[i] - want) / want
				free++
			}
			if free > 0 {
				tested++
			}
			if !(chi <= max(free, 1)+5*math.Sqrt(2*max(free, 1))+25) {
				t.Errorf("variable %d: chi-square %v of %v degrees, counts %v, want shares %v", v, chi, free, counts, parts)
			}
		}
		return tested
	}
	tested := 0
	for seed := range uint64(4) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			tested += check(t, reference.Random(rand.New(rand.NewPCG(seed, 46)), reference.RandomOptions{Discrete: true, MaxNodes: 20, Vars: 4}), seed)
		})
	}
	valued(t, func(name string, g *circuit.Graph) {
		t.Run(name, func(t *testing.T) { tested += check(t, g, 3) })
	})
	if tested < 6 {
		t.Errorf("%d distributions are too few", tested)
	}
}

// TestSoftMPE compares completions with the best of all those that the evidence allows.
func TestSoftMPE(t *testing.T) {
	n, rowsSeen, best := 12, 0, 0
	if testing.Short() {
		n = 6
	}
	for seed := range uint64(n) {
		rng := rand.New(rand.NewPCG(seed, 49))
		g := reference.Random(rng, reference.RandomOptions{Discrete: true, MaxNodes: 20, Vars: 1 + int(seed%5), MaxCodes: 4})
		m := buildSoft(t, g, 8, engine.Options{Rows: 64, Queries: true})
		rows := reference.RandomRows(g, rng, 5, 0.4)
		soft := reference.RandomSoft(g, rng, rows, 0.7)
		b := m.softBatch(rows, soft)
		ll, bound := make([]float64, len(rows)), make([]float64, len(rows))
		if err := m.eng.MPE(context.Background(), b, engine.MPEOptions{Candidates: 8, Sweeps: 10}, ll, bound); err != nil {
			t.Fatal(err)
		}
		for r, row := range reference.Rows(b) {
			states, err := reference.SoftStates(g, rows[r], soft[r])
			if err != nil {
				t.Fatal(err)
			}
			top, own := math.Inf(-1), math.Inf(-1)
			for state, likelihood := range states {
				l, err := m.ref.LogLikelihood(state)
				if err != nil {
					t.Fatal(err)
				}
				l += math.Log(likelihood)
				if top = max(top, l); same(state, row) {
					own = l
				}
			}
			if math.IsInf(top, -1) {
				continue
			}
			rowsSeen++
			tol := 1e-5 * max(1, math.Abs(top))
			if !near(ll[r], own, tol) || !(bound[r] >= top-tol) || !(ll[r] <= top+tol) {
				t.Errorf("seed %d, row %d: completion %v has %v, reported %v with bound %v; the best has %v", seed, r, row, own, ll[r], bound[r], top)
			}
			if near(ll[r], top, 10*tol) {
				best++
			}
		}
	}
	if rowsSeen < 2*n || best < rowsSeen*97/100 {
		t.Errorf("%d of %d completions are the best", best, rowsSeen)
	}
}

// TestSoftMPEValues wants the best value within each range, where leaves have no table and one
// unit.
func TestSoftMPEValues(t *testing.T) {
	for _, tc := range []struct {
		leaf      circuit.Leaf
		low, high float64
		want      func(p []float64) float64
	}{
		{circuit.Gaussian{}, -math.MaxFloat32, math.MaxFloat32, func(p []float64) float64 { return float64(float32(p[0])) }},
		{circuit.Gaussian{}, 50, 60, func([]float64) float64 { return 50 }},
		{circuit.Gaussian{}, math.Inf(-1), -50, func([]float64) float64 { return -50 }},
		{circuit.LogNormal{}, 70, 80, func([]float64) float64 { return 70 }},
		{circuit.Poisson{}, 30.5, 40, func([]float64) float64 { return 31 }},
	} {
		g := &circuit.Graph{NumVars: 1, Nodes: []circuit.Node{{Kind: circuit.Input, Units: 1, Leaf: tc.leaf}}}
		m := buildSoft(t, g, 8, engine.Options{Rows: 4, Queries: true})
		b := m.softBatch([][]float64{{missing}}, [][]*dataset.Evidence{{{Low: tc.low, High: tc.high}}})
		ll, bound := make([]float64, 1), make([]float64, 1)
		if err := m.eng.MPE(context.Background(), b, engine.MPEOptions{Candidates: 2, Sweeps: 3}, ll, bound); err != nil {
			t.Fatal(err)
		}
		want := tc.want(m.params[0])
		l, err := m.ref.LogLikelihood([]float64{want})
		if err != nil {
			t.Fatal(err)
		}
		if got := reference.Rows(b)[0][0]; got != want || !near(ll[0], l, 1e-4*math.Abs(l)) || !near(bound[0], l, 1e-4*math.Abs(l)) {
			t.Errorf("%s in %v..%v: %v with %v and bound %v, want %v with %v", tc.leaf.Name(), tc.low, tc.high, got, ll[0], bound[0], want, l)
		}
	}
}

func same(a, b []float64) bool {
	return slices.EqualFunc(a, b, func(x, y float64) bool { return x == y || math.IsNaN(x) && math.IsNaN(y) })
}
