package engine_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/engine"
)

// complete fills rows and checks what holds of every completion: evidence stays, what is said
// of its likelihood is true, and the bound holds for it. An impossible row keeps its missing
// cells.
func (m *model) complete(t *testing.T, rows [][]float64, o engine.MPEOptions) (full [][]float64, ll, bound []float64) {
	t.Helper()
	b := m.batch(rows)
	ll, bound = make([]float64, len(rows)), make([]float64, len(rows))
	if err := m.eng.MPE(context.Background(), b, o, ll, bound); err != nil {
		t.Fatal(err)
	}
	full = reference.Rows(b)
	for r, row := range rows {
		evidence := m.wantLL(t, row)
		for v, x := range row {
			kept := math.IsNaN(full[r][v]) && math.IsNaN(x) || full[r][v] == x
			switch missed := math.IsNaN(full[r][v]); {
			case !math.IsNaN(x) && !kept:
				t.Fatalf("row %v is completed as %v", row, full[r])
			case math.IsNaN(x) && missed != (math.IsInf(evidence, -1) || circuit.Domains(m.graph)[v] < 0 || o.Of != nil && !o.Of[v]):
				t.Fatalf("row %v of log-likelihood %v is completed as %v", row, evidence, full[r])
			}
		}
		want := m.wantLL(t, full[r])
		if !near(ll[r], want, 1e-4*max(1, math.Abs(want))) {
			t.Errorf("row %v: log-likelihood %v of %v, want %v", row, ll[r], full[r], want)
		}
		if !(bound[r] >= ll[r]-1e-4*max(1, math.Abs(want))) {
			t.Errorf("row %v: a bound of %v below %v", row, bound[r], ll[r])
		}
	}
	return full, ll, bound
}

// TestExactMPEQueries compares max-product of deterministic circuits with enumeration.
func TestExactMPEQueries(t *testing.T) {
	for seed := range uint64(10) {
		rng := rand.New(rand.NewPCG(seed, 61))
		g, p := reference.Chain(rng, 2+rng.IntN(6), 2+rng.IntN(2))
		m := buildWith(t, g, p, engine.Options{Rows: 1 + rng.IntN(9), Queries: true})
		rows := append(reference.RandomRows(g, rng, 10, 0.5), reference.MissingRow(g.NumVars))
		_, ll, _ := m.complete(t, rows, engine.MPEOptions{})
		for r, row := range rows {
			_, want, err := m.ref.MPE(row)
			if err != nil {
				t.Fatal(err)
			}
			if !near(ll[r], want, 1e-4) {
				t.Errorf("seed %d, row %v: log-likelihood %v, the best is %v", seed, row, ll[r], want)
			}
		}
	}
}

