package cuda

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"runtime"
	"sync"

	"github.com/pce-engine/pce/kernels"
)

// Loaders make programs of modules on the device, by kind.
type Loaders = kernels.Loaders[*Device]

// Device is a GPU, real or emulated, as a kernels.Device. It knows nothing of what
// programs compute: its loaders make them, and their calls go through Do, one at a time.
type Device struct {
	name    string
	loaders Loaders
	mu      sync.Mutex // guards all below
	closed  bool
	thread  Thread
}

var _ kernels.Device = (*Device)(nil)

// Open opens a device under a name, "cuda:0" or "emulator", that loads the kinds of
// modules that it has loaders for.
func Open(name string, open func() (Driver, error), loaders Loaders) (*Device, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	d := &Device{name: name, loaders: maps.Clone(loaders)}
	if err := d.thread.open(name, open); err != nil {
		return nil, err
	}
	return d, nil
}

// Do runs a job that calls the driver and returns its error. It is for programs. The job
// has the caller's thread, which the driver's context is made current in: a thread of the
// driver's own would have to be woken for each call, which takes longer than most of them.
func (d *Device) Do(job func(t *Thread) error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return fmt.Errorf("%w: %s: the device is closed", kernels.ErrDevice, d.name)
	}
	return d.enter(job)
}

// enter runs a job with the driver's context in the caller's thread, to which it is locked
// meanwhile.
func (d *Device) enter(job func(t *Thread) error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := d.thread.drv.Enter(); err != nil {
		return err
	}
	return job(&d.thread)
}

// Info describes the device.
func (d *Device) Info() kernels.Info {
	card := d.thread.card
	return kernels.Info{Name: d.name, Card: card.Name, KernelPath: card.Architecture(), Async: true}
}

// Close gives the card back, with every buffer and program. It may be called more
// than once.
func (d *Device) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil
	}
	d.closed = true
	return d.enter(func(t *Thread) error { return cmp.Or(t.late, t.drv.Close()) })
}

// Sync waits for all calls and copies.
func (d *Device) Sync(context.Context) error {
	return d.Do((*Thread).Settle)
}

// Load makes a program of a module.
func (d *Device) Load(ctx context.Context, m kernels.Module) (kernels.Program, error) {
	return d.loaders.Load(ctx, d, m)
}
