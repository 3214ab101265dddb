package tensor

import (
	"github.com/pce-engine/pce/kernels/cuda"
	"github.com/pce-engine/pce/kernels/ptx/tensor"
)

// module is a set of kernels on the card.
type module struct {
	code      *cuda.Code
	functions map[string]function
}

// function is a kernel that is ready to launch.
type function struct {
	handle  cuda.Function
	threads int
	params  []string
}

// load compiles a variant's kernels.
func load(t *cuda.Thread, v tensor.Variant) (*module, error) {
	source, text := v.Printed()
	code, err := t.Load(text)
	if err != nil {
		return nil, err
	}
	m := &module{code, map[string]function{}}
	for _, k := range source.Kernels {
		f := function{threads: k.Threads}
		for _, p := range k.Params {
			f.params = append(f.params, p.Name)
		}
		if f.handle, err = t.Function(code, k.Name, k.Threads, dynamic(t.Card(), v, k.Name)); err != nil {
			_ = t.Unload(code) // the first error says what is wrong
			return nil, err
		}
		m.functions[k.Name] = f
	}
	return m, nil
}

// dynamic is the most dynamic shared memory that launches of a kernel ask for.
func dynamic(card cuda.Card, v tensor.Variant, kernel string) int {
	most, fixed := 0, 0
	switch kernel {
	case tensor.KernelForwardResident:
		most, fixed = v.ResidentBytes(tensor.ResidentColumns), v.ResidentShared()
	case tensor.KernelForwardWide:
		most = tensor.ForwardWideShared
	case tensor.KernelBackwardWide:
		most = tensor.WideShared
	case tensor.KernelMoveWide, tensor.KernelCountWide:
		most, fixed = tensor.PatchTotals(tensor.WidePatch), tensor.PatchShared(tensor.WidePatch)
	case tensor.KernelMove, tensor.KernelCount:
		if v.Patches() {
			most, fixed = tensor.PatchTotals(tensor.NarrowPatch), tensor.PatchShared(tensor.NarrowPatch)
		}
	}
	return min(most, card.SharedMemory-fixed)
}
