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

// copies returns n copies of a row.
func copies(row []float64, n int) [][]float64 {
	rows := make([][]float64, n)
	for i := range rows {
		rows[i] = row
	}
	return rows
}

// checkDraws samples one row of evidence many times and compares how often each
// completion comes up with its probability by enumeration.
func checkDraws(t *testing.T, m *model, given []float64) {
	t.Helper()
	const n = 3000
	base, err := m.ref.LogLikelihood(given)
	if err != nil {
		t.Fatal(err)
	}
	b := m.batch(copies(given, n))
	if err := m.eng.Sample(context.Background(), b, 99, 0); err != nil {
		t.Fatal(err)
	}
	drawn := map[string]int{}
	key := func(row []float64) string {
		k := make([]byte, len(row))
		for v, x := range row {
			k[v] = byte(x)
		}
		return string(k)
	}
	for r, row := range reference.Rows(b) {
		for v, x := range given {
			if math.IsNaN(row[v]) || x == x && x != row[v] {
				t.Fatalf("row %d: %v completes %v", r, row, given)
			}
		}
		drawn[key(row)]++
	}
	states, err := reference.States(m.graph, given)
	if err != nil {
		t.Fatal(err)
	}
	chi, cells, rareDrawn, rareP := 0.0, 0.0, 0.0, 0.0
	for row := range states {
		ll, err := m.ref.LogLikelihood(row)
		if err != nil {
			t.Fatal(err)
		}
		p, k := math.Exp(ll-base), float64(drawn[key(row)])
		if p == 0 && k > 0 {
			t.Errorf("%v was drawn given %v; it is impossible", row, given)
		}
		if p*n < 5 { // pooled: the normal approximation wants five
			rareDrawn, rareP = rareDrawn+k, rareP+p
			continue
		}
		chi += (k - p*n) * (k - p*n) / (p * n)
		cells++
	}
	// Chi-square has mean df and variance 2·df; six standard deviations and ten
	// are beyond one in 10^8 for any df. Seeds are fixed.
	if df := max(1, cells-1); !(chi <= df+6*math.Sqrt(2*df)+10) {
		t.Errorf("given %v: chi-square %v over %v completions", given, chi, cells)
	}
	if !(math.Abs(rareDrawn-rareP*n) <= 6*math.Sqrt(rareP*n)+6) {
		t.Errorf("given %v: %v rare completions, want %v", given, rareDrawn, rareP*n)
	}
}

// TestSampleFrequencies compares draws with probabilities, on structures and on
// random circuits, without evidence and with some.
func TestSampleFrequencies(t *testing.T) {
	structured(t, func(name string, g *circuit.Graph) {
		t.Run(name, func(t *testing.T) {
			m := build(t, g, engine.Options{Rows: 512})
			checkDraws(t, m, reference.MissingRow(g.NumVars))
			checkDraws(t, m, []float64{missing, 2, missing, missing, 0, missing})
			checkDraws(t, m, []float64{1, 2, 0, 1, missing, 1})
		})
	})
	t.Run("random", func(t *testing.T) {
		for seed := range uint64(15) {
			rng := rand.New(rand.NewPCG(seed, 31))
			g := reference.Random(rng, reference.RandomOptions{Vars: 1 + rng.IntN(4), MaxUnits: 12, MaxCodes: 3, Discrete: true})
			m := build(t, g, engine.Options{Rows: 512})
			for _, share := range []float64{1, 0.5} {
				given := reference.RandomRows(g, rng, 1, share)[0]
				if ll, err := m.ref.LogLikelihood(given); err != nil {
					t.Fatal(err)
				} else if !math.IsInf(ll, -1) {
					checkDraws(t, m, given)
				}
			}
		}
	})
}

