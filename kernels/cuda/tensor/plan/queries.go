package plan

import (
	"slices"

	"github.com/pce-engine/pce/kernels/ptx/tensor"
)

// makeVariables describes the columns, with the inputs that read them: functions in the
// order of the program's Functions.
func (t *Tables) makeVariables() {
	p := t.Program
	readers := make([][]int, len(p.Columns))
	for i := range p.Inputs {
		readers[p.Inputs[i].Column] = append(readers[p.Inputs[i].Column], i)
	}
	for c := range p.Columns {
		t.Variables = append(t.Variables, tensor.Variable{
			Codes: uint32(p.Columns[c].Codes), At: uint32(int(p.Columns[c].Slot) * t.Rows),
			Leaf: uint32(len(t.Leaves)), Leaves: uint32(len(readers[c])),
		})
		for _, i := range readers[c] {
			in := &t.Inputs[i]
			leaf := tensor.Leaf{Table: in.Table, Width: in.Width, Units: in.Units, Exps: in.Exps}
			leaf.Use, leaf.Uses = t.use(p.Inputs[i].Vector, in.At)
			t.Leaves = append(t.Leaves, leaf)
		}
	}
}

// posteriors orders the posteriors of columns, given the root, a sum: each launch goes
// over all columns, of which blocks of threads leave those out that a call has not chosen.
func (s *Schedule) posteriors(root uint32) {
	codes, units := []uint32{0, root}, []uint32{0, root}
	for i, v := range s.Tables.Variables {
		if v.Codes == 0 {
			units = append(units, uint32(i), 0)
		}
		for c := uint32(0); c < v.Codes; c += tensor.PosteriorCodes {
			codes = append(codes, uint32(i), c)
		}
	}
	for _, w := range []struct {
		kernel  string
		entries []uint32
	}{{tensor.KernelPosterior, codes}, {tensor.KernelPosteriorUnits, units}} {
		if n := len(w.entries)/2 - 1; n > 0 {
			s.Posteriors = append(s.Posteriors, Work{Kernel: w.kernel, List: s.list(w.entries), Blocks: n, Rows: tensor.RowTile})
		}
	}
}

// Offsets returns what kernels read of a call's choice of columns: the length of a row, and
// for each column its offset there, as offsets says of those chosen, in their order.
func (t *Tables) Offsets(chosen []int32, offsets []int) []uint32 {
	list := slices.Repeat([]uint32{tensor.NotChosen}, 1+len(t.Variables))
	list[0] = uint32(offsets[len(chosen)])
	for i, c := range chosen {
		list[1+c] = uint32(offsets[i])
	}
	return list
}
