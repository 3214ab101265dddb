package ir

import (
	"fmt"
	"math"

	"github.com/pce-engine/pce/compile/forest/hir"
	"github.com/pce-engine/pce/compile/forest/schedule"
	"github.com/pce-engine/pce/kernels/simt"
)

// maxSlots bounds the nodes of a representation.
const maxSlots = 1 << 24

// Buffer is a list of elements of one type that kernels read.
type Buffer struct {
	Name string
	Type simt.Type
	Bits []uint64
}

// Span is a part of a buffer.
type Span struct{ First, Last int }

// Representation lays the nodes of trees out in buffers and says how to go from one to the next. Its five parts are
// the buffers themselves, the step to a child, leaves, what of the buffers some trees lie in (which a cache brings
// near), and where a load finds a node.
type Representation interface {
	// Buffers lays the ensemble out. Nothing else may be asked before it.
	Buffers(e *hir.Ensemble) ([]Buffer, error)
	// Child appends what computes the index of the tile behind an exit.
	Child(b *block, index, tree, exit Value) Value
	// Leaf returns the elements of the buffers of leaves for the leaf of a tree.
	Leaf(tree, leaf int) int
	// Extent returns which tiles some trees lie in.
	Extent(first, last int) []Span
	// Slot appends what computes where the nodes of a tile are, from the tile's index.
	Slot(b *block, index, tree Value) Value
}

// represent returns a representation by its name in schedules.
func represent(how string) (Representation, error) {
	switch how {
	case schedule.Array:
		return &array{}, nil
	case schedule.Sparse:
		return &sparse{}, nil
	case schedule.Reorg:
		return &array{reorg: true}, nil
	}
	return nil, fmt.Errorf("%w: represent %s has no walks to lower; it is run as blocks of rows", ErrLower, how)
}

// Flags of a feature, which is below them.
const (
	flagMissing   = 1 << 24 // missing cells pass
	flagZero      = 1 << 25 // zeros are missing
	flagSet       = 1 << 26 // the test is of categories
	flagTruncated = 1 << 27
	featureMask   = flagMissing - 1
)

// nodes are the buffers that all representations have.
type nodes struct {
	e                 *hir.Ensemble
	features, sets    []uint64
	thresholds, shape []uint64
	roots, classes    []uint64
	leaves            int   // before the present tree
	firstLeaf         []int // of each tree
}

// newNodes makes room for tiles.
func newNodes(e *hir.Ensemble, tiles int) (*nodes, error) {
	if tiles > maxSlots/e.TileNodes {
		return nil, fmt.Errorf("%w: the trees take %d tiles of %d nodes, want at most %d nodes", ErrLower, tiles, e.TileNodes, maxSlots)
	}
	n := &nodes{e: e, features: make([]uint64, tiles*e.TileNodes), thresholds: make([]uint64, tiles*e.TileNodes)}
	for i := range n.features {
		n.features[i] = bits32(-1) // leaf 0, where no row comes
	}
	if len(e.Sets) > 0 {
		n.sets = make([]uint64, tiles*e.TileNodes)
	}
	if e.TileNodes > 1 {
		n.shape = make([]uint64, tiles*e.TileNodes) // at the first slot of each
	}
	for i := range e.Trees {
		n.firstLeaf = append(n.firstLeaf, n.leaves)
		n.leaves += len(e.Trees[i].Leaves)
		n.classes = append(n.classes, bits32(max(e.Trees[i].Class, 0)))
	}
	return n, nil
}

func bits32(x int) uint64 { return uint64(uint32(int32(x))) }

