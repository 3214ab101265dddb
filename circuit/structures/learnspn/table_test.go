package learnspn

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/dataset"
)

// column is a column of a table in tests: codes, or numbers with NaN for missing cells.
type column struct {
	categories int
	codes      []int
	values     []float32
	leaf       circuit.Leaf // nil: categorical or Gaussian
}

// tableOf returns the rows of columns as a source, and their leaves.
func tableOf(t testing.TB, columns ...column) (dataset.Source, []circuit.Leaf) {
	t.Helper()
	s := &dataset.Schema{}
	var leaves []circuit.Leaf
	n := 0
	for _, c := range columns {
		n = max(len(c.codes), len(c.values))
		leaf := c.leaf
		if c.values == nil {
			s.Columns = append(s.Columns, dataset.Column{Kind: dataset.Discrete, Categories: c.categories})
			if leaf == nil {
				leaf = circuit.Categorical{Categories: c.categories}
			}
		} else {
			s.Columns = append(s.Columns, dataset.Column{Kind: dataset.Continuous})
			if leaf == nil {
				leaf = circuit.Gaussian{}
			}
		}
		leaves = append(leaves, leaf)
	}
	table, err := dataset.NewTable(s, n)
	if err != nil {
		t.Fatal(err)
	}
	b := dataset.NewBatch(s, n)
	for v, c := range columns {
		for r := range n {
			if c.values == nil {
				b.Columns[v].Codes.Set(r, c.codes[r])
			} else {
				b.Columns[v].Values[r] = c.values[r]
			}
		}
	}
	if err := table.Append(b); err != nil {
		t.Fatal(err)
	}
	return table, leaves
}

// families returns rows of ten binary columns in two families, whose columns follow a hidden
// bit of the family, and each cell is missing with some probability.
func families(rows int, missing float64, rng *rand.Rand) []column {
	columns := make([]column, 10)
	for v := range columns {
		columns[v] = column{categories: 2, codes: make([]int, rows)}
	}
	for r := range rows {
		hidden := [2]int{rng.IntN(2), rng.IntN(2)}
		for v := range columns {
			code := hidden[v/5]
			if rng.Float64() < 0.15 {
				code = 1 - code
			}
			if rng.Float64() < missing {
				code = dataset.Missing
			}
			columns[v].codes[r] = code
		}
	}
	return columns
}

// learnFrom learns a circuit of a table with a few settings of the tests.
func learnFrom(t *testing.T, src dataset.Source, leaves []circuit.Leaf, set func(*Options)) *Learned {
	t.Helper()
	o := Defaults()
	o.Leaves, o.Seed, o.MinRows = leaves, 7, 100
	if set != nil {
		set(&o)
	}
	l, err := Learn(context.Background(), src, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := circuit.Validate(l.Graph); err != nil {
		t.Fatal(err)
	}
	for id := range l.Graph.Nodes {
		if id := circuit.NodeID(id); l.Graph.OwnsParams(id) {
			p := make([]float32, l.Graph.NumParams(id))
			if err := l.Params(id, p); err != nil {
				t.Fatal(err)
			}
			if err := circuit.CheckParams(l.Graph, id, p); err != nil {
				t.Fatal(err)
			}
		}
	}
	return l
}

func near(a, b, tolerance float64) bool { return math.Abs(a-b) <= tolerance }
