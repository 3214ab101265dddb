package treelite

import (
	"fmt"
	"slices"

	"github.com/pce-engine/pce/forest"
)

// Types of nodes.
const (
	leafNode        = 0
	numericalNode   = 1
	categoricalNode = 2
)

// comparisons are the operators of numerical nodes, by number.
var comparisons = [...]forest.Test{1: forest.Equal, 2: forest.Less, 3: forest.LessEqual, 4: forest.Greater, 5: forest.GreaterEqual}

// columns are a tree's arrays, one element for each node unless the name says
// otherwise.
type columns struct {
	kind, defaultLeft, op, listRight []byte
	left, right, feature             int32s
	value, threshold                 floats
	vectors                          floats // of all leaves
	vectorBegin, vectorEnd           []byte
	lists                            int32s // categories of all nodes
	listBegin, listEnd               []byte
}

// tree reads a tree that adds to these outputs.
func (r *reader) tree(outputs []int32) (*forest.Tree, error) {
	n := int(r.int32("the number of nodes"))
	r.byte("a flag")
	c := &columns{
		kind: r.array(1, "node types"), left: r.array(4, "left children"), right: r.array(4, "right children"),
		feature: r.array(4, "features"), defaultLeft: r.array(1, "default directions"),
		value: r.floats("leaf values"), threshold: r.floats("thresholds"), op: r.array(1, "operators"), listRight: r.array(1, "directions of categories"),
		vectors: r.floats("leaf vectors"), vectorBegin: r.array(8, "leaf vectors"), vectorEnd: r.array(8, "leaf vectors"),
		lists: r.array(4, "categories"), listBegin: r.array(8, "categories"), listEnd: r.array(8, "categories"),
	}
	for _, size := range []uint64{8, 1, 8, 1, 8, 1} { // counts, hessians and gains, and whether they are there
		r.array(size, "statistics")
	}
	ofTree, ofNodes := r.int32("optional fields of the tree"), r.int32("optional fields of nodes")
	if r.err == nil && (ofTree != 0 || ofNodes != 0) {
		return nil, fmt.Errorf("optional fields, which no treelite up to 4.4 writes")
	}
	if r.err != nil {
		return nil, r.err
	}
	for _, got := range []int{
		len(c.kind), c.left.len(), c.right.len(), c.feature.len(), len(c.defaultLeft), c.value.len(), c.threshold.len(), len(c.op), len(c.listRight),
	} {
		if n < 1 || got != n {
			return nil, fmt.Errorf("%d nodes, and %d elements in one of its columns", n, got)
		}
	}
	t := &forest.Tree{Nodes: make([]forest.Node, n), Weight: 1}
	used := 0
	for i := range t.Nodes {
		if err := c.node(t, i, outputs, &used); err != nil {
			return nil, fmt.Errorf("node %d: %w", i, err)
		}
	}
	return t, nil
}

// node fills node i. used counts the categories so far: nodes share none.
func (c *columns) node(t *forest.Tree, i int, outputs []int32, used *int) error {
	node := &t.Nodes[i]
	node.ID = int32(i)
	if c.kind[i] == leafNode {
		return c.leaf(t, i, outputs)
	}
	node.Feature, node.Yes, node.No = c.feature.at(i), c.left.at(i), c.right.at(i)
	node.MissingYes = c.defaultLeft[i] != 0
	switch c.kind[i] {
	case numericalNode:
		op := int(c.op[i])
		if op < 1 || op >= len(comparisons) {
			return fmt.Errorf("operator %d is unknown", op)
		}
		node.Test, node.Threshold = comparisons[op], c.threshold.at(i)
	case categoricalNode:
		begin, end, err := segment(c.listBegin, c.listEnd, i, c.lists.len())
		if err != nil {
			return err
		}
		if *used += end - begin; *used > c.lists.len() {
			return fmt.Errorf("its categories are also another node's")
		}
		node.Test = forest.In
		if c.listRight[i] != 0 {
			node.Yes, node.No, node.MissingYes = node.No, node.Yes, !node.MissingYes
		}
		node.First = int32(len(t.Categories))
		for j := begin; j < end; j++ {
			t.Categories = append(t.Categories, float64(c.lists.u(j)))
		}
		slices.Sort(t.Categories[node.First:])
		t.Categories = t.Categories[:int(node.First)+len(slices.Compact(t.Categories[node.First:]))]
		node.Last = int32(len(t.Categories))
	default:
		return fmt.Errorf("type %d is unknown", c.kind[i])
	}
	return nil
}

// leaf adds the values of leaf i: a vector if it has one, else a scalar.
func (c *columns) leaf(t *forest.Tree, i int, outputs []int32) error {
	node := &t.Nodes[i]
	node.First = int32(len(t.Values))
	begin, end := 0, 0
	if len(c.vectorBegin) > 0 {
		var err error
		if begin, end, err = segment(c.vectorBegin, c.vectorEnd, i, c.vectors.len()); err != nil {
			return err
		}
	}
	if len(outputs) == 1 && begin == end {
		t.Values = append(t.Values, forest.Value{Output: outputs[0], Value: c.value.at(i)})
	} else {
		if end-begin != len(outputs) {
			return fmt.Errorf("a leaf of %d numbers for %d outputs", end-begin, len(outputs))
		}
		if len(t.Values)+len(outputs) > c.vectors.len()+len(c.kind) {
			return fmt.Errorf("its vector is also another leaf's")
		}
		for k, o := range outputs {
			t.Values = append(t.Values, forest.Value{Output: o, Value: c.vectors.at(begin + k)})
		}
	}
	node.Last = int32(len(t.Values))
	return nil
}

// segment returns where the list of node i is in an array of n elements.
func segment(begin, end []byte, i, n int) (int, int, error) {
	if 8*i+8 > len(begin) || 8*i+8 > len(end) {
		return 0, 0, fmt.Errorf("no list for it")
	}
	b, e := offset(begin, i), offset(end, i)
	if b > e || e > n {
		return 0, 0, fmt.Errorf("list %d..%d is out of range; want 0..%d", b, e, n)
	}
	return b, e, nil
}