// put writes a tile of a tree.
func (n *nodes) put(at, tree int, tile *hir.Tile) {
	k := at * n.e.TileNodes
	if tile.Leaf != hir.None {
		n.features[k] = bits32(^(n.firstLeaf[tree] + int(tile.Leaf)))
		return
	}
	for i := range n.e.TileNodes { // of slots without a node the answer is not looked at
		n.features[k+i], n.thresholds[k+i] = 0, 0
	}
	for i := range tile.Nodes {
		x := &tile.Nodes[i]
		word := int(x.Feature)
		for _, f := range []struct {
			on   bool
			flag int
		}{{x.MissingYes, flagMissing}, {x.ZeroMissing, flagZero}, {x.Set != hir.None, flagSet}, {x.Truncated, flagTruncated}} {
			if f.on {
				word |= f.flag
			}
		}
		n.features[k+i] = bits32(word)
		n.thresholds[k+i] = simt.FloatBits(cellType(n.e), x.Threshold)
		if n.sets != nil && x.Set != hir.None {
			n.sets[k+i] = bits32(int(x.Set) * len(n.e.Sets[0]))
		}
	}
	if n.shape != nil {
		n.shape[k] = bits32(int(tile.Shape) << n.e.TileNodes)
	}
}

// buffers returns the buffers that were filled, and those of leaves.
func (n *nodes) buffers() []Buffer {
	e := n.e
	list := []Buffer{{"roots", simt.I32, n.roots}, {"features", simt.I32, n.features}, {"thresholds", cellType(e), n.thresholds}}
	if e.Outputs > 1 && !e.Vector() {
		list = append(list, Buffer{"classes", simt.I32, n.classes})
	}
	if !e.InOrder() {
		order := make([]uint64, len(e.Trees))
		for i := range e.Trees {
			order[e.Trees[i].Model] = bits32(i)
		}
		list = append(list, Buffer{"order", simt.I32, order})
	}
	if n.shape != nil {
		var exits []uint64
		for i := range e.Shapes {
			for answers := range 1 << e.TileNodes {
				exits = append(exits, bits32(int(e.Shapes[i].Exit(answers))))
			}
		}
		list = append(list, Buffer{"shapes", simt.I32, n.shape}, Buffer{"exits", simt.I32, exits})
	}
	if n.sets != nil {
		members := make([]uint64, 0, len(e.Sets)*len(e.Sets[0])) // 2^24 categories at most
		for _, set := range e.Sets {
			for _, x := range set {
				members = append(members, uint64(x))
			}
		}
		list = append(list, Buffer{"sets", simt.I32, n.sets}, Buffer{"members", simt.I32, members})
	}
	for o := range leafWidth(e) {
		var values []uint64
		for i := range e.Trees {
			for _, leaf := range e.Trees[i].Leaves {
				values = append(values, simt.FloatBits(sumType(e), leaf[o]))
			}
		}
		list = append(list, Buffer{fmt.Sprintf("leaves%d", o), sumType(e), values})
	}
	return list
}

// leafWidth is how many numbers a leaf has.
func leafWidth(e *hir.Ensemble) int {
	if e.Vector() {
		return e.Outputs
	}
	return 1
}

// array lays each tree out as a complete tree of its depth, level by level; reorg likewise, and the same tile of all
// trees lies together, as rows at the same place of different trees read it at the same time.
type array struct {
	*nodes
	reorg bool
	first []int // slot of each tree's root; of reorg 0
	end   int
}

// complete is how many tiles a complete tree of a depth has, -1 for too many.
func complete(fan, depth int) int {
	n, level := 1, 1
	for range depth {
		if level > maxSlots/fan {
			return -1
		}
		level *= fan
		n += level
	}
	return n
}

// Buffers lays the trees out.
func (a *array) Buffers(e *hir.Ensemble) ([]Buffer, error) {
	fan, total, deepest := e.TileNodes+1, 0, 0
	for i := range e.Trees {
		n := complete(fan, e.Trees[i].Depth)
		deepest = max(deepest, n)
		if a.reorg {
			total = deepest * len(e.Trees)
			a.first = append(a.first, 0)
		} else {
			a.first = append(a.first, total)
			total += n
		}
		if n < 0 || total > maxSlots {
			return nil, fmt.Errorf("%w: tree %d of depth %d has %d exits for each tile, more complete levels than fit %d tiles; use represent sparse", ErrLower, e.Trees[i].Model, e.Trees[i].Depth, fan, maxSlots)
		}
	}
	a.end = total
	var err error
	if a.nodes, err = newNodes(e, total); err != nil {
		return nil, err
	}
	for i := range e.Trees {
		t := &e.Trees[i]
		a.roots = append(a.roots, bits32(a.first[i]))
		place := make([]int, len(t.Tiles))
		for k := range t.Tiles {
			at := a.first[i] + place[k]
			if a.reorg {
				at = place[k]*len(e.Trees) + i
			}
			a.put(at, i, &t.Tiles[k])
			for x, next := range t.Tiles[k].Exits {
				if next != hir.None {
					place[next] = fan*place[k] + 1 + x
				}
			}
		}
	}
	return a.buffers(), nil
}

