package trees

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/pce-engine/pce/forest"
)

// onFloat32 returns the forest with comparisons that cells of float32 pass as the cells that they were rounded from pass those of f, wherever
// they can tell: all are Less or GreaterEqual, and their thresholds are float32 numbers. What counts rows and what divides numbers into
// bins both take these, so that a row is counted where a query of it is answered.
func onFloat32(f *forest.Forest) (*forest.Forest, error) {
	out := *f
	out.Trees = slices.Clone(f.Trees)
	for i := range out.Trees {
		nodes := slices.Clone(out.Trees[i].Nodes)
		out.Trees[i].Nodes = nodes
		for j := range nodes {
			n := &nodes[j]
			if n.Test == forest.Leaf {
				continue
			}
			if n.Test > forest.GreaterEqual {
				return nil, fmt.Errorf("%w: a test of categories, or for one number; only comparisons divide numbers into ranges: tree %d, node %d", ErrTrees, i, j)
			}
			if math.IsNaN(n.Threshold) || n.ZeroMissing {
				return nil, fmt.Errorf("%w: a test whose threshold is not a number, or that takes zeros for missing cells: tree %d, node %d", ErrTrees, i, j)
			}
			at := down(n.Threshold)
			reached := float64(at) == n.Threshold // by a cell
			if f.Input == forest.Float64 {        // so is the number that a cell which equals the threshold is rounded to
				at, reached = float32(n.Threshold), true
			}
			switch n.Test {
			case forest.Less, forest.GreaterEqual:
				if !reached {
					at = next(at)
				}
			case forest.LessEqual: // x <= t is x < the next number
				n.Test, at = forest.Less, next(at)
			case forest.Greater:
				n.Test, at = forest.GreaterEqual, next(at)
			}
			n.Threshold = float64(at)
		}
	}
	return &out, nil
}

// next returns the float32 above x.
func next(x float32) float32 { return math.Nextafter32(x, float32(math.Inf(1))) }

// down returns the largest float32 that is not above x.
func down(x float64) float32 {
	y := float32(x)
	if float64(y) > x {
		y = math.Nextafter32(y, float32(math.Inf(-1)))
	}
	return y
}

// edges returns the edges of the bins of each feature: the thresholds within the range of the rows, from the least cell to the float32 behind the
// largest. f is one of onFloat32.
func edges(f *forest.Forest, rows []float64) ([][]float64, error) {
	least, largest := make([]float64, f.Features), make([]float64, f.Features)
	for i := range least {
		least[i], largest[i] = math.Inf(1), math.Inf(-1)
	}
	for i, x := range rows {
		k := i % f.Features
		if math.Abs(x) > math.MaxFloat32 {
			name := fmt.Sprintf("column %d", k+1)
			if f.Names != nil && f.Names[k] != "" {
				name = strconv.Quote(f.Names[k])
			}
			return nil, fmt.Errorf("%w: row %d, %s: %v; want a number that float32 holds, at most 3.4e38", ErrTrees, i/f.Features+1, name, x)
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
		largest[k] = float64(math.Nextafter32(float32(largest[k]), math.MaxFloat32))
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
			if k := n.Feature; n.Threshold > least[k] && n.Threshold < largest[k] {
				out[k] = append(out[k], n.Threshold)
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

// boxes returns the box of each leaf of a tree, nil for inner nodes and for leaves that no number within the edges reaches. It returns false
// where there are more than most: each takes memory for all features.
func boxes(f *forest.Forest, t *forest.Tree, edges [][]float64, most int) ([]box, bool) {
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
	out, b := make([]box, len(t.Nodes)), make(box, f.Features)
	for k := range b {
		b[k] = [2]int{0, len(edges[k]) - 1}
	}
	for _, leaf := range leaves {
		empty := false
		for child, at := leaf, parent[leaf]; at >= 0; child, at = at, parent[at] {
			n := &t.Nodes[at]
			bin, _ := slices.BinarySearch(edges[n.Feature], n.Threshold)
			if side := &b[n.Feature]; (n.Test == forest.Less) == (child == n.Yes) {
				side[1] = min(side[1], bin)
			} else {
				side[0] = max(side[0], bin)
			}
			empty = empty || b[n.Feature][0] >= b[n.Feature][1]
		}
		if !empty {
			if most--; most < 0 {
				return nil, false
			}
			out[leaf] = slices.Clone(b)
		}
		for at := parent[leaf]; at >= 0; at = parent[at] {
			k := t.Nodes[at].Feature
			b[k] = [2]int{0, len(edges[k]) - 1}
		}
	}
	return out, true
}
