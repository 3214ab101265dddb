package sliced

import (
	"math"

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
	tree  *sliced.Tree
	out   *tree
	upper [maxHeight + 1][]uint32 // offsets of nodes above the subtrees of lowHeight, by height
}

// build appends the tables of a tree.
func (b *builder) build(t *sliced.Tree, depth int) {
	b.tree = t
	b.out = &tree{height: max(1, min(depth, maxHeight)), leaves: t.Leaves, values: t.Values}
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
	b.trees = append(b.trees, *b.out)
}

// top appends a complete tree of a height in the order of muxGeneric: a leaf higher up
// is the child of nodes that send every row to the first child.
func (b *builder) top(at int32, height int) {
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

// walk appends a subtree, parents first, and returns its root. It keeps its own stack:
// trees may be deeper than calls may nest.
func (b *builder) walk(root int32) int32 {
	first := int32(len(b.nodes))
	queue := []int32{root} // nodes of the tree that become b.nodes[first:], in order
	b.nodes = append(b.nodes, walkNode{})
	b.slots = append(b.slots, 0)
	for k := 0; k < len(queue); k++ {
		n := b.tree.Nodes[queue[k]]
		at := first + int32(k)
		child := func(c int32) int32 {
			if c < 0 {
				return c
			}
			queue = append(queue, c)
			b.nodes = append(b.nodes, walkNode{})
			b.slots = append(b.slots, 0)
			return int32(len(b.nodes) - 1)
		}
		yes := child(n.Yes)
		b.nodes[at] = b.step(&b.tests[n.Mask], yes, child(n.No))
		b.slots[at] = b.slot(&b.tests[n.Mask])
	}
	return first
}

// step makes a node of walks.
func (b *builder) step(t *test, yes, no int32) walkNode {
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
func (b *builder) tabulate() {
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
