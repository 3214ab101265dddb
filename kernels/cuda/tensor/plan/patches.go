package plan

import (
	"cmp"
	"math"
	"slices"

	"github.com/pce-engine/pce/kernels/ptx/tensor"
)

// region is a run of column blocks of an element, with all row blocks that read them,
// of an owner.
type region struct {
	step, steps     uint32 // row steps
	columns, stride uint32 // column blocks, and edge blocks from one to the next
	shift           uint32 // edge blocks from those of the row steps to the first column's
	members         []tensor.Member
	unit            uint32 // first unit in node space of the owner
}

// wide reports whether a region fills a narrow patch at least. Half of a wide one computes then what
// nothing needs, but its blocks of threads have twice the warps.
func (r *region) wide(size int) bool { return int(min(r.steps, r.columns))*size >= tensor.NarrowPatch }

// makePatches cuts the weights of the owners into what one block of threads adds up
// the flows of, and returns the numbers of the patches, those of many members first.
// Wide ones halve the traffic of sums with more than NarrowPatch units and columns, and are quicker where few have as many;
// they are taken where they are faster. The bits do not depend on it.
func (s *Schedule) makePatches() (narrow, wide []uint32) {
	t := s.Tables
	if v := (tensor.Variant{Block: t.Size}); !v.Patches() {
		return nil, nil
	}
	regions := t.regions()
	members := len(t.Members)
	cut := func(edge int) func() {
		return func() {
			t.Patches, t.Members = nil, t.Members[:members]
			narrow, wide = t.cutPatches(regions, edge)
			s.Move = s.addFlows(s.Move, tensor.KernelMove, tensor.KernelMoveWide, nil, narrow, wide)
		}
	}
	works, lists := len(s.Move), len(s.Lists)
	if t.widePatches(regions) {
		s.either(&s.Move, cut(tensor.WidePatch), cut(tensor.NarrowPatch))
	} else {
		cut(tensor.NarrowPatch)()
	}
	s.Move, s.Lists = s.Move[:works], s.Lists[:lists] // they come in their turn
	return narrow, wide
}

// widePatches reports whether some region is wide, and a block of threads may have the shared
// memory for all patches that are cut as wide ones then.
func (t *Tables) widePatches(regions []region) bool {
	shared, some := tensor.PatchShared(tensor.WidePatch), false
	for i := range regions {
		r := &regions[i]
		some = some || r.wide(t.Size)
		// One long side is enough for them, as cutPatches has it.
		if len(r.members) > 1 && int(max(r.steps, r.columns))*t.Size >= tensor.NarrowPatch {
			shared = tensor.PatchShared(tensor.WidePatch) + tensor.PatchTotals(tensor.WidePatch)
		}
	}
	return some && shared <= t.Shared
}

// cutPatches makes the patches of regions, those of wide ones with up to edge units and columns.
func (t *Tables) cutPatches(regions []region, edge int) (narrow, wide []uint32) {
	for i := range regions {
		r := &regions[i]
		most := uint32(tensor.NarrowPatch / t.Size)
		if r.wide(t.Size) {
			most = uint32(edge / t.Size)
		}
		for c := uint32(0); c < r.columns; c += most {
			member := uint32(len(t.Members))
			for _, m := range r.members {
				m.Column += c * uint32(t.Size)
				t.Members = append(t.Members, m)
			}
			for s := uint32(0); s < r.steps; s += most {
				p := tensor.Patch{
					Step: r.step + s, Steps: min(most, r.steps-s), Columns: min(most, r.columns-c), Stride: r.stride,
					Shift: r.shift + c*r.stride, Member: member, Members: uint32(len(r.members)), Unit: r.unit,
				}
				list := &narrow
				if edge > tensor.NarrowPatch && int(max(p.Steps, p.Columns))*t.Size >= tensor.NarrowPatch {
					list = &wide
				}
				*list = append(*list, uint32(len(t.Patches)))
				t.Patches = append(t.Patches, p)
			}
		}
	}
	for _, list := range [][]uint32{narrow, wide} {
		slices.SortStableFunc(list, func(a, b uint32) int { return cmp.Compare(t.Patches[b].Members, t.Patches[a].Members) })
	}
	return narrow, wide
}

// regions lists the weights of all owners, in their order.
func (t *Tables) regions() (list []region) {
	for i := range t.Program.Sums {
		if t.Program.Sums[i].Owner != int32(i) {
			continue
		}
		for _, c := range t.spans(i, math.MaxUint32) {
			list = t.appendShared(list, region{
				step: c.Step, steps: c.Steps, columns: c.Blocks, stride: c.Stride,
				members: []tensor.Member{{Sum: uint32(i), Element: c.Element, Column: c.Column}}, unit: t.Sums[i].Unit,
			})
		}
	}
	return list
}

// spans returns the columns of a sum, those side by side put together as long as they
// have at most that many blocks.
func (t *Tables) spans(sum int, most uint32) (list []tensor.Column) {
	s := &t.Sums[sum]
	for _, c := range t.Columns[s.Column : s.Column+s.Columns] {
		if n := len(list) - 1; n < 0 || list[n].Blocks+c.Blocks > most || !t.goesOn(&list[n], &c) {
			list = append(list, c)
		}
	}
	return list
}

// goesOn reports whether a column continues with another, which it then has too.
func (t *Tables) goesOn(c, next *tensor.Column) bool {
	if next.Element != c.Element || next.Column != c.Column+c.Blocks*uint32(t.Size) || next.Steps != c.Steps || c.Blocks == 1 ||
		next.Blocks > 1 && next.Stride != c.Stride {
		return false
	}
	for i := range c.Steps {
		a, b := t.RowSteps[c.Step+i], t.RowSteps[next.Step+i]
		if a.Row != b.Row || b.Param != a.Param+c.Blocks*c.Stride {
			return false
		}
	}
	c.Blocks += next.Blocks
	return true
}

// appendShared appends a region with all its members: block by block where these
// have its blocks in other places.
func (t *Tables) appendShared(list []region, r region) []region {
	if t.Owners[t.ownerOf[r.members[0].Sum]].Members == 1 {
		return append(list, r)
	}
	if r.members = t.membersOf(&r, 0, 0); t.alike(&r) {
		return append(list, r)
	}
	for i := range r.steps {
		for c := range r.columns {
			list = append(list, region{
				step: r.step + i, steps: 1, shift: c * r.stride, columns: 1, members: t.membersOf(&r, i, c), unit: r.unit,
			})
		}
	}
	return list
}

// membersOf returns the places of a region's block in the sums that share it.
func (t *Tables) membersOf(r *region, step, column uint32) []tensor.Member {
	return t.sharers[t.RowSteps[r.step+step].Param+column*r.stride]
}

// alike reports whether the members of a region's first block have all of its blocks,
// in the same order.
func (t *Tables) alike(r *region) bool {
	for i := range r.steps {
		for c := range r.columns {
			members := t.membersOf(r, i, c)
			if len(members) != len(r.members) {
				return false
			}
			for k, m := range r.members {
				m.Column += c * uint32(t.Size)
				if members[k] != m {
					return false
				}
			}
		}
	}
	return true
}
