package tensor

import (
	"context"
	"fmt"

	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/tensor"
)

// program is a loaded tensor program.
type program struct {
	exec  *executor // nil once it is freed
	bytes int64     // of its workspace
}

var _ tensor.Program = (*program)(nil)

// Free drops the program and its workspace.
func (p *program) Free() {
	if p.exec == nil {
		return
	}
	p.exec.dev.Count(-p.bytes - p.exec.lateBytes)
	p.exec = nil
}

// Precision says where products are of lower precision.
func (p *program) Precision() tensor.Precision {
	return tensor.Precision{Flows: p.exec != nil && p.exec.train && p.exec.mixed != inFloats}
}

// ready returns the executor for a call over some rows.
func (p *program) ready(call string, rows int) (*executor, error) {
	x := p.exec
	if x == nil {
		return nil, fmt.Errorf("%w: cpu: %s of a program that was freed", kernels.ErrDevice, call)
	}
	if rows < 1 || rows > x.rowsMax {
		return nil, fmt.Errorf("%w: cpu: %s of %d rows, want 1..%d", kernels.ErrDevice, call, rows, x.rowsMax)
	}
	return x, nil
}

// training is ready for a call that only programs for training have.
func (p *program) training(call string, rows int) (*executor, error) {
	x, err := p.ready(call, rows)
	if err == nil && !x.train {
		return nil, fmt.Errorf("%w: cpu: %s of a program without room for flows; load the module for training", kernels.ErrDevice, call)
	}
	return x, err
}

// querying is ready for a call that only programs for queries have.
func (p *program) querying(call string, rows int) (*executor, error) {
	x, err := p.ready(call, rows)
	if err == nil && !x.queries {
		return nil, fmt.Errorf("%w: cpu: %s of a program without room for it; load the module for queries", kernels.ErrDevice, call)
	}
	return x, err
}

// Forward evaluates rows.
func (p *program) Forward(_ context.Context, rows int, a *tensor.ForwardArgs) error {
	x, err := p.ready("Forward", rows)
	if err != nil {
		return err
	}
	return x.forward(rows, a)
}

// Backward computes the expected counts of the rows that Forward has evaluated.
func (p *program) Backward(_ context.Context, rows int, a *tensor.BackwardArgs) error {
	x, err := p.training("Backward", rows)
	if err != nil {
		return err
	}
	return x.backward(rows, a, nil)
}

// Step is Forward and Backward.
func (p *program) Step(_ context.Context, rows int, a *tensor.StepArgs) error {
	x, err := p.training("Step", rows)
	if err != nil {
		return err
	}
	down := tensor.BackwardArgs{Params: a.Params, Codes: a.Codes, Values: a.Values, Flows: a.Flows, Rule: a.Rule}
	if x.singles != nil {
		ll, err := argument[float64](x.dev, "log-likelihoods", a.LL, int64(rows))
		if err != nil {
			return err
		}
		a.Recomputed = 0
		return x.backward(rows, &down, ll[:rows])
	}
	if err := x.forward(rows, &a.ForwardArgs); err != nil {
		return err
	}
	return x.backward(rows, &down, nil)
}

// Update moves the parameters by the flows that were added up.
func (p *program) Update(_ context.Context, a *tensor.UpdateArgs) error {
	x, err := p.training("Update", 1)
	if err != nil {
		return err
	}
	return x.update(a)
}

// Sample draws the missing cells of the rows that Forward has evaluated.
func (p *program) Sample(_ context.Context, rows int, a *tensor.SampleArgs) error {
	x, err := p.ready("Sample", rows)
	if err != nil {
		return err
	}
	return x.sample(rows, a)
}

// Posteriors writes distributions of columns given the observed cells.
func (p *program) Posteriors(_ context.Context, rows int, a *tensor.PosteriorsArgs) error {
	x, err := p.querying("Posteriors", rows)
	if err != nil {
		return err
	}
	return x.posteriors(rows, a)
}

// Maximise evaluates rows by maxima and fills their missing cells.
func (p *program) Maximise(_ context.Context, rows int, a *tensor.MaximiseArgs) error {
	x, err := p.querying("Maximise", rows)
	if err != nil {
		return err
	}
	return x.maximise(rows, a)
}

// Inspect copies the log values of a vector.
func (p *program) Inspect(_ context.Context, rows int, a *tensor.InspectArgs) error {
	x, err := p.ready("Inspect", rows)
	if err != nil {
		return err
	}
	return x.inspect(rows, a)
}
