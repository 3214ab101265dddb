package boxes

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pce-engine/pce/forest"
)

// TestIntersect compares intersections of sets of indices with those of their lists.
func TestIntersect(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	s := sets{number: map[string]int32{}, both: map[uint64]int32{}}
	const size = 12
	for range 5000 {
		var x, y, want Set
		for i := range int32(size) {
			a, b := rng.IntN(3) > 0, rng.IntN(3) > 0
			if a {
				x.In = add(x.In, i)
			}
			if b {
				y.In = add(y.In, i)
			}
			if a && b {
				want.In = add(want.In, i)
			}
		}
		if got := s.intersect(s.of(x, size), s.of(y, size), size); got != s.of(want, size) {
			t.Fatalf("%v and %v have set %d in common, want %v", x.In, y.In, got, want.In)
		}
	}
	runs := 0
	for _, x := range s.list {
		runs += len(x.In)
	}
	if len(s.list) < 1000 || s.runs != runs {
		t.Errorf("%d sets of %d runs, counted as %d", len(s.list), runs, s.runs)
	}
}

// comb is a forest of comparisons with thresholds, each below the one before, and numbers of which every second one is below 0.
func comb(thresholds int) (*forest.Forest, []Domain) {
	f := &forest.Forest{Features: 1, Outputs: 1, Base: []float64{0}, Alpha: 1}
	tree := forest.Tree{Weight: 1, Values: []forest.Value{{Value: 1}}}
	for i := range int32(thresholds) {
		node := forest.Node{Test: forest.Less, Threshold: float64(-2 * i), Yes: 2*i + 2, No: 2*i + 1}
		tree.Nodes = append(tree.Nodes, node, forest.Node{Last: 1})
	}
	tree.Nodes = append(tree.Nodes, forest.Node{Last: 1})
	f.Trees = []forest.Tree{tree}
	d := Domain{}
	for i := range 1000 {
		d.Numbers = append(d.Numbers, float64(i)*math.Pow(-1, float64(i)))
	}
	return f, []Domain{d}
}

// TestRuns: comparisons of ascending numbers take a run each, and forests that need too many are refused, by New or by Find.
func TestRuns(t *testing.T) {
	defer func(most int) { mostRuns = most }(mostRuns)
	const thresholds = 300
	f, shuffled := comb(thresholds)
	ascending := []Domain{{Numbers: slices.Sorted(slices.Values(shuffled[0].Numbers))}}
	nan := []float64{math.NaN()}
	x, err := New(f, ascending)
	if err != nil {
		t.Fatal(err)
	}
	var b Boxes
	if err := x.Find(nan, &b); err != nil || b.Len() != thresholds+1 || x.sets.runs > 3*thresholds {
		t.Errorf("%v: %d boxes of %d runs, want %d of %d at most", err, b.Len(), x.sets.runs, thresholds+1, 3*thresholds)
	}
	if x, err = New(f, shuffled); err != nil {
		t.Fatal(err)
	}
	mostRuns = x.sets.runs
	if err := x.Find(nan, &b); !errors.Is(err, forest.ErrRequest) || x.sets.runs > mostRuns+1000 {
		t.Errorf("%v: Find takes %d runs of %d", err, x.sets.runs, mostRuns)
	}
	if _, err = New(f, shuffled); err != nil {
		t.Errorf("as many runs as may be: %v", err)
	}
	mostRuns--
	if _, err = New(f, shuffled); !errors.Is(err, forest.ErrRequest) {
		t.Errorf("New takes more than %d runs: %v", mostRuns, err)
	}
}
