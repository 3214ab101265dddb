package plan

import (
	"slices"

	"github.com/pce-engine/pce/kernels/ptx"
	"github.com/pce-engine/pce/kernels/ptx/tensor"
	"github.com/pce-engine/pce/layers"
)

// Variant is the set of kernels that a module runs on. Queries are computed in float32.
func Variant(m layers.Module, major, minor int) tensor.Variant {
	return tensor.Variant{
		Block: m.Program.BlockSize, Mixed: m.Mixed && !m.Queries && m.Program.BlockSize >= 16, WideCodes: m.Program.WideCodes(),
		Queries: m.Queries, Major: major, Minor: minor,
	}
}

// Compile returns the kernels that a module's program launches on a card of a
// compute capability.
func Compile(m layers.Module, major, minor int) (*ptx.Module, error) {
	t, err := NewTables(m)
	if err != nil {
		return nil, err
	}
	s := NewSchedule(t, m.Train)
	asked := map[string]bool{}
	for _, part := range [][]Work{s.Forward, s.Sample, s.Backward, s.Posteriors, s.Bound, s.Maximise, s.Choose, s.Visits, s.Move, s.Count, s.Update, s.Anemone} {
		for _, w := range part {
			asked[w.Kernel] = true
		}
	}
	out := Variant(m, major, minor).Module()
	out.Kernels = slices.DeleteFunc(out.Kernels, func(k *ptx.Kernel) bool { return !asked[k.Name] })
	return out, nil
}