// TestSampleDependsOnTheRowAlone draws the same rows in one batch, in small ones
// and by an engine of another launch size.
func TestSampleDependsOnTheRowAlone(t *testing.T) {
	for seed := range uint64(12) {
		rng := rand.New(rand.NewPCG(seed, 32))
		g := reference.Random(rng, reference.RandomOptions{MaxUnits: 20})
		rows := reference.RandomRows(g, rng, 90, 0.6)
		for r := range rows {
			if rng.IntN(3) == 0 {
				rows[r] = reference.MissingRow(g.NumVars)
			}
		}
		draw := func(launch, size int, drawSeed uint64) [][]float64 {
			m := build(t, g, engine.Options{Rows: launch})
			var out [][]float64
			for lo := 0; lo < len(rows); lo += size {
				b := m.batch(rows[lo:min(lo+size, len(rows))])
				if err := m.eng.Sample(context.Background(), b, drawSeed, lo); err != nil {
					t.Fatal(err)
				}
				out = append(out, reference.Rows(b)...)
			}
			return out
		}
		want := draw(128, 90, 5)
		for _, by := range [][2]int{{128, 7}, {16, 90}, {1, 90}, {32, 1}} {
			got := draw(by[0], by[1], 5)
			for r := range want {
				for v := range want[r] {
					if math.Float64bits(got[r][v]) != math.Float64bits(want[r][v]) {
						t.Fatalf("seed %d, launches of %d, batches of %d: row %d variable %d is %v, want %v", seed, by[0], by[1], r, v, got[r][v], want[r][v])
					}
				}
			}
		}
		differ := false
		for r, row := range draw(128, 90, 6) {
			for v := range row {
				differ = differ || row[v] != want[r][v] && row[v] == row[v]
			}
		}
		if !differ && seed < 3 {
			t.Errorf("seed %d: another seed drew the same rows", seed)
		}
	}
}

// TestSampleImpossible keeps the missing cells of rows whose evidence is
// impossible, and fills those of the others.
func TestSampleImpossible(t *testing.T) {
	g := &circuit.Graph{NumVars: 2, Root: 3, Nodes: []circuit.Node{
		{Kind: circuit.Input, Units: 2, Var: 0, Leaf: circuit.Categorical{Categories: 3}},
		{Kind: circuit.Input, Units: 2, Var: 1, Leaf: circuit.Categorical{Categories: 2}},
		{Kind: circuit.Product, Units: 2, Children: []circuit.NodeID{0, 1}},
		{Kind: circuit.Sum, Units: 1, Children: []circuit.NodeID{2}},
	}}
	params := reference.Params{{1, 0, 0, 0, 1, 0}, {1, 0, 0, 1}, nil, {0.5, 0.5}}
	m := buildWith(t, g, params, engine.Options{Rows: 4})
	b := m.batch([][]float64{{0, missing}, {2, missing}, {1, missing}, {missing, 1}, {missing, missing}})
	if err := m.eng.Sample(context.Background(), b, 3, 0); err != nil {
		t.Fatal(err)
	}
	rows := reference.Rows(b)
	for r, want := range [][]float64{{0, 0}, {2, missing}, {1, 1}, {1, 1}} {
		for v := range want {
			if math.Float64bits(rows[r][v]) != math.Float64bits(want[v]) {
				t.Errorf("row %d: %v, want %v", r, rows[r], want)
			}
		}
	}
	if x := rows[4]; !(x[0] == x[1]) {
		t.Errorf("an open row became %v, which has probability 0", x)
	}
}

// TestSampleMoments compares draws of continuous leaves with the moments of the
// circuit.
func TestSampleMoments(t *testing.T) {
	m := build(t, mixedGraph(), engine.Options{Rows: 512})
	given := []float64{2, missing, missing, missing}
	mean, variance, err := m.ref.Moments(given)
	if err != nil {
		t.Fatal(err)
	}
	const n = 4000
	b := m.batch(copies(given, n))
	if err := m.eng.Sample(context.Background(), b, 12, 0); err != nil {
		t.Fatal(err)
	}
	for v := 1; v < 4; v++ {
		sum := 0.0
		for _, row := range reference.Rows(b) {
			sum += row[v]
		}
		// Five standard errors of the mean.
		if !near(sum/n, mean[v], 5*math.Sqrt(variance[v]/n)) {
			t.Errorf("variable %d: mean %v of %d draws, want %v", v, sum/n, n, mean[v])
		}
	}
}

// TestSampleIntoCodes refuses draws that a column of codes cannot hold and names
// the row.
func TestSampleIntoCodes(t *testing.T) {
	m := build(t, mixedGraph(), engine.Options{Rows: 4})
	b := m.batch([][]float64{{missing, missing, missing, missing}})
	b.Columns[2] = dataset.Cells{Codes: dataset.Codes{Narrow: []uint16{0xffff}}} // counts fit
	if err := m.eng.Sample(context.Background(), b, 1, 0); err != nil {
		t.Fatal(err)
	}
	if b.Columns[2].IsMissing(0) {
		t.Error("the count was not drawn")
	}
	b = m.batch([][]float64{{missing, missing, missing, missing}})
	b.Columns[1] = dataset.Cells{Codes: dataset.Codes{Narrow: []uint16{0xffff}}} // real numbers do not
	if err := m.eng.Sample(context.Background(), b, 1, 0); !errors.Is(err, dataset.ErrFormat) {
		t.Errorf("a Gaussian into codes: %v", err)
	}
}
