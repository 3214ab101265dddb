package boxes_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pce-engine/pce/forest"
	"github.com/pce-engine/pce/forest/boxes"
)

// random returns a forest over n features, of which tests of categories ask about those below
// categorical alone.
func random(rng *rand.Rand, n, categorical int) *forest.Forest {
	f := &forest.Forest{Features: n, Outputs: 2, Base: make([]float64, 2), Alpha: 1, Sum: forest.Precision(rng.IntN(2)), Input: forest.Precision(rng.IntN(2))}
	for range 1 + rng.IntN(6) {
		t := forest.Tree{Weight: []float64{1, 0.3}[rng.IntN(2)]}
		var grow func(depth int) int32
		grow = func(depth int) int32 {
			at := int32(len(t.Nodes))
			t.Nodes = append(t.Nodes, forest.Node{ID: at})
			if depth == 0 || rng.IntN(5) == 0 {
				node := forest.Node{ID: at, First: int32(len(t.Values))}
				for o := range 2 {
					if rng.IntN(3) > 0 {
						t.Values = append(t.Values, forest.Value{Output: int32(o), Value: rng.NormFloat64()})
					}
				}
				node.Last = int32(len(t.Values))
				t.Nodes[at] = node
				return at
			}
			node := forest.Node{ID: at, Feature: int32(rng.IntN(n)), MissingYes: rng.IntN(2) == 0, Threshold: float64(rng.IntN(9))/10 - 0.2}
			if f.Input == forest.Float32 {
				node.Threshold = float64(float32(node.Threshold))
			}
			node.Test = forest.Less + forest.Test(rng.IntN(4))
			if int(node.Feature) < categorical {
				node.Test = forest.Less + forest.Test(rng.IntN(int(forest.InExact)))
				node.ZeroMissing = rng.IntN(8) == 0
				if node.Test.Categorical() {
					node.First = int32(len(t.Categories))
					for c := range 4 {
						if rng.IntN(2) == 0 {
							t.Categories = append(t.Categories, float64(c))
						}
					}
					node.Last = int32(len(t.Categories))
				}
			}
			node.Yes = grow(depth - 1)
			node.No = grow(depth - 1)
			t.Nodes[at] = node
			return at
		}
		grow(5)
		f.Trees = append(f.Trees, t)
	}
	return f
}

// inside reports whether a row, rounded as the forest rounds cells, lies in a box.
func inside(x *boxes.Finder, b *boxes.Boxes, box int, row []float64, domains []boxes.Domain, input forest.Precision) bool {
	for _, number := range b.Sets[b.Start[box]:b.Start[box+1]] {
		s := x.Set(number)
		cell := row[s.Feature]
		if numbers := domains[s.Feature].Numbers; numbers != nil {
			if !slices.ContainsFunc(s.In, func(r boxes.Run) bool { return slices.Contains(numbers[r.First:r.Last+1], cell) }) {
				return false
			}
			continue
		}
		if input == forest.Float32 {
			cell = float64(float32(cell))
		}
		if !(cell >= s.Low && cell < s.High) {
			return false
		}
	}
	return true
}

// looks reports whether a test on the row's own way through a tree asks about a missing cell. Up
// to the first such test this is the only way that there is.
func looks(f *forest.Forest, row []float64) bool {
	for i := range f.Trees {
		t := &f.Trees[i]
		for n := &t.Nodes[0]; n.Test != forest.Leaf; {
			cell := row[n.Feature]
			if math.IsNaN(cell) {
				return true
			}
			if f.Input == forest.Float32 {
				cell = float64(float32(cell))
			}
			if t.Passes(n, cell) {
				n = &t.Nodes[n.Yes]
			} else {
				n = &t.Nodes[n.No]
			}
		}
	}
	return false
}

// wellFormed reports whether the sets of a box ascend, are of a feature each, and leave something out of its domain.
func wellFormed(x *boxes.Finder, ids []int32, domains []boxes.Domain) bool {
	of := map[int]bool{}
	for i, id := range ids {
		s := x.Set(id)
		whole := math.IsInf(s.Low, -1) && math.IsInf(s.High, 1)
		if n := len(domains[s.Feature].Numbers); n > 0 {
			whole = slices.Equal(s.In, []boxes.Run{{Last: int32(n) - 1}})
		}
		if whole || of[s.Feature] || i > 0 && ids[i-1] >= id {
			return false
		}
		of[s.Feature] = true
	}
	return len(ids) > 0
}

