package tensor

import "encoding/binary"

// Tables say what a kernel works on. They lie in the card's memory as words of
// 32 bits and do not change once a program is loaded. Every record has a fixed
// number of words; the constants named after its fields are byte offsets in it.
// Offsets that can pass 32 bits take two words, the low one first.
//
// S is the number of units of a block of the program and R the number of rows that
// a program was loaded for; a "row" is a data row of the launch.

// Factor is one vector that an element multiplies.
type Factor struct {
	Base uint64 // stored values: first float of the vector in val; a table: in params
	Kind uint32 // StoredFactor or TableFactor
	At   uint32 // stored values: first number of the vector in exp; a table: first code of its column
	Down uint32 // in the backward pass: DownNothing or DownRatio
	// Taken is the first number of the vector in taken.
	Taken uint32
	// Exps is the floats from a value to the exponent that it has of its own, a whole
	// number; 0 if it has none.
	Exps uint32
	// Modes is the word in modes where those of a table begin.
	Modes uint32
}

// Byte offsets in a Factor, and its size.
const (
	FactorBase  = 0
	FactorKind  = 8
	FactorAt    = 12
	FactorDown  = 16
	FactorTaken = 20
	FactorExps  = 24
	FactorModes = 28
	FactorSize  = 32
)

// The kinds of factors.
const (
	StoredFactor = 0
	TableFactor  = 1
)

// What becomes of the flow into a factor: nothing beyond what the element keeps, or
// flow over value goes to the ratios at the factor's base.
const (
	DownNothing = 0
	DownRatio   = 1
)

// Element is one product.
type Element struct {
	Kept   uint64 // first float of its flows in kept, [R, Width]; NotKept if nobody needs them
	Factor uint32 // its first factor in the table of factors
	Count  uint32 // factors
	Width  uint32 // units, padding included: the pitch of rows of its factors
	Units  uint32 // units that exist
	Formed uint64 // first float in val of its products under the exponents of its sum, [R, Width]; NotKept if they are formed again
	Wide   uint32 // 1 if products are to be multiplied with an exponent for each, whatever their number of factors
}

// NotKept is the offset of what is not kept.
const NotKept = ^uint64(0)

// Byte offsets in an Element, and its size.
const (
	ElementKept   = 0
	ElementFactor = 8
	ElementCount  = 12
	ElementWidth  = 16
	ElementUnits  = 20
	ElementFormed = 24
	ElementWide   = 32
	ElementSize   = 40
)

// Sum is a vector of weighted sums, or a stored product, which has one element and
// no groups.
type Sum struct {
	Val       uint64 // first float in val and in ratio, [R, Width]
	Exp       uint32 // first number in exp, [R]
	Width     uint32
	Units     uint32
	Element   uint32 // its first element; those of a sum follow each other
	Elements  uint32 // number of elements
	Cols      uint32 // widths of all elements, added up
	Group     uint32 // its first forward group
	Groups    uint32
	Column    uint32 // its first column group
	Columns   uint32
	User      uint32 // its first record in the table of uses: elements whose flows reach it; for gathered vectors and for counting norms
	Users     uint32
	Root      uint32 // 1 for the root: a row's flow of 1 enters unit 0
	Unit      uint32 // first unit of the vector in node space
	OwnerUnit uint32 // first unit in node space of the sum whose weights it shares, or its own
	Taken     uint32 // first number in taken, [R]
}

// Byte offsets in a Sum, and its size.
const (
	SumVal       = 0
	SumExp       = 8
	SumWidth     = 12
	SumUnits     = 16
	SumElement   = 20
	SumElements  = 24
	SumCols      = 28
	SumGroup     = 32
	SumGroups    = 36
	SumColumn    = 40
	SumColumns   = 44
	SumUser      = 48
	SumUsers     = 52
	SumRoot      = 56
	SumUnit      = 60
	SumOwnerUnit = 64
	SumTaken     = 68
	SumSize      = 80
)

// Group is a run of row blocks of a sum that read the same column blocks and whose
// edge blocks follow each other: what one block of threads multiplies. Row block i
// of a step has edge block Step.Param + i; the weight of output unit Row+o (o < S·Blocks)
// and column c of the step is params[Step.Param·S·S + o·S + c].
type Group struct {
	Sum    uint32
	Row    uint32 // first output unit
	Blocks uint32 // row blocks
	Step   uint32 // its first step
	Steps  uint32
}

