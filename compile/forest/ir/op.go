package ir

import (
	"errors"

	"github.com/pce-engine/pce/compile/forest/hir"
	"github.com/pce-engine/pce/compile/forest/schedule"
)

// ErrLower means that a schedule cannot be honoured for a forest, or not on a CPU.
var ErrLower = errors.New("ir: cannot be lowered")

// Value is the number of a value of a function.
type Value int

// Kind is an operation.
type Kind uint8

// The operations of the MIR, and behind Buffers those of the LIR. The comment gives operands and results.
const (
	PredictEnsemble  Kind = iota // (ensemble, rows) with a body
	Ensemble                     // () ensemble
	For                          // () index, with a body: see Op.Loop
	CacheRows                    // (index): the rows of a tile are brought near
	CacheTrees                   // (index): the trees of a tile are brought near
	Kernel                       // with a body, that each lane runs for its row
	GetTree                      // (ensemble, index) tree: Op.N after the index, at most the last one
	GetTreeClassID               // (tree) class
	WalkDecisionTree             // (trees, row) leaves, with the steps as its body
	GetRoot                      // (tree) node
	TraverseTreeTile             // (tree, node, row) the node behind the tile
	IsLeaf                       // (tree, node) pred
	Choose                       // (pred, node, node) node: the first where the pred holds
	Repeat                       // (nodes) nodes: the body at most Op.N times, while not all of Op.Until hold
	GetLeafValue                 // (tree, node) numbers
	Within                       // (index) pred: Op.N after the index is before the end of the loop
	Reduce                       // (class, numbers) or (class, numbers, pred): adds to the sums of the row, where the pred holds
	Buffers                      // lists the buffers
	LoadRoot                     // (index) the root's index
	LoadClass                    // (index) class
	LoadFeatureIndex             // (slot) feature and flags of a node; of a leaf's first slot: its number's complement
	LoadThreshold                // (slot) threshold
	LoadSet                      // (slot) where the node's set of categories starts
	LoadCell                     // (row, feature) cell
	Compare                      // (cell, threshold, feature) or (cell, threshold, feature, set) pred
	LoadShape                    // (index) shape of a tile
	Exit                         // (pred) or (shape, preds): the exit of a tile
	Slot                         // (index, tree) where the tile's nodes are; of reorg the tree's place is wanted
	Add                          // (index) the index and Op.N
	KeepLeaf                     // (index of tree, feature): keeps the leaf of the tree
	LoadKept                     // (index of tree) what was kept
	LoadOrder                    // (place in the model) index of the tree
	Child                        // (index, tree, exit) the index of the tile behind an exit
	LoadChild                    // (index) the index of the first child
	Negative                     // (feature) pred: of a leaf
	LoadLeafValue                // (feature) numbers
	kinds
)

var kindNames = [kinds]string{
	"predictEnsemble", "ensemble", "for", "cacheRows", "cacheTrees", "kernel", "getTree", "getTreeClassId", "walkDecisionTree", "getRoot",
	"traverseTreeTile", "isLeaf", "choose", "repeat", "getLeafValue", "isWithin", "reduce", "buffers", "loadRoot", "loadClass", "loadFeatureIndex",
	"loadThreshold", "loadSet", "loadCell", "compare", "loadShape", "exit", "slot", "add", "keepLeaf", "loadKept", "loadOrder", "child", "loadChild", "isNegative", "loadLeafValue",
}

// String returns the operation's name in texts.
func (k Kind) String() string { return kindNames[k] }

// Op is an operation.
type Op struct {
	Kind Kind
	Out  []Value
	Args []Value
	N    int
	// Loop is what the schedule says about a For. Its iterations are First to Last of the trees if Known is set, else
	// some of these: those that the loops around it leave.
	Loop        *schedule.Loop
	First, Last int
	Known       bool
	// Of walks: steps of a turn, first steps without a look for leaves, the most steps, and the least.
	Unroll, Peel, Depth, Shallowest int
	// Carried, Next and Until of a Repeat: the nodes in its body, those of the next turn, and the preds that all
	// have to hold at its end. The body runs once at least. Next of a walk: the leaves that its body ends with.
	Carried, Next, Until []Value
	Body                 []*Op
}

// Func is a forest as operations.
type Func struct {
	Ensemble *hir.Ensemble
	Nest     *schedule.Nest
	Body     []*Op
	Values   int
	layout   Representation // of the LIR; nil for the MIR
	buffers  []Buffer
	// Of the LIR: keeps says that kernels keep the leaf of each tree and add none, leaves that these are the result; else
	// they are added at the end, in the order of the model.
	keeps, leaves bool
	added         *Op // the loop over rows that adds them, if one does
}

func (f *Func) value() Value {
	f.Values++
	return Value(f.Values - 1)
}

// block appends operations.
type block struct {
	f   *Func
	ops []*Op
}

// add appends an operation with a number of results.
func (b *block) add(o Op, results int) *Op {
	for range results {
		o.Out = append(o.Out, b.f.value())
	}
	b.ops = append(b.ops, &o)
	return &o
}

// one appends an operation with one result.
func (b *block) one(k Kind, n int, args ...Value) Value {
	return b.add(Op{Kind: k, N: n, Args: args}, 1).Out[0]
}