// TestFind: whatever the missing cells turn out to be, the values of the boxes that the row then
// lies in are its raw scores, and no box is there twice. Cells are tenths, which the forest rounds as it rounds thresholds.
func TestFind(t *testing.T) {
	found := 0
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 91))
		n := 1 + rng.IntN(5)
		categorical := rng.IntN(n + 1)
		f := random(rng, n, categorical)
		if err := f.Check(); err != nil {
			t.Fatal(err)
		}
		domains := make([]boxes.Domain, n)
		for i := range categorical {
			domains[i].Numbers = [][]float64{{0, 1, 2, 3}, {1, 0}, {-1.5, 0, 2.5}, {1}, {0.1, 0.3, -0.1, 0.6}}[rng.IntN(5)]
		}
		draw := func(feature int) float64 {
			if numbers := domains[feature].Numbers; numbers != nil {
				return numbers[rng.IntN(len(numbers))]
			}
			return float64(rng.IntN(24))/20 - 0.3
		}
		x, err := boxes.New(f, domains)
		if err != nil {
			t.Fatal(err)
		}
		var b boxes.Boxes
		for range 6 {
			row := make([]float64, n)
			for i := range row {
				if row[i] = draw(i); rng.IntN(2) == 0 {
					row[i] = math.NaN()
				}
			}
			if err := x.Find(row, &b); err != nil {
				t.Fatal(err)
			}
			found += b.Len()
			if b.Looked != looks(f, row) {
				t.Fatalf("seed %d: row %v: a missing cell is asked about: %t", seed, row, b.Looked)
			}
			seen := map[string]bool{}
			for i := range b.Len() {
				ids := b.Sets[b.Start[i]:b.Start[i+1]]
				key := fmt.Sprint(ids)
				if seen[key] || !wellFormed(x, ids, domains) {
					t.Fatalf("seed %d: box %v is there twice, or not a set of each of some features", seed, ids)
				}
				seen[key] = true
			}
			for range 20 {
				whole := slices.Clone(row)
				for i := range whole {
					if math.IsNaN(whole[i]) {
						whole[i] = draw(i)
					}
				}
				want := make([]float64, 2)
				if err := forest.Evaluate(f, forest.Margin, whole, want); err != nil {
					t.Fatal(err)
				}
				got := slices.Clone(b.Sure)
				for i := range b.Len() {
					if inside(x, &b, i, whole, domains, f.Input) {
						got[0] += b.Values[2*i]
						got[1] += b.Values[2*i+1]
					}
				}
				if math.Abs(got[0]-want[0]) > 1e-5 || math.Abs(got[1]-want[1]) > 1e-5 {
					t.Fatalf("seed %d: row %v completed to %v: the boxes say %v, the forest %v", seed, row, whole, got, want)
				}
			}
		}
	}
	if found < 1000 {
		t.Errorf("only %d boxes were found", found)
	}
}

// TestRefused: forests whose scores are not sums over boxes.
func TestRefused(t *testing.T) {
	leaf := []forest.Node{{Test: forest.Equal, Yes: 1, No: 2}, {Last: 1}, {First: 1, Last: 2}}
	values := []forest.Value{{Value: 1}, {Value: 2}}
	of := func(change func(*forest.Forest)) *forest.Forest {
		f := &forest.Forest{Features: 1, Outputs: 1, Base: []float64{0}, Alpha: 1, Trees: []forest.Tree{{Nodes: slices.Clone(leaf), Values: values, Weight: 1}}}
		change(f)
		return f
	}
	for name, f := range map[string]*forest.Forest{
		"minimum":    of(func(f *forest.Forest) { f.Combine = forest.Min }),
		"linear":     of(func(f *forest.Forest) { f.Trees, f.Linear = nil, &forest.Linear{} }),
		"one number": of(func(*forest.Forest) {}),
		"zeros":      of(func(f *forest.Forest) { f.Trees[0].Nodes[0].Test, f.Trees[0].Nodes[0].ZeroMissing = forest.Less, true }),
	} {
		if _, err := boxes.New(f, make([]boxes.Domain, 1)); !errors.Is(err, forest.ErrRequest) {
			t.Errorf("%s: %v, want a refusal", name, err)
		}
	}
	if _, err := boxes.New(of(func(*forest.Forest) {}), []boxes.Domain{{Numbers: []float64{0, 1}}}); err != nil {
		t.Errorf("one number of a feature with categories: %v", err)
	}
	if _, err := boxes.New(of(func(*forest.Forest) {}), nil); !errors.Is(err, forest.ErrRequest) {
		t.Errorf("domains of no features: %v, want a refusal", err)
	}
}