// TestMPEQueries looks for completions in circuits that are not deterministic. The answer is
// at most the best one, which the bound is not below, and at least what max-product finds;
// improved draws find the best in nearly all rows.
func TestMPEQueries(t *testing.T) {
	found, all, impossible, better := 0, 0, 0, 0
	settled := func(m *model, given, full []float64) { // no other value of one cell is likelier
		t.Helper()
		for v, x := range given {
			if !math.IsNaN(x) || math.IsNaN(full[v]) {
				continue
			}
			p, err := m.ref.Conditional(full, v)
			if err != nil {
				t.Fatal(err)
			}
			for c, q := range p {
				if !(q <= p[int(full[v])]*(1+1e-4)) {
					t.Errorf("row %v: %v would be likelier with %d as variable %d", given, full, c, v)
				}
			}
		}
	}
	seeds := uint64(30)
	if testing.Short() {
		seeds = 12
	}
	for seed := range seeds {
		rng := rand.New(rand.NewPCG(seed, 62))
		g := reference.Random(rng, reference.RandomOptions{Vars: 2 + rng.IntN(6), MaxUnits: 8, MaxCodes: 3, Discrete: true})
		m := build(t, g, engine.Options{Rows: 64, Queries: true})
		rows := append(reference.RandomRows(g, rng, 5, 0.6), reference.MissingRow(g.NumVars))
		_, plain, _ := m.complete(t, rows, engine.MPEOptions{})
		climbed, _, _ := m.complete(t, rows, engine.MPEOptions{Sweeps: 20})
		_, ll, bound := m.complete(t, rows, engine.MPEOptions{Candidates: 40, Sweeps: 20, Seed: seed})
		for r, row := range rows {
			settled(m, row, climbed[r])
			if math.IsInf(m.wantLL(t, row), -1) {
				if impossible++; !math.IsInf(ll[r], -1) || !math.IsInf(bound[r], -1) {
					t.Errorf("seed %d: row %v is impossible, and has %v and the bound %v", seed, row, ll[r], bound[r])
				}
				continue
			}
			_, want, err := m.ref.MPE(row)
			if err != nil {
				t.Fatal(err)
			}
			all++
			if near(ll[r], want, 1e-4) {
				found++
			}
			if !(ll[r] <= want+1e-4) || !(bound[r] >= want-1e-4) || !(ll[r] >= plain[r]) {
				t.Errorf("seed %d, row %v: log-likelihood %v, bound %v, max-product %v, the best is %v", seed, row, ll[r], bound[r], plain[r], want)
			}
			if ll[r] > plain[r] {
				better++
			}
		}
	}
	if found < all*99/100 || all < 50 || impossible == 0 || better == 0 {
		t.Errorf("the best completion was found in %d of %d rows, with %d impossible ones beside; the search improved %d", found, all, impossible, better)
	}
}

// searched completes a row of a random circuit of all leaves by a search, and says whether
// that is not below the best of so many draws that the search has not seen.
func searched(t testing.TB, seed uint64, candidates, draws int) bool {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 63))
	g := reference.Random(rng, reference.RandomOptions{Vars: 2 + rng.IntN(4), MaxUnits: 6, MaxCodes: 4, Positive: true})
	m := build(t, g, engine.Options{Rows: 512, Queries: true})
	given := reference.RandomRows(g, rng, 1, 0.6)[0]
	full, ll, bound := m.batch([][]float64{given}), make([]float64, 1), make([]float64, 1)
	o := engine.MPEOptions{Candidates: candidates, Beam: 8, Sweeps: 10, Seed: 1}
	b, other := m.batch(copies(given, draws)), make([]float64, draws)
	if err := errors.Join(m.eng.MPE(context.Background(), full, o, ll, bound),
		m.eng.Sample(context.Background(), b, 99, 0), m.eng.LogLikelihood(context.Background(), b, other)); err != nil {
		t.Fatal(err)
	}
	top := slices.Max(other)
	if ll[0] >= top-1e-4*max(1, math.Abs(top)) {
		return true
	}
	t.Logf("seed %d: %v, of other draws %v", seed, ll[0], top)
	return false
}

// TestMPEQueriesOfValues completes rows of all leaves: a search that begins at a thousand
// draws is not below ten thousand others. BenchmarkMPEQueries is the same for more rows.
func TestMPEQueriesOfValues(t *testing.T) {
	rows, won := 16, 0
	if testing.Short() {
		rows = 3
	}
	for seed := range uint64(rows) {
		if searched(t, seed, 1000, 10000) {
			won++
		}
	}
	if won < rows {
		t.Errorf("the search is below the best of other draws in %d of %d rows", rows-won, rows)
	}
}

// BenchmarkMPEQueries completes a row of another random circuit each time, and reports in
// how many of a hundred the search is not below the best of ten thousand other draws.
func BenchmarkMPEQueries(b *testing.B) {
	rows, won := 0, 0
	for b.Loop() {
		if searched(b, uint64(1000+rows), 1000, 10000) {
			won++
		}
		rows++
	}
	b.ReportMetric(100*float64(won)/float64(rows), "%won")
}

