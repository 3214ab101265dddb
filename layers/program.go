package layers

import (
	"math"
	"math/rand/v2"
)

// Program is a compiled circuit: what to run, in order. It is pure data,
// immutable once Validate has returned nil; equal graphs and options give
// equal programs.
type Program struct {
	NumVars   int
	BlockSize int // units of a block: a power of two, at most 32

	Columns []Column // what a batch holds
	Vectors []Vector // node space, children before parents
	Inputs  []Input
	Sums    []Sum
	Stored  []Stored

	// Elements are the operands of the sums: element e multiplies the vectors
	// Factors[Elements[e].FactorLo:Elements[e].FactorHi]. Each element belongs
	// to one sum or one stored product.
	Elements []Element
	Factors  []int32

	Layers []Layer // by depth, deepest operands first

	Root int32 // the vector whose unit 0 is the distribution

	NodeBlocks, ElementBlocks, ParamBlocks int32 // sizes of the spaces, padding slots included
	NumParams                              int64 // floats of the parameter buffer: edge blocks, then the inputs' areas
}

// MaxCodes is the largest finite domain of a column, as of package dataset.
const MaxCodes = 1 << 24

// Column is one column of a batch as a program reads it: codes 0..Codes-1 with
// Codes for a missing cell, or, with Codes = 0, float32 values with NaN for a
// missing cell. Codes are all narrow or, where WideCodes says so, all wide. Slot
// counts the columns of its own sort.
//
// A program that takes evidence about cells which are not known exactly has rooms for it:
// code Codes+1+i, with i below Soft, reads row i of the evidence, which the caller of the
// program writes behind the row for missing cells in each table of the column.
type Column struct {
	Var   int32
	Codes int32
	Slot  int32
	Soft  int32 // rows of evidence, 0 for none
	// Beside says that the column has one code, which is not used, and the evidence about
	// the values of Var, whose column has no tables: it has an input beside each input
	// of that one, and both are factors of the same elements.
	Beside bool
}

// VectorKind says what fills a vector.
type VectorKind uint8

// The kinds of vectors; Def indexes Inputs, Sums or Stored.
const (
	InputVector VectorKind = iota
	SumVector
	StoredVector
)

// Vector is a run of blocks in node space: the units of one node.
type Vector struct {
	Kind  VectorKind
	Def   int32
	First int32 // first block
	Count int32 // blocks
	Units int32 // units that exist; the rest of the last block is padding
	Depth int32 // inputs 0, others one more than their deepest operand
}

// Family is what a device must know of a leaf distribution. Parameters p are
// those of one unit.
type Family interface {
	Name() string
	NumParams() int
	NumStats() int
	Codes() int
	Check(x float64) error
	LogProb(p []float64, x float64) float64
	Mode(p []float64) float64
	Moments(p []float64) (mean, variance float64)
	Stats(x float64, t []float64)
	MStep(p, sum []float64, weight, pseudocount, step float64)
	Sample(p []float64, rng *rand.Rand) float64
	// Constants are the fixed settings, as numbers, in the order that devices expect.
	Constants() []float64
}

// Input is a vector of leaf distributions over one variable.
type Input struct {
	Vector int32
	Column int32
	Family Family
	// Codes is the size of the domain of a tabulated leaf, 0 for a function.
	Codes int32
	// Table is the offset in the parameter buffer of [TableRows, Count·BlockSize]
	// probabilities: those of the codes, then a row for a missing cell, which
	// reads 1, then rows of evidence. -1 for functions.
	Table int64
	// Params is the offset of [NumParams, Count·BlockSize] parameters, or -1
	// where the table holds them.
	Params int64
	// Exps is the offset of the exponents of the table's numbers, whole numbers in
	// the table's shape: a probability is the table's number times 2^exponent. -1
	// where float32 holds the probabilities as they are.
	Exps int64
	// Owner is the input whose areas this one shares; its own index if none.
	Owner int32
	// Zeros says that the table may hold exact zeros.
	Zeros bool
}

// Sum is a vector of weighted sums over the units of its elements.
type Sum struct {
	Vector         int32
	ElemLo, ElemHi int32
	Param          int32 // first edge block
	NumBlocks      int32 // edge blocks
	Owner          int32 // the sum whose weights this one shares; its own index if none
	// Fan is the number of weights of each unit.
	Fan []int32
	// Zeros says that listed edge blocks hold structural zeros in addition to padding.
	Zeros bool
}

