package hir

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/pce-engine/pce/forest"
)

// ErrForest means that a forest has no code.
var ErrForest = errors.New("hir: no code for this forest")

// None is the absence of a leaf, or of a tile behind an exit that no row takes.
const None int32 = -1

// Node asks whether a cell passes the ensemble's predicate. A missing cell passes if MissingYes is set.
type Node struct {
	Feature     int32
	Threshold   float64 // in the precision of the cells; NaN: no cell passes
	MissingYes  bool
	ZeroMissing bool
	Set         int32 // of Ensemble.Sets, which the cell's category must be in; None for comparisons
	Truncated   bool  // the category is the cell rounded toward zero, else down
	hits        float64
}

// Tile is a leaf, or nodes that are decided in one step.
type Tile struct {
	Leaf  int32   // of Tree.Leaves; None for nodes
	Nodes []Node  // the root first
	Shape int32   // of Ensemble.Shapes
	Exits []int32 // tiles of the tree; None where no row comes
}

// Tree is a tree of tiles, the root first and parents before children.
type Tree struct {
	Model  int // the tree's place in the model, which says when its value is added
	Class  int // the output that it adds to; -1: its leaves add to all
	Tiles  []Tile
	Leaves [][]float64 // what a leaf adds: a number, or one for each output
	// IDs are the numbers of the leaves in the library that trained the forest.
	IDs        []int32
	Depth      int // the largest number of tiles on a way to a leaf
	Shallowest int // the smallest
}

// Shape is how the nodes of a tile hang together: what follows a node that a row passes, and one that it does
// not: another node of the tile, or ^e for the exit e.
type Shape struct{ Yes, No []int32 }

// Exit returns the exit for the answers of the nodes, a bit for each.
func (s *Shape) Exit(answers int) int32 {
	at := int32(0)
	for at >= 0 {
		if answers>>at&1 != 0 {
			at = s.Yes[at]
		} else {
			at = s.No[at]
		}
	}
	return ^at
}

// Ensemble is a forest as trees of tiles.
type Ensemble struct {
	Source            string
	Features, Outputs int
	Input, Sum        forest.Precision
	OrEqual           bool // the predicate is <=, else <
	Missing           bool // a node sends missing cells to Yes
	Zeros             bool // a node takes zeros for missing cells
	// Sets are sets of categories from SetFrom, all of one length, each a 1 for a member. The first and
	// last element are 0: categories outside are brought there.
	Sets      [][]byte
	SetFrom   int32
	Truncates bool // a node rounds cells toward zero
	TileNodes int
	Shapes    []Shape
	Trees     []Tree // in the order in which they are walked
}

// maxCategory bounds categories, maxSets the bytes of all sets, and maxNumbers the numbers of all leaves.
const (
	maxCategory = 1 << 24
	maxSets     = 1 << 26
	maxNumbers  = 1 << 26
)

// Build makes an ensemble of a forest that has passed Check. hits counts how many rows of a profile visit each
// node of each tree; nil if there is none.
func Build(f *forest.Forest, hits [][]int64) (*Ensemble, error) {
	if f.Linear != nil || f.Combine != forest.Sum || f.Features < 1 {
		return nil, fmt.Errorf("%w: only sums of trees have code", ErrForest)
	}
	e := &Ensemble{Source: f.Source, Features: f.Features, Outputs: f.Outputs, Input: f.Input, Sum: f.Sum, TileNodes: 1, Shapes: []Shape{{Yes: []int32{^0}, No: []int32{^1}}}}
	b := &builder{e: e, f: f, sets: map[string]int32{}}
	if err := b.survey(); err != nil {
		return nil, err
	}
	for i := range f.Trees {
		var counts []int64
		if hits != nil {
			if len(hits) != len(f.Trees) || len(hits[i]) != len(f.Trees[i].Nodes) {
				return nil, fmt.Errorf("%w: the profile is of another forest: it has %d trees; profile this one", ErrForest, len(hits))
			}
			counts = hits[i]
		}
		if err := b.tree(i, counts); err != nil {
			return nil, err
		}
	}
	return e, b.classes()
}

type builder struct {
	e      *Ensemble
	f      *forest.Forest
	lo, hi int32 // bounds of categories
	sets   map[string]int32
	values [][][]forest.Value // of the leaves of each tree: what they add
}

