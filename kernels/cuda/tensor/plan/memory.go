package plan

import (
	"encoding/binary"

	"github.com/pce-engine/pce/kernels/ptx/tensor"
	"github.com/pce-engine/pce/layers"
)

// Memory is what a loaded module takes on the card in addition to its buffers, in bytes.
type Memory struct {
	Values  int64 // of the vectors that keep some, with exponents
	Flows   int64 // for training and queries: ratios, and flows of the products that need theirs later
	Scratch int64 // rows in log space, coefficients
	Program int64 // tables
}

// MemoryOf returns the memory that Load would take for a module on a card of 132 multiprocessors.
// With another number, other tiles may be faster, which changes it by some percent. It allocates nothing
// that grows with rows or parameters.
func MemoryOf(m layers.Module) (Memory, error) {
	t, err := NewTables(m)
	if err != nil {
		return Memory{}, err
	}
	schedule := NewSchedule(t, m.Train)
	var plan Memory
	for _, s := range schedule.Spaces() {
		*s.counts(&plan) += s.Bytes
	}
	for _, table := range schedule.Encode() {
		plan.Program += int64(len(table.Data))
	}
	return plan, nil
}

// Space is the memory behind an argument that kernels write.
type Space struct {
	Arg   string
	Bytes int64
}

// Spaces lists the workspace.
func (s *Schedule) Spaces() []Space {
	t := s.Tables
	rows := int64(t.Rows)
	list := []Space{
		{tensor.ArgControl, tensor.ControlSize},
		{tensor.ArgVal, 4 * (t.valLen + s.formedLen)},
		{tensor.ArgExp, 4 * rows * int64(len(t.Program.Vectors))},
		{tensor.ArgLimits, 4 * s.limitsLen()},
		{tensor.ArgOperands, 4 * s.operandsLen},
		{tensor.ArgBad, 4 * rows},
		{tensor.ArgBadRows, 4 * (1 + rows)},
		{tensor.ArgTaken, 4 * rows * int64(len(t.Program.Vectors))},
		{tensor.ArgScratch, 4 * LogBlocks * tensor.LogScratch * int64(t.Pitch)},
	}
	if s.flows() {
		list = append(list, Space{tensor.ArgRatio, 4 * t.valLen}, Space{tensor.ArgKept, 4 * t.keptLen})
	}
	if t.Queries {
		list = append(list, Space{tensor.ArgOffsets, 4 * int64(1+len(t.Variables))},
			Space{tensor.ArgModes, 4 * t.modesLen}, Space{tensor.ArgLL, 8 * rows})
	}
	if s.train {
		units := 4 * t.Program.VisitLen()
		list = append(list, Space{tensor.ArgNorms, units}, Space{tensor.ArgKeep, units}, Space{tensor.ArgGain, units},
			Space{tensor.ArgPrior, units}, Space{tensor.ArgFans, units}, Space{tensor.ArgCounts, 4 * t.countsLen})
		if shift := t.partShift(); shift > 0 {
			list = append(list, Space{tensor.ArgTotals, units << shift})
		}
	}
	return list
}

// limitsLen is the length of what KernelFit writes.
func (s *Schedule) limitsLen() int64 {
	if s.operandsLen == 0 {
		return 0
	}
	return int64(s.Tables.Rows) * int64(len(s.Tables.Program.Vectors))
}

// counts returns the part of a plan that a space belongs to.
func (s Space) counts(m *Memory) *int64 {
	switch s.Arg {
	case tensor.ArgVal, tensor.ArgExp:
		return &m.Values
	case tensor.ArgRatio, tensor.ArgKept:
		return &m.Flows
	}
	return &m.Scratch
}

// Table is the contents of an argument that kernels only read.
type Table struct {
	Arg  string
	Data []byte
}

// Encode lists the tables as the card reads them.
func (s *Schedule) Encode() []Table {
	t := s.Tables
	return []Table{
		{tensor.ArgFactors, records(t.Factors, tensor.FactorSize)},
		{tensor.ArgElements, records(t.Elements, tensor.ElementSize)},
		{tensor.ArgSums, records(t.Sums, tensor.SumSize)},
		{tensor.ArgGroups, records(t.Groups, tensor.GroupSize)},
		{tensor.ArgSteps, records(t.Steps, tensor.StepSize)},
		{tensor.ArgColumns, records(t.Columns, tensor.ColumnSize)},
		{tensor.ArgRowSteps, records(t.RowSteps, tensor.RowStepSize)},
		{tensor.ArgTiles, records(t.Tiles, tensor.TileSize)},
		{tensor.ArgPatches, records(t.Patches, tensor.PatchSize)},
		{tensor.ArgMembers, records(t.Members, tensor.MemberSize)},
		{tensor.ArgOwners, records(t.Owners, tensor.OwnerSize)},
		{tensor.ArgOwnerSums, words(t.OwnerSums)},
		{tensor.ArgInputs, records(t.Inputs, tensor.InputSize)},
		{tensor.ArgUses, records(t.Uses, tensor.UseSize)},
		{tensor.ArgVariables, records(t.Variables, tensor.VariableSize)},
		{tensor.ArgLeaves, records(t.Leaves, tensor.LeafSize)},
		{tensor.ArgConstants, words(t.Constants)},
		{tensor.ArgList, words(s.Lists)},
	}
}

// records turns records of size bytes into bytes.
func records[T any](list []T, size int) []byte {
	b := make([]byte, 0, len(list)*size)
	for i := range list {
		b = append(b, tensor.Words(&list[i], size)...)
	}
	return b
}

// words turns a list of numbers into bytes.
func words[T uint32 | float64](list []T) []byte { return tensor.Words(list, binary.Size(list)) }
