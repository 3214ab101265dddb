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
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/engine"
)

// likeliest returns the log of the largest probability that values of the variables in of have, and the
// values, by summing over all states: what evidence says of each is a factor.
func likeliest(t *testing.T, m *model, row []float64, soft []*dataset.Evidence, of []bool) (best []float64, top float64) {
	t.Helper()
	states, err := reference.SoftStates(m.graph, row, soft)
	if err != nil {
		t.Fatal(err)
	}
	sums, values := map[string]float64{}, map[string][]float64{}
	for state, likelihood := range states {
		ll, err := m.ref.LogLikelihood(state)
		if err != nil {
			t.Fatal(err)
		}
		kept := slices.Clone(row)
		for v, x := range state {
			if of[v] {
				kept[v] = x
			}
		}
		key := fmt.Sprint(kept)
		sums[key] += math.Exp(ll) * likelihood
		values[key] = kept
	}
	top = math.Inf(-1)
	for key, p := range sums {
		if l := math.Log(p); best == nil || l > top {
			best, top = values[key], l
		}
	}
	return best, top
}

// someOf says of each variable, at random, whether it is completed.
func someOf(rng *rand.Rand, n int) []bool {
	of := make([]bool, n)
	for v := range of {
		of[v] = rng.IntN(2) == 0
	}
	return of
}

// TestMarginalMAP compares the values of some variables, all others summed out, with enumeration. A search
// without a limit proves them the best, whether other candidates help it or not; one that is cut short has a bound.
func TestMarginalMAP(t *testing.T) {
	proved, cut, loose, partial := 0, 0, 0, 0
	seeds := uint64(30)
	if testing.Short() {
		seeds = 10
	}
	for seed := range seeds {
		rng := rand.New(rand.NewPCG(seed, 71))
		g := reference.Random(rng, reference.RandomOptions{Vars: 2 + rng.IntN(5), MaxUnits: 8, MaxCodes: 3, Discrete: true})
		m := build(t, g, engine.Options{Rows: 1 + rng.IntN(64), Queries: true})
		rows := append(reference.RandomRows(g, rng, 4, 0.7), reference.MissingRow(g.NumVars))
		of := someOf(rng, g.NumVars)
		if seed%5 == 0 {
			of = slices.Repeat([]bool{true}, g.NumVars)
		}
		for _, o := range []engine.MPEOptions{
			{Of: of, Search: 1 << 20},
			{Of: of, Search: 1 << 20, Candidates: 2, Beam: 2, Sweeps: 4},
			{Of: of, Search: 1},
			{Of: of, Candidates: 2, Beam: 2, Sweeps: 4},
		} {
			b := m.batch(rows)
			ll, bound := make([]float64, len(rows)), make([]float64, len(rows))
			if err := m.eng.MPE(context.Background(), b, o, ll, bound); err != nil {
				t.Fatal(err)
			}
			for r, full := range reference.Rows(b) {
				if math.IsInf(m.wantLL(t, rows[r]), -1) {
					if !same(full, rows[r]) || !math.IsInf(ll[r], -1) {
						t.Errorf("seed %d: row %v is impossible and becomes %v with %v", seed, rows[r], full, ll[r])
					}
					continue
				}
				for v := range full {
					open := math.IsNaN(rows[r][v]) && circuit.Domains(g)[v] >= 0
					if math.IsNaN(full[v]) != (math.IsNaN(rows[r][v]) && !(open && of[v])) {
						t.Errorf("seed %d: %v of row %v becomes %v", seed, of, rows[r], full)
					}
					if open && !of[v] {
						partial++
					}
				}
				_, want := likeliest(t, m, rows[r], nil, of)
				got := m.wantLL(t, full)
				if !near(ll[r], got, 1e-4) || !(ll[r] <= want+1e-4) || !(bound[r] >= want-1e-4) {
					t.Errorf("seed %d, %+v: row %v becomes %v with %v (%v said), bound %v; the best have %v", seed, o, rows[r], full, got, ll[r], bound[r], want)
				}
				switch {
				case o.Search > 1:
					if !near(got, want, 1e-4) || !near(bound[r], want, 1e-4) {
						t.Errorf("seed %d, %+v: row %v becomes %v with %v, bound %v; the best have %v", seed, o, rows[r], full, got, bound[r], want)
					}
					proved++
				case bound[r] > want+1e-3 && o.Search == 1:
					cut++
				case bound[r] > want+1e-3:
					loose++
				}
			}
		}
	}
	if proved < int(3*seeds) || cut == 0 || loose == 0 || partial < int(3*seeds) {
		t.Errorf("%d proofs, %d searches cut short, %d rows without, and %d cells summed out; want more", proved, cut, loose, partial)
	}
}

