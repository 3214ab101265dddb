package plan

import (
	"slices"

	"github.com/pce-engine/pce/kernels/ptx/tensor"
	"github.com/pce-engine/pce/layers"
)

// makeVariables describes the columns, with the inputs that read them: functions in the
// order of the program's Functions. Where columns have rows of evidence, the units of columns stand
// behind them, by column, without readers for one that has no such rows.
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
	if !slices.ContainsFunc(p.Columns, func(c layers.Column) bool { return c.Soft > 0 }) {
		return
	}
	for c := range p.Columns {
		units := tensor.Variable{}
		if p.Columns[c].Soft > 0 {
			units.Leaf, units.Leaves = t.Variables[c].Leaf, t.Variables[c].Leaves
		}
		t.Variables = append(t.Variables, units)
	}
}

// placeModes gives inputs their places in modes: the densities of functions first, one
// function's after the other's, then tables, once for all inputs that share one.
func (t *Tables) placeModes() {
	p := t.Program
	t.modes = make([]uint32, len(p.Inputs))
	if !t.Queries {
		return
	}
	for _, i := range p.Functions() {
		t.modes[i] = uint32(t.modesLen)
		t.modesLen += 2 * int64(p.Vectors[p.Inputs[i].Vector].Units)
	}
	for i := range p.Inputs {
		in := &p.Inputs[i]
		if in.Codes > 0 && in.Owner == int32(i) {
			t.modesLen = (t.modesLen + 3) &^ 3
			t.modes[i] = uint32(t.modesLen)
			t.modesLen += tensor.ModesHead + 2*int64(p.Width(in.Vector))
		}
		if in.Codes > 0 { // owners stand before those that share with them
			t.modes[i] = t.modes[in.Owner]
		}
	}
}

// posteriors orders the posteriors of columns, given the root, a sum: each launch goes
// over all variables, of which blocks of threads leave those out that a call has not chosen.
func (s *Schedule) posteriors(root uint32) {
	codes, units := []uint32{0, root}, []uint32{0, root}
	for i, v := range s.Tables.Variables {
		if v.Codes == 0 && v.Leaves > 0 {
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

// maxima orders passes up with modes, given the functions, and the stored products and sums
// of each level, and the choice after that: as Forward and Sample by other kernels. last is
// how a pass ends.
func (s *Schedule) maxima(functions []uint32, stored [][]uint32, sums [][]int, last []Work) {
	t := s.Tables
	var owners []uint32
	for i := range t.Inputs {
		if in := &t.Program.Inputs[i]; in.Codes > 0 && in.Owner == int32(i) {
			for run := range (t.Inputs[i].Width + 31) / 32 {
				owners = append(owners, uint32(i), run)
			}
		}
	}
	var up []Work
	up = s.each(up, tensor.KernelModes, owners, 2, 0)
	up = s.each(up, tensor.Filled(tensor.KernelLeaf), functions, 1, tensor.LeafRows)
	for d := range sums {
		up = s.each(up, tensor.Filled(tensor.KernelStored), stored[d], 1, tensor.RowTile)
		var groups []uint32
		for _, i := range sums[d] {
			groups = appendRange(groups, t.Sums[i].Group, t.Sums[i].Groups)
		}
		up = s.each(up, tensor.KernelForward, groups, 1, tensor.RowTile)
	}
	up = append(up, last...)
	s.Bound, s.Maximise, s.Choose = slices.Clone(up), slices.Clone(up), slices.Clone(s.Sample)
	rename := func(work []Work, name func(kernel string) string, kernels ...string) {
		for i := range work {
			if slices.Contains(kernels, work[i].Kernel) {
				work[i].Kernel = name(work[i].Kernel)
			}
		}
	}
	rename(s.Bound, tensor.Filled, tensor.KernelForward, tensor.KernelLogForward)
	rename(s.Maximise, tensor.Largest, tensor.KernelForward, tensor.KernelLogForward)
	rename(s.Choose, tensor.Largest, tensor.KernelSample)
	rename(s.Choose, func(string) string { return tensor.KernelModeCodes }, tensor.KernelSampleLeaf)
}
