package onnx

import (
	"fmt"
	"math"
	"slices"

	"github.com/pce-engine/pce/forest"
)

// builder makes trees of the columns of TreeEnsemble.
type builder struct {
	features, modes, yes, no, yesLeaf, noLeaf, missing []int64
	splits                                             []float64
	sets                                               [][]float64 // of the membership nodes, in order
	set                                                []int       // index of a node's set
	used                                               []bool      // nodes that have a parent or are roots
	targets                                            []int64     // of each leaf
	values                                             []float64
}

func (n *node) builder(f *forest.Forest) (*builder, error) {
	get := func(name string) []int64 { return n.attributes[name].ints }
	b := &builder{
		features: get("nodes_featureids"), modes: get("nodes_modes"), yes: get("nodes_truenodeids"), no: get("nodes_falsenodeids"),
		yesLeaf: get("nodes_trueleafs"), noLeaf: get("nodes_falseleafs"), missing: get("nodes_missing_value_tracks_true"),
		splits: n.attributes["nodes_splits"].floats, targets: get("leaf_targetids"), values: n.attributes["leaf_weights"].floats,
	}
	if n.attributes["nodes_splits"].wide {
		f.Input, f.Output = forest.Float64, forest.Float64
	}
	count := len(b.features)
	for _, a := range []struct {
		name string
		len  int
	}{
		{"nodes_modes", len(b.modes)}, {"nodes_truenodeids", len(b.yes)}, {"nodes_falsenodeids", len(b.no)}, {"nodes_trueleafs", len(b.yesLeaf)},
		{"nodes_falseleafs", len(b.noLeaf)}, {"nodes_splits", len(b.splits)},
	} {
		if a.len != count {
			return nil, fmt.Errorf("%s has %d elements, nodes_featureids %d", a.name, a.len, count)
		}
	}
	if len(b.missing) != 0 && len(b.missing) != count {
		return nil, fmt.Errorf("nodes_missing_value_tracks_true has %d elements, nodes_featureids %d", len(b.missing), count)
	}
	if len(b.targets) != len(b.values) {
		return nil, fmt.Errorf("%d leaf_targetids and %d leaf_weights; want equally many", len(b.targets), len(b.values))
	}
	b.used, b.set = make([]bool, count), make([]int, count)
	return b, b.memberships(n.attributes["membership_values"].floats)
}

// member is the mode BRANCH_MEMBER.
const member = 6

// memberships divides the values at the NaNs that end each set and gives the sets to
// the membership nodes in order.
func (b *builder) memberships(values []float64) error {
	start := 0
	for i, x := range values {
		if math.IsNaN(x) {
			b.sets = append(b.sets, values[start:i:i])
			start = i + 1
		}
	}
	if start < len(values) {
		b.sets = append(b.sets, values[start:])
	}
	next := 0
	for i, mode := range b.modes {
		if mode == member {
			if next == len(b.sets) {
				return fmt.Errorf("membership_values has %d sets, fewer than there are membership nodes", next)
			}
			b.set[i] = next
			next++
		}
	}
	return nil
}

// tree appends the tree of a root. A node whose branches are one leaf is a tree of one
// leaf, and need not name a feature.
func (b *builder) tree(f *forest.Forest, root int64) error {
	t := forest.Tree{Weight: 1}
	if root >= 0 && int(root) < len(b.used) && b.yesLeaf[root] != 0 && b.noLeaf[root] != 0 && b.yes[root] == b.no[root] {
		if _, err := b.leaf(&t, f, b.yes[root]); err != nil {
			return err
		}
		f.Trees = append(f.Trees, t)
		return nil
	}
	type branch struct {
		node   int64
		parent int32
		yes    bool
	}
	for stack := []branch{{node: root, parent: -1}}; len(stack) > 0; {
		at := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		i := at.node
		if i < 0 || int(i) >= len(b.used) {
			return fmt.Errorf("node %d is out of range; want 0..%d", i, len(b.used)-1)
		}
		if b.used[i] {
			return fmt.Errorf("node %d is reached twice", i)
		}
		b.used[i] = true
		id, err := b.inner(&t, i)
		if err != nil {
			return fmt.Errorf("node %d: %w", i, err)
		}
		link(&t, at.parent, at.yes, id)
		for _, side := range []struct {
			yes   bool
			leaf  bool
			child int64
		}{{true, b.yesLeaf[i] != 0, b.yes[i]}, {false, b.noLeaf[i] != 0, b.no[i]}} {
			if !side.leaf {
				stack = append(stack, branch{side.child, id, side.yes})
				continue
			}
			leaf, err := b.leaf(&t, f, side.child)
			if err != nil {
				return fmt.Errorf("node %d: %w", i, err)
			}
			link(&t, id, side.yes, leaf)
		}
	}
	f.Trees = append(f.Trees, t)
	return nil
}

// link makes child a child of parent, unless that is -1.
func link(t *forest.Tree, parent int32, yes bool, child int32) {
	switch {
	case parent < 0:
	case yes:
		t.Nodes[parent].Yes = child
	default:
		t.Nodes[parent].No = child
	}
}

// inner appends inner node i and returns its index.
func (b *builder) inner(t *forest.Tree, i int64) (int32, error) {
	mode := b.modes[i]
	if mode < 0 || mode > member {
		return 0, fmt.Errorf("mode %d is unknown", mode)
	}
	if b.features[i] < 0 || b.features[i] >= forest.MaxFeatures {
		return 0, fmt.Errorf("feature %d is out of range", b.features[i])
	}
	n := forest.Node{Test: modes[mode].test, Feature: int32(b.features[i]), Threshold: b.splits[i]}
	n.MissingYes = len(b.missing) > 0 && b.missing[i] != 0 || n.Test == forest.NotEqual
	if mode == member {
		n.First = int32(len(t.Categories))
		t.Categories = append(t.Categories, b.sets[b.set[i]]...)
		slices.Sort(t.Categories[n.First:])
		t.Categories = t.Categories[:int(n.First)+len(slices.Compact(t.Categories[n.First:]))]
		n.Last = int32(len(t.Categories))
	}
	t.Nodes = append(t.Nodes, n)
	return int32(len(t.Nodes) - 1), nil
}

// leaf appends leaf i and returns its index.
func (b *builder) leaf(t *forest.Tree, f *forest.Forest, i int64) (int32, error) {
	if i < 0 || int(i) >= len(b.values) || i > math.MaxInt32 {
		return 0, fmt.Errorf("leaf %d is out of range; want 0..%d", i, len(b.values)-1)
	}
	if o := b.targets[i]; o < 0 || o >= int64(f.Outputs) {
		return 0, fmt.Errorf("leaf %d is of target %d; want 0..%d", i, o, f.Outputs-1)
	}
	first := int32(len(t.Values))
	t.Values = append(t.Values, forest.Value{Output: int32(b.targets[i]), Value: b.values[i]})
	t.Nodes = append(t.Nodes, forest.Node{First: first, Last: first + 1, ID: int32(i)})
	return int32(len(t.Nodes) - 1), nil
}