// Byte offsets in a Group, and its size.
const (
	GroupSum    = 0
	GroupRow    = 4
	GroupBlocks = 8
	GroupStep   = 12
	GroupSteps  = 16
	GroupSize   = 32
)

// Step is a column block that a group reads.
type Step struct {
	Element uint32
	Column  uint32 // first unit in the element
	Param   uint32 // first edge block
	At      uint32 // its first unit among those of all elements of the sum
}

// Byte offsets in a Step, and its size.
const (
	StepElement = 0
	StepColumn  = 4
	StepParam   = 8
	StepAt      = 12
	StepSize    = 16
)

// Column is a run of column blocks of one element that are read by the same row
// blocks: where flows go down. Column block j of row step i has edge block
// RowStep.Param + j·Stride; the weight of row RowStep.Row+o (o < S) and unit Column+S·j+c is
// params[(RowStep.Param+j·Stride)·S·S + o·S + c].
type Column struct {
	Sum     uint32
	Element uint32
	Column  uint32 // first unit in the element
	Blocks  uint32 // column blocks
	Step    uint32 // its first row step
	Steps   uint32
	Stride  uint32
}

// Byte offsets in a Column, and its size.
const (
	ColumnSum     = 0
	ColumnElement = 4
	ColumnColumn  = 8
	ColumnBlocks  = 12
	ColumnStep    = 16
	ColumnSteps   = 20
	ColumnStride  = 24
	ColumnSize    = 32
)

// RowStep is a row block that a column reads.
type RowStep struct {
	Row   uint32 // first output unit
	Param uint32
}

// Byte offsets in a RowStep, and its size.
const (
	RowStepRow   = 0
	RowStepParam = 4
	RowStepSize  = 8
)

// Tile is a run of edge blocks of an owner, in one column of blocks: what one block
// of threads sums the parameter flows of. The weight of unit Row+o and column c is
// params[Param·S·S + o·S + c].
type Tile struct {
	Row     uint32 // first unit of the owner
	Blocks  uint32 // row blocks
	Param   uint32
	Unit    uint32 // node-space unit of the owner's unit Row
	Member  uint32 // its first member: the owner and the sums that share its weights
	Members uint32
}

// Byte offsets in a Tile, and its size.
const (
	TileRow     = 0
	TileBlocks  = 4
	TileParam   = 8
	TileUnit    = 12
	TileMember  = 16
	TileMembers = 20
	TileSize    = 32
)

// Patch is a run of column blocks of an element and row blocks that read them: what
// one block of threads sums the parameter flows of by matrix instructions. With the Row and
// the Param of its row step i, the weight of unit Row+o (o < S) and column S·j+c (c < S) is
// params[(Param+Shift+j·Stride)·S·S + o·S + c].
type Patch struct {
	Step    uint32 // its first row step
	Steps   uint32
	Columns uint32 // column blocks
	Stride  uint32
	Member  uint32 // its first member: the owner and the sums that share its weights
	Members uint32
	Unit    uint32 // first unit in node space of the owner
	Shift   uint32
}

// Byte offsets in a Patch, and its size.
const (
	PatchStep    = 0
	PatchSteps   = 4
	PatchColumns = 8
	PatchStride  = 12
	PatchMember  = 16
	PatchMembers = 20
	PatchUnit    = 24
	PatchShift   = 28
	PatchSize    = 32
)

// Member is the place of a tile's column block, or a patch's first, in one of the sums that share it.
type Member struct {
	Sum     uint32
	Element uint32
	Column  uint32 // first unit in the element
}

// Byte offsets in a Member, and its size.
const (
	MemberSum     = 0
	MemberElement = 4
	MemberColumn  = 8
	MemberSize    = 16
)

// Owner is a sum that owns weights.
type Owner struct {
	Unit    uint32 // first unit in node space
	Width   uint32
	Member  uint32 // first of the sums that share its weights, itself first, in the table ArgOwnerSums
	Members uint32
}

// Byte offsets in an Owner, and its size.
const (
	OwnerUnit    = 0
	OwnerWidth   = 4
	OwnerMember  = 8
	OwnerMembers = 12
	OwnerSize    = 16
)

