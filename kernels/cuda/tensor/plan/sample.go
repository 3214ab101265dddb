package plan

import (
	"cmp"
	"slices"

	"github.com/pce-engine/pce/kernels/ptx/tensor"
)

// placeTaken gives every vector its place in taken. Those whose units the host
// reads come first.
func (t *Tables) placeTaken() {
	p := t.Program
	t.Taken = make([]uint32, len(p.Vectors))
	order, watched := make([]int32, 0, len(p.Vectors)), make([]bool, len(p.Vectors))
	for _, in := range p.Watched() {
		order = append(order, p.Inputs[in].Vector)
		watched[p.Inputs[in].Vector] = true
	}
	for v := range p.Vectors {
		if !watched[v] {
			order = append(order, int32(v))
		}
	}
	for i, v := range order {
		t.Taken[v] = uint32(i * t.Rows)
	}
}

// sample orders the draws: sums and stored products by levels, the root first, then
// tabulated inputs.
func (s *Schedule) sample() {
	t := s.Tables
	p := t.Program
	order := make([]int, len(t.Sums))
	for i := range order {
		order[i] = i
	}
	depth := func(i int) int32 { return p.Vectors[t.vector(i)].Depth }
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(depth(b), depth(a)) })
	levels := runs(order, depth)
	list := []uint32{uint32(len(levels)), 0}
	at := uint32(len(levels) + 1)
	for _, l := range levels {
		list = append(list, at, at+uint32(len(l)))
		at += uint32(len(l))
	}
	for _, i := range order {
		list = append(list, uint32(i), uint32(t.vector(i)))
	}
	s.Sample = append(s.Sample, Work{Kernel: tensor.KernelSample, List: s.list(list), Rows: 1})
	var inputs []uint32
	for i := range p.Inputs {
		if p.Inputs[i].Codes > 0 {
			inputs = append(inputs, uint32(i), uint32(p.Inputs[i].Vector))
		}
	}
	s.Sample = s.each(s.Sample, tensor.KernelSampleLeaf, inputs, 2, tensor.SampleRows)
}
