package learnspn

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/dataset"
)

// held returns the mean log-likelihood of rows under a learned circuit, by the reference.
func held(t *testing.T, l *Learned, src dataset.Source, leaves []circuit.Leaf) float64 {
	t.Helper()
	all, err := readTable(t.Context(), src, leaves)
	if err != nil {
		t.Fatal(err)
	}
	ev := evaluator(t, l)
	sum := 0.0
	row := make([]float64, len(all))
	for r := range int32(src.Rows()) {
		for v := range all {
			row[v], _ = all[v].at(r)
			if all[v].domain > 0 && all[v].codes[r] == missing {
				t.Fatal("the rows have missing cells")
			}
		}
		ll, err := ev.LogLikelihood(row)
		if err != nil {
			t.Fatal(err)
		}
		sum += ll
	}
	return sum / float64(src.Rows())
}

// TestSearchImproves wants settings that are better on the rows that decide than those that
// were given, the score that the circuit really has, and the chosen settings to learn the
// same circuit again.
func TestSearchImproves(t *testing.T) {
	rng := rand.New(rand.NewPCG(21, 22))
	src, leaves := tableOf(t, families(1200, 0, rng)...)
	valid, _ := tableOf(t, families(600, 0, rng)...)
	bad := func(o *Options) { o.MinRows, o.Threshold, o.Smoothing, o.Leaf = 1200, 100, 64, Factors }
	given := held(t, learnFrom(t, src, leaves, bad), valid, leaves)
	l := learnFrom(t, src, leaves, func(o *Options) { bad(o); o.Search, o.Valid = true, valid })
	found := held(t, l, valid, leaves)
	if !(found > given+0.01) {
		t.Errorf("a search from %v nats per row ends at %v with %s", given, found, l)
	}
	chosen := l.Options
	again := learnFrom(t, src, leaves, func(o *Options) { *o = chosen; o.Search, o.Valid = false, nil })
	if got := held(t, again, valid, leaves); got != found {
		t.Errorf("the chosen settings give %v, the search had %v", got, found)
	}
}

// TestSearchKeepsToMemory searches where the leaves of more than a few parts would fill the memory: cutting the rows would be better, and
// is not tried.
func TestSearchKeepsToMemory(t *testing.T) {
	rng := rand.New(rand.NewPCG(51, 52))
	src, leaves := tableOf(t, families(1200, 0, rng)...)
	held, _ := tableOf(t, families(600, 0, rng)...)
	var all, valid []variable
	for _, to := range []struct {
		all *[]variable
		src dataset.Source
	}{{&all, src}, {&valid, held}} {
		var err error
		if *to.all, err = readTable(t.Context(), to.src, leaves); err != nil {
			t.Fatal(err)
		}
	}
	for _, large := range []bool{false, true} {
		o := Defaults()
		o.Leaves, o.MinRows, o.Leaf = slices.Clone(leaves), 1201, Factors
		for v := range o.Leaves[:7] {
			if large {
				o.Leaves[v] = circuit.Categorical{Categories: circuit.MaxCodes}
			}
		}
		o.choose(all)
		if got := search(t.Context(), all, valid, o).opts.MinRows; (got == 1201) != large {
			t.Errorf("large domains %v: min_rows %d is chosen", large, got)
		}
	}
}

// TestSearchKeepsThreshold searches by rows that say nothing of the dependence of two columns, so that the largest threshold is the
// best: it has to be one that may be given.
func TestSearchKeepsThreshold(t *testing.T) {
	rng := rand.New(rand.NewPCG(23, 24))
	var rows [2]dataset.Source
	var leaves []circuit.Leaf
	for i, copied := range []bool{true, false} {
		x, y := make([]float32, 600), make([]float32, 600)
		for r := range x {
			x[r] = float32(rng.NormFloat64())
			if y[r] = float32(rng.NormFloat64()); copied {
				y[r] = x[r]
			}
		}
		rows[i], leaves = tableOf(t, column{values: x}, column{values: y})
	}
	l := learnFrom(t, rows[0], leaves, func(o *Options) { o.Threshold, o.Search, o.Valid = 0.5, true, rows[1] })
	if l.Options.Columns != RDC || l.Multipliers != 1 {
		t.Fatalf("learned with %s; the columns are to be apart", l)
	}
	if _, err := Learn(t.Context(), rows[0], l.Options); err != nil {
		t.Errorf("the settings that were chosen: %v", err)
	}
}

// TestBudget learns mixtures to bounds on multipliers: the circuit must keep to the bound,
// count its multipliers as its trees have them, and be better with more.
func TestBudget(t *testing.T) {
	rng := rand.New(rand.NewPCG(31, 32))
	src, leaves := tableOf(t, families(2000, 0, rng)...)
	valid, _ := tableOf(t, families(1000, 0, rng)...)
	var scores []float64
	for _, tc := range []struct {
		bound, want int
		judged      bool
	}{{9, 9, true}, {19, 9, true}, {40, 40, false}, {49, 40, false}, {40, 40, true}} {
		l := learnFrom(t, src, leaves, func(o *Options) {
			if o.MaxMultipliers = tc.bound; tc.judged {
				o.Valid = valid
			}
		})
		if l.Multipliers > tc.bound || !tc.judged && l.Multipliers != tc.want || tc.bound < 20 && l.Multipliers != tc.want {
			t.Errorf("%d multipliers for a bound of %d, want %d", l.Multipliers, tc.bound, tc.want)
		}
		scores = append(scores, held(t, l, valid, leaves))
	}
	if !(scores[4] > scores[0]+0.05) {
		t.Errorf("a tree has %v nats per row, a mixture %v: nothing was gained", scores[0], scores[4])
	}
	// What says how rows are cut has no effect, and is not named as a setting of the circuit.
	l := learnFrom(t, src, leaves, func(o *Options) {
		o.MaxMultipliers, o.MinRows, o.Search, o.Rows, o.Components = 40, 3000, true, KMeans, 3
	})
	if got, want := l.String(), "max_multipliers 40, smoothing 2, Chow-Liu trees 4, 40 multipliers"; got != want {
		t.Errorf("learned with %q, want %q", got, want)
	}
}

// TestMultipliers counts those of a circuit made by hand: two trees of three columns, 2 each;
// a sum of them, 2 more; its product with two leaves, another 2.
func TestMultipliers(t *testing.T) {
	trees := func() *node { return &node{kind: treeNode, tree: &tree{vars: []int{0, 1, 2}}} }
	n := &node{kind: productNode, children: []*node{
		{kind: sumNode, children: []*node{trees(), trees()}}, {kind: leafNode}, {kind: leafNode},
	}}
	if got := n.multipliers(); got != 8 {
		t.Errorf("%d multipliers, want 8", got)
	}
}

// TestDeterministicTree wants the circuit of one tree to be deterministic, so that its most
// probable completions are exact.
func TestDeterministicTree(t *testing.T) {
	src, leaves := tableOf(t, families(300, 0, rand.New(rand.NewPCG(41, 42)))...)
	l := learnFrom(t, src, leaves, func(o *Options) { o.MaxMultipliers = 9 })
	if p := circuit.Properties(l.Graph); !p.Deterministic {
		t.Errorf("properties %+v; want a deterministic circuit", p)
	}
}