// survey looks at all tests: which predicate does, and which categories there are.
func (b *builder) survey() error {
	less, orEqual := false, false
	b.lo, b.hi = 0, 0
	sets := 0
	for i := range b.f.Trees {
		t := &b.f.Trees[i]
		for j := range t.Nodes {
			switch n := &t.Nodes[j]; n.Test {
			case forest.Leaf:
			case forest.Less, forest.GreaterEqual:
				less = true
			case forest.LessEqual, forest.Greater:
				orEqual = true
			case forest.In, forest.InTruncated:
				sets++
				for _, c := range t.Categories[n.First:n.Last] {
					if c != math.Trunc(c) {
						continue // no cell has it
					}
					if math.Abs(c) > maxCategory {
						return fmt.Errorf("%w: tree %d, node %d: category %v, want at most %d", ErrForest, i, j, c, maxCategory)
					}
					b.lo, b.hi = min(b.lo, int32(c)), max(b.hi, int32(c))
				}
			default:
				return fmt.Errorf("%w: tree %d, node %d: code has no test %s", ErrForest, i, j, testNames[n.Test])
			}
		}
	}
	if n := int64(sets) * (int64(b.hi) - int64(b.lo) + 3); n > maxSets {
		return fmt.Errorf("%w: %d tests of categories take %d bytes, want at most %d", ErrForest, sets, n, maxSets)
	}
	b.e.OrEqual = orEqual && !less
	b.e.SetFrom = b.lo - 1
	return nil
}

var testNames = map[forest.Test]string{forest.Equal: "x == t", forest.NotEqual: "x != t", forest.InExact: "for exact members of a list"}

// node makes a node of one in the forest, and reports whether Yes and No change places.
func (b *builder) node(t *forest.Tree, n *forest.Node) (out Node, swap bool) {
	out = Node{Feature: n.Feature, MissingYes: n.MissingYes, ZeroMissing: n.ZeroMissing, Set: None}
	x := n.Threshold
	switch n.Test {
	case forest.In, forest.InTruncated:
		out.Set, out.Truncated = b.set(t.Categories[n.First:n.Last]), n.Test == forest.InTruncated
	case forest.Less, forest.GreaterEqual, forest.LessEqual, forest.Greater:
		swap = n.Test == forest.Greater || n.Test == forest.GreaterEqual
		switch {
		case math.IsNaN(x): // no comparison holds, not even the opposite one
			swap = false
		case b.e.OrEqual:
			x = b.most(x)
		case n.Test == forest.Less || n.Test == forest.GreaterEqual:
			x = b.least(x)
		case math.IsInf(x, 1): // x <= +Inf holds for all, and x < t for none
			x, swap = math.NaN(), !swap
		default:
			x = b.next(b.most(x))
		}
		out.Threshold = x
	}
	if swap {
		out.MissingYes = !out.MissingYes
	}
	b.e.Missing = b.e.Missing || out.MissingYes
	b.e.Zeros = b.e.Zeros || out.ZeroMissing
	b.e.Truncates = b.e.Truncates || out.Truncated
	return out, swap
}

// least returns the least cell that is not below x, most the largest one that is not above, next the least above a
// cell.
func (b *builder) least(x float64) float64 {
	if y := b.most(x); y == x || b.f.Input == forest.Float64 {
		return x
	} else {
		return b.next(y)
	}
}

func (b *builder) most(x float64) float64 {
	if b.f.Input == forest.Float64 {
		return x
	}
	y := float32(x)
	if float64(y) > x {
		y = math.Nextafter32(y, float32(math.Inf(-1)))
	}
	return float64(y)
}

func (b *builder) next(x float64) float64 {
	if b.f.Input == forest.Float64 {
		return math.Nextafter(x, math.Inf(1))
	}
	return float64(math.Nextafter32(float32(x), float32(math.Inf(1))))
}

// set returns the set of a list of categories.
func (b *builder) set(list []float64) int32 {
	members := make([]byte, int(b.hi-b.lo)+3)
	for _, c := range list {
		if c == math.Trunc(c) {
			members[int32(c)-b.e.SetFrom] = 1
		}
	}
	if at, ok := b.sets[string(members)]; ok {
		return at
	}
	at := int32(len(b.e.Sets))
	b.sets[string(members)] = at
	b.e.Sets = append(b.e.Sets, members)
	return at
}

