package tensor

import (
	"fmt"

	"github.com/pce-engine/pce/kernels/ptx"
)

// Variant is what a module of kernels is specialised to.
type Variant struct {
	Block int // S: 1, 2, 4, 8, 16 or 32
	// Mixed takes the factors of products with the precision of TF32. Blocks of less
	// than 16 units have no matrix instructions, and float32 in any case.
	Mixed bool
	// WideCodes says that codes have 32 bits, not 16.
	WideCodes bool
	// Queries says that there are the kernels of Posteriors and Maximise.
	Queries bool
	Major   int // compute capability
	Minor   int

	filled bool // of a kernel: an input whose cell is missing has its modes
	most   bool // filled, and a sum has the largest of its terms
}

// codeBytes is the size of a code.
func (v Variant) codeBytes() int {
	if v.WideCodes {
		return 4
	}
	return 2
}

// codeType is the type of a code in memory.
func (v Variant) codeType() ptx.Type {
	if v.WideCodes {
		return ptx.U32
	}
	return ptx.U16
}

// The kernels of a module, with the launch of each: blocks along x and y, and what
// list holds. T is RowTile.
const (
	// KernelLeaf evaluates function inputs: x = entries of list (inputs), y = ceil(rows/LeafRows).
	KernelLeaf = "leaf"
	// KernelForward evaluates groups of sums: x = entries of list (groups), y = ceil(rows/T).
	KernelForward = "forward"
	// KernelStored evaluates stored products: x = entries of list (sums), y = ceil(rows/T).
	KernelStored = "stored"
	// KernelBadRows lists the marked rows: one block.
	KernelBadRows = "badrows_list"
	// KernelLogForward evaluates marked rows in log space: x = any number; list holds
	// all vectors that keep values, operands before users, each as a pair of kind
	// (layers.VectorKind: 0 input, 1 sum, 2 stored) and index (of an input or a sum).
	KernelLogForward = "log_forward"
	// KernelLogBackward sends flows down in marked rows: launched and listed as KernelLogForward.
	KernelLogBackward = "log_backward"
	// KernelRoot writes log-likelihoods: x = ceil(rows/256); list holds the root (a sum).
	KernelRoot = "root"
	// KernelSample takes rows from the root down to the inputs: x = rows, or more. list
	// holds pairs of words. The first has the number of levels n; the next n the first
	// entry of a level and the one after its last, by pair; the entries are pairs of a
	// sum, or stored product, and its vector. Levels come before what they read,
	// and the root first. taken must be cleared.
	KernelSample = "sample"
	// KernelSampleLeaf then draws missing codes: x = entries of list (pairs: an input
	// with a table, and its vector), y = ceil(rows/SampleRows).
	KernelSampleLeaf = "sample_leaf"
	// KernelGather forms the flows of vectors that several elements read, of stored
	// products and of the root: x = entries of list (sums), y = ceil(rows/T).
	KernelGather = "gather"
	// KernelBackward sends flows down from sums: x = entries of list (columns), y = ceil(rows/T).
	KernelBackward = "backward"
	// KernelNorms writes the flow through each unit of owning sums, over all that share
	// their weights, rounded to the grid, to norms: x = entries of list (pairs: an
	// owner, and a run of 32 units: 0, 1, ...).
	KernelNorms = "norms_write"
	// KernelNormsCount adds the same to flownorms; listed as KernelNorms.
	KernelNormsCount = "norms_count"
	// KernelNormsUpdate writes flownorms as counts to norms, and clears them; listed as KernelNorms.
	KernelNormsUpdate = "norms_update"
	// KernelVisits writes the flow through each unit of owning sums, not rounded, to
	// visits; listed as KernelNorms.
	KernelVisits = "visits_write"
	// KernelLeafVisits does so for owning inputs, missing cells included; listed as KernelLeafMove.
	KernelLeafVisits = "leaf_visits"
	// KernelCoefficients turns norms into keep, gain and prior: x = ceil(VisitLen/256).
	KernelCoefficients = "coefficients"
	// KernelMove adds up parameter flows of tiles and moves the weights by them: x =
	// entries of list (tiles; patches of up to NarrowPatch where the variant has them).
	KernelMove = "move"
	// KernelCount adds up parameter flows and adds them to flows; listed as KernelMove.
	KernelCount = "count"
	// KernelUpdate moves the weights of tiles by flows, and clears these: x = entries of list (tiles).
	KernelUpdate = "update"
	// KernelUpdateAverages is KernelUpdate by averages, which it moves on by the flows;
	// so are the next two.
	KernelUpdateAverages     = "update_averages"
	KernelNormsAverages      = "norms_averages"
	KernelLeafUpdateAverages = "leaf_update_averages"
	// KernelNormalise makes the weights of each unit of a group of an owner add up to 1: x = entries of list (groups).
	KernelNormalise = "normalise"
	// KernelLeafMove gathers statistics of owning inputs and moves their parameters: x =
	// entries of list (pairs: the input, and a run of 32 units, or a LeafPart of it).
	KernelLeafMove = "leaf_move"
	// KernelLeafGather gathers the statistics of parts, before KernelLeafMove or
	// KernelLeafCount, which then do without; listed as KernelLeafMove.
	KernelLeafGather = "leaf_gather"
	// KernelLeafCount gathers statistics and adds them to flows; listed as KernelLeafMove.
	KernelLeafCount = "leaf_count"
	// KernelLeafUpdate moves parameters of inputs by flows, and clears these; listed as KernelLeafMove.
	KernelLeafUpdate = "leaf_update"
)

