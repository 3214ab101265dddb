package plan

import "github.com/pce-engine/pce/kernels/ptx/tensor"

// mostShared is the shared memory that a block of threads may have on cards of
// capability 8.0.
const mostShared = 163 << 10

// spread is how many blocks of threads a launch should have, to keep a card busy.
const spread = 256

// resident reports whether a sum is evaluated with its operands in shared memory:
// whether it has several groups, which read all of its columns in order.
func (t *Tables) resident(sum int) bool {
	s := &t.Sums[sum]
	v := tensor.Variant{Block: t.Size}
	if !v.Resident() || s.Groups < tensor.ResidentGroups || s.Cols > tensor.ResidentColumns ||
		v.ResidentShared()+v.ResidentBytes(int(s.Cols)) > t.Shared {
		return false
	}
	for _, g := range t.Groups[s.Group : s.Group+s.Groups] {
		if g.Steps*uint32(t.Size) != s.Cols {
			return false
		}
		element, column := s.Element, uint32(0)
		for _, step := range t.Steps[g.Step : g.Step+g.Steps] {
			if column == t.Elements[element].Width {
				element, column = element+1, 0
			}
			if step.Element != element || step.Column != column {
				return false
			}
			column += uint32(t.Size)
		}
	}
	return true
}

// addResident adds the launch of sums with their operands in shared memory. A block
// of threads takes as many groups as leave enough blocks.
func (s *Schedule) addResident(sums []int) {
	t := s.Tables
	groups, columns := 0, 0
	for _, i := range sums {
		groups += int(t.Sums[i].Groups)
		columns = max(columns, int(t.Sums[i].Cols))
	}
	tiles := (t.Rows + tensor.RowTile - 1) / tensor.RowTile
	most := max(1, groups*tiles/spread/tensor.ResidentGroups) * tensor.ResidentGroups
	var runs []uint32
	for _, i := range sums {
		s.keep(i)
		sum := &t.Sums[i]
		for g := 0; g < int(sum.Groups); g += most {
			runs = append(runs, sum.Group+uint32(g), uint32(min(most, int(sum.Groups)-g)))
		}
	}
	n := len(s.Forward)
	s.Forward = s.each(s.Forward, tensor.KernelForwardResident, runs, 2, tensor.RowTile)
	for i := range s.Forward[n:] {
		s.Forward[n+i].Shared = tensor.Variant{Block: t.Size}.ResidentBytes(columns)
	}
}
