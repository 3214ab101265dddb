package tensor_test

import (
	"sync"
	"testing"

	"github.com/pce-engine/pce/kernels/ptx"
	"github.com/pce-engine/pce/kernels/ptx/tensor"
)

// kernelSet is a variant's kernels of one purpose, as tests start them.
type kernelSet struct {
	variant tensor.Variant
	of      string // a name in modules
}

// modules builds the kernels of a purpose.
var modules = map[string]func(tensor.Variant) *ptx.Module{
	"sums":   tensor.Variant.SumModule,
	"leaves": tensor.Variant.LeafModule,
}

// printedKernel is a kernel without its body, and the text of a module that has it alone.
type printedKernel struct {
	head ptx.Kernel
	text []byte
}

// printedSets holds the kernels that printed has built: kernelSet → func() map[string]printedKernel.
// Building a set takes longer than most launches of tests, which start one kernel
// hundreds of times.
var printedSets sync.Map

// printed returns a kernel, without its body, and the text of a module that has it
// alone, which the emulator verifies when it loads it. Callers change neither.
func printed(t *testing.T, set kernelSet, name string) (*ptx.Kernel, []byte) {
	t.Helper()
	once, _ := printedSets.LoadOrStore(set, sync.OnceValue(func() map[string]printedKernel {
		kernels := map[string]printedKernel{}
		m := modules[set.of](set.variant)
		for _, k := range m.Kernels {
			one := *m
			one.Kernels = []*ptx.Kernel{k}
			p := printedKernel{*k, one.Text()}
			p.head.Body = nil
			kernels[k.Name] = p
		}
		return kernels
	}))
	k, ok := once.(func() map[string]printedKernel)()[name]
	if !ok {
		t.Fatalf("no kernel %s among those of %s", name, set.of)
	}
	return &k.head, k.text
}
