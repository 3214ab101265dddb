package cuda

import (
	"context"
	"fmt"
	"runtime"

	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/ptx/tensor"
	"github.com/pce-engine/pce/layers"
)

// Device is a GPU, real or emulated, as a kernels.Device. One goroutine, locked
// to its thread, makes all calls of the driver.
type Device struct {
	name string
	jobs chan func()
	drv  Driver
	card Card
	order
	staging staging
	modules map[tensor.Variant]*module
	meter   meter
}

var _ kernels.Device = (*Device)(nil)

// Open opens a device under a name, "cuda:0" or "emulator". The driver is opened
// and used on one thread.
func Open(name string, open func() (Driver, error)) (*Device, error) {
	d := &Device{name: name, jobs: make(chan func()), modules: map[tensor.Variant]*module{}}
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
	done := make(chan error)
	d.jobs <- func() { done <- job() }
	return <-done
}

// Info describes the device.
func (d *Device) Info() kernels.Info {
	return kernels.Info{Name: d.name, Card: d.card.Name, KernelPath: d.card.Architecture(), Async: true, Mixed: true, MixedBlock: 16, MixedForward: true}
}

// Close gives the card back, with every buffer and module.
func (d *Device) Close() error {
	err := d.do(func() error { return d.drv.Close() })
	close(d.jobs)
	return err
}

// Sync waits for all launches and copies.
func (d *Device) Sync(context.Context) error {
	return d.do(d.settle)
}

// Load plans a program for this device, compiles its kernels and makes its
// workspace.
func (d *Device) Load(_ context.Context, m kernels.Module) (map[string]kernels.Kernel, error) {
	mod, ok := m.(layers.Module)
	if !ok {
		return nil, fmt.Errorf("%w: %s: module of kind %q; want a tensor program", kernels.ErrDevice, d.name, m.ModuleKind())
	}
	if mod.Rows < 1 || mod.Rows > 1<<20 {
		return nil, fmt.Errorf("%w: %s: %d rows a launch, want 1..%d", kernels.ErrDevice, d.name, mod.Rows, 1<<20)
	}
	ks := make(map[string]kernels.Kernel)
	err := d.do(func() error {
		x, err := newExecutor(d, mod)
		if err != nil {
			return err
		}
		names := []string{kernels.Forward, kernels.Sample, kernels.Inspect}
		if mod.Train {
			names = append(names, kernels.Backward, kernels.Step, kernels.Update)
		}
		for _, name := range names {
			ks[name] = &kernel{name, x}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return ks, nil
}

// kernel is an entry point of a loaded program.
type kernel struct {
	name string
	exec *executor
}

func (k *kernel) KernelName() string { return k.name }

// Launch starts a kernel. Its work is done when a buffer that it has was read, or
// after Sync.
func (d *Device) Launch(_ context.Context, k kernels.Kernel, rows int, args ...kernels.Arg) error {
	kn, ok := k.(*kernel)
	if !ok || len(args) != 1 || kn.exec.dev != d {
		return fmt.Errorf("%w: %s: launch of %T with %d arguments", kernels.ErrDevice, d.name, k, len(args))
	}
	x := kn.exec
	if rows < 1 || rows > x.tables.Rows {
		return fmt.Errorf("%w: %s: launch of %s on %d rows, want 1..%d", kernels.ErrDevice, d.name, kn.name, rows, x.tables.Rows)
	}
	return d.do(func() error {
		switch a := args[0].(type) {
		case *kernels.ForwardArgs:
			return x.forward(rows, a)
		case *kernels.BackwardArgs:
			return x.backward(rows, a)
		case *kernels.StepArgs:
			return x.step(rows, a)
		case *kernels.UpdateArgs:
			return x.update(a)
		case *kernels.SampleArgs:
			return x.sample(rows, a)
		case *kernels.InspectArgs:
			return x.inspect(rows, a)
		}
		return fmt.Errorf("%w: %s: launch of %s with %T", kernels.ErrDevice, d.name, kn.name, args[0])
	})
}
