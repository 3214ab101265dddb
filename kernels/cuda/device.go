package cuda

import (
	"context"
	"fmt"
	"maps"
	"runtime"

	"github.com/pce-engine/pce/kernels"
)

// Loaders make programs of modules on the device, by kind.
type Loaders = kernels.Loaders[*Device]

// Device is a GPU, real or emulated, as a kernels.Device. It knows nothing of what
// programs compute: its loaders make them, and their calls go through Do. One
// goroutine, locked to its thread, makes all calls of the driver.
type Device struct {
	name    string
	loaders Loaders
	closed  bool
	jobs    chan func()
	thread  Thread
}

var _ kernels.Device = (*Device)(nil)

// Open opens a device under a name, "cuda:0" or "emulator", that loads the kinds of
// modules that it has loaders for. The driver is opened and used on one thread.
func Open(name string, open func() (Driver, error), loaders Loaders) (*Device, error) {
	d := &Device{name: name, loaders: maps.Clone(loaders), jobs: make(chan func())}
	opened := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := d.thread.open(name, open)
		opened <- err
		if err != nil {
			return
		}
		for job := range d.jobs {
			job()
		}
	}()
	if err := <-opened; err != nil {
		return nil, err
	}
	return d, nil
}

// Do runs a job on the driver's thread and returns its error. It is for programs.
func (d *Device) Do(job func(t *Thread) error) error {
	if d.closed {
		return fmt.Errorf("%w: %s: the device is closed", kernels.ErrDevice, d.name)
	}
	done := make(chan error)
	d.jobs <- func() { done <- job(&d.thread) }
	return <-done
}

// Info describes the device.
func (d *Device) Info() kernels.Info {
	card := d.thread.card
	return kernels.Info{Name: d.name, Card: card.Name, KernelPath: card.Architecture(), Async: true}
}

// Close gives the card back, with every buffer and program. It may be called more
// than once.
func (d *Device) Close() error {
	if d.closed {
		return nil
	}
	err := d.Do(func(t *Thread) error { return t.drv.Close() })
	d.closed = true
	close(d.jobs)
	return err
}

// Sync waits for all calls and copies.
func (d *Device) Sync(context.Context) error {
	return d.Do((*Thread).Settle)
}

// Load makes a program of a module.
func (d *Device) Load(ctx context.Context, m kernels.Module) (kernels.Program, error) {
	return d.loaders.Load(ctx, d, m)
}
