package kerneltest

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/circuit/structures"
	"github.com/pce-engine/pce/engine"
)

// testSample checks draws: against those that the device's values define, against
// probabilities, and against themselves in other batches.
func testSample(t *testing.T, open Open, depth Depth) {
	t.Run("replay", func(t *testing.T) { testReplay(t, open, depth) })
	t.Run("frequencies", func(t *testing.T) { testFrequencies(t, open, depth) })
	t.Run("alone", func(t *testing.T) { testAlone(t, open) })
	t.Run("impossible", func(t *testing.T) { testImpossible(t, open) })
}

// gaps returns copies of rows in which a share of the cells is missing, in every
// fourth all of them.
func gaps(rng *rand.Rand, rows [][]float64, share float64) [][]float64 {
	out := make([][]float64, len(rows))
	for r, row := range rows {
		out[r] = make([]float64, len(row))
		for v, x := range row {
			if out[r][v] = x; r%4 == 3 || rng.Float64() < share {
				out[r][v] = math.NaN()
			}
		}
	}
	return out
}

// testReplay draws again by hand: random circuits, structures with every size of
// blocks, and circuits whose rows are evaluated in log space.
func testReplay(t *testing.T, open Open, depth Depth) {
	rng := rand.New(rand.NewPCG(51, 52))
	cases(t, depth.count(60), func(t *testing.T, c *randomCase) {
		newReplay(t, open, c, gaps(rng, c.rows, 0.3), 1, 1000).check(t)
	})
	for i, s := range structured(t, 37, 5) {
		c := &randomCase{graph: s.graph, params: initial(t, s.graph)}
		sizes := blockSizes[1:]
		if depth == Brief {
			sizes = []int{sizes[i], sizes[i+2]}
		}
		for _, c.size = range sizes {
			t.Run(fmt.Sprintf("%s/blocks=%d", s.name, c.size), func(t *testing.T) {
				newReplay(t, open, c, gaps(rng, correlatedRows(rng, 16, 5, 70), 0.6), 2, 0).check(t)
			})
		}
	}
	for _, tc := range extremeCases {
		t.Run(tc.name, func(t *testing.T) {
			c := &randomCase{}
			c.graph, c.params = tc.make()
			var rows [][]float64
			for range 12 {
				rows = append(rows, allRows(c.graph)...)
			}
			p := newReplay(t, open, c, gaps(rng, rows, 0.3), 3, 0)
			if got := p.recomputed > 0; got != tc.log {
				t.Errorf("%d values recomputed in log space; want some: %v", p.recomputed, tc.log)
			}
			p.check(t)
		})
	}
}

