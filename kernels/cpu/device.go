package cpu

import (
	"context"
	"maps"
	"runtime"

	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/cpu/micro"
)

// Options choose how the device runs.
type Options struct {
	Threads int        // 0: as many as the Go runtime may use
	Set     *micro.Set // nil: the fastest, or the one that PCE_CPU names
	// Loaders make the programs of the device, by kind of module: those of
	// package kernels/cpu/tensor and others. Without one the device has buffers
	// alone.
	Loaders Loaders
}

// Loaders make programs of modules on the device, by kind.
type Loaders = kernels.Loaders[*Device]

// Device is the CPU as a kernels.Device.
type Device struct {
	threads int
	set     *micro.Set
	loaders Loaders
	inUse   int64 // bytes
}

var (
	_ kernels.Device = (*Device)(nil)
	_ kernels.Usage  = (*Device)(nil)
)

// Open returns the CPU device.
func Open(o Options) (*Device, error) {
	d := &Device{threads: o.Threads, set: o.Set, loaders: maps.Clone(o.Loaders)}
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
	return d.loaders.Load(ctx, d, m)
}

// Threads returns how many threads a program may use at a time.
func (d *Device) Threads() int { return d.threads }

// Set returns the kernels that programs use.
func (d *Device) Set() *micro.Set { return d.set }

// InUse returns the bytes of the buffers and programs that were not freed.
func (d *Device) InUse() int64 { return d.inUse }

// Count adds to the bytes in use what a program has allocated, or takes off what it
// has dropped.
func (d *Device) Count(bytes int64) { d.inUse += bytes }

// Close releases nothing: buffers are garbage-collected.
func (d *Device) Close() error { return nil }

// Sync returns at once: calls are synchronous.
func (d *Device) Sync(context.Context) error { return nil }
