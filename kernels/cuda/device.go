package cuda

import (
	"context"
	"fmt"
	"runtime"

	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/ptx/tensor"
	"github.com/pce-engine/pce/layers"
)

// Loaders make programs of modules on the device, by kind.
type Loaders = kernels.Loaders[*Device]

// Device is a GPU, real or emulated, as a kernels.Device. One goroutine, locked
// to its thread, makes all calls of the driver.
type Device struct {
	name    string
	loaders Loaders
	closed  bool
	jobs    chan func()
	drv     Driver
	card    Card
	order
	staging staging
	modules map[tensor.Variant]*module
	meter   meter
}

var _ kernels.Device = (*Device)(nil)

// Open opens a device under a name, "cuda:0" or "emulator". The driver is opened
// and used on one thread.
func Open(name string, open func() (Driver, error)) (*Device, error) {
	d := &Device{name: name, loaders: Loaders{layers.ModuleKind: loadTensor}, jobs: make(chan func()), modules: map[tensor.Variant]*module{}}
	opened := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := d.open(open)
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

func (d *Device) open(open func() (Driver, error)) (err error) {
	if d.drv, err = open(); err != nil {
		return err
	}
	d.card = d.drv.Card()
	if err = d.order.open(d.drv); err != nil {
		return d.fail(err)
	}
	if d.staging.host, err = d.drv.AllocHost(stagingBytes); err != nil {
		return d.fail(err)
	}
	return nil
}

// fail closes a driver that could not be made ready.
func (d *Device) fail(err error) error {
	_ = d.drv.Close() // the first error says what is wrong
	return err
}

// do runs a job on the driver's thread.
func (d *Device) do(job func() error) error {
	if d.closed {
		return fmt.Errorf("%w: %s: the device is closed", kernels.ErrDevice, d.name)
	}
	done := make(chan error)
	d.jobs <- func() { done <- job() }
	return <-done
}

// Info describes the device.
func (d *Device) Info() kernels.Info {
	return kernels.Info{Name: d.name, Card: d.card.Name, KernelPath: d.card.Architecture(), Async: true}
}

// Close gives the card back, with every buffer and program. It may be called more
// than once.
func (d *Device) Close() error {
	if d.closed {
		return nil
	}
	err := d.do(func() error { return d.drv.Close() })
	d.closed = true
	close(d.jobs)
	return err
}

// Sync waits for all calls and copies.
func (d *Device) Sync(context.Context) error {
	return d.do(d.settle)
}

// Load makes a program of a module.
func (d *Device) Load(ctx context.Context, m kernels.Module) (kernels.Program, error) {
	return d.loaders.Load(ctx, d, m)
}
