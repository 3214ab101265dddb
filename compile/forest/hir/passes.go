package hir

import (
	"fmt"
	"math"
	"slices"

	"github.com/pce-engine/pce/compile/forest/schedule"
	"github.com/pce-engine/pce/forest"
)

// Apply changes an ensemble as a schedule says: it joins nodes to tiles, pads, sorts.
func (e *Ensemble) Apply(n *schedule.Nest, profiled bool) error {
	if n.TileNodes > 0 {
		if n.TileHow != schedule.Uniform && !profiled {
			return fmt.Errorf("%w: tileNodes %d %s wants to know how many rows visit each node; give a profile, or say uniform", ErrForest, n.TileNodes, n.TileHow)
		}
		e.Join(n.TileNodes, n.TileHow)
	}
	if n.Pad {
		if err := e.Pad(); err != nil {
			return err
		}
	}
	if n.SortTrees {
		e.SortByDepth()
	}
	return nil
}

// SortByDepth orders the trees by their depth, those of one depth as they were. What the model adds in which
// order is said by Tree.Model.
func (e *Ensemble) SortByDepth() {
	slices.SortStableFunc(e.Trees, func(a, b Tree) int { return a.Depth - b.Depth })
}

// InOrder reports whether the trees are in the model's order.
func (e *Ensemble) InOrder() bool {
	return slices.IsSortedFunc(e.Trees, func(a, b Tree) int { return a.Model - b.Model })
}

// Pad gives all leaves of a tree the depth of its deepest one: in front of a leaf come tiles of one node that no
// cell passes, so that every row passes on to the leaf. Trees of which few leaves are deep grow with the square of their depth: too many tiles are
// an error.
func (e *Ensemble) Pad() error {
	if n := e.padded(); n > maxTiles {
		return fmt.Errorf("%w: pad makes %d tiles of the trees, want at most %d; leave it out", ErrForest, n, maxTiles)
	}
	shape := int32(slices.IndexFunc(e.Shapes, func(s Shape) bool { return len(s.Yes) == 1 }))
	if shape < 0 {
		shape = int32(len(e.Shapes))
		e.Shapes = append(e.Shapes, Shape{Yes: []int32{^0}, No: []int32{^1}})
	}
	for i := range e.Trees {
		t := &e.Trees[i]
		depth := t.depths()
		for k := 0; k < len(depth); k++ {
			for t.Tiles[k].Leaf != None && depth[k] < t.Depth {
				last := int32(len(t.Tiles))
				t.Tiles = append(t.Tiles, t.Tiles[k])
				t.Tiles[k] = Tile{Leaf: None, Nodes: []Node{{Threshold: math.NaN(), Set: None}}, Shape: shape, Exits: []int32{None, last}}
				depth = append(depth, depth[k]+1)
			}
		}
		t.measure()
	}
	return nil
}

// maxTiles bounds the tiles of padded trees: no representation has more.
const maxTiles = 1 << 24

// padded returns how many tiles the trees have once they are padded.
func (e *Ensemble) padded() (n int64) {
	for i := range e.Trees {
		t := &e.Trees[i]
		n += int64(len(t.Tiles))
		for k, depth := range t.depths() {
			if t.Tiles[k].Leaf != None {
				n += int64(t.Depth - depth)
			}
		}
	}
	return n
}

// Bounds of leaf-biased trees: the share of the leaves that most rows come to, and the share of the rows that
// is meant by most.
const (
	fewLeaves = 0.075
	mostRows  = 0.9
)

// Join makes tiles of up to n nodes, which have to be of one node each before. A tile starts at a node and takes on
// the inner node next to it that is nearest to its root, or the one that most rows visit.
func (e *Ensemble) Join(n int, how string) {
	j := &joiner{e: e, most: n, shapes: map[string]int32{}}
	e.TileNodes, e.Shapes = n, nil
	for i := range e.Trees {
		t := &e.Trees[i]
		j.byHits = how == schedule.Probability || how == schedule.Hybrid && t.biased()
		j.tree(t)
		t.measure()
	}
}

