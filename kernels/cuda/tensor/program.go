package tensor

import (
	"context"
	"fmt"

	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/cuda"
	contract "github.com/pce-engine/pce/kernels/tensor"
	"github.com/pce-engine/pce/layers"
)

// program is a loaded tensor program. Its methods do their work within Device.Do.
type program struct {
	dev  *cuda.Device
	name string    // of the device
	exec *executor // nil once it is freed
}

var _ contract.Program = (*program)(nil)

// Open opens a device that loads tensor programs alone.
func Open(name string, open func() (cuda.Driver, error)) (*cuda.Device, error) {
	return cuda.Open(name, open, cuda.Loaders{layers.ModuleKind: Load})
}

// Load plans a tensor program for a device, compiles its kernels and makes its
// workspace. It is the loader of tensor programs.
func Load(_ context.Context, d *cuda.Device, m kernels.Module) (kernels.Program, error) {
	name := d.Info().Name
	mod, ok := m.(layers.Module)
	if !ok {
		return nil, fmt.Errorf("%w: %s: module of kind %q is a %T, want %T", kernels.ErrDevice, name, m.ModuleKind(), m, mod)
	}
	p := &program{dev: d, name: name}
	err := d.Do(func(t *cuda.Thread) (err error) {
		p.exec, err = newExecutor(d, t, mod)
		return err
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

// Free gives the program's memory back once nothing uses it. What goes wrong, the next call that waits says.
func (p *program) Free() {
	x := p.exec
	if x == nil {
		return
	}
	p.exec = nil
	_ = p.dev.Do(func(t *cuda.Thread) error { // fails when the device is closed
		t.Keep(x.free())
		return nil
	})
}

// Precision says where products are of lower precision.
func (p *program) Precision() contract.Precision {
	if p.exec == nil {
		return contract.Precision{}
	}
	mixed := p.exec.tables.Mixed
	return contract.Precision{Values: mixed, Flows: mixed && p.exec.train}
}

// call runs a call over some rows.
func (p *program) call(name string, rows int, do func(x *executor) error) error {
	x := p.exec
	if x == nil {
		return fmt.Errorf("%w: %s: %s of a program that was freed", kernels.ErrDevice, p.name, name)
	}
	if rows < 1 || rows > x.tables.Rows {
		return fmt.Errorf("%w: %s: %s of %d rows, want 1..%d", kernels.ErrDevice, p.name, name, rows, x.tables.Rows)
	}
	return p.dev.Do(func(*cuda.Thread) error { return do(x) })
}

// training is call for what only programs for training can do.
func (p *program) training(name string, rows int, do func(x *executor) error) error {
	if x := p.exec; x != nil && !x.train {
		return fmt.Errorf("%w: %s: %s of a program without room for flows; load the module for training", kernels.ErrDevice, p.name, name)
	}
	return p.call(name, rows, do)
}

// query is call for what only programs for queries can do.
func (p *program) query(name string, rows int, do func(x *executor) error) error {
	if x := p.exec; x != nil && !x.tables.Queries {
		return fmt.Errorf("%w: %s: %s of a program without room for queries; load the module for queries", kernels.ErrDevice, p.name, name)
	}
	return p.call(name, rows, do)
}

// Forward evaluates rows.
func (p *program) Forward(_ context.Context, rows int, a *contract.ForwardArgs) error {
	return p.call("Forward", rows, func(x *executor) error { return x.forward(rows, a) })
}

// Backward computes the expected counts of the rows that Forward has evaluated.
func (p *program) Backward(_ context.Context, rows int, a *contract.BackwardArgs) error {
	return p.training("Backward", rows, func(x *executor) error { return x.backward(rows, a) })
}

// Step is Forward and Backward.
func (p *program) Step(_ context.Context, rows int, a *contract.StepArgs) error {
	return p.training("Step", rows, func(x *executor) error { return x.step(rows, a) })
}

// Update moves the parameters by the flows that were added up.
func (p *program) Update(_ context.Context, a *contract.UpdateArgs) error {
	return p.training("Update", 1, func(x *executor) error { return x.update(a) })
}

// Sample draws the missing cells of the rows that Forward has evaluated.
func (p *program) Sample(_ context.Context, rows int, a *contract.SampleArgs) error {
	return p.call("Sample", rows, func(x *executor) error { return x.sample(rows, a) })
}

// Posteriors writes the distributions of columns given the observed cells of the rows that
// Forward has evaluated.
func (p *program) Posteriors(_ context.Context, rows int, a *contract.PosteriorsArgs) error {
	return p.query("Posteriors", rows, func(x *executor) error { return x.posteriors(rows, a) })
}

// Maximise evaluates rows by maxima and fills their missing cells with the choice of the
// largest value.
func (p *program) Maximise(_ context.Context, rows int, a *contract.MaximiseArgs) error {
	return p.query("Maximise", rows, func(x *executor) error { return x.maximise(rows, a) })
}

// Inspect copies the log values of a vector.
func (p *program) Inspect(_ context.Context, rows int, a *contract.InspectArgs) error {
	return p.call("Inspect", rows, func(x *executor) error { return x.inspect(rows, a) })
}