// TestMarginalMAPIsNotMPE asks for a variable whose likeliest value, 0 with 0.6, is not that of the likeliest row, {0, 1} with
// 0.4: draws aside, each way to find it does.
func TestMarginalMAPIsNotMPE(t *testing.T) {
	two, three := circuit.Categorical{Categories: 2}, circuit.Categorical{Categories: 3}
	g, params := mixture([]float64{0.6, 0.4}, [][]part{
		{{three, []float64{1. / 3, 1. / 3, 1. / 3}}, {two, []float64{1, 0}}},
		{{three, []float64{1, 0, 0}}, {two, []float64{0, 1}}},
	})
	m := buildWith(t, g, params, engine.Options{Rows: 16, Queries: true})
	given := [][]float64{{missing, missing}}
	full, ll, _ := m.complete(t, given, engine.MPEOptions{Beam: 4, Sweeps: 4, Search: 10})
	if !near(ll[0], math.Log(0.4), 1e-5) || !same(full[0], []float64{0, 1}) {
		t.Errorf("the likeliest row is %v with %v", full[0], ll[0])
	}
	for _, o := range []engine.MPEOptions{{Beam: 1}, {Sweeps: 1}, {Search: 3}} {
		o.Of = []bool{false, true}
		full, ll, _ := m.complete(t, given, o)
		if !near(ll[0], math.Log(0.6), 1e-5) || !same(full[0], []float64{missing, 0}) {
			t.Errorf("%+v: the likeliest value is in %v with %v", o, full[0], ll[0])
		}
	}
}

// TestMarginalMAPOfSoft has evidence in place of values, in cells that are completed and in others.
func TestMarginalMAPOfSoft(t *testing.T) {
	rowsSeen, best := 0, 0
	for seed := range uint64(12) {
		rng := rand.New(rand.NewPCG(seed, 72))
		g := reference.Random(rng, reference.RandomOptions{Discrete: true, MaxNodes: 20, Vars: 2 + int(seed%4), MaxCodes: 4})
		m := buildSoft(t, g, 8, engine.Options{Rows: 64, Queries: true})
		rows := reference.RandomRows(g, rng, 5, 0.3)
		soft := reference.RandomSoft(g, rng, rows, 0.5)
		of := someOf(rng, g.NumVars)
		b := m.softBatch(rows, soft)
		ll, bound := make([]float64, len(rows)), make([]float64, len(rows))
		if err := m.eng.MPE(context.Background(), b, engine.MPEOptions{Candidates: 8, Sweeps: 10, Search: 100, Of: of}, ll, bound); err != nil {
			t.Fatal(err)
		}
		for r := range rows {
			_, top := likeliest(t, m, rows[r], soft[r], of)
			if math.IsInf(top, -1) {
				continue
			}
			rowsSeen++
			tol := 1e-4 * max(1, math.Abs(top))
			if !(bound[r] >= top-tol) || !(ll[r] <= top+tol) {
				t.Errorf("seed %d, row %v: %v with bound %v; the best have %v", seed, rows[r], ll[r], bound[r], top)
			}
			if near(ll[r], top, tol) {
				best++
			}
		}
	}
	if rowsSeen < 30 || best < rowsSeen*95/100 {
		t.Errorf("%d of %d completions are the best", best, rowsSeen)
	}
}