// Input is a leaf.
type Input struct {
	Table    uint64 // of codes: offset in params of [Codes+1, Width]; the last row, for missing cells, is ones
	Params   uint64 // offset in params of [NumParams, Width], or NoParams
	Val      uint64 // a function: first float in val
	Counts   uint64 // more than SharedCodes codes: first float of [Codes, Width] in counts
	Exp      uint32 // a function: first number in exp
	Codes    uint32 // 0: a function of a value
	Width    uint32
	Units    uint32
	Family   uint32 // one of the families
	At       uint32 // first code or value of its column
	Use      uint32 // of an owner: first of its uses and those of the inputs that share with it
	Uses     uint32
	Unit     uint32 // first unit in node space
	Stats    uint32 // number of statistics
	Constant uint32 // first of its family's constants in the table of float64 constants
	Residue  uint32 // of an owning function: its place among the averages' residues, less FlowLen
	Scales   uint32 // first of its statistics' scales, float64 powers of two, in the same table
	Taken    uint32 // first number in taken, [R]
	Exps     uint32 // as a Factor's, of its table or of its values
	Modes    uint32 // the word in modes where those of its table, or of a function's units, begin
}

// SharedCodes is the most codes of a leaf whose counts fit in shared memory.
const SharedCodes = 256

// NoParams is the offset of parameters that do not exist.
const NoParams = ^uint64(0)

// Byte offsets in an Input, and its size.
const (
	InputTable    = 0
	InputParams   = 8
	InputVal      = 16
	InputCounts   = 24
	InputExp      = 32
	InputCodes    = 36
	InputWidth    = 40
	InputUnits    = 44
	InputFamily   = 48
	InputAt       = 52
	InputUse      = 56
	InputUses     = 60
	InputUnit     = 64
	InputStats    = 68
	InputConstant = 72
	InputResidue  = 76
	InputScales   = 80
	InputTaken    = 84
	InputExps     = 88
	InputModes    = 92
	InputSize     = 96
)

// The families of leaves, with what their layers.Family's Constants are.
const (
	FamilyMass      = 0 // categorical, Bernoulli: the table holds the parameters; none
	FamilyGaussian  = 1 // floor of the standard deviation
	FamilyPoisson   = 2 // least and largest rate
	FamilyBinomial  = 3 // trials, least and largest p
	FamilyLogistic  = 4 // floor of the scale
	FamilyHistogram = 5 // edges, one more than bins
	FamilyIndicator = 6 // no parameters, never updated; none
	FamilyLogNormal = 7 // floor of the standard deviation of the logarithm
	// FamilyRealHistogram has its statistics, one for each bin, in no kernel: it is not trained.
	FamilyRealHistogram = 8 // floor of the density; breaks, one more than bins
)

// Use says where flows come from: an element that keeps its flows.
type Use struct {
	Kept  uint64 // [R, Width] floats in kept
	Width uint32 // the pitch of its rows
	At    uint32 // for inputs: first code or value of the column
}

// Byte offsets in a Use, and its size.
const (
	UseKept  = 0
	UseWidth = 8
	UseAt    = 12
	UseSize  = 16
)

// Variable is a column, with the inputs that read it.
type Variable struct {
	Codes  uint32 // 0: a column of values
	At     uint32 // its first code or value
	Leaf   uint32 // the first of its inputs in the table of leaves
	Leaves uint32
}

// Byte offsets in a Variable, and its size.
const (
	VariableCodes = 0
	VariableAt    = 4
	VariableLeaf  = 8
	VariableSize  = 16
)

// Leaf is an input of a column, as the kernels of posteriors read it.
type Leaf struct {
	Table uint64 // as an Input's
	Use   uint32 // its first record in the table of uses: elements whose flows reach it
	Uses  uint32
	Width uint32
	Units uint32
	Exps  uint32 // as an Input's
}

// Byte offsets in a Leaf, and its size.
const (
	LeafTable = 0
	LeafUse   = 8
	LeafWidth = 16
	LeafUnits = 20
	LeafExps  = 24
	LeafSize  = 32
)

// NotChosen is the offset of a column that a call does not ask for.
const NotChosen = ^uint32(0)

// ModesHead is the number of words before the modes of a table, of which the first is the
// code of a missing cell. Behind the modes of the units, float32 numbers [Width], are
// the first codes that have them, [Width].
const ModesHead = 4