// biased reports whether few leaves of a tree get most rows.
func (t *Tree) biased() bool {
	var hits []float64
	total := 0.0
	for i := range t.Tiles {
		for k, next := range t.Tiles[i].Exits {
			if next != None && t.Tiles[next].Leaf != None {
				h := t.leafHits(i, k)
				hits = append(hits, h)
				total += h
			}
		}
	}
	slices.SortFunc(hits, func(a, b float64) int {
		if a > b {
			return -1
		} else if a < b {
			return 1
		}
		return 0
	})
	sum := 0.0
	for _, h := range hits[:int(math.Ceil(fewLeaves*float64(len(hits))))] {
		sum += h
	}
	return total > 0 && sum >= mostRows*total
}

// leafHits returns how many rows leave a node for a leaf: its rows but for those of its other side, halves if both
// are leaves.
func (t *Tree) leafHits(tile, exit int) float64 {
	n := &t.Tiles[tile]
	if other := n.Exits[1-exit]; other != None && t.Tiles[other].Leaf == None {
		return n.Nodes[0].hits - t.Tiles[other].Nodes[0].hits
	}
	return n.Nodes[0].hits / 2
}

type joiner struct {
	e      *Ensemble
	most   int
	byHits bool
	shapes map[string]int32
}

// tree joins the nodes of a tree.
func (j *joiner) tree(t *Tree) {
	old := t.Tiles
	t.Tiles = nil
	type start struct {
		node   int32
		parent int32
		exit   int
	}
	stack := []start{{0, None, 0}}
	for len(stack) > 0 {
		s := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		at := int32(len(t.Tiles))
		if s.parent != None {
			t.Tiles[s.parent].Exits[s.exit] = at
		}
		if old[s.node].Leaf != None {
			t.Tiles = append(t.Tiles, old[s.node])
			continue
		}
		tile, exits := j.tile(old, s.node)
		t.Tiles = append(t.Tiles, tile)
		for k := len(exits) - 1; k >= 0; k-- {
			stack = append(stack, start{exits[k], at, k})
		}
	}
}

// tile joins nodes from a root on, and returns the tile with what its exits lead to.
func (j *joiner) tile(old []Tile, root int32) (Tile, []int32) {
	taken := []int32{root}
	level := map[int32]int{root: 0}
	for len(taken) < j.most {
		best := None
		for _, x := range taken {
			for _, next := range old[x].Exits {
				if _, in := level[next]; in || old[next].Leaf != None {
					continue
				}
				better := best == None
				if !better && j.byHits {
					better = old[next].Nodes[0].hits > old[best].Nodes[0].hits
				} else if !better {
					better = level[x]+1 < level[best]
				}
				if better {
					if best != None {
						delete(level, best)
					}
					best = next
					level[best] = level[x] + 1
				}
			}
		}
		if best == None {
			break
		}
		taken = append(taken, best)
	}
	tile := Tile{Leaf: None}
	shape := Shape{Yes: make([]int32, len(taken)), No: make([]int32, len(taken))}
	var exits []int32
	var visit func(at int32) int32
	visit = func(node int32) int32 {
		at := int32(slices.Index(taken, node))
		if at < 0 {
			exits = append(exits, node)
			return ^int32(len(exits) - 1)
		}
		shape.Yes[at] = visit(old[node].Exits[0])
		shape.No[at] = visit(old[node].Exits[1])
		return at
	}
	visit(root)
	for _, x := range taken {
		tile.Nodes = append(tile.Nodes, old[x].Nodes[0])
	}
	key := fmt.Sprint(shape)
	at, ok := j.shapes[key]
	if !ok {
		at = int32(len(j.e.Shapes))
		j.shapes[key] = at
		j.e.Shapes = append(j.e.Shapes, shape)
	}
	tile.Shape, tile.Exits = at, make([]int32, len(exits))
	return tile, exits
}

// Profile counts how many rows, row-major as forest.Evaluate takes them, visit each node of each tree.
func Profile(f *forest.Forest, rows []float64) [][]int64 {
	hits := make([][]int64, len(f.Trees))
	for i := range f.Trees {
		t := &f.Trees[i]
		hits[i] = make([]int64, len(t.Nodes))
		for at := 0; at+f.Features <= len(rows); at += f.Features {
			t.Visit(rows[at:at+f.Features], func(node int32) { hits[i][node]++ })
		}
	}
	return hits
}
