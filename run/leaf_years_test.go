package run_test

import (
	"slices"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/run"
)

// TestHistogramsOfSequences wants steps of a sequence that no row reaches to leave the bins of the others, which they share, where these have
// their numbers.
func TestHistogramsOfSequences(t *testing.T) {
	n := 0
	path := writeRows(t, "a,b,c", 200, func() []any { n++; return []any{1990 + n*n%30, 1990 + n%30, "?"} })
	s := run.DefaultStructure()
	s.Kind, s.Latents, s.Leaf = "hmm", 2, run.Leaf{Type: "histogram", Bins: 5}
	b, err := run.Build(t.Context(), s, run.Files(path), compile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for i := range b.Graph.Nodes {
		if l, ok := b.Graph.Nodes[i].Leaf.(circuit.Histogram); ok && !slices.Equal(l.Edges, []int{0, 1990, 1996, 2002, 2008, 2014, 2020}) {
			t.Errorf("column %d: the edges %v", b.Graph.Nodes[i].Var, l.Edges)
		}
	}
}

// TestHistogramsOfYears wants the bins of a histogram over whole numbers far from 0 to lie among these: from 0 on nearly all would share one.
func TestHistogramsOfYears(t *testing.T) {
	n := 0
	path := writeRows(t, "year,size,month", 200, func() []any { n++; return []any{1990 + n*n%30, n % 100, 1 + n%12} })
	for _, kind := range []string{"hclt", "hmm"} {
		s := run.DefaultStructure()
		s.Kind, s.Latents, s.Leaf = kind, 2, run.Leaf{Type: "histogram", Bins: 5}
		b, err := run.Build(t.Context(), s, run.Files(path), compile.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		want := [][]int{{0, 1990, 1995, 2000, 2005, 2010, 2016}, {0, 20, 40, 60, 80, 100}, {0, 2, 5, 7, 10, 13}}
		for i := range b.Graph.Nodes {
			l, ok := b.Graph.Nodes[i].Leaf.(circuit.Histogram)
			if !ok {
				continue
			}
			if edges := want[b.Graph.Nodes[i].Var]; kind == "hclt" && !slices.Equal(l.Edges, edges) || kind == "hmm" && l.Edges[0] != 0 {
				t.Errorf("%s, column %d: the edges %v, want %v", kind, b.Graph.Nodes[i].Var, l.Edges, edges)
			}
		}
	}
}