// TestMarginalMAPOfNarrowLeaves bounds values whose densities are far above 1, and those of codes, whose probabilities are not.
func TestMarginalMAPOfNarrowLeaves(t *testing.T) {
	normal := func(mean, sd float64) part { return part{circuit.Gaussian{}, []float64{mean, sd}} }
	bit := part{circuit.Bernoulli{}, []float64{0.5, 0.5}}
	g, params := mixture([]float64{0.5, 0.5}, [][]part{{normal(0, 0.01), bit, bit}, {normal(1, 0.02), bit, bit}})
	m := buildWith(t, g, params, engine.Options{Rows: 8, Queries: true})
	peak := -math.Log(0.01 * math.Sqrt(2*math.Pi))
	for _, row := range [][]float64{{missing, missing, missing}, {missing, missing, 1}, {missing, 0, missing}} {
		_, ll, bound := m.complete(t, [][]float64{row}, engine.MPEOptions{Beam: 2, Of: []bool{true, false, true}})
		observed := 0.0
		for _, x := range row[1:] {
			if x == x {
				observed += math.Log(0.5)
			}
		}
		best := peak + math.Log(0.5) + observed
		if row[2] != row[2] {
			best += math.Log(0.5) // the completed bit
		}
		if !near(ll[0], best, 1e-4) || row[1] != row[1] && !near(bound[0], peak+observed, 1e-4) {
			t.Errorf("row %v: log-likelihood %v, want %v; the bound is %v, want %v", row, ll[0], best, bound[0], peak+observed)
		}
	}
}

// TestMarginalMAPOfValues bounds values of leaves of all families: no draw of them is likelier than the bound says.
func TestMarginalMAPOfValues(t *testing.T) {
	tested := 0
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 73))
		g := reference.Random(rng, reference.RandomOptions{Vars: 2 + rng.IntN(4), MaxUnits: 6, MaxCodes: 4, Positive: true})
		m := build(t, g, engine.Options{Rows: 512, Queries: true})
		given, of := reference.RandomRows(g, rng, 1, 0.7)[0], someOf(rng, g.NumVars)
		full, ll, bound := m.batch([][]float64{given}), make([]float64, 1), make([]float64, 1)
		o := engine.MPEOptions{Candidates: 8, Beam: 8, Sweeps: 10, Search: 200, Of: of}
		if err := m.eng.MPE(context.Background(), full, o, ll, bound); err != nil {
			t.Fatal(err)
		}
		b := m.batch(copies(given, 500))
		if err := m.eng.Sample(context.Background(), b, 99, 0); err != nil {
			t.Fatal(err)
		}
		drawn := reference.Rows(b)
		for _, row := range drawn {
			for v := range row {
				if !of[v] {
					row[v] = given[v]
				}
			}
		}
		others := make([]float64, len(drawn))
		if err := m.eng.LogLikelihood(context.Background(), m.batch(drawn), others); err != nil {
			t.Fatal(err)
		}
		top, tol := slices.Max(others), 1e-4*max(1, math.Abs(ll[0]))
		if want := m.wantLL(t, reference.Rows(full)[0]); !near(ll[0], want, tol) || !(bound[0] >= ll[0]-tol) || !(bound[0] >= top-tol) || !(ll[0] >= top-tol) {
			t.Errorf("seed %d, %v of %v: %v with %v (%v said) and bound %v, and a draw has %v", seed, of, given, reference.Rows(full)[0], want, ll[0], bound[0], top)
		}
		if !math.IsInf(bound[0], 0) && bound[0] > ll[0]+1e-3 {
			tested++
		}
	}
	if tested < 5 {
		t.Errorf("%d bounds above what was found; want some", tested)
	}
}