// TestBeamQueries looks for completions by a beam alone: one that keeps all partial
// completions finds the best, and narrower ones are not above it.
func TestBeamQueries(t *testing.T) {
	rows, narrow, better := 0, 0, 0
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 66))
		g := reference.Random(rng, reference.RandomOptions{Vars: 2 + rng.IntN(4), MaxUnits: 8, MaxCodes: 3, Discrete: true})
		m := build(t, g, engine.Options{Rows: 1 + rng.IntN(64), Queries: true})
		given := append(reference.RandomRows(g, rng, 4, 0.6), reference.MissingRow(g.NumVars))
		_, plain, _ := m.complete(t, given, engine.MPEOptions{})
		_, one, _ := m.complete(t, given, engine.MPEOptions{Beam: 1})
		_, wide, _ := m.complete(t, given, engine.MPEOptions{Beam: 243})
		for r, row := range given {
			if math.IsInf(m.wantLL(t, row), -1) {
				continue
			}
			_, want, err := m.ref.MPE(row)
			if err != nil {
				t.Fatal(err)
			}
			rows++
			if !near(wide[r], want, 1e-4) {
				t.Errorf("seed %d, row %v: a beam of all completions has %v, the best is %v", seed, row, wide[r], want)
			}
			if !(one[r] <= want+1e-4) || !(one[r] >= plain[r]-1e-4) {
				t.Errorf("seed %d, row %v: a beam of one has %v, the best is %v, max-product's %v", seed, row, one[r], want, plain[r])
			}
			if one[r] < want-1e-3 {
				narrow++
			}
			if one[r] > plain[r]+1e-3 {
				better++
			}
		}
	}
	if rows < 50 || narrow == 0 || better == 0 {
		t.Errorf("%d rows; a beam of one misses the best of %d and is above max-product in %d; want some of each", rows, narrow, better)
	}
}

// TestBeamOfValues: a beam goes uphill from the modes of all units of a column without codes. Here two overlap, whose peak is
// above that of the largest, which max-product takes.
func TestBeamOfValues(t *testing.T) {
	normal := func(mean float64) part { return part{circuit.Gaussian{}, []float64{mean, 1}} }
	bit := part{circuit.Bernoulli{}, []float64{0.5, 0.5}}
	g, params := mixture([]float64{0.4, 0.3, 0.3}, [][]part{{normal(-3), bit}, {normal(2), bit}, {normal(3), bit}})
	m := buildWith(t, g, params, engine.Options{Rows: 8, Queries: true})
	rows := [][]float64{{missing, 0}, {missing, missing}}
	plain, _, _ := m.complete(t, rows, engine.MPEOptions{})
	full, _, _ := m.complete(t, rows, engine.MPEOptions{Beam: 1})
	for r := range rows {
		if !near(plain[r][0], -3, 1e-3) || !near(full[r][0], 2.5, 1e-3) {
			t.Errorf("row %v: max-product finds %v and a beam %v, want -3 and 2.5", rows[r], plain[r][0], full[r][0])
		}
	}
}

// TestMPEQueriesDependOnTheRowAlone completes the same rows in one batch and in parts.
func TestMPEQueriesDependOnTheRowAlone(t *testing.T) {
	g := reference.Random(rand.New(rand.NewPCG(5, 64)), reference.RandomOptions{Vars: 5, MaxUnits: 12, MaxCodes: 3})
	rows := reference.RandomRows(g, rand.New(rand.NewPCG(5, 65)), 11, 0.6)
	full := reference.RandomRows(g, rand.New(rand.NewPCG(5, 66)), 3, 0)
	rows[2], rows[3], rows[7] = full[0], full[1], full[2] // between others, whose numbers count
	for _, of := range [][]bool{nil, {true, false, true, true, true}} {
		o := engine.MPEOptions{Candidates: 3, Beam: 2, Sweeps: 4, Search: 9, Seed: 9, Of: of}
		whole, wholeLL, wholeBound := build(t, g, engine.Options{Rows: 100, Queries: true}).complete(t, rows, o)
		m := build(t, g, engine.Options{Rows: 3, Queries: true}) // less than the candidates of a row
		for r := range rows {
			o.First = r
			row, ll, bound := m.complete(t, rows[r:r+1], o)
			for v := range row[0] {
				if !near(row[0][v], whole[r][v], 0) && !math.IsNaN(row[0][v]) {
					t.Errorf("row %d: %v alone, %v among others", r, row[0], whole[r])
				}
			}
			if ll[0] != wholeLL[r] || bound[0] != wholeBound[r] {
				t.Errorf("row %d: %v and %v alone, %v and %v among others", r, ll[0], bound[0], wholeLL[r], wholeBound[r])
			}
		}
	}
}

