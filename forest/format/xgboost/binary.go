package xgboost

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"unicode"

	"github.com/pce-engine/pce/forest"
)

// Sizes of the records of the old binary file, all little-endian.
const (
	learnerBytes = 136 // base_score, num_feature, num_class, 2 flags, version (2), num_target, unused
	gbtreeBytes  = 160 // num_trees, num_parallel_tree in later files, unused; size_leaf_vector is at 36
	linearBytes  = 136 // num_feature, num_output_group, unused
	treeBytes    = 148 // roots, nodes, deleted, depth, features, size_leaf_vector, unused
	nodeBytes    = 20  // parent, left, right, feature, condition
	statBytes    = 16
)

// isBinary: the mark "binf", or a learner record that is followed by the name of an
// objective, which is short and known, or words with colons between them.
func isBinary(head []byte) bool {
	head = bytes.TrimPrefix(head, []byte("binf"))
	if len(head) < learnerBytes+8 {
		return false
	}
	n := binary.LittleEndian.Uint64(head[learnerBytes:])
	if n == 0 || n > 64 || uint64(len(head)) < learnerBytes+8+n {
		return false
	}
	name := head[learnerBytes+8:][:n]
	_, err := find(string(name))
	return err == nil || bytes.ContainsRune(name, ':') && areWords(name)
}

// areWords reports whether text is words with colons between them. The numbers of other files may have a colon anywhere.
func areWords(text []byte) bool {
	for word := range bytes.SplitSeq(text, []byte(":")) {
		other := func(c rune) bool {
			return c > unicode.MaxASCII || !unicode.IsLetter(c) && !unicode.IsDigit(c) && c != '_' && c != '-'
		}
		if len(word) == 0 || bytes.ContainsFunc(word, other) {
			return false
		}
	}
	return true
}

// bytesReader reads records and remembers the first fault.
type bytesReader struct {
	b   []byte
	at  int
	err error
}

// take returns the next n records of size bytes, or nil if the file has fewer.
func (r *bytesReader) take(n, size uint64, what string) []byte {
	if r.err == nil && n > uint64(len(r.b)-r.at)/size {
		r.err = fmt.Errorf("byte %d: the file ends within %d × %d bytes of %s; it is cut short", r.at, n, size, what)
	}
	if r.err != nil {
		return nil
	}
	b := r.b[r.at : r.at+int(n*size)]
	r.at += len(b)
	return b
}

// record returns the next record, zeros after a fault.
func (r *bytesReader) record(size uint64, what string) []byte {
	if b := r.take(1, size, what); b != nil {
		return b
	}
	return make([]byte, size)
}

func (r *bytesReader) length(what string) uint64 {
	return binary.LittleEndian.Uint64(r.record(8, what))
}

func (r *bytesReader) string(what string) string {
	return string(r.take(r.length(what), 1, what))
}

// floats reads a vector with its length.
func (r *bytesReader) floats(what string) []float64 {
	b := r.take(r.length(what), 4, what)
	out := make([]float64, len(b)/4)
	for i := range out {
		out[i] = float64(float(b, i))
	}
	return out
}

func integer(b []byte, i int) int32 { return int32(binary.LittleEndian.Uint32(b[4*i:])) }
func float(b []byte, i int) float32 {
	return math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
}

// readBinary reads the old binary file. Up to 0.90 it holds base_score as a margin,
// from 1.0 on, which notes its version, as a prediction.
func readBinary(file []byte) (*forest.Forest, error) {
	r := &bytesReader{b: file}
	if bytes.HasPrefix(file, []byte("binf")) {
		r.at = 4
	}
	p := r.record(learnerBytes, "the learner")
	objective, booster := r.string("the objective's name"), r.string("the booster's name")
	if r.err != nil {
		return nil, r.err
	}
	major, minor := integer(p, 5), integer(p, 6)
	f := &forest.Forest{Source: "xgboost before 1.0", Features: int(uint32(integer(p, 1))), Outputs: int(max(1, integer(p, 2)))}
	if major > 0 {
		f.Source = fmt.Sprintf("xgboost %d.%d", major, minor)
		f.Outputs = max(f.Outputs, int(integer(p, 7)))
	}
	if f.Outputs > forest.MaxOutputs || f.Features > forest.MaxFeatures {
		return nil, fmt.Errorf("%d features and %d outputs; want at most %d and %d", f.Features, f.Outputs, forest.MaxFeatures, forest.MaxOutputs)
	}
	o, err := find(objective)
	if err != nil {
		return nil, err
	}
	if err := o.set(f, []float32{float(p, 0)}, major == 0); err != nil {
		return nil, err
	}
	parallel := int32(1)
	switch strings.TrimRight(booster, "\x00") {
	case "gblinear":
		r.record(linearBytes, "the linear model")
		weights := r.floats("the linear weights")
		if r.err == nil {
			r.err = setLinear(f, weights)
		}
	case "gbtree":
		parallel = r.trees(f, false, major == 0)
	case "dart":
		parallel = r.trees(f, true, major == 0)
		f.Dropout = true
	default:
		return nil, fmt.Errorf("booster %.40q is unknown; want gbtree, dart or gblinear", booster)
	}
	if r.err != nil {
		return nil, r.err
	}
	if integer(p, 3) != 0 {
		r.attributes(f, parallel)
	}
	return f, f.Check()
}

