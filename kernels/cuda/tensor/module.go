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
	heads, text := v.Printed()
	code, err := t.Load(text)
	if err != nil {
		return nil, err
	}
	m := &module{code, map[string]function{}}
	for _, k := range heads {
		f := function{threads: k.Threads}
		for _, p := range k.Params {
			f.params = append(f.params, p.Name)
		}
		if f.handle, err = t.Function(code, k.Name, k.Threads, v.DynamicShared(k.Name, t.Card().SharedMemory)); err != nil {
			_ = t.Unload(code) // the first error says what is wrong
			return nil, err
		}
		m.functions[k.Name] = f
	}
	return m, nil
}
