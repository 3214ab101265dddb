package lightgbm

import (
	"fmt"
	"math"
	"strconv"

	"github.com/pce-engine/pce/forest"
)

// Bits of decision_type, and the kinds of missing cells in bits 2 and 3.
const (
	categorical = 1
	defaultLeft = 2
	missingZero = 1
	missingNaN  = 2
)

// tree makes a tree of its lines; its values are of one output. The inner nodes come
// first, then the leaves.
func tree(lines map[string][]byte, output int32) (*forest.Tree, error) {
	leaves, err := number(lines, "num_leaves", 1, math.MaxInt32/2)
	if err != nil {
		return nil, err
	}
	if text := string(lines["is_linear"]); text != "" && text != "0" {
		return nil, fmt.Errorf("its leaves have linear models, which are not supported; train without linear_tree")
	}
	values, err := column[float64](lines, "leaf_value", leaves)
	if err != nil {
		return nil, err
	}
	t := &forest.Tree{Weight: 1, Nodes: make([]forest.Node, 0, 2*leaves-1), Values: make([]forest.Value, 0, leaves)}
	if leaves > 1 {
		if err := splits(t, lines, leaves); err != nil {
			return nil, err
		}
	}
	for i, v := range values {
		t.Nodes = append(t.Nodes, forest.Node{First: int32(i), Last: int32(i + 1), ID: int32(i)})
		t.Values = append(t.Values, forest.Value{Output: output, Value: v})
	}
	return t, nil
}

// splits appends the inner nodes.
func splits(t *forest.Tree, lines map[string][]byte, leaves int) error {
	n := leaves - 1
	var columns [4][]int32
	for i, key := range []string{"split_feature", "decision_type", "left_child", "right_child"} {
		var err error
		if columns[i], err = column[int32](lines, key, n); err != nil {
			return err
		}
	}
	feature, kind, left, right := columns[0], columns[1], columns[2], columns[3]
	thresholds, err := column[float64](lines, "threshold", n)
	if err != nil {
		return err
	}
	cats, err := categories(lines)
	if err != nil {
		return err
	}
	child := func(c int32) int32 { // ~leaf or an inner node
		if c < 0 {
			return int32(n) + ^c
		}
		return c
	}
	for i := range n {
		node := forest.Node{Feature: feature[i], Yes: child(left[i]), No: child(right[i])}
		if kind[i]&categorical != 0 {
			// A cell that is not listed, which a missing one never is, goes right.
			node.Test = forest.InTruncated
			if node.First, node.Last, err = cats.list(t, thresholds[i]); err != nil {
				return fmt.Errorf("node %d: %w", i, err)
			}
		} else {
			node.Test, node.Threshold = forest.LessEqual, thresholds[i]
			node.MissingYes = kind[i]&defaultLeft != 0
			switch kind[i] >> 2 & 3 {
			case missingZero:
				node.ZeroMissing = true
			case missingNaN:
			default: // no cell was missing in training: it counts as 0
				node.MissingYes = 0 <= thresholds[i]
			}
		}
		t.Nodes = append(t.Nodes, node)
	}
	return nil
}

// bitsets are the lists of categories of a tree: list k has the 32-bit words
// bounds[k] to bounds[k+1].
type bitsets struct {
	bounds []int32
	words  []uint32
	used   []bool
}

func categories(lines map[string][]byte) (*bitsets, error) {
	if text := string(lines["num_cat"]); text == "" || text == "0" {
		return &bitsets{}, nil
	}
	n, err := number(lines, "num_cat", 1, math.MaxInt32-1)
	if err != nil {
		return nil, err
	}
	b := &bitsets{}
	if b.bounds, err = column[int32](lines, "cat_boundaries", n+1); err != nil {
		return nil, err
	}
	if b.words, err = column[uint32](lines, "cat_threshold", -1); err != nil {
		return nil, err
	}
	b.used = make([]bool, n)
	for k := range n {
		if b.bounds[k] < 0 || b.bounds[k] > b.bounds[k+1] || int(b.bounds[k+1]) > len(b.words) {
			return nil, fmt.Errorf("cat_boundaries[%d] is %d; want them ascending up to %d", k, b.bounds[k], len(b.words))
		}
	}
	return b, nil
}

// list appends the categories of list k to t and returns where they are.
func (b *bitsets) list(t *forest.Tree, k float64) (first, last int32, err error) {
	if !(k >= 0 && int(k) < len(b.used)) {
		return 0, 0, fmt.Errorf("list %v of categories is out of range; want 0..%d", k, len(b.used)-1)
	}
	if b.used[int(k)] {
		return 0, 0, fmt.Errorf("list %v of categories is another node's", k)
	}
	b.used[int(k)] = true
	first = int32(len(t.Categories))
	words := b.words[b.bounds[int(k)]:b.bounds[int(k)+1]]
	for i, word := range words {
		for bit := range 32 {
			if word>>bit&1 != 0 {
				t.Categories = append(t.Categories, float64(32*i+bit))
			}
		}
	}
	return first, int32(len(t.Categories)), nil
}

// column reads n numbers separated by spaces, or any number of them for -1.
func column[T int32 | uint32 | float64](lines map[string][]byte, key string, n int) ([]T, error) {
	text, ok := lines[key]
	if !ok {
		return nil, fmt.Errorf("no line %s", key)
	}
	if n > len(text)/2+1 {
		return nil, fmt.Errorf("%s has fewer than %d numbers", key, n)
	}
	out := make([]T, 0, max(n, 0))
	for at := 0; at < len(text); {
		if text[at] == ' ' {
			at++
			continue
		}
		end := at
		for end < len(text) && text[end] != ' ' {
			end++
		}
		word := text[at:end]
		var x T
		var err error
		switch p := any(&x).(type) {
		case *int32:
			*p, err = integer(word)
		case *uint32:
			var v uint64
			v, err = strconv.ParseUint(string(word), 10, 32)
			*p = uint32(v)
		case *float64:
			*p, err = strconv.ParseFloat(string(word), 64)
		}
		if err != nil {
			return nil, fmt.Errorf("%s[%d] is %.40q; want a number", key, len(out), word)
		}
		if len(out) == n {
			return nil, fmt.Errorf("%s has more than %d numbers", key, n)
		}
		out = append(out, x)
		at = end
	}
	if n >= 0 && len(out) != n {
		return nil, fmt.Errorf("%s has %d numbers; want %d", key, len(out), n)
	}
	return out, nil
}

// integer is strconv.ParseInt of 32 bits, faster for few digits, which nearly all have.
func integer(word []byte) (int32, error) {
	digits := word
	if len(word) > 0 && word[0] == '-' {
		digits = word[1:]
	}
	if len(digits) == 0 || len(digits) > 9 {
		return longInteger(word)
	}
	x := int32(0)
	for _, c := range digits {
		if c-'0' > 9 {
			return longInteger(word)
		}
		x = 10*x + int32(c-'0')
	}
	if len(digits) < len(word) {
		x = -x
	}
	return x, nil
}

func longInteger(word []byte) (int32, error) {
	x, err := strconv.ParseInt(string(word), 10, 32)
	return int32(x), err
}