// attributes reads those behind the booster, as of a document. They say nothing where they cannot be read: no prediction needs them.
func (r *bytesReader) attributes(f *forest.Forest, parallel int32) {
	all := map[string]string{}
	for left := r.length("the attributes"); left > 0 && r.err == nil; left-- {
		key := r.string("an attribute's name")
		all[key] = r.string("an attribute")
	}
	if r.err != nil {
		return
	}
	d := document{best: all["best_iteration"], limit: all["best_ntree_limit"], parallel: fmt.Sprint(parallel), trees: f.Trees, attributes: all}
	f.BestTrees = d.bestTrees(f.Outputs)
	// The last three are settings of training, which files of other kinds have elsewhere.
	for _, name := range []string{"best_iteration", "best_ntree_limit", "objective", "metrics", "count_poisson_max_delta_step"} {
		delete(all, name)
	}
	if all = d.others(f); len(all) > 0 {
		f.Attributes = all
	}
}

// trees reads the trees of f and, for dropout, their weights. vectors is as of tree. It returns how many trees an output has in a round; old
// files have the number of roots there, which is 1.
func (r *bytesReader) trees(f *forest.Forest, dart, vectors bool) (parallel int32) {
	p := r.record(gbtreeBytes, "the booster")
	n := integer(p, 0)
	if n < 0 {
		r.err = fmt.Errorf("%d trees", n)
	}
	for i := int32(0); i < n && r.err == nil; i++ {
		t, err := r.tree(vectors)
		if r.err == nil && err != nil {
			r.err = fmt.Errorf("tree %d: %w", i, err)
		}
		f.Trees = append(f.Trees, t)
	}
	var info []int32
	if n > 0 {
		b := r.take(uint64(n), 4, "the trees' outputs")
		for i := range len(b) / 4 {
			info = append(info, integer(b, i))
		}
	}
	var drop []float64
	if dart && n > 0 {
		if drop = r.floats("the trees' weights"); r.err == nil && len(drop) != len(f.Trees) {
			r.err = fmt.Errorf("%d weights for %d trees", len(drop), n)
		}
	}
	if r.err == nil {
		r.err = assign(f, info, drop)
	}
	return integer(p, 1)
}

// tree reads a tree. Before 1.0 one whose record has a size of leaf vectors had such vectors behind its nodes, which no prediction
// reads; since 2.0 every record has the size 1, and no tree has them.
func (r *bytesReader) tree(vectors bool) (forest.Tree, error) {
	p := r.record(treeBytes, "a tree")
	n, vector := integer(p, 1), integer(p, 5)
	if r.err != nil {
		return forest.Tree{}, r.err
	}
	if n < 1 {
		return forest.Tree{}, fmt.Errorf("%d nodes", n)
	}
	if integer(p, 0) > 1 {
		return forest.Tree{}, fmt.Errorf("%d roots; only trees with one are supported", integer(p, 0))
	}
	b := r.take(uint64(n), nodeBytes, "nodes")
	r.take(uint64(n), statBytes, "statistics")
	if vectors && vector != 0 {
		r.floats("leaf vectors")
	}
	if r.err != nil {
		return forest.Tree{}, r.err
	}
	c := &columns{
		left: make([]int32, n), right: make([]int32, n), feature: make([]int32, n),
		condition: make([]float64, n), defaultLeft: make([]float64, n),
	}
	for i := range n {
		node := b[int(i)*nodeBytes:]
		c.left[i], c.right[i] = integer(node, 1), integer(node, 2)
		feature := uint32(integer(node, 3))
		c.feature[i] = int32(feature & math.MaxInt32)
		c.defaultLeft[i] = float64(feature >> 31)
		c.condition[i] = float64(float(node, 4))
	}
	return c.tree()
}