// RowTile is the number of rows that a block of threads of the kernels on sums does.
const RowTile = 64

// LeafRows is the number of rows that a block of threads of KernelLeaf does.
const LeafRows = 64

// kernel is a builder with the kernel's parameters.
type kernel struct {
	*ptx.Builder
	Variant
	args map[string]ptx.Value
}

// begin starts a kernel that takes the named parameters.
func (v Variant) begin(name string, threads, blocks int, args ...string) *kernel {
	switch {
	case v.most:
		name, args = Largest(name), append(args, ArgModes)
	case v.filled:
		name, args = Filled(name), append(args, ArgModes)
	}
	k := &kernel{ptx.NewKernel(name, threads, blocks), v, map[string]ptx.Value{}}
	for _, a := range args {
		k.args[a] = k.Pointer(a)
	}
	return k
}

// arg is the value of a parameter.
func (k *kernel) arg(name string) ptx.Value {
	v, ok := k.args[name]
	if !ok {
		panic(fmt.Sprintf("tensor: a kernel without parameter %s", name))
	}
	return v
}

// record returns the address of entry i, a U32, of a table whose records have size bytes.
func (k *kernel) record(table string, i ptx.Value, size int) ptx.Value {
	return k.At(k.arg(table), i, size)
}

// entry reads entry i of the launch's list.
func (k *kernel) entry(i ptx.Value) ptx.Value { return k.Load(ptx.U32, k.At(k.arg(ArgList), i, 4), 0) }

// control reads a field of the control words.
func (k *kernel) control(t ptx.Type, field int) ptx.Value {
	return k.Load(t, k.arg(ArgControl), field)
}

// codeAt returns the address of code i, a U32, of all columns.
func (k *kernel) codeAt(i ptx.Value) ptx.Value { return k.At(k.arg(ArgCodes), i, k.codeBytes()) }

// code reads the code of a row of a column, given by the address of its first code.
func (k *kernel) code(column, row ptx.Value) ptx.Value {
	return k.Load(k.codeType(), k.At(column, row, k.codeBytes()), 0)
}

// element returns the address of float i, a U64, from base, an argument, on.
func (k *kernel) element(arg string, i ptx.Value) ptx.Value { return k.At(k.arg(arg), i, 4) }
