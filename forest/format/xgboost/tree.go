package xgboost

import (
	"fmt"
	"math"
	"slices"

	"github.com/pce-engine/pce/forest"
)

// columns are the arrays of a tree in a file, one number for each node unless the
// comment says otherwise.
type columns struct {
	left, right, feature []int32
	condition            []float64 // threshold of a split, value of a leaf
	defaultLeft          []float64
	kind                 []float64 // 1: split by categories; may be missing
	vector               int       // numbers of a leaf; 0 and 1: a scalar in condition
	weights              []float64 // [nodes][vector]
	leafWeights          []float64 // [leaves][vector]; the leaf's row is in right. Since XGBoost 3.2

	categories                      []float64 // of all nodes
	catNodes, catSegments, catSizes []int32   // for each node with categories: itself, start, length

	numbers []float64 // what integers are read into first
}

// clear forgets a tree and keeps the memory of its arrays for the next one.
func (c *columns) clear() {
	for _, a := range []*[]float64{&c.condition, &c.defaultLeft, &c.kind, &c.weights, &c.leafWeights, &c.categories} {
		*a = (*a)[:0]
	}
	for _, a := range []*[]int32{&c.left, &c.right, &c.feature, &c.catNodes, &c.catSegments, &c.catSizes} {
		*a = (*a)[:0]
	}
	c.vector = 0
}

// floats returns the array of that name in a file, nil where numbers of that name are not
// floats or not read.
func (c *columns) floats(key string) *[]float64 {
	switch key {
	case "split_conditions":
		return &c.condition
	case "default_left":
		return &c.defaultLeft
	case "split_type":
		return &c.kind
	case "leaf_weights":
		return &c.leafWeights
	case "categories":
		return &c.categories
	}
	return nil
}

// integers returns the array of that name in a file, nil where it is not one of integers.
func (c *columns) integers(key string) *[]int32 {
	switch key {
	case "left_children":
		return &c.left
	case "right_children":
		return &c.right
	case "split_indices":
		return &c.feature
	case "categories_nodes":
		return &c.catNodes
	case "categories_segments":
		return &c.catSegments
	case "categories_sizes":
		return &c.catSizes
	}
	return nil
}

// maxCategory bounds categories: integers that float32 has exactly.
const maxCategory = 1 << 24

// tree builds the tree, whose values are of output 0 if they are scalars. Nodes that
// the root does not reach, which pruning leaves behind, become leaves without values.
func (c *columns) tree() (forest.Tree, error) {
	n := len(c.left)
	for _, a := range []struct {
		name string
		len  int
		want int
	}{
		{"right_children", len(c.right), n},
		{"split_indices", len(c.feature), n},
		{"split_conditions", len(c.condition), n},
		{"default_left", len(c.defaultLeft), n},
	} {
		if a.len != a.want {
			return forest.Tree{}, fmt.Errorf("%s has %d numbers, left_children %d", a.name, a.len, n)
		}
	}
	if n == 0 {
		return forest.Tree{}, fmt.Errorf("no nodes")
	}
	if len(c.kind) != 0 && len(c.kind) != n {
		return forest.Tree{}, fmt.Errorf("split_type has %d numbers, left_children %d", len(c.kind), n)
	}
	reached, err := c.reach()
	if err != nil {
		return forest.Tree{}, err
	}
	room := n/2 + 1
	if c.vector > 1 { // a size that the file claims
		room = min(room*c.vector, max(len(c.weights), len(c.leafWeights)))
	}
	t := forest.Tree{Nodes: make([]forest.Node, n), Weight: 1, Values: make([]forest.Value, 0, room)}
	lists, err := c.lists(&t)
	if err != nil {
		return forest.Tree{}, err
	}
	for i := range t.Nodes {
		node := &t.Nodes[i]
		node.ID = int32(i)
		if !reached[i] {
			continue
		}
		if c.left[i] < 0 {
			if err := c.leaf(&t, i); err != nil {
				return forest.Tree{}, err
			}
			continue
		}
		node.Feature = c.feature[i]
		if len(c.kind) > 0 && c.kind[i] == 1 {
			list, ok := lists[int32(i)]
			if !ok {
				return forest.Tree{}, fmt.Errorf("node %d splits by categories and has none", i)
			}
			// A listed category goes right.
			node.Test, node.Yes, node.No = forest.In, c.right[i], c.left[i]
			node.MissingYes = c.defaultLeft[i] == 0
			node.First, node.Last = list[0], list[1]
			continue
		}
		node.Test, node.Yes, node.No = forest.Less, c.left[i], c.right[i]
		node.MissingYes = c.defaultLeft[i] != 0
		node.Threshold = float64(float32(c.condition[i]))
	}
	return t, nil
}

