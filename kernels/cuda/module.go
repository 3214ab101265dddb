package cuda

import (
	"fmt"

	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/ptx/tensor"
)

// module is a set of kernels on the card.
type module struct{ functions map[string]function }

// function is a kernel that is ready to launch.
type function struct {
	function Function
	threads  int
	params   []string
}

// module compiles a variant's kernels, or returns them from the last time.
func (d *Device) module(v tensor.Variant) (*module, error) {
	if m, ok := d.modules[v]; ok {
		return m, nil
	}
	source, text := v.Printed()
	handle, err := d.drv.Load(text)
	if err != nil {
		return nil, err
	}
	m := &module{functions: map[string]function{}}
	for _, k := range source.Kernels {
		f, info, err := d.drv.Function(handle, k.Name, d.dynamic(v, k.Name))
		if err != nil {
			return nil, err
		}
		if info.MaxThreads < k.Threads {
			return nil, fmt.Errorf("%w: %s: kernel %s needs blocks of %d threads, the card allows %d", kernels.ErrDevice, d.name, k.Name, k.Threads, info.MaxThreads)
		}
		fn := function{function: f, threads: k.Threads}
		for _, p := range k.Params {
			fn.params = append(fn.params, p.Name)
		}
		m.functions[k.Name] = fn
	}
	d.modules[v] = m
	return m, nil
}

// dynamic is the most dynamic shared memory that launches of a kernel ask for.
func (d *Device) dynamic(v tensor.Variant, kernel string) int {
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
	return min(most, d.card.SharedMemory-fixed)
}