// Control is written by the host before every launch.
//
//	rows  u32  data rows of the launch
//	step, pseudocount  f64
//	scale  f64  of the flows in an update: 1, or Step/(Rows·weight) for Anemone
//	average, take  f32  shares of the averages and of the flows in the new averages
//	grid, fine  f32  the unit of counts, and the count from which float32 is coarser (grid·2^23)
//	pitch  u32  of ArgScratch: at least the columns and the units of every vector in the list of KernelLogForward, a multiple of 4
//	vectors  u32  entries of the list of the kernels in log space
//	units  u32  units of node space, VisitLen
//	draws  u64  kernels/tensor.Draws of the launch's first row
const (
	ControlRows        = 0
	ControlStep        = 8
	ControlPseudocount = 16
	ControlScale       = 24
	ControlAverage     = 32
	ControlTake        = 36
	ControlGrid        = 40
	ControlFine        = 44
	ControlPitch       = 48
	ControlVectors     = 52
	ControlUnits       = 56
	ControlDraws       = 64
	ControlSize        = 72
)

// The names of parameters, the same in all kernels; a kernel declares those that
// it uses, and the host passes them by name. All are addresses.
const (
	ArgControl   = "control"
	ArgParams    = "params"    // f32 [NumParams]
	ArgCodes     = "codes"     // u16, or u32 of a variant with wide codes, [coded columns, R]
	ArgValues    = "values"    // f32 [value columns, R]
	ArgVal       = "val"       // f32, mantissas
	ArgExp       = "exp"       // s32 [vectors, R], exponents of two
	ArgLimits    = "limits"    // f32 [vectors, R], what outputs must reach, of sums that KernelFit does
	ArgOperands  = "operands"  // f32, operands of the sums that KernelFit has done last
	ArgRatio     = "ratio"     // f32, flow over value, where val has the value; flows themselves in rows in log space
	ArgKept      = "kept"      // f32, flows of elements
	ArgBad       = "bad"       // u32 [R], 1 for a row whose values float32 mantissas cannot hold
	ArgBadRows   = "badrows"   // u32 [1+R], their number, then the rows in order
	ArgTaken     = "taken"     // u32 [vectors, R], the unit that a row takes as it is sampled, from 1; 0 for none
	ArgLL        = "ll"        // f64 [R]
	ArgNorms     = "norms"     // f32 [VisitLen], flow through each unit of an owner
	ArgKeep      = "keep"      // f32 [VisitLen]
	ArgGain      = "gain"      // f32 [VisitLen]
	ArgPrior     = "prior"     // f32 [VisitLen]
	ArgFans      = "fans"      // u32 [VisitLen], weights of a unit that are not 0
	ArgFlows     = "flows"     // s64 [FlowLen], in the parameters' places
	ArgFlowNorms = "flownorms" // s64 [VisitLen], the last part of flows
	ArgAverages  = "averages"  // f32 [AverageLen], in the places of flows
	ArgAverNorms = "avernorms" // f32 [VisitLen], the part of averages in the place of flownorms
	ArgResidues  = "residues"  // f32, the last part of averages
	ArgVisits    = "visits"    // f32 [VisitLen]
	ArgModes     = "modes"     // largest values of units: of functions f64, natural logs; of tables as ModesHead says
	ArgOffsets   = "offsets"   // u32, floats in a row of out; then for each column its first one there, or NotChosen
	ArgOut       = "out"       // f32, probabilities of codes and units, [R, floats of a row]
	ArgScratch   = "scratch"   // of rows in log space: LogScratch·pitch words for each block of KernelLogForward
	ArgCounts    = "counts"    // f32, of leaves with large tables
	ArgTotals    = "totals"    // f32 [2^shift, VisitLen], sums of the counts of parts
	ArgFactors   = "factors"   // tables
	ArgElements  = "elements"
	ArgSums      = "sums"
	ArgGroups    = "groups"
	ArgSteps     = "steps"
	ArgColumns   = "columns"
	ArgRowSteps  = "rowsteps"
	ArgTiles     = "tiles"
	ArgPatches   = "patches"
	ArgMembers   = "members"
	ArgOwners    = "owners"
	ArgOwnerSums = "ownersums" // u32, sums
	ArgInputs    = "inputs"
	ArgUses      = "uses"
	ArgVariables = "variables"
	ArgLeaves    = "leaves"
	ArgConstants = "constants" // f64
	ArgList      = "list"      // u32, what the blocks of this launch work on: indices into a table
)

// Words encodes a record, a struct of uint32 and uint64 fields in the order of its
// offsets, in size bytes.
func Words(record any, size int) []byte {
	b := make([]byte, 0, size)
	b, err := binary.Append(b, binary.LittleEndian, record)
	if err != nil || len(b) > size {
		panic("tensor: a record that does not fit its size")
	}
	return append(b, make([]byte, size-len(b))...)
}
