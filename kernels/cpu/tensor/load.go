package tensor

import (
	"context"
	"fmt"
	"maps"

	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/cpu"
	"github.com/pce-engine/pce/layers"
)

// Open opens the CPU as a device that loads tensor programs, and whatever o has
// loaders for.
func Open(o cpu.Options) (*cpu.Device, error) {
	loaders := cpu.Loaders{layers.ModuleKind: Load}
	maps.Copy(loaders, o.Loaders)
	o.Loaders = loaders
	return cpu.Open(o)
}

// Load is the loader of tensor programs: it plans the program for the device's
// threads and kernels, and makes its workspace.
func Load(_ context.Context, d *cpu.Device, m kernels.Module) (kernels.Program, error) {
	mod, ok := m.(layers.Module)
	if !ok {
		return nil, fmt.Errorf("%w: cpu: module of kind %q is a %T, want %T", kernels.ErrDevice, m.ModuleKind(), m, mod)
	}
	if err := checkRows(mod.Rows); err != nil {
		return nil, err
	}
	x := newExecutor(mod, d)
	p := &program{exec: x, bytes: x.sizes().memory(x).total()}
	d.Count(p.bytes)
	return p, nil
}

// checkRows bounds the rows that a module is loaded for.
func checkRows(rows int) error {
	if rows < 1 || rows > 1<<20 {
		return fmt.Errorf("%w: cpu: module for %d rows, want 1..%d", kernels.ErrDevice, rows, 1<<20)
	}
	return nil
}