// Child is (n+1)·index + 1 + exit within the tree, for tiles of n nodes.
func (a *array) Child(b *block, index, tree, exit Value) Value {
	return b.one(Child, a.e.TileNodes, index, tree, exit)
}

// Leaf returns the number of a leaf among those of all trees.
func (n *nodes) Leaf(tree, leaf int) int { return n.firstLeaf[tree] + leaf }

// Extent is one span of the trees' tiles, or all of them.
func (a *array) Extent(first, last int) []Span {
	if a.reorg {
		return []Span{{0, a.end}}
	}
	end := a.end
	if last < len(a.first) {
		end = a.first[last]
	}
	return []Span{{a.first[first], end}}
}

// Slot is the index times n, for tiles of n nodes; with reorg the index counts tiles of the tree.
func (a *array) Slot(b *block, index, tree Value) Value {
	return b.one(Slot, 0, index, tree)
}

// sparse lays out the tiles that a tree has, those behind one tile together, and keeps where they start.
type sparse struct {
	*nodes
	first    []int
	children []uint64
}

// Buffers lays the trees out.
func (s *sparse) Buffers(e *hir.Ensemble) ([]Buffer, error) {
	total := 0
	for i := range e.Trees {
		s.first = append(s.first, total)
		total++
		for k := range e.Trees[i].Tiles {
			total += len(e.Trees[i].Tiles[k].Exits)
		}
		if total > maxSlots {
			return nil, fmt.Errorf("%w: %d tiles up to tree %d, want at most %d", ErrLower, total, e.Trees[i].Model, maxSlots)
		}
	}
	s.first = append(s.first, total)
	var err error
	if s.nodes, err = newNodes(e, total); err != nil {
		return nil, err
	}
	s.children = make([]uint64, total)
	for i := range e.Trees {
		t := &e.Trees[i]
		s.roots = append(s.roots, bits32(s.first[i]))
		place := make([]int, len(t.Tiles))
		place[0] = s.first[i]
		next := s.first[i] + 1
		for k := range t.Tiles { // parents before children
			s.put(place[k], i, &t.Tiles[k])
			s.children[place[k]] = bits32(next)
			for _, c := range t.Tiles[k].Exits {
				if c != hir.None {
					place[c] = next
				}
				next++
			}
		}
	}
	return append(s.buffers(), Buffer{"children", simt.I32, s.children}), nil
}

// Child is where the children start, and the exit.
func (s *sparse) Child(b *block, index, tree, exit Value) Value {
	return b.one(Child, 0, b.one(LoadChild, 0, index), None, exit)
}

// Extent is the span of the trees.
func (s *sparse) Extent(first, last int) []Span { return []Span{{s.first[first], s.first[last]}} }

// Slot is the index times n, for tiles of n nodes.
func (s *sparse) Slot(b *block, index, tree Value) Value { return b.one(Slot, 0, index, None) }

// cellType and sumType are the types in which a forest compares and adds.
func cellType(e *hir.Ensemble) simt.Type { return simtType(e.Input == 0) }

func sumType(e *hir.Ensemble) simt.Type { return simtType(e.Sum == 0) }

func simtType(single bool) simt.Type {
	if single {
		return simt.F32
	}
	return simt.F64
}

// nothing changes no sum that it is added to.
var nothing = math.Copysign(0, -1)