// TestMPEOfCompleteRows wants the log-likelihoods of rows without missing cells as they are, and as the bounds that nothing exceeds,
// whatever rows are beside them; where some columns are completed, also of rows that miss others alone.
func TestMPEOfCompleteRows(t *testing.T) {
	g := reference.Random(rand.New(rand.NewPCG(5, 66)), reference.RandomOptions{Vars: 5, MaxUnits: 12, MaxCodes: 3})
	rng := rand.New(rand.NewPCG(5, 67))
	rows := append(reference.RandomRows(g, rng, 7, 0), reference.RandomRows(g, rng, 4, 0.8)...)
	rng.Shuffle(len(rows), func(i, k int) { rows[i], rows[k] = rows[k], rows[i] })
	m := build(t, g, engine.Options{Rows: 6, Queries: true})
	for _, of := range [][]bool{nil, {true, true, true, true, false}, {false, false, false, false, false}} {
		complete := 0
		_, ll, bound := m.complete(t, rows, engine.MPEOptions{Candidates: 3, Beam: 2, Sweeps: 4, Search: 9, Of: of})
		want := make([]float64, len(rows))
		if err := m.eng.LogLikelihood(t.Context(), m.batch(rows), want); err != nil {
			t.Fatal(err)
		}
		for r, row := range rows {
			open := false
			for v, x := range row {
				open = open || math.IsNaN(x) && (of == nil || of[v])
			}
			if open {
				continue
			}
			complete++
			if ll[r] != want[r] || bound[r] != want[r] {
				t.Errorf("of %v: row %d: log-likelihood %v, bound %v; want %v", of, r, ll[r], bound[r], want[r])
			}
		}
		if complete < 7 {
			t.Errorf("%d complete rows, want 7 or more", complete)
		}
	}
}

