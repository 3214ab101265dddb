package learnspn

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/circuit/structures"
	"github.com/pce-engine/pce/dataset"
)

// wide is a source of many cells that must be refused before its rows are read.
type wide struct {
	schema dataset.Schema
	rows   int
}

func (w *wide) Schema() *dataset.Schema { return &w.schema }
func (w *wide) Rows() int               { return w.rows }
func (w *wide) Gather(context.Context, *dataset.Batch, []int) error {
	return errors.New("the rows were read")
}

// TestRefusals wants one line of error for settings and rows that cannot be learned from.
func TestRefusals(t *testing.T) {
	src, leaves := tableOf(t, families(200, 0.1, rand.New(rand.NewPCG(1, 1)))...)
	empty := make([]int, 200)
	for i := range empty {
		empty[i] = dataset.Missing
	}
	void, voidLeaves := tableOf(t, column{categories: 2, codes: make([]int, 200)}, column{categories: 2, codes: empty})
	numbers, _ := tableOf(t, column{values: make([]float32, 200)})
	many, long := &wide{rows: 1000}, &wide{rows: 1<<24 + 1}
	many.schema.Columns, long.schema.Columns = make([]dataset.Column, 100000), make([]dataset.Column, 65)
	bits := slices.Repeat([]circuit.Leaf{circuit.Bernoulli{}}, 65)
	for _, tc := range []struct {
		what string
		src  dataset.Source
		set  func(*Options)
		is   error
		says string
	}{
		{"an empty column", void, func(o *Options) { o.Leaves = voidLeaves }, structures.ErrData, "column 2 has no observed cell"},
		{"no source", nil, func(*Options) {}, structures.ErrData, "without a source"},
		{"no source of validation", src, func(o *Options) { o.Valid = (*dataset.Table)(nil) }, structures.ErrData, "without a source"},
		{"few rows", src, func(o *Options) { o.MinRows = 201 }, structures.ErrData, "200 rows, fewer than min_rows, which is 201"},
		{"many columns", many, func(o *Options) { o.Leaves = make([]circuit.Leaf, 100000) }, structures.ErrData, "100000 columns"},
		{"k-means of a large table", long, func(o *Options) { o.Leaves, o.Rows = bits, KMeans }, structures.ErrOptions, "more than 16777216 cells"},
		{"a larger table", long, func(o *Options) { o.Leaves = bits }, structures.ErrData, "more than 1073741824 cells"},
		{"a domain that fills the memory", src, func(o *Options) {
			o.Leaves = append([]circuit.Leaf{circuit.Categorical{Categories: 1 << 24}}, leaves[1:]...)
			o.MinRows = 10
		}, structures.ErrOptions, "16777216 of them of column 1"},
		{"trees that fill the memory", src, func(o *Options) {
			o.Leaves = append([]circuit.Leaf{circuit.Categorical{Categories: 1 << 21}}, leaves[1:]...)
			o.MaxMultipliers = 10000
		}, structures.ErrOptions, "up to 256 parts"},
		{"too few multipliers", src, func(o *Options) { o.MaxMultipliers = 8 }, structures.ErrOptions, "takes 9"},
		{"another test", src, func(o *Options) { o.Columns = "chi" }, structures.ErrOptions, `"chi"`},
		{"another clustering", src, func(o *Options) { o.Rows = "" }, structures.ErrOptions, "choose em or k-means"},
		{"another leaf", src, func(o *Options) { o.Leaf = "tree" }, structures.ErrOptions, `"tree"`},
		{"threshold NaN", src, func(o *Options) { o.Threshold = math.NaN() }, structures.ErrOptions, "NaN"},
		{"threshold below 0", src, func(o *Options) { o.Threshold = -1 }, structures.ErrOptions, "-1"},
		{"a threshold of g-test for rdc", src, func(o *Options) { o.Columns, o.Threshold = RDC, 5 }, structures.ErrOptions, "at most 1"},
		{"no smoothing", src, func(o *Options) { o.Smoothing = 0 }, structures.ErrOptions, "smoothing 0"},
		{"smoothing without end", src, func(o *Options) { o.Smoothing = math.Inf(1) }, structures.ErrOptions, "+Inf"},
		{"one cluster", src, func(o *Options) { o.Clusters = 1 }, structures.ErrOptions, "1 clusters"},
		{"257 clusters", src, func(o *Options) { o.Clusters = 257 }, structures.ErrOptions, "257 clusters"},
		{"no component", src, func(o *Options) { o.Components = 0 }, structures.ErrOptions, "0 components; choose 1 to 256"},
		{"257 components", src, func(o *Options) { o.Components = 257 }, structures.ErrOptions, "257 components"},
		{"one row", src, func(o *Options) { o.MinRows = 1 }, structures.ErrOptions, "min_rows 1"},
		{"no workers", src, func(o *Options) { o.Workers = 0 }, structures.ErrOptions, "0 workers"},
		{"a leaf too few", src, func(o *Options) { o.Leaves = leaves[:9] }, structures.ErrOptions, "9 leaves for 10 columns"},
		{"no leaf", src, func(o *Options) { o.Leaves = slices.Concat(leaves[:9], []circuit.Leaf{nil}) }, structures.ErrOptions, "without a leaf for column 10"},
		{"a leaf of no categories", src, func(o *Options) { o.Leaves = slices.Concat([]circuit.Leaf{circuit.Categorical{}}, leaves[1:]) }, structures.ErrOptions, "0 categories"},
		{"a leaf of codes for numbers", numbers, func(o *Options) { o.Leaves = []circuit.Leaf{circuit.Bernoulli{}} }, structures.ErrOptions, "column 1, which is continuous"},
		{"a search of nothing", src, func(o *Options) { o.Search = true }, structures.ErrOptions, "no validation rows"},
	} {
		o := Defaults()
		o.Leaves, o.MinRows = leaves, 50
		tc.set(&o)
		_, err := Learn(t.Context(), tc.src, o)
		if !errors.Is(err, tc.is) || !strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v; want %v that says %q", tc.what, err, tc.is, tc.says)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	o := Defaults()
	o.Leaves, o.MinRows = leaves, 50
	if _, err := Learn(ctx, src, o); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: %v", err)
	}
}

