package tune

import (
	"github.com/pce-engine/pce/compile/forest/hir"
	"github.com/pce-engine/pce/forest"
)

// Shape is what the cost model knows of a forest and of how deep rows go in it.
type Shape struct {
	Trees, Nodes, Features, Outputs int
	Depth                           int   // of the deepest tree
	Depths                          []int // of each tree
	Even                            bool  // all trees have one depth
	Flags                           bool  // cells may be missing, or are of categories
	Wide                            bool  // cells are float64
	// visits has for each group of rows, which are the lanes of a vector, how deep the deepest goes in each tree.
	visits [][]int
}

// groups is how many groups of rows are looked at.
const groups = 8

// Survey looks at a forest that has passed Check and at some of the rows that it will get, row-major; without any, walks count as going all the way down.
// lanes is how many rows walk together.
func Survey(f *forest.Forest, rows []float64, lanes int) *Shape {
	s := &Shape{Trees: len(f.Trees), Nodes: f.NumNodes(), Features: f.Features, Outputs: f.Outputs, Even: true, Wide: f.Input != forest.Float32}
	below := make([][]int, len(f.Trees)) // depth of each node
	for i := range f.Trees {
		t := &f.Trees[i]
		below[i] = depths(t)
		deepest := 0
		for k := range t.Nodes {
			deepest = max(deepest, below[i][k])
			s.Flags = s.Flags || t.Nodes[k].MissingYes || t.Nodes[k].ZeroMissing || t.Nodes[k].Test.Categorical()
		}
		s.Depths = append(s.Depths, deepest)
		s.Depth = max(s.Depth, deepest)
		s.Even = s.Even && deepest == s.Depths[0]
	}
	n := len(rows) / f.Features
	for g := range groups {
		from := g * n / groups
		to := min(from+lanes, n)
		if from >= to || g > 0 && from == (g-1)*n/groups {
			continue
		}
		visits := make([]int, len(f.Trees))
		for i, hits := range hir.Profile(f, rows[from*f.Features:to*f.Features]) {
			for k, count := range hits {
				if count > 0 {
					visits[i] = max(visits[i], below[i][k])
				}
			}
		}
		s.visits = append(s.visits, visits)
	}
	return s
}

// depths returns how deep each node of a tree is. Nodes may be in any order.
func depths(t *forest.Tree) []int {
	d := make([]int, len(t.Nodes))
	list := []int32{0}
	for len(list) > 0 {
		at := list[len(list)-1]
		list = list[:len(list)-1]
		if n := &t.Nodes[at]; n.Test != forest.Leaf {
			d[n.Yes], d[n.No] = d[at]+1, d[at]+1
			list = append(list, n.Yes, n.No)
		}
	}
	return d
}

// steps returns how many nodes deep the walks of all trees go, k trees together: each group of walks is as long as
// its longest.
func (s *Shape) steps(k int, padded bool) float64 {
	visits := s.visits
	if len(visits) == 0 { // no rows are known
		visits = [][]int{s.Depths}
	}
	total := 0.0
	for _, v := range visits {
		for at := 0; at < len(v); at += k {
			most := 0
			for i := at; i < min(at+k, len(v)); i++ {
				if padded {
					most = max(most, s.Depths[i])
				} else {
					most = max(most, v[i])
				}
			}
			total += float64(most * min(k, len(v)-at))
		}
	}
	return total / float64(len(visits))
}
