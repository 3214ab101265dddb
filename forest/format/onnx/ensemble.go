package onnx

import (
	"fmt"
	"math"
	"slices"

	"github.com/pce-engine/pce/forest"
)

// floats returns an attribute of float32 numbers, or of its other form, a tensor.
func (n *node) floats(name string) (xs []float64, wide bool) {
	a, ok := n.attributes[name]
	if !ok {
		a = n.attributes[name+"_as_tensor"]
	}
	return a.floats, a.wide
}

// modes are the tests of node modes by name, and by number in TreeEnsemble.
var modes = []struct {
	name string
	test forest.Test
}{
	{"BRANCH_LEQ", forest.LessEqual}, {"BRANCH_LT", forest.Less}, {"BRANCH_GTE", forest.GreaterEqual}, {"BRANCH_GT", forest.Greater},
	{"BRANCH_EQ", forest.Equal}, {"BRANCH_NEQ", forest.NotEqual}, {"BRANCH_MEMBER", forest.InExact}, {"LEAF", forest.Leaf},
}

// place is a node of a tree of the file.
type place struct{ tree, node int64 }

// nodes reads the trees of the operators before TreeEnsemble, without values.
func (n *node) nodes(f *forest.Forest) (map[place]*forest.Node, error) {
	get := func(name string) []int64 { return n.attributes[name].ints }
	trees, ids := get("nodes_treeids"), get("nodes_nodeids")
	features, yes, no, missing := get("nodes_featureids"), get("nodes_truenodeids"), get("nodes_falsenodeids"), get("nodes_missing_value_tracks_true")
	names := n.attributes["nodes_modes"].strings
	values, wide := n.floats("nodes_values")
	if wide {
		f.Input = forest.Float64
	}
	count := len(trees)
	for _, a := range []struct {
		name string
		len  int
	}{
		{"nodes_nodeids", len(ids)}, {"nodes_featureids", len(features)}, {"nodes_truenodeids", len(yes)}, {"nodes_falsenodeids", len(no)},
		{"nodes_modes", len(names)}, {"nodes_values", len(values)},
	} {
		if a.len != count {
			return nil, fmt.Errorf("%s has %d elements, nodes_treeids %d", a.name, a.len, count)
		}
	}
	if len(missing) != 0 && len(missing) != count {
		return nil, fmt.Errorf("nodes_missing_value_tracks_true has %d elements, nodes_treeids %d", len(missing), count)
	}
	index := make(map[place]int32, count) // in its tree
	at := map[int64]int{}                 // tree ids, in the order of their first nodes
	for i := range count {
		t, ok := at[trees[i]]
		if !ok {
			t = len(f.Trees)
			at[trees[i]] = t
			f.Trees = append(f.Trees, forest.Tree{Weight: 1})
		}
		p := place{trees[i], ids[i]}
		if _, twice := index[p]; twice {
			return nil, fmt.Errorf("node %d of tree %d comes twice", p.node, p.tree)
		}
		if ids[i] < math.MinInt32 || ids[i] > math.MaxInt32 {
			return nil, fmt.Errorf("node %d of tree %d: its number is out of range", p.node, p.tree)
		}
		index[p] = int32(len(f.Trees[t].Nodes))
		f.Trees[t].Nodes = append(f.Trees[t].Nodes, forest.Node{ID: int32(ids[i])})
	}
	out := make(map[place]*forest.Node, count)
	for i := range count {
		p := place{trees[i], ids[i]}
		node := &f.Trees[at[p.tree]].Nodes[index[p]]
		out[p] = node
		mode := slices.IndexFunc(modes, func(m struct {
			name string
			test forest.Test
		}) bool {
			return m.name == names[i]
		})
		if mode < 0 || modes[mode].test == forest.InExact {
			return nil, fmt.Errorf("node %d of tree %d: mode %.40q is unknown", p.node, p.tree, names[i])
		}
		if node.Test = modes[mode].test; node.Test == forest.Leaf {
			continue
		}
		a, okYes := index[place{p.tree, yes[i]}]
		b, okNo := index[place{p.tree, no[i]}]
		if !okYes || !okNo {
			return nil, fmt.Errorf("node %d of tree %d: child %d or %d does not exist", p.node, p.tree, yes[i], no[i])
		}
		if features[i] < 0 || features[i] >= forest.MaxFeatures {
			return nil, fmt.Errorf("node %d of tree %d: feature %d is out of range", p.node, p.tree, features[i])
		}
		node.Yes, node.No, node.Feature, node.Threshold = a, b, int32(features[i]), values[i]
		node.MissingYes = len(missing) > 0 && missing[i] != 0 || node.Test == forest.NotEqual
	}
	for i := range f.Trees {
		if err := rootFirst(&f.Trees[i]); err != nil {
			return nil, fmt.Errorf("tree %d: %w", i, err)
		}
	}
	return out, nil
}

// rootFirst requires that the first node of a tree is its root, as all writers have
// it: no other node leads to it.
func rootFirst(t *forest.Tree) error {
	for i := range t.Nodes {
		if n := &t.Nodes[i]; n.Test != forest.Leaf && (n.Yes == 0 || n.No == 0) {
			return fmt.Errorf("its first node is the child of another; want the root first")
		}
	}
	return nil
}

// weight is what a leaf adds to an output.
type weight struct {
	at     *forest.Node
	output int64
	value  float64
}

// weights reads the values of leaves under a prefix, "target" or "class".
func (n *node) weights(at map[place]*forest.Node, prefix string) ([]weight, error) {
	get := func(name string) []int64 { return n.attributes[prefix+name].ints }
	trees, nodes, ids := get("_treeids"), get("_nodeids"), get("_ids")
	values, _ := n.floats(prefix + "_weights") // the results are float32 whatever these are
	if len(nodes) != len(trees) || len(ids) != len(trees) || len(values) != len(trees) {
		return nil, fmt.Errorf("%d %s_treeids, %d nodeids, %d ids and %d weights; want equally many", len(trees), prefix, len(nodes), len(ids), len(values))
	}
	out := make([]weight, len(trees))
	for i := range out {
		node := at[place{trees[i], nodes[i]}]
		if node == nil || node.Test != forest.Leaf {
			return nil, fmt.Errorf("%s weight %d is of node %d of tree %d, which is not a leaf", prefix, i, nodes[i], trees[i])
		}
		out[i] = weight{node, ids[i], values[i]}
	}
	return out, nil
}

// fill puts the weights into the trees' leaves. Several of one leaf and output are
// kept in order, and all are added.
func fill(f *forest.Forest, weights []weight) error {
	lists := make(map[*forest.Node][]forest.Value, len(weights))
	for _, w := range weights {
		if w.output < 0 || w.output >= int64(f.Outputs) {
			return fmt.Errorf("a leaf adds to output %d; want 0..%d", w.output, f.Outputs-1)
		}
		lists[w.at] = append(lists[w.at], forest.Value{Output: int32(w.output), Value: w.value})
	}
	for i := range f.Trees {
		t := &f.Trees[i]
		for j := range t.Nodes {
			node := &t.Nodes[j]
			if node.Test != forest.Leaf {
				continue
			}
			node.First = int32(len(t.Values))
			t.Values = append(t.Values, lists[node]...)
			node.Last = int32(len(t.Values))
		}
	}
	return nil
}