// Stored is a vector that keeps a product.
type Stored struct {
	Vector  int32
	Element int32
}

// Element is a run of blocks in element space: one product.
type Element struct {
	First, Count       int32
	FactorLo, FactorHi int32
}

// Layer holds the partitions of all sums of one depth.
type Layer struct {
	Depth    int32
	Products []ProductPartition
	Sums     []SumPartition
	Elements []ElementPartition
}

// ProductPartition lists element blocks with at most MaxFactors factors.
//
// With P = len(ElementIDs) and F = MaxFactors:
//
//	ElementIDs [P]     element blocks
//	FactorIDs  [P, F]  node blocks; 0 pads a short row
type ProductPartition struct {
	MaxFactors int
	ElementIDs []int32
	FactorIDs  []int32
}

// SumPartition is the part of a layer whose node blocks have at most
// MaxChildren child blocks, so that one kernel launch covers all of them.
//
// With P = len(NodeIDs) and C = MaxChildren:
//
//	NodeIDs  [P]     node blocks (nids in PyJuice)
//	ChildIDs [P, C]  element blocks; 0 pads a short row (cids)
//	ParamIDs [P, C]  edge blocks; 0 pads a short row (pids); equal across tied edges
type SumPartition struct {
	MaxChildren int
	NodeIDs     []int32
	ChildIDs    []int32
	ParamIDs    []int32
}

// ElementPartition is the backward twin of SumPartition: element blocks with at
// most MaxParents parent blocks.
//
// With P = len(ElementIDs) and C = MaxParents:
//
//	ElementIDs     [P]     element blocks (chids)
//	ParentIDs      [P, C]  node blocks; 0 pads a short row (parids)
//	ParentParamIDs [P, C]  edge blocks; 0 pads a short row (parpids)
type ElementPartition struct {
	MaxParents     int
	ElementIDs     []int32
	ParentIDs      []int32
	ParentParamIDs []int32
}

// Width returns the units of a vector with its padding.
func (p *Program) Width(v int32) int { return int(p.Vectors[v].Count) * p.BlockSize }

// ElementFactors returns the vectors that element e multiplies.
func (p *Program) ElementFactors(e int32) []int32 {
	return p.Factors[p.Elements[e].FactorLo:p.Elements[e].FactorHi]
}

// TableRows is the number of rows of the table of an input with codes.
func (p *Program) TableRows(in *Input) int64 {
	return int64(in.Codes) + 1 + int64(p.Columns[in.Column].Soft)
}

// Tabulated reports whether a vector is an input that is read from its table
// and needs no stored values.
func (p *Program) Tabulated(v int32) bool {
	x := &p.Vectors[v]
	return x.Kind == InputVector && p.Inputs[x.Def].Codes > 0
}

// WideCodes reports whether the codes of a batch have 32 bits, not 16: whether a
// column has too many for 16, of which a missing cell and each row of evidence take one more.
func (p *Program) WideCodes() bool {
	for _, c := range p.Columns {
		if c.Codes+c.Soft > math.MaxUint16 {
			return true
		}
	}
	return false
}

// Functions returns the inputs without a table, in order.
func (p *Program) Functions() (inputs []int32) {
	for i := range p.Inputs {
		if p.Inputs[i].Codes == 0 {
			inputs = append(inputs, int32(i))
		}
	}
	return inputs
}

// ParamOffset returns the offset of an edge block in the parameter buffer.
func (p *Program) ParamOffset(block int32) int64 {
	return int64(block) * int64(p.BlockSize) * int64(p.BlockSize)
}

// TypicalUnits returns the largest number of units such that half of the edge
// blocks, or more, belong to sums of at least that many.
func (p *Program) TypicalUnits() int {
	blocks := map[int]int{} // units → edge blocks
	total := 0
	for i := range p.Sums {
		s := &p.Sums[i]
		blocks[int(p.Vectors[s.Vector].Units)] += int(s.NumBlocks)
		total += int(s.NumBlocks)
	}
	best := 0
	for units := range blocks {
		n := 0
		for other, b := range blocks {
			if other >= units {
				n += b
			}
		}
		if 2*n >= total {
			best = max(best, units)
		}
	}
	return best
}