// BenchmarkMPEOfTables completes 1,000 rows of which one in a hundred misses cells, and reports the time of a row.
func BenchmarkMPEOfTables(b *testing.B) {
	g := reference.Random(rand.New(rand.NewPCG(5, 68)), reference.RandomOptions{Vars: 8, MaxUnits: 12, MaxCodes: 4})
	rng := rand.New(rand.NewPCG(5, 69))
	rows := reference.RandomRows(g, rng, 1000, 0)
	for r := 0; r < len(rows); r += 100 {
		rows[r][r/100%8] = math.NaN()
	}
	m := build(b, g, engine.Options{Rows: 256, Queries: true})
	ll, bound := make([]float64, len(rows)), make([]float64, len(rows))
	for b.Loop() {
		if err := m.eng.MPE(b.Context(), m.batch(rows), engine.MPEOptions{Candidates: 4, Beam: 8, Sweeps: 10, Search: 100}, ll, bound); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(b.Elapsed().Seconds()*1e9/float64(b.N*len(rows)), "ns/row")
}

// TestMPEOfBinCodes completes rows that have the numbers of bins, whose probabilities count, not densities.
func TestMPEOfBinCodes(t *testing.T) {
	three := circuit.Categorical{Categories: 3}
	column := dataset.Column{Kind: dataset.Continuous, Edges: []float64{0, 1, 2, 4}, Outside: 1e-6}
	g, params := mixture([]float64{0.75, 0.25}, [][]part{
		{{three, []float64{0.375, 0.3125, 0.3125}}, {three, []float64{0.5, 0.25, 0.25}}}, {{three, []float64{0.0625, 0.0625, 0.875}}, {three, []float64{0.125, 0.125, 0.75}}},
	})
	m := buildWith(t, g, params, engine.Options{Rows: 64, Queries: true, Schema: &dataset.Schema{Columns: []dataset.Column{column, column}}})
	const none = 0xffff
	b := &dataset.Batch{Rows: 2, Columns: []dataset.Cells{{Codes: dataset.Codes{Narrow: []uint16{1, none}}}, {Codes: dataset.Codes{Narrow: []uint16{none, none}}}}}
	ll, bound := make([]float64, 2), make([]float64, 2)
	if err := m.eng.MPE(t.Context(), b, engine.MPEOptions{Candidates: 4, Beam: 2, Sweeps: 4}, ll, bound); err != nil {
		t.Fatal(err)
	}
	for r, want := range []struct {
		codes [2]int
		p     float64
	}{{[2]int{1, 0}, 0.75*0.3125*0.5 + 0.25*0.0625*0.125}, {[2]int{2, 2}, 0.75*0.3125*0.25 + 0.25*0.875*0.75}} {
		if got := [2]int{b.Columns[0].Codes.At(r), b.Columns[1].Codes.At(r)}; got != want.codes || !near(ll[r], math.Log(want.p), 1e-5) || !(bound[r] >= ll[r]-1e-5) {
			t.Errorf("row %d: codes %v of log-likelihood %v, bound %v; want %v of %v", r, got, ll[r], bound[r], want.codes, math.Log(want.p))
		}
	}
}

// TestMPEBoundOutsideBins completes rows with a number outside of all bins, which all units give one density. The bound is not below the best
// completion, and is that of a single product.
func TestMPEBoundOutsideBins(t *testing.T) {
	three := circuit.Categorical{Categories: 3}
	flat, sharp := part{three, []float64{0.375, 0.3125, 0.3125}}, part{three, []float64{0.0625, 0.0625, 0.875}}
	even, uneven := part{three, []float64{0.5, 0.25, 0.25}}, part{three, []float64{0.125, 0.125, 0.75}}
	column := dataset.Column{Kind: dataset.Continuous, Edges: []float64{0, 1, 2, 4}, Outside: 1e-6}
	schema := &dataset.Schema{Columns: []dataset.Column{column, column}}
	for _, parts := range [][][]part{{{flat, even}}, {{flat, even}, {sharp, uneven}}, {{flat, uneven}, {sharp, even}}} {
		weights := []float64{1}
		if len(parts) == 2 {
			weights = []float64{0.75, 0.25}
		}
		g, params := mixture(weights, parts)
		m := buildWith(t, g, params, engine.Options{Rows: 64, Queries: true, Schema: schema})
		given := reference.Batch(schema, [][]float64{{9, missing}, {1.5, missing}})
		ll, bound := make([]float64, 2), make([]float64, 2)
		if err := m.eng.MPE(t.Context(), given, engine.MPEOptions{Candidates: 4, Beam: 2, Sweeps: 4}, ll, bound); err != nil {
			t.Fatal(err)
		}
		for r, x := range []float64{9, 1.5} {
			every := m.logLikelihood(t, reference.Batch(schema, [][]float64{{x, 0.5}, {x, 1.5}, {x, 3}}))
			if best := slices.Max(every); !near(ll[r], best, 1e-5) || !(bound[r] >= best-1e-5) || len(parts) == 1 && !near(bound[r], best, 1e-5) {
				t.Errorf("%d products, %v: log-likelihood %v and bound %v; the best of completions is %v", len(parts), x, ll[r], bound[r], best)
			}
		}
	}
}