// TestSearchBins searches through values that leaves read by bins, narrow ones too, whose densities exceed 1.
func TestSearchBins(t *testing.T) {
	column := dataset.Column{Kind: dataset.Continuous, Edges: []float64{0, 0.001, 0.5, 4}, Outside: 1e-6}
	schema := &dataset.Schema{Columns: []dataset.Column{column, column, column}}
	middles := []float64{0.0005, 0.25, 2}
	for seed := range uint64(10) {
		rng := rand.New(rand.NewPCG(seed, 74))
		share := func() []float64 {
			x, y := 0.05+0.4*rng.Float64(), 0.05+0.4*rng.Float64()
			return []float64{x, y, 1 - x - y}
		}
		three := circuit.Categorical{Categories: 3}
		var parts [][]part
		for range 3 {
			parts = append(parts, []part{{three, share()}, {three, share()}, {three, share()}})
		}
		g, params := mixture(share(), parts)
		m := buildWith(t, g, params, engine.Options{Rows: 16, Queries: true, Schema: schema})
		for _, of := range [][]bool{nil, {true, true, true}, {true, false, true}, {false, true, false}} {
			b := reference.Batch(schema, [][]float64{{missing, missing, missing}, {0.3, missing, missing}})
			ll, bound := make([]float64, 2), make([]float64, 2)
			if err := m.eng.MPE(t.Context(), b, engine.MPEOptions{Search: 100, Of: of}, ll, bound); err != nil {
				t.Fatal(err)
			}
			for r, first := range [][]float64{middles, {0.3}} {
				var rows [][]float64
				for _, x := range first {
					for _, y := range middles {
						for _, z := range middles {
							row := []float64{x, y, z}
							for v := range row {
								if of != nil && !of[v] && !(r == 1 && v == 0) {
									row[v] = missing
								}
							}
							rows = append(rows, row)
						}
					}
				}
				if best := slices.Max(m.logLikelihood(t, reference.Batch(schema, rows))); !near(ll[r], best, 1e-5) || !near(bound[r], best, 1e-5) {
					t.Errorf("seed %d, %v, row %d: %v and bound %v; the best has %v", seed, of, r, ll[r], bound[r], best)
				}
			}
		}
	}
}

// TestMarginalMAPOfNumbers completes a number of a small scale, whose densities are large, where another one is summed out:
// from nothing, and within a range that has little probability. The answer is the density of one product at
// the value, which a mode has or an end of the range.
func TestMarginalMAPOfNumbers(t *testing.T) {
	const scale = 1e-3
	schema := &dataset.Schema{Columns: []dataset.Column{{Kind: dataset.Continuous, Scale: scale}, {Kind: dataset.Continuous, Scale: 5}}}
	g, params := mixture([]float64{1}, [][]part{{{circuit.Gaussian{}, []float64{2, 1}}, {circuit.Gaussian{}, []float64{0, 1}}}})
	co := compile.DefaultOptions()
	co.Soft = 8
	m := buildCompiled(t, g, params, co, engine.Options{Rows: 16, Queries: true, Schema: schema})
	none := []*dataset.Evidence{nil, nil}
	b := reference.SoftBatch(schema, [][]float64{{missing, missing}, {missing, missing}}, [][]*dataset.Evidence{none, {{Low: 5.999 * scale, High: 6.001 * scale}, nil}})
	ll, bound := make([]float64, 2), make([]float64, 2)
	if err := m.eng.MPE(t.Context(), b, engine.MPEOptions{Sweeps: 3, Search: 10, Of: []bool{true, false}}, ll, bound); err != nil {
		t.Fatal(err)
	}
	mode := -math.Log(scale) - math.Log(2*math.Pi)/2
	end := mode - 3.999*3.999/2
	if !near(ll[0], mode, 1e-4) || !near(bound[0], mode, 1e-4) || !near(ll[1], end, 1e-3) || !(bound[1] >= end-1e-3) {
		t.Errorf("%v and %v with bounds %v and %v; want %v and %v", ll[0], ll[1], bound[0], bound[1], mode, end)
	}
	if full := reference.Rows(b); !math.IsNaN(full[0][1]) || !math.IsNaN(full[1][1]) || !near(full[0][0], 2, 1e-3) {
		t.Errorf("rows %v", full)
	}
}

