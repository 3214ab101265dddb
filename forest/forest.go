package forest

import (
	"errors"
	"unsafe"
)

// Errors that callers may test for with errors.Is.
var (
	// ErrForest means that a forest is invalid.
	ErrForest = errors.New("forest: bad forest")
	// ErrRequest means that a valid forest was asked for what it does not have, or
	// with rows that do not fit it.
	ErrRequest = errors.New("forest: bad request")
)

// Precision is the type in which a forest computes: that of the library which trained it.
type Precision uint8

// Precisions.
const (
	Float32 Precision = iota
	Float64
)

// String returns the name of the type in Go.
func (p Precision) String() string {
	if p == Float32 {
		return "float32"
	}
	return "float64"
}

// round returns x as a number of the precision has it.
func (p Precision) round(x float64) float64 {
	if p == Float32 {
		return float64(float32(x))
	}
	return x
}

// Test is what an inner node asks about a cell; a leaf asks nothing. Whatever the
// test, a missing cell takes the way that Node.MissingYes says.
type Test uint8

// Tests. x is the cell and t the node's threshold. Those of categories look x up
// in the node's list: In takes the integer part of x if x >= 0 (negative numbers
// are never in the list), InTruncated rounds x toward zero first, so that -0.5 is
// category 0, and InExact wants a number of the list itself.
const (
	Leaf         Test = iota
	Less              // x < t
	LessEqual         // x <= t
	Greater           // x > t
	GreaterEqual      // x >= t
	Equal             // x == t
	NotEqual          // x != t
	In
	InTruncated
	InExact
	tests // their number
)

// Categorical reports whether the test looks the cell up in a list.
func (t Test) Categorical() bool { return t >= In && t <= InExact }

// ZeroWithin is how far from 0 a cell may be to count as missing where
// Node.ZeroMissing is set: LightGBM's bound, a float32.
const ZeroWithin = float64(float32(1e-35))

// Node is a node of a tree: a test with two ways on, or a leaf.
type Node struct {
	Test        Test
	MissingYes  bool    // a missing cell takes Yes, otherwise No
	ZeroMissing bool    // cells within ZeroWithin of 0 count as missing
	Feature     int32   // the cell that an inner node asks about
	Yes, No     int32   // children of an inner node, as indices of Tree.Nodes
	First, Last int32   // Tree.Values[First:Last] of a leaf, Tree.Categories[First:Last] of a test of categories
	ID          int32   // number of a leaf in the library that trained the forest
	Threshold   float64 // of a comparison
}

// Value is what a leaf adds to one output, as a leaf may have values for several.
type Value struct {
	Output int32
	Value  float64
}

// Tree is a binary tree whose root is Nodes[0], with the lists that its nodes point into.
type Tree struct {
	Nodes      []Node
	Values     []Value
	Categories []float64 // ascending within the list of each node
	Weight     float64   // multiplies the values; 1 unless the forest was trained with dropout
}

// Linear is a linear model in place of trees: each output is its bias plus the sum
// of cell times weight over the cells that are not missing, in order.
type Linear struct {
	Weights []float64 // [Features][Outputs]
	Bias    []float64 // [Outputs]
}

// Combine says how the values of all trees become an output's raw score.
type Combine uint8

// Combinations.
const (
	Sum Combine = iota
	Min
	Max
	combines // their number
)

// Forest is a list of trees and what becomes of their values.
type Forest struct {
	Source   string   // where it comes from, such as "xgboost 1.7.4"
	Target   string   // the objective in the words of the source, such as "binary:logistic"; may be empty
	Features int      // cells of a row
	Names    []string // of the features; nil if the source has none
	Outputs  int      // raw scores of a row
	Trees    []Tree
	Linear   *Linear // nil for trees

	Base     []float64 // [Outputs], added to the scores
	BaseLast bool      // Base is added after the trees; otherwise sums start with it
	Combine  Combine
	Divisor  []float64 // [Outputs] that the sums of the trees are divided by before Base is added; nil for none

	Link    Link
	Alpha   float64  // constant of links that have one
	Classes int      // that the rows are told into; 0 if the forest is not a classifier
	Cut     float64  // of a forest with two classes and one output: class 1 is above it
	Labels  []string // of the classes; nil if they are numbers from 0

	Input, Sum, Output Precision // of cells, sums, predictions

	// BestTrees is after how many trees early stopping found the forest to be best, which XGBoost's interface for scikit-learn
	// predicts with. All trees are used here, as its Booster does. 0 if the source does not say.
	BestTrees int

	// Attributes are other texts that an XGBoost file has beside its model, by their names; its interface for scikit-learn
	// keeps its settings there, and classifiers do not load without them. They say nothing of predictions. nil without.
	Attributes map[string]string

	// Types are the kinds of the features as an XGBoost file has them, such as "q", "int" and "c" for categories, by which XGBoost
	// decides which columns of a data frame it takes. They say nothing of predictions. nil without.
	Types []string

	// Dropout is whether an XGBoost file has its booster dart. Weights that are not 1 are a sign of it as well, but all are 1 where no tree
	// was dropped. XGBoost's interface for scikit-learn keeps the booster among its settings, and makes a new one without trees where
	// a model has another. It says nothing of predictions.
	Dropout bool
}

// NumNodes returns the number of nodes of all trees. Like NumLeaves and NumCategorical it
// leaves out what the roots do not reach, which pruning leaves behind. The forest must have passed
// Check.
func (f *Forest) NumNodes() int { return f.count(func(*Node) bool { return true }) }

// NumLeaves returns the number of leaves of all trees.
func (f *Forest) NumLeaves() int { return f.count(func(n *Node) bool { return n.Test == Leaf }) }

// NumCategorical returns the number of tests of categories of all trees.
func (f *Forest) NumCategorical() int {
	return f.count(func(n *Node) bool { return n.Test.Categorical() })
}

func (f *Forest) count(counts func(*Node) bool) int {
	total := 0
	for i := range f.Trees {
		t := &f.Trees[i]
		t.walk(func(id int32) {
			if counts(&t.Nodes[id]) {
				total++
			}
		})
	}
	return total
}

// Bytes returns the memory of the trees, or of the linear model.
func (f *Forest) Bytes() int64 {
	var bytes uintptr
	for i := range f.Trees {
		t := &f.Trees[i]
		bytes += unsafe.Sizeof(*t) + uintptr(cap(t.Nodes))*unsafe.Sizeof(Node{}) + uintptr(cap(t.Values))*unsafe.Sizeof(Value{}) + 8*uintptr(cap(t.Categories))
	}
	if f.Linear != nil {
		bytes += 8 * uintptr(cap(f.Linear.Weights)+cap(f.Linear.Bias))
	}
	return int64(bytes)
}

// Depth returns the largest number of tests on a way from a root to a leaf. The
// forest must have passed Check.
func (f *Forest) Depth() int {
	deepest := 0
	var depth []int32
	for i := range f.Trees {
		t := &f.Trees[i]
		depth = append(depth[:0], make([]int32, len(t.Nodes))...)
		t.walk(func(id int32) {
			n := &t.Nodes[id]
			deepest = max(deepest, int(depth[id]))
			if n.Test != Leaf {
				depth[n.Yes], depth[n.No] = depth[id]+1, depth[id]+1
			}
		})
	}
	return deepest
}

// walk calls visit with every node that the root reaches, parents before children.
func (t *Tree) walk(visit func(id int32)) {
	stack := []int32{0}
	for len(stack) > 0 {
		id := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		visit(id)
		if n := &t.Nodes[id]; n.Test != Leaf {
			stack = append(stack, n.No, n.Yes)
		}
	}
}