// testFrequencies compares how often rows of small circuits are drawn with their
// probabilities, without evidence and with some.
func testFrequencies(t *testing.T, open Open, depth Depth) {
	n := 1500
	if depth == Full {
		n = 6000
	}
	leaf := func(int) circuit.Leaf { return circuit.Categorical{Categories: 3} }
	tree, err := structures.GridTree(2, 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	pd := structures.DefaultPD()
	pd.Shape, pd.SplitInterval, pd.Latents, pd.Leaf = [3]int{2, 2, 1}, 1, 5, leaf
	rat := structures.DefaultRATSPN()
	rat.Vars, rat.Depth, rat.Latents, rat.Leaf = 4, 2, 5, leaf
	run := func(name string, g *circuit.Graph, err error) {
		t.Run(name, func(t *testing.T) {
			if err != nil {
				t.Fatal(err)
			}
			dev := open(t)
			defer dev.Close()
			c := &randomCase{graph: g, params: initial(t, g)}
			m := Build(t, dev, g, c.params, c.options(), engine.Options{Rows: 512})
			nan := math.NaN()
			for _, given := range [][]float64{{nan, nan, nan, nan}, {nan, 2, nan, nan}, {1, nan, 0, 1}} {
				checkFrequencies(t, m, given, n)
			}
		})
	}
	g, err := structures.HCLT(tree, structures.HCLTOptions{Latents: 5, Leaf: leaf})
	run("hclt", g, err)
	g, err = structures.HMM(structures.HMMOptions{Length: 4, Latents: 5, Tied: true, Leaf: leaf})
	run("hmm", g, err)
	g, err = structures.PD(pd)
	run("pd", g, err)
	g, err = structures.RATSPN(rat)
	run("rat-spn", g, err)
}

// checkFrequencies samples n rows of the same evidence.
func checkFrequencies(t *testing.T, m *Model, given []float64, n int) {
	t.Helper()
	ev, err := reference.New(m.Graph, m.Params)
	if err != nil {
		t.Fatal(err)
	}
	base, err := ev.LogLikelihood(given)
	if err != nil {
		t.Fatal(err)
	}
	rows := make([][]float64, n)
	for r := range rows {
		rows[r] = given
	}
	batch := reference.Batch(reference.Schema(m.Graph), rows)
	if err := m.Engine.Sample(context.Background(), batch, 99, 0); err != nil {
		t.Fatal(err)
	}
	drawn := map[[4]float64]float64{}
	for _, row := range reference.Rows(batch) {
		drawn[[4]float64(row)]++
	}
	states, err := reference.States(m.Graph, given)
	if err != nil {
		t.Fatal(err)
	}
	chi, cells, all, rare, rareWant := 0.0, 0.0, 0.0, 0.0, 0.0
	for state := range states {
		ll, err := ev.LogLikelihood(state)
		if err != nil {
			t.Fatal(err)
		}
		want, got := math.Exp(ll-base)*float64(n), drawn[[4]float64(state)]
		all += got
		if want < 5 { // taken together: the normal approximation wants five
			rare, rareWant = rare+got, rareWant+want
			continue
		}
		chi += (got - want) * (got - want) / want
		cells++
	}
	if all != float64(n) {
		t.Errorf("given %v: %v of %d rows are completions of it", given, all, n)
	}
	// Chi-square has mean df and variance 2·df; six standard deviations and ten are
	// beyond one in 10^8 for any df. Seeds are fixed.
	if df := max(1, cells-1); !(chi <= df+6*math.Sqrt(2*df)+10) {
		t.Errorf("given %v: chi-square %v over %v completions", given, chi, cells)
	}
	if !(math.Abs(rare-rareWant) <= 6*math.Sqrt(rareWant)+6) {
		t.Errorf("given %v: %v rare completions, want %v", given, rare, rareWant)
	}
}

// testAlone draws rows in batches and launches of other sizes, with the same bits.
func testAlone(t *testing.T, open Open) {
	rng := rand.New(rand.NewPCG(53, 54))
	for _, o := range []reference.RandomOptions{{MaxUnits: 20}, {Vars: 7, MaxUnits: 40}} {
		g := reference.Random(rng, o)
		rows := gaps(rng, reference.RandomRows(g, rng, 90, 0.5), 0)
		c := &randomCase{graph: g, params: initial(t, g)}
		draw := func(launch, size int) (out [][]float64) {
			dev := open(t)
			defer dev.Close()
			m := Build(t, dev, g, c.params, c.options(), engine.Options{Rows: launch})
			for lo := 0; lo < len(rows); lo += size {
				b := reference.Batch(reference.Schema(g), rows[lo:min(lo+size, len(rows))])
				if err := m.Engine.Sample(context.Background(), b, 5, lo); err != nil {
					t.Fatal(err)
				}
				out = append(out, reference.Rows(b)...)
			}
			return out
		}
		want := draw(128, 90)
		for _, by := range [][2]int{{128, 7}, {16, 90}, {1, 90}, {65, 65}} {
			for r, row := range draw(by[0], by[1]) {
				for v, x := range row {
					if math.Float64bits(x) != math.Float64bits(want[r][v]) {
						t.Fatalf("launches of %d, batches of %d: row %d variable %d is %v, want %v", by[0], by[1], r, v, x, want[r][v])
					}
				}
			}
		}
	}
}

// testImpossible keeps the missing cells of rows whose evidence is impossible, and
// draws those of the rows beside them: below a sum, and below a product whose other
// factor is possible.
func testImpossible(t *testing.T, open Open) {
	nan := math.NaN()
	for _, top := range []string{"sum", "product"} {
		t.Run(top, func(t *testing.T) {
			g, p := &circuit.Graph{NumVars: 2}, reference.Params{}
			if top == "sum" {
				sum(g, &p, 1, []float64{0.5, 0.5}, product(g, &p, leaves(g, &p, 0, 1, 1), leaves(g, &p, 1, 1, 1)))
			} else {
				g.Root = product(g, &p, leaves(g, &p, 0, 1), leaves(g, &p, 1, 1))
			}
			dev := open(t)
			defer dev.Close()
			c := &randomCase{graph: g, params: p}
			m := Build(t, dev, g, p, c.options(), engine.Options{Rows: 8})
			batch := reference.Batch(reference.Schema(g), [][]float64{{0, nan}, {1, 0}, {nan, 1}, {0, 1}, {nan, 0}})
			if err := m.Engine.Sample(context.Background(), batch, 3, 0); err != nil {
				t.Fatal(err)
			}
			rows := reference.Rows(batch)
			for r, want := range [][]float64{{0, nan}, {1, 0}, {1, 1}, {0, 1}, {nan, 0}} {
				for v, x := range rows[r] {
					if math.Float64bits(x) != math.Float64bits(want[v]) {
						t.Errorf("row %d is %v, want %v", r, rows[r], want)
					}
				}
			}
		})
	}
}
