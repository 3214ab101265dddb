package kernels

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// Module is a compiled program in a form that a device may be able to load.
// ModuleKind names the form, which decides what kind of Program it becomes.
type Module interface{ ModuleKind() string }

// Program is a module that a device has loaded. What it can do is the contract of
// its kind: CodeProgram, or Program of package kernels/tensor.
type Program interface {
	// Free gives back the program's memory on the device, once what was started has
	// ended. A program that is freed refuses all calls but Free.
	Free()
}

// CodeProgram is a program that computes each row of its outputs from the same row
// of its inputs, with code that was compiled for it.
type CodeProgram interface {
	Program
	// Run enqueues the program on the first rows rows and may return before it has
	// run. Calls take effect in the order they are made. The outputs, and any error,
	// are available after the next Read of one of its buffers, or after Sync.
	Run(ctx context.Context, rows int, in, out []Buffer) error
}

// HostProgram is a CodeProgram of a device that is the host: it runs on slices where they are, without buffers.
type HostProgram interface {
	CodeProgram
	// RunSlices computes rows lo to hi on the calling thread. in and out have a slice for each input and output of the
	// module, of its elements. It is safe for concurrent use, but for Free.
	RunSlices(ctx context.Context, lo, hi int, in, out []any) error
}

// Loader makes a program of a module of one kind on a device of type D.
type Loader[D Device] func(ctx context.Context, d D, m Module) (Program, error)

// Loaders are what a device makes programs with, by kind of module.
type Loaders[D Device] map[string]Loader[D]

// Load makes a program of a module with the loader for its kind.
func (l Loaders[D]) Load(ctx context.Context, d D, m Module) (Program, error) {
	load, ok := l[m.ModuleKind()]
	if !ok {
		return nil, fmt.Errorf("%w: %s has no loader for modules of kind %q, only for %q; open it with one",
			ErrDevice, d.Info().Name, m.ModuleKind(), slices.Sorted(maps.Keys(l)))
	}
	return load(ctx, d, m)
}

// LoadAs loads a module as a program of kind P. If the device makes another kind
// of program of it, the error matches ErrDevice.
func LoadAs[P Program](ctx context.Context, d Device, m Module) (P, error) {
	var none P
	p, err := d.Load(ctx, m)
	if err != nil {
		return none, err
	}
	if p, ok := p.(P); ok {
		return p, nil
	}
	p.Free()
	return none, fmt.Errorf("%w: %s loads a module of kind %q as %T, want %v; open the device with a loader of such programs",
		ErrDevice, d.Info().Name, m.ModuleKind(), p, reflect.TypeFor[P]())
}
