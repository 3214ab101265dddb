package sliced

import (
	"math"

	"github.com/pce-engine/pce/internal/parallel"
	"github.com/pce-engine/pce/kernels/sliced"
)

// tree is a tree of the module as blocks and rows take it: a complete top of height
// levels, and what each of its leaves leads to.
type tree struct {
	height  int
	offsets []uint32 // of the masks of the top, in the order of muxGeneric
	exits   []int32  // by leaf of the top: a node of walks, or ^leaf
	on      []uint8  // by leaf of the top: 1 if its rows walk on; nil if none do
	tables  []table
	deep    *deepTree // nil where no rows walk on, or they do not walk together
	leaves  []sliced.Leaf
	values  []sliced.Value
}

// table is what the leaves of the top add to one output, -0 where they add nothing.
type table struct {
	output int
	single []float32
	laid   []float32 // single as the loops take it
	double []float64
}

// walkNode is a node below the top of a tree. Its test is rank+bias < limit in 16 bits,
// where a missing cell has the rank 65535, or a mask of the block.
type walkNode struct {
	ranks       uint32 // where the ranks of its column begin, or the mask
	limit, bias uint16
	masked      bool
	yes, no     int32 // a walkNode, or ^leaf
}

// builder makes the tables of a program.
type builder struct {
	*Program
	depths []int // of the trees
	walks  []int // nodes of each tree that become nodes of walks
}

// build makes the tables of all trees.
func (b *builder) build() {
	first, total := make([]int, len(b.walks)), 0
	for i, n := range b.walks {
		first[i] = total
		total += n
	}
	b.trees, b.nodes, b.slots = make([]tree, len(b.walks)), make([]walkNode, total), make([]uint64, total)
	_ = parallel.Each(len(b.walks), func() func(int) error { // whose function returns nil
		t := &treeBuilder{Program: b.Program}
		return func(i int) error {
			t.next = int32(first[i])
			t.build(i, b.depths[i])
			return nil
		}
	})
}

// treeBuilder makes the tables of trees, one after the other.
type treeBuilder struct {
	*Program
	tree  *sliced.Tree
	out   *tree
	next  int32 // node of walks that is to be made
	queue []int32
	upper [maxHeight + 1][]uint32 // offsets of nodes above the subtrees of lowHeight, by height
}

// build makes the tables of tree i.
func (b *treeBuilder) build(i, depth int) {
	t := &b.m.Trees[i]
	b.tree, b.out = t, &b.trees[i]
	*b.out = tree{height: max(1, min(depth, maxHeight)), leaves: t.Leaves, values: t.Values}
	leaves := 1 << b.out.height
	b.out.offsets, b.out.exits = make([]uint32, 0, leaves), make([]int32, 0, leaves)
	for i := range b.upper {
		b.upper[i] = b.upper[i][:0]
	}
	b.top(t.Root, b.out.height)
	for _, list := range b.upper {
		b.out.offsets = append(b.out.offsets, list...)
	}
	b.tabulate()
}

// top appends a complete tree of a height in the order of muxGeneric: a leaf higher up
// is the child of nodes that send every row to the first child.
func (b *treeBuilder) top(at int32, height int) {
	if height == 0 {
		if at >= 0 {
			at = b.walk(at)
		}
		b.out.exits = append(b.out.exits, at)
		return
	}
	n, set := sliced.Node{Yes: at, No: at}, int32(none)
	if at >= 0 {
		n = b.tree.Nodes[at]
		set = b.tests[n.Mask].set
	}
	b.top(n.Yes, height-1)
	b.top(n.No, height-1)
	to := &b.out.offsets
	if height > lowHeight {
		to = &b.upper[height]
	}
	*to = append(*to, uint32(set)*setBytes)
}

// walk makes the nodes of a subtree, parents first, and returns its root. It keeps its own stack:
// trees may be deeper than calls may nest.
func (b *treeBuilder) walk(root int32) int32 {
	first := b.next
	b.next++
	b.queue = append(b.queue[:0], root) // nodes of the tree that become b.nodes[first:], in order
	for k := 0; k < len(b.queue); k++ {
		n := &b.tree.Nodes[b.queue[k]]
		yes, no := b.child(n.Yes), b.child(n.No)
		at, t := first+int32(k), &b.tests[n.Mask]
		b.nodes[at] = b.step(t, yes, no)
		b.slots[at] = b.slot(t)
	}
	return first
}

// child returns what a node of walks names a child: a leaf as it is, a node by where it will be.
func (b *treeBuilder) child(c int32) int32 {
	if c < 0 {
		return c
	}
	b.queue = append(b.queue, c)
	b.next++
	return b.next - 1
}

// step makes a node of walks.
func (b *treeBuilder) step(t *test, yes, no int32) walkNode {
	n := walkNode{yes: yes, no: no}
	switch t.kind {
	case always:
		n.bias, n.limit = 1, missing16
	case single:
		n.limit = t.end
	case present:
		n.bias, n.limit = 1, t.end+1
	case mixed:
		n.masked, n.ranks = true, uint32(t.set)
		return n
	}
	n.ranks = uint32(b.columns[t.column].wide) * blockRows
	return n
}

// tabulate makes the values of the leaves of the top. The rows of a leaf that adds
// twice to an output, and those of inner nodes, walk on.
func (b *treeBuilder) tabulate() {
	t := b.out
	outputs := map[int32]int{} // the table of each
	table0 := int32(-1)        // the output of the first one, which most leaves add to
	usable := make([]bool, len(t.exits))
	for i, at := range t.exits {
		if at >= 0 {
			continue
		}
		usable[i] = true
		leaf := t.leaves[^at]
		if leaf.Last == leaf.First+1 && t.values[leaf.First].Output == table0 {
			continue
		}
		seen := map[int32]bool{}
		for _, v := range t.values[leaf.First:leaf.Last] {
			usable[i] = usable[i] && !seen[v.Output]
			seen[v.Output] = true
			if _, ok := outputs[v.Output]; !ok {
				if outputs[v.Output] = len(t.tables); table0 < 0 {
					table0 = v.Output
				}
				t.tables = append(t.tables, table{output: int(v.Output)})
			}
		}
	}
	for i := range t.tables {
		t.tables[i].double = make([]float64, len(t.exits))
		for j := range t.tables[i].double {
			t.tables[i].double[j] = math.Copysign(0, -1) // leaves every sum as it is
		}
	}
	for i, at := range t.exits {
		if !usable[i] {
			if t.on == nil {
				t.on = make([]uint8, maxLeaves)
			}
			t.on[i] = 1
			continue
		}
		leaf := t.leaves[^at]
		for _, v := range t.values[leaf.First:leaf.Last] {
			k := 0
			if v.Output != table0 {
				k = outputs[v.Output]
			}
			t.tables[k].double[i] = v.Value
		}
	}
	if !b.m.Single {
		return
	}
	for i := range t.tables {
		x := &t.tables[i]
		x.single = make([]float32, len(x.double))
		for j, v := range x.double {
			x.single[j] = float32(v)
		}
		x.laid = b.loops.values(x.single)
		x.double = nil
	}
}