// reach marks the nodes below the root and checks that they form a tree.
func (c *columns) reach() ([]bool, error) {
	n := int32(len(c.left))
	reached := make([]bool, n)
	reached[0] = true
	for stack := []int32{0}; len(stack) > 0; {
		i := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if c.left[i] < 0 {
			continue
		}
		for _, child := range []int32{c.left[i], c.right[i]} {
			if child < 0 || child >= n {
				return nil, fmt.Errorf("node %d: child %d is out of range; want 0..%d", i, child, n-1)
			}
			if reached[child] {
				return nil, fmt.Errorf("node %d: child %d is reached twice", i, child)
			}
			reached[child] = true
			stack = append(stack, child)
		}
	}
	return reached, nil
}

// leaf adds the values of leaf i.
func (c *columns) leaf(t *forest.Tree, i int) error {
	node := &t.Nodes[i]
	node.First = int32(len(t.Values))
	if c.vector <= 1 {
		t.Values = append(t.Values, forest.Value{Value: float64(float32(c.condition[i]))})
	} else {
		rows, row := c.weights, i
		if len(c.leafWeights) > 0 {
			rows, row = c.leafWeights, int(c.right[i])
		}
		if row < 0 || row >= len(rows)/c.vector {
			return fmt.Errorf("leaf %d: no weights in row %d; there are %d numbers in rows of %d", i, row, len(rows), c.vector)
		}
		if len(t.Values)+c.vector > len(rows) {
			return fmt.Errorf("leaf %d: its weights in row %d are also another leaf's", i, row)
		}
		for o, w := range rows[row*c.vector : (row+1)*c.vector] {
			t.Values = append(t.Values, forest.Value{Output: int32(o), Value: float64(float32(w))})
		}
	}
	node.Last = int32(len(t.Values))
	return nil
}

// lists moves the categories of all nodes into t and returns where each node's are.
func (c *columns) lists(t *forest.Tree) (map[int32][2]int32, error) {
	if len(c.catNodes) == 0 {
		return nil, nil
	}
	if len(c.catSegments) != len(c.catNodes) || len(c.catSizes) != len(c.catNodes) {
		return nil, fmt.Errorf("%d categories_nodes, %d categories_segments, %d categories_sizes; want equally many", len(c.catNodes), len(c.catSegments), len(c.catSizes))
	}
	for i, x := range c.categories {
		if !(x >= 0 && x < maxCategory) || x != math.Trunc(x) {
			return nil, fmt.Errorf("categories[%d] is %v; want an integer in 0..%d", i, x, maxCategory-1)
		}
	}
	lists := make(map[int32][2]int32, len(c.catNodes))
	total := 0
	for k, node := range c.catNodes {
		from, count := int(c.catSegments[k]), int(c.catSizes[k])
		if from < 0 || count < 0 || from > len(c.categories) || count > len(c.categories)-from {
			return nil, fmt.Errorf("node %d: categories %d..%d are out of range; want 0..%d", node, from, from+count, len(c.categories))
		}
		if total += count; total > len(c.categories) {
			return nil, fmt.Errorf("node %d: its categories are also another node's", node)
		}
		if _, twice := lists[node]; twice {
			return nil, fmt.Errorf("node %d has two lists of categories", node)
		}
		first := len(t.Categories)
		t.Categories = append(t.Categories, c.categories[from:from+count]...)
		list := t.Categories[first:]
		slices.Sort(list)
		t.Categories = t.Categories[:first+len(slices.Compact(list))]
		lists[node] = [2]int32{int32(first), int32(len(t.Categories))}
	}
	return lists, nil
}
