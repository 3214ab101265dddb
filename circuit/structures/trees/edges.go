package trees

import (
	"fmt"
	"math"
	"slices"

	"github.com/pce-engine/pce/forest"
)

// narrow returns a forest whose thresholds float32 has, as circuits have cells of float32. Where the forest rounds cells to float32
// too, all of them come out as before. Where it compares float64, thresholds are rounded as cells are: a cell that is the threshold
// stays on its side, and so do others but for those that are not told apart from it.
func narrow(f *forest.Forest) *forest.Forest {
	out := *f
	out.Trees = slices.Clone(f.Trees)
	for i := range out.Trees {
		nodes := slices.Clone(out.Trees[i].Nodes)
		for j := range nodes {
			n := &nodes[j]
			t := n.Threshold
			switch n.Test {
			case forest.Less, forest.GreaterEqual: // x < t is x < the first float32 from t on
				if n.Threshold = float64(float32(t)); f.Input == forest.Float32 {
					n.Threshold = -float64(down(-t))
				}
			case forest.LessEqual, forest.Greater:
				if n.Threshold = float64(float32(t)); f.Input == forest.Float32 {
					n.Threshold = float64(down(t))
				}
			}
		}
		out.Trees[i].Nodes = nodes
	}
	return &out
}

// cut returns the number below which a cell is on one side of a comparison of a narrow forest: that of Yes if below is set.
func cut(n *forest.Node) (at float64, below bool, err error) {
	at = n.Threshold
	switch n.Test {
	case forest.Less, forest.GreaterEqual:
	case forest.LessEqual, forest.Greater: // x <= t is x < the next number
		at = float64(math.Nextafter32(float32(at), float32(math.Inf(1))))
	default:
		return 0, false, fmt.Errorf("%w: a test of categories, or for one number; only comparisons divide numbers into ranges", ErrTrees)
	}
	if math.IsNaN(n.Threshold) || n.ZeroMissing {
		return 0, false, fmt.Errorf("%w: a test whose threshold is not a number, or that takes zeros for missing cells", ErrTrees)
	}
	return at, n.Test == forest.Less || n.Test == forest.LessEqual, nil
}

// down returns the largest float32 that is not above x.
func down(x float64) float32 {
	y := float32(x)
	if float64(y) > x {
		y = math.Nextafter32(y, float32(math.Inf(-1)))
	}
	return y
}

// edges returns the edges of the bins of each feature: the cuts within the range of the rows, from the least cell to the float32 behind the largest.
func edges(f *forest.Forest, rows []float64) ([][]float64, error) {
	least, largest := make([]float64, f.Features), make([]float64, f.Features)
	for i := range least {
		least[i], largest[i] = math.Inf(1), math.Inf(-1)
	}
	for i, x := range rows {
		k := i % f.Features
		if math.Abs(x) > math.MaxFloat32 {
			return nil, fmt.Errorf("%w: row %d: %v; want a finite number", ErrTrees, i/f.Features+1, x)
		}
		if !math.IsNaN(x) {
			least[k], largest[k] = min(least[k], x), max(largest[k], x)
		}
	}
	out := make([][]float64, f.Features)
	for k := range out {
		if least[k] > largest[k] { // all cells are missing
			least[k], largest[k] = 0, 1
		}
		least[k] = float64(down(least[k]))
		largest[k] = float64(math.Nextafter32(down(largest[k]), math.MaxFloat32))
		if least[k] >= largest[k] {
			least[k] = float64(math.Nextafter32(float32(largest[k]), -math.MaxFloat32))
		}
		out[k] = []float64{least[k], largest[k]}
	}
	for i := range f.Trees {
		t := &f.Trees[i]
		for j := range t.Nodes {
			n := &t.Nodes[j]
			if n.Test == forest.Leaf {
				continue
			}
			at, _, err := cut(n)
			if err != nil {
				return nil, fmt.Errorf("%w: tree %d, node %d", err, i, j)
			}
			if k := n.Feature; at > least[k] && at < largest[k] {
				out[k] = append(out[k], at)
			}
		}
	}
	for k := range out {
		slices.Sort(out[k])
		out[k] = slices.Compact(out[k])
	}
	return out, nil
}

// box is the bins, from First to before Last, of each feature.
type box [][2]int

// boxes returns the box of each leaf of a tree, nil for inner nodes. One of which a side is empty has no number within the edges.
func boxes(f *forest.Forest, t *forest.Tree, edges [][]float64) ([]box, error) {
	parent := make([]int32, len(t.Nodes))
	parent[0] = -1
	var leaves []int32
	for stack := []int32{0}; len(stack) > 0; {
		at := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		n := &t.Nodes[at]
		if n.Test == forest.Leaf {
			leaves = append(leaves, at)
			continue
		}
		parent[n.Yes], parent[n.No] = at, at
		stack = append(stack, n.Yes, n.No)
	}
	out := make([]box, len(t.Nodes))
	for _, leaf := range leaves {
		b := make(box, f.Features)
		for k := range b {
			b[k] = [2]int{0, len(edges[k]) - 1}
		}
		for child, at := leaf, parent[leaf]; at >= 0; child, at = at, parent[at] {
			n := &t.Nodes[at]
			c, below, err := cut(n)
			if err != nil {
				return nil, err
			}
			bin, _ := slices.BinarySearch(edges[n.Feature], c)
			if side := &b[n.Feature]; below == (child == n.Yes) {
				side[1] = min(side[1], bin)
			} else {
				side[0] = max(side[0], bin)
			}
		}
		out[leaf] = b
	}
	return out, nil
}