// tree appends a tree of tiles of one node.
func (b *builder) tree(at int, hits []int64) error {
	t := &b.f.Trees[at]
	out := Tree{Model: at, Class: -1}
	var leaves [][]forest.Value
	type edge struct {
		node, parent int32
		exit         int
	}
	stack := []edge{{0, None, 0}}
	for len(stack) > 0 {
		e := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		n := &t.Nodes[e.node]
		id := int32(len(out.Tiles))
		if e.parent != None {
			out.Tiles[e.parent].Exits[e.exit] = id
		}
		if n.Test == forest.Leaf {
			values, err := b.leaf(t, n)
			if err != nil {
				return fmt.Errorf("%w: tree %d, leaf %d: %w", ErrForest, at, n.ID, err)
			}
			out.Tiles = append(out.Tiles, Tile{Leaf: int32(len(leaves))})
			leaves, out.IDs = append(leaves, values), append(out.IDs, n.ID)
			continue
		}
		node, swap := b.node(t, n)
		yes, no := n.Yes, n.No
		if swap {
			yes, no = no, yes
		}
		if hits != nil {
			node.hits = float64(hits[e.node])
		}
		out.Tiles = append(out.Tiles, Tile{Leaf: None, Nodes: []Node{node}, Exits: []int32{None, None}})
		stack = append(stack, edge{no, id, 1}, edge{yes, id, 0})
	}
	out.measure()
	b.e.Trees, b.values = append(b.e.Trees, out), append(b.values, leaves)
	return nil
}

// leaf returns what a leaf adds, in the precision of the sums.
func (b *builder) leaf(t *forest.Tree, n *forest.Node) ([]forest.Value, error) {
	values := make([]forest.Value, 0, n.Last-n.First)
	seen := make(map[int32]bool, n.Last-n.First)
	for _, v := range t.Values[n.First:n.Last] {
		if seen[v.Output] {
			return nil, fmt.Errorf("it adds to output %d twice, which code does not", v.Output)
		}
		seen[v.Output] = true
		x := t.Weight * v.Value
		if b.f.Sum == forest.Float32 {
			x = float64(float32(x))
		}
		values = append(values, forest.Value{Output: v.Output, Value: x})
	}
	return values, nil
}

// classes finds for each tree the one output that it adds to. Where every tree has one, leaves have one number, else one for
// each output: -0, which changes no sum, where they add nothing.
func (b *builder) classes() error {
	classes, sole, leaves := make([]int, len(b.values)), true, 0
	for i, list := range b.values {
		first := true
		leaves += len(list)
		for _, values := range list {
			for _, v := range values {
				if math.Float64bits(v.Value) == math.Float64bits(nothing) {
					continue
				}
				sole = sole && (first || int(v.Output) == classes[i])
				classes[i], first = int(v.Output), false
			}
		}
	}
	width := 1
	if !sole {
		if width = b.e.Outputs; leaves > maxNumbers/width {
			return fmt.Errorf("%w: %d leaves with a number for each of %d outputs, want at most %d numbers", ErrForest, leaves, width, maxNumbers)
		}
	}
	for i, list := range b.values {
		t := &b.e.Trees[i]
		if sole {
			t.Class = classes[i]
		}
		for _, values := range list {
			numbers := slices.Repeat([]float64{nothing}, width)
			for _, v := range values {
				if !sole {
					numbers[v.Output] = v.Value
				} else if int(v.Output) == t.Class {
					numbers[0] = v.Value
				}
			}
			t.Leaves = append(t.Leaves, numbers)
		}
	}
	b.values = nil
	return nil
}

// nothing changes no sum that it is added to.
var nothing = math.Copysign(0, -1)

// Vector reports whether the leaves of the trees have a number for each output.
func (e *Ensemble) Vector() bool {
	return e.Outputs > 1 && slices.ContainsFunc(e.Trees, func(t Tree) bool { return t.Class < 0 })
}

// depths returns how many tiles are above each.
func (t *Tree) depths() []int {
	depth := make([]int, len(t.Tiles))
	for i := range t.Tiles {
		for _, next := range t.Tiles[i].Exits {
			if next != None {
				depth[next] = depth[i] + 1
			}
		}
	}
	return depth
}

// measure sets the depths of a tree.
func (t *Tree) measure() {
	t.Depth, t.Shallowest = 0, math.MaxInt
	for i, depth := range t.depths() {
		if t.Tiles[i].Leaf != None {
			t.Depth, t.Shallowest = max(t.Depth, depth), min(t.Shallowest, depth)
		}
	}
}
