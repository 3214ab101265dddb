package plan

import (
	"slices"

	"github.com/pce-engine/pce/kernels/ptx/tensor"
)

// either adds launches to a list: those on wide tiles that wide adds, or if the model of a
// card says that these take longer, those that others adds. It reports whether they are
// the wide ones; what wide has done to the tables otherwise is the caller's to undo. A card
// of one multiprocessor, as tests have it, always gets the wide ones.
func (s *Schedule) either(works *[]Work, wide, others func()) bool {
	if s.Tables.Processors == 1 {
		wide()
		return true
	}
	n, lists, operands, formed := len(*works), len(s.Lists), s.operandsLen, s.formedLen
	others()
	most := s.seconds((*works)[n:])
	*works, s.Lists = (*works)[:n], s.Lists[:lists]
	wide()
	if s.seconds((*works)[n:]) <= most {
		return true
	}
	*works, s.Lists, s.operandsLen, s.formedLen = (*works)[:n], s.Lists[:lists], operands, formed
	others()
	return false
}

// seconds is the time that launches take one after another, by the model of a card with
// as many multiprocessors as the program is for.
func (s *Schedule) seconds(works []Work) (t float64) {
	r := rates["h200"]
	r.Processors = s.Tables.Processors
	if s.card == nil {
		s.card = newOccupancy(tensor.Variant{Block: s.Tables.Size, Mixed: s.Tables.Mixed, Major: 9})
	}
	read := reads{}
	for _, w := range works {
		t += s.cost(w, s.Tables.Rows, r, s.card, read).Expected
	}
	return t
}

// addBackward adds the launches that send the flows of a level of sums down: columns of
// more than half of WideColumns in wide ones, where these are faster. The bits do not
// depend on it.
func (s *Schedule) addBackward(sums []int) {
	t := s.Tables
	var all, narrow, wide []uint32
	first := len(t.Columns)
	possible := tensor.Variant{Block: t.Size}.Patches() && tensor.WideShared <= t.Shared
	for _, i := range sums {
		at := t.Sums[i].Column
		all = appendRange(all, at, t.Sums[i].Columns)
		if !possible {
			continue
		}
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
	add := func(wide, narrow []uint32) {
		n := len(s.Backward)
		s.Backward = s.each(s.Backward, tensor.KernelBackwardWide, wide, 1, tensor.WideRows)
		if len(s.Backward) > n {
			s.Backward[n].Shared = tensor.WideShared
		}
		s.Backward = s.each(s.Backward, tensor.KernelBackward, narrow, 1, tensor.RowTile)
	}
	if len(wide) == 0 {
		add(nil, all)
		return
	}
	if !s.either(&s.Backward, func() { add(wide, narrow) }, func() { add(nil, all) }) {
		t.Columns = t.Columns[:first]
	}
}

// mostOperands is how many operands KernelFit writes at most before KernelForwardWide
// reads them, unless those of one sum are more: about what the second-level cache holds.
const mostOperands = 16 << 20

// mostTiles is how many blocks of threads a grid has along y at most.
const mostTiles = 1<<16 - 1

// addForward adds the launches that evaluate a level of sums whose operands do not stay
// in shared memory: sums of more than half of WideColumns units in wide groups, where these
// are faster. The bits do not depend on it.
func (s *Schedule) addForward(sums []int) {
	t := s.Tables
	first := len(t.Groups)
	var narrow, wide []int
	possible := tensor.Variant{Block: t.Size}.Patches() && tensor.ForwardWideShared <= t.Shared && t.Rows <= mostTiles*tensor.FitRows
	for _, i := range sums {
		if possible {
			list := t.wideGroups(&t.Sums[i])
			if slices.ContainsFunc(list, func(g tensor.Group) bool { return int(g.Blocks)*t.Size > outputs }) {
				wide = append(wide, i)
				t.Groups = append(t.Groups, list...)
				continue
			}
		}
		narrow = append(narrow, i)
	}
	add := func(sums []int) {
		var groups []uint32
		for _, i := range sums {
			groups = appendRange(groups, t.Sums[i].Group, t.Sums[i].Groups)
		}
		s.Forward = s.each(s.Forward, tensor.KernelForward, groups, 1, tensor.RowTile)
	}
	if len(wide) == 0 {
		add(sums)
		return
	}
	if !s.either(&s.Forward, func() {
		s.addForwardWide(wide, t.Groups[first:], uint32(first))
		add(narrow)
	}, func() { add(sums) }) {
		s.unkeep(wide)
		t.Groups = t.Groups[:first]
	}
}

// addForwardWide adds the launches of sums in wide groups, which stand from one on in
// the table, in their order: as many sums at a time as mostOperands has space for.
func (s *Schedule) addForwardWide(sums []int, groups []tensor.Group, group uint32) {
	t := s.Tables
	var fits, wide []uint32 // pairs, with the place of the operands
	place := int64(0)
	flush := func() {
		s.Forward = s.each(s.Forward, tensor.KernelFit, fits, 2, tensor.FitRows)
		n := len(s.Forward)
		s.Forward = s.each(s.Forward, tensor.KernelForwardWide, wide, 2, tensor.WideRows)
		for i := range s.Forward[n:] {
			s.Forward[n+i].Shared = tensor.ForwardWideShared
		}
		fits, wide, place = nil, nil, 0
	}
	for _, i := range sums {
		s.keep(i)
		n := int64(t.Rows) * int64(t.Sums[i].Cols)
		if place > 0 && place+n > mostOperands {
			flush()
		}
		fits = append(fits, uint32(i), uint32(place))
		for len(groups) > 0 && groups[0].Sum == uint32(i) {
			wide = append(wide, group, uint32(place))
			groups, group = groups[1:], group+1
		}
		place += n
		s.operandsLen = max(s.operandsLen, place)
	}
	flush()
}

// keep has the products of many factors kept that the kernels of a sum form in the
// forward pass, for the backward pass and the parameter flows.
func (s *Schedule) keep(sum int) {
	if !s.train {
		return
	}
	t := s.Tables
	first := t.Sums[sum].Element
	for e := first; e < first+t.Sums[sum].Elements; e++ {
		if x := &t.Elements[e]; x.Wide == 1 {
			x.Formed = uint64(t.valLen + s.formedLen)
			s.formedLen += t.span(int(x.Width))
		}
	}
}

// unkeep takes back what keep has done for sums.
func (s *Schedule) unkeep(sums []int) {
	t := s.Tables
	for _, i := range sums {
		first := t.Sums[i].Element
		for e := first; e < first+t.Sums[i].Elements; e++ {
			t.Elements[e].Formed = tensor.NotKept
		}
	}
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

// pieces is how many columns from one on have that many blocks.
func (t *Tables) pieces(column, blocks uint32) (n uint32) {
	for had := uint32(0); had < blocks; n++ {
		had += t.Columns[column+n].Blocks
	}
	return n
}