// TestSearchFaint has a completion whose first value has a probability that float32 lacks, 1e-50, which many products share:
// each of them has less than the likeliest completion of the product without that value. So the search must not claim a proof.
func TestSearchFaint(t *testing.T) {
	const others, products = 21, 20
	two, many := circuit.Categorical{Categories: 2}, circuit.Categorical{Categories: 256}
	even, sure := slices.Repeat([]float64{1. / 256}, 256), make([]float64, 256)
	sure[0] = 1
	weights, parts := []float64{1}, [][]part{{{two, []float64{1, 0}}, {two, []float64{1, 0}}}}
	for range products {
		weights = append(weights, 1e-30/products)
		parts = append(parts, []part{{two, []float64{0, 1}}, {two, []float64{1e-20, 1}}})
	}
	for k := range parts {
		for range others {
			parts[k] = append(parts[k], part{many, sure})
			if k == 0 {
				parts[k][len(parts[k])-1].params = even
			}
		}
	}
	g, params := mixture(weights, parts)
	m := buildWith(t, g, params, engine.Options{Rows: 16, Queries: true})
	row, best := slices.Repeat([]float64{missing}, others+2), make([]float64, others+2)
	row[1], best[0] = 0, 1
	top := m.logLikelihood(t, m.batch([][]float64{best}))[0]
	if want := -50 * math.Ln10; !near(top, want, 1e-3) {
		t.Fatalf("the best has %v, want %v", top, want)
	}
	_, ll, bound := m.complete(t, [][]float64{row}, engine.MPEOptions{Search: 50})
	if !(bound[0] >= top-1e-3) || !(ll[0] <= top+1e-3) {
		t.Errorf("%v with bound %v; the best has %v", ll[0], bound[0], top)
	}
}

// counted is a context that counts how often it is asked whether it is cancelled.
type counted struct {
	context.Context
	asked int
}

func (c *counted) Err() error {
	c.asked++
	return c.Context.Err()
}

// TestSearchIsCancelled asks the context before each partial completion is extended: of a column with many codes that takes long.
func TestSearchIsCancelled(t *testing.T) {
	const rows = 50
	two := circuit.Categorical{Categories: 2}
	g, params := mixture([]float64{0.6, 0.4}, [][]part{
		{{two, []float64{0.5, 0.5}}, {two, []float64{0.5, 0.5}}},
		{{two, []float64{1, 0}}, {two, []float64{0.1, 0.9}}},
	})
	m := buildWith(t, g, params, engine.Options{Rows: 128, Queries: true})
	var asked [2]int
	for k := range asked {
		ctx := &counted{Context: t.Context()}
		b := m.batch(copies([]float64{missing, missing}, rows))
		if err := m.eng.MPE(ctx, b, engine.MPEOptions{Search: k, Of: []bool{true, false}}, make([]float64, rows), make([]float64, rows)); err != nil {
			t.Fatal(err)
		}
		asked[k] = ctx.asked
	}
	if asked[1] < asked[0]+rows {
		t.Errorf("%d questions without and %d with a search of %d rows", asked[0], asked[1], rows)
	}
}

// TestBoundIsNotBelow has bounds that by rounding alone would lie below what was found.
func TestBoundIsNotBelow(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 75))
		g := reference.Random(rng, reference.RandomOptions{Vars: 1, MaxUnits: 1 + rng.IntN(20), MaxCodes: 7, Discrete: true})
		m := build(t, g, engine.Options{Rows: 16, Queries: true})
		given := append(reference.RandomRows(g, rng, 5, 0.5), reference.MissingRow(g.NumVars))
		for _, limit := range []int{0, 10} {
			_, ll, bound := m.complete(t, given, engine.MPEOptions{Sweeps: 2, Search: limit})
			for r := range ll {
				if bound[r] < ll[r] {
					t.Errorf("seed %d: %v with bound %v", seed, ll[r], bound[r])
				}
			}
		}
	}
}
