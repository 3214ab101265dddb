package forest

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/pce-engine/pce/forest"
)

// chain appends a tree that goes one level further down on the one side that a bit of
// sides chooses, and returns it.
func chain(rng *rand.Rand, f *forest.Forest, depth int) forest.Tree {
	t := forest.Tree{Weight: 1}
	leaf := func() int32 {
		t.Nodes = append(t.Nodes, forest.Node{ID: int32(len(t.Nodes)), First: int32(len(t.Values)), Last: int32(len(t.Values) + 1)})
		t.Values = append(t.Values, forest.Value{Output: int32(rng.IntN(f.Outputs)), Value: float64(float32(rng.NormFloat64()))})
		return int32(len(t.Nodes) - 1)
	}
	at := int32(0)
	t.Nodes = append(t.Nodes, forest.Node{})
	for range depth {
		n := forest.Node{Test: forest.Less, Feature: int32(rng.IntN(f.Features)), MissingYes: rng.IntN(2) == 0, Threshold: float64(rng.IntN(40)) - 20}
		if rng.IntN(9) == 0 {
			n.Test = forest.In
			n.First, n.Last = int32(len(t.Categories)), int32(len(t.Categories)+2)
			t.Categories = append(t.Categories, float64(rng.IntN(5)), float64(5+rng.IntN(5)))
		}
		end := leaf()
		t.Nodes = append(t.Nodes, forest.Node{})
		next := int32(len(t.Nodes) - 1)
		if n.Yes, n.No = end, next; rng.IntN(2) == 0 {
			n.Yes, n.No = next, end
		}
		t.Nodes[at] = n
		at = next
	}
	t.Nodes[at] = forest.Node{ID: at, First: int32(len(t.Values)), Last: int32(len(t.Values) + 1)}
	t.Values = append(t.Values, forest.Value{Value: 0.5})
	return t
}

// bush appends a tree of numeric tests to a forest, complete below the depth of a chain that
// leads to it.
func bush(rng *rand.Rand, f *forest.Forest, chain, depth int) forest.Tree {
	t := forest.Tree{Weight: 1}
	var put func(chain, depth int) int32
	put = func(chain, depth int) int32 {
		at := int32(len(t.Nodes))
		t.Nodes = append(t.Nodes, forest.Node{ID: at, First: int32(len(t.Values)), Last: int32(len(t.Values) + 1)})
		if chain+depth == 0 {
			t.Values = append(t.Values, forest.Value{Output: int32(rng.IntN(f.Outputs)), Value: float64(float32(rng.NormFloat64()))})
			return at
		}
		n := forest.Node{ID: at, Test: forest.Less, Feature: int32(rng.IntN(f.Features)), MissingYes: rng.IntN(2) == 0, Threshold: float64(rng.IntN(40)) - 20}
		if chain > 0 {
			n.Yes, n.No = put(0, 0), put(chain-1, depth)
		} else {
			n.Yes, n.No = put(0, depth-1), put(0, depth-1)
		}
		t.Nodes[at] = n
		return at
	}
	put(chain, depth)
	return t
}

// TestDeep: rows walk together below the tops of trees, also over many blocks, between
// shallow trees, with several outputs, and where a node is too far from its children.
func TestDeep(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	for _, precision := range []forest.Precision{forest.Float32, forest.Float64} {
		for outputs := 1; outputs <= 2; outputs++ {
			f := &forest.Forest{Features: 5, Outputs: outputs, Base: make([]float64, outputs), Alpha: 1, Sum: precision, Input: precision}
			for _, shape := range [][2]int{{0, 9}, {8, 0}, {3, 3}, {9, 0}, {5, 7}, {20, 2}, {0, 11}} {
				f.Trees = append(f.Trees, bush(rng, f, shape[0], shape[1]))
			}
			for _, rows := range []int{5, 300, 512, 513, 8*512 + 70} {
				compare(t, f, cells(rng, f, rows))
			}
		}
	}
	if testing.Short() {
		return
	}
	far := &forest.Forest{Features: 5, Outputs: 1, Base: []float64{0}, Alpha: 1}
	far.Trees = append(far.Trees, bush(rng, far, 8, 17), bush(rng, far, 9, 2))
	compare(t, far, cells(rng, far, 300))
}

// TestShapes: trees of a leaf alone and of 60 levels, columns with more cuts than a byte
// counts, no trees, many trees, many features, and blocks on both sides of their sizes.
func TestShapes(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	make := func(features, outputs int, precision forest.Precision) *forest.Forest {
		return &forest.Forest{Features: features, Outputs: outputs, Base: make([]float64, outputs), Alpha: 1, Sum: precision, Input: precision}
	}
	for _, precision := range []forest.Precision{forest.Float32, forest.Float64} {
		deep := make(3, 2, precision)
		for depth := range 61 {
			deep.Trees = append(deep.Trees, chain(rng, deep, depth))
		}
		sizes := []int{1, 7, 255, 256, 257, 511, 512, 513}
		if testing.Short() {
			sizes = []int{7, 257}
		}
		for _, rows := range sizes {
			compare(t, deep, cells(rng, deep, rows))
		}
		flat := make(3, 1, precision) // no deeper than the tops of blocks, of all heights
		for depth := range 9 {
			flat.Trees = append(flat.Trees, chain(rng, flat, depth))
		}
		compare(t, flat, cells(rng, flat, 300))
		zero := make(3, 2, precision) // a leaf leaves the other output's -0 as it is
		zero.Base = []float64{math.Copysign(0, -1), math.Copysign(0, -1)}
		zero.Trees = append(zero.Trees, chain(rng, zero, 6))
		compare(t, zero, cells(rng, zero, 300))
		none := make(3, 1, precision)
		compare(t, none, cells(rng, none, 3))
		leaves := make(2, 1, precision)
		leaves.Trees = append(leaves.Trees, chain(rng, leaves, 0), chain(rng, leaves, 0))
		compare(t, leaves, cells(rng, leaves, 513))

		for _, cuts := range []int{14, 15, 16, 254, 255, 256, 300, 5000} { // of one column
			for _, missing := range []bool{false, true} {
				if testing.Short() && (cuts == 5000 || missing != (cuts%2 == 0)) {
					continue
				}
				many := make(1, 1, precision)
				for i := range cuts {
					many.Trees = append(many.Trees, forest.Tree{Weight: 1, Nodes: []forest.Node{{Test: forest.Less, Threshold: float64(i), MissingYes: missing && i%2 == 0, Yes: 1, No: 2}, {Last: 1}, {ID: 2}}, Values: []forest.Value{{Value: 1}}})
				}
				rows := cells(rng, many, 300)
				for i := range rows[:200] {
					rows[i] = float64(rng.IntN(cuts+2) - 1)
				}
				compare(t, many, rows)
			}
		}
		wide := make(10000, 1, precision)
		for range 40 {
			wide.Trees = append(wide.Trees, chain(rng, wide, 12))
		}
		compare(t, wide, cells(rng, wide, 70))
	}
}
