package structures

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/graph/path"
	"gonum.org/v1/gonum/graph/simple"
)

// TestMaximumSpanningTreeOfGonum holds trees over up to 150 variables, more than all trees
// can be listed of, to Kruskal's algorithm in gonum: the weights are equal, and where no
// two edges weigh the same, so are the edges.
func TestMaximumSpanningTreeOfGonum(t *testing.T) {
	for _, tc := range []struct {
		n    int
		ties bool
	}{{2, false}, {3, true}, {40, false}, {40, true}, {150, false}, {150, true}} {
		rng := rand.New(rand.NewPCG(uint64(tc.n), 9))
		w := newInformation(tc.n)
		g := simple.NewWeightedUndirectedGraph(0, math.Inf(1))
		for i := range tc.n {
			for j := range i {
				x := rng.Float64()
				if tc.ties {
					x = float64(rng.IntN(4))
				}
				*w.pair(i, j) = x
				g.SetWeightedEdge(simple.WeightedEdge{F: simple.Node(i), T: simple.Node(j), W: -x})
			}
		}
		want := simple.NewWeightedUndirectedGraph(0, math.Inf(1))
		total := -path.Kruskal(want, g)
		got := SpanningTree(w.Vars(), w.At)
		sum := 0.0
		for _, e := range got {
			sum += w.At(e[0], e[1])
		}
		if !(math.Abs(sum-total) <= 1e-12*float64(tc.n)) || len(got) != tc.n-1 {
			t.Errorf("%d variables, ties %v: %d edges of weight %v, gonum has %v", tc.n, tc.ties, len(got), sum, total)
		}
		missing := slices.IndexFunc(got, func(e [2]int) bool { return !want.HasEdgeBetween(int64(e[0]), int64(e[1])) })
		if !tc.ties && missing >= 0 {
			t.Errorf("%d variables: gonum's tree lacks the edge %v", tc.n, got[missing])
		}
	}
}