// TestOddTables learns from tables that leave a learner little to go by: the circuit must be
// valid, have parameters in range and give every row a finite log-likelihood.
func TestOddTables(t *testing.T) {
	const rows = 300
	rng := rand.New(rand.NewPCG(2, 2))
	constant, single, codes, big := make([]int, rows), make([]int, rows), make([]int, rows), make([]float32, rows)
	mostly, equal := make([]float32, rows), make([]float32, rows)
	for r := range rows {
		single[r], codes[r], big[r] = dataset.Missing, rng.IntN(5000), float32(rng.NormFloat64())*1e30
		mostly[r], equal[r] = float32(math.NaN()), 7
	}
	single[5], codes[0], codes[1], mostly[9] = 1, 0, 4999, 3
	columns := []column{
		{categories: 2, codes: constant}, {categories: 2, codes: single}, {categories: 5000, codes: codes},
		{categories: 1, codes: constant}, {values: big}, {values: mostly}, {values: equal},
		{categories: 5000, codes: codes, leaf: circuit.Histogram{Edges: []int{0, 1, 100, 5000}}},
	}
	for _, some := range [][]column{columns, columns[:1], columns[6:7], append(families(rows, 0, rng), columns...)} {
		src, leaves := tableOf(t, some...)
		for _, set := range []func(*Options){
			func(o *Options) { o.MinRows = 2 },
			func(o *Options) { o.MinRows = rows },
			func(o *Options) { o.MinRows, o.Leaf, o.Clusters = 2, Factors, 256 },
			func(o *Options) { o.Columns, o.Rows, o.MinRows, o.Clusters = RDC, KMeans, 20, 3 },
			func(o *Options) { o.Threshold = 1e-9 },
			func(o *Options) { o.MinRows, o.Components = 100, 3 },
			func(o *Options) { o.MaxMultipliers = 3 * len(some) },
		} {
			l := learnFrom(t, src, leaves, set)
			all, err := readTable(t.Context(), src, leaves)
			if err != nil {
				t.Fatal(err)
			}
			ev := evaluator(t, l)
			for r := range 20 {
				row := reference.MissingRow(len(all))
				for v := range all {
					if x, ok := all[v].at(int32(r)); ok {
						row[v] = x
					}
				}
				if ll, err := ev.LogLikelihood(row); err != nil || math.IsNaN(ll) || math.IsInf(ll, 0) {
					t.Fatalf("%d columns, %s: row %d has log-likelihood %v, %v", len(all), l, r, ll, err)
				}
			}
		}
	}
}
