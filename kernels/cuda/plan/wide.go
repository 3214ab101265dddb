package plan

import (
	"slices"

	"github.com/pce-engine/pce/kernels/ptx/tensor"
)

// busy reports whether so many blocks of threads of the kernels on wide tiles, one at a
// time on a multiprocessor, are better than four times as many on narrow ones: on half of
// the multiprocessors they take as long for their products, and half of the traffic.
func (t *Tables) busy(blocks int) bool { return 2*blocks >= t.Processors }

// addBackward adds the launches that send the flows of a level of sums down: columns of
// more than half of WideColumns in wide ones, where these are enough. The bits do not
// depend on it.
func (s *Schedule) addBackward(t *Tables, sums []int) {
	var narrow, wide []uint32
	tiles := (t.Rows + tensor.WideRows - 1) / tensor.WideRows
	if v := (tensor.Variant{Block: t.Size}); v.Patches() && tensor.WideShared <= t.Shared {
		first := len(t.Columns)
		for _, i := range sums {
			at := t.Sums[i].Column
			for _, c := range t.spans(i, uint32(tensor.WideColumns/t.Size)) {
				n := t.pieces(at, c.Blocks)
				if int(c.Blocks)*t.Size > outputs {
					wide = append(wide, uint32(len(t.Columns)))
					t.Columns = append(t.Columns, c)
				} else {
					narrow = appendRange(narrow, at, n)
				}
				at += n
			}
		}
		if !t.busy(len(wide) * tiles) {
			t.Columns, narrow, wide = t.Columns[:first], nil, nil
		}
	}
	if wide == nil {
		narrow = nil
		for _, i := range sums {
			narrow = appendRange(narrow, t.Sums[i].Column, t.Sums[i].Columns)
		}
	}
	n := len(s.Backward)
	s.Backward = s.each(s.Backward, tensor.KernelBackwardWide, wide, 1, tensor.WideRows)
	if len(s.Backward) > n {
		s.Backward[n].Shared = tensor.WideShared
	}
	s.Backward = s.each(s.Backward, tensor.KernelBackward, narrow, 1, tensor.RowTile)
}

// addForward adds the launches that evaluate a level of sums whose operands do not stay
// in shared memory: sums of more than half of WideColumns units in wide groups, where these
// are enough. The bits do not depend on it.
func (s *Schedule) addForward(t *Tables, sums []int) {
	var fits, narrow, wide []uint32
	tiles := (t.Rows + tensor.WideRows - 1) / tensor.WideRows
	if v := (tensor.Variant{Block: t.Size}); v.Patches() && tensor.ForwardWideShared <= t.Shared {
		first := len(t.Groups)
		for _, i := range sums {
			sum := &t.Sums[i]
			list := t.wideGroups(sum)
			if !slices.ContainsFunc(list, func(g tensor.Group) bool { return int(g.Blocks)*t.Size > outputs }) {
				narrow = appendRange(narrow, sum.Group, sum.Groups)
				continue
			}
			fits = append(fits, uint32(i))
			wide = appendRange(wide, uint32(len(t.Groups)), uint32(len(list)))
			t.Groups = append(t.Groups, list...)
		}
		if !t.busy(len(wide) * tiles) {
			t.Groups, fits, narrow, wide = t.Groups[:first], nil, nil, nil
		}
	}
	if wide == nil {
		narrow = nil
		for _, i := range sums {
			narrow = appendRange(narrow, t.Sums[i].Group, t.Sums[i].Groups)
		}
	}
	s.Forward = s.each(s.Forward, tensor.KernelFit, fits, 1, tensor.RowTile)
	n := len(s.Forward)
	s.Forward = s.each(s.Forward, tensor.KernelForwardWide, wide, 1, tensor.WideRows)
	if len(s.Forward) > n {
		s.Forward[n].Shared = tensor.ForwardWideShared
	}
	s.Forward = s.each(s.Forward, tensor.KernelForward, narrow, 1, tensor.RowTile)
}

// appendRange appends n numbers from first on.
func appendRange(list []uint32, first, n uint32) []uint32 {
	for i := range n {
		list = append(list, first+i)
	}
	return list
}

// wideGroups returns the groups of a sum, those that follow each other put together as
// long as they have at most WideColumns units.
func (t *Tables) wideGroups(sum *tensor.Sum) (list []tensor.Group) {
	for _, g := range t.Groups[sum.Group : sum.Group+sum.Groups] {
		if n := len(list) - 1; n < 0 || int(list[n].Blocks+g.Blocks)*t.Size > tensor.WideColumns || !t.continues(&list[n], &g) {
			list = append(list, g)
		} else {
			list[n].Blocks += g.Blocks
		}
	}
	return list
}

// continues reports whether a group reads what the one before reads, in edge blocks
// that follow.
func (t *Tables) continues(g, next *tensor.Group) bool {
	if next.Row != g.Row+g.Blocks*uint32(t.Size) || next.Steps != g.Steps {
		return false
	}
	for i := range g.Steps {
		a, b := t.Steps[g.Step+i], t.Steps[next.Step+i]
		a.Param += g.Blocks
		if a != b {
			return false
		}
	}
	return true
}

// pieces is how many columns from one on have so many blocks.
func (t *Tables) pieces(column, blocks uint32) (n uint32) {
	for had := uint32(0); had < blocks; n++ {
		had += t.Columns[column+n].Blocks
	}
	return n
}
