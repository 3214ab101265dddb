package cpu

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"

	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/cpu/micro"
	"github.com/pce-engine/pce/layers"
)

// Options choose how the device runs.
type Options struct {
	Threads int        // 0: as many as the Go runtime may use
	Set     *micro.Set // nil: the fastest, or the one that PCE_CPU names
	// Loaders are loaders of further kinds of modules, by kind. Tensor programs
	// are loaded without one.
	Loaders map[string]Loader
}

// Loader makes a program of a module of one kind on the device.
type Loader func(ctx context.Context, d *Device, m kernels.Module) (kernels.Program, error)

// Device is the CPU as a kernels.Device.
type Device struct {
	threads int
	set     *micro.Set
	loaders map[string]Loader
}

var _ kernels.Device = (*Device)(nil)

// Open returns the CPU device.
func Open(o Options) (*Device, error) {
	d := &Device{threads: o.Threads, set: o.Set, loaders: map[string]Loader{layers.ModuleKind: loadTensor}}
	maps.Copy(d.loaders, o.Loaders)
	if d.threads <= 0 {
		d.threads = runtime.GOMAXPROCS(0)
	}
	if d.set == nil {
		set, err := micro.Select()
		if err != nil {
			return nil, err
		}
		d.set = set
	}
	return d, nil
}

// Info describes the device.
func (d *Device) Info() kernels.Info {
	return kernels.Info{Name: "cpu", KernelPath: d.set.Name, Threads: d.threads}
}

// Load makes a program of a module.
func (d *Device) Load(ctx context.Context, m kernels.Module) (kernels.Program, error) {
	load, ok := d.loaders[m.ModuleKind()]
	if !ok {
		return nil, fmt.Errorf("%w: cpu: module of kind %q; want one of %q", kernels.ErrDevice, m.ModuleKind(), slices.Sorted(maps.Keys(d.loaders)))
	}
	return load(ctx, d, m)
}

// Close releases nothing: buffers are garbage-collected.
func (d *Device) Close() error { return nil }

// Sync returns at once: calls are synchronous.
func (d *Device) Sync(context.Context) error { return nil }
