package engine

import (
	"context"
	"fmt"

	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/tensor"
	"github.com/pce-engine/pce/layers"
)

// need allocates a buffer when it is first asked for. A closed engine gets none: its
// device may live on, with nothing left that frees the buffer.
func (e *Engine) need(ctx context.Context, b *kernels.Buffer, t kernels.DType, n int64) (err error) {
	if e.closed {
		return fmt.Errorf("%w: engine: it is closed", kernels.ErrDevice)
	}
	if *b == nil {
		*b, err = e.dev.Alloc(ctx, t, int(n))
	}
	return err
}

func (e *Engine) needFlows(ctx context.Context) error {
	return e.need(ctx, &e.flows, kernels.Int64, e.prog.FlowLen())
}

// Apply moves the parameters by the flows and clears them.
func (e *Engine) Apply(ctx context.Context, rule tensor.Rule) error {
	return e.apply(ctx, tensor.UpdateArgs{Rule: rule})
}

// ApplyOwners is Apply for the owners lo to hi-1 of the program, none if these
// are equal: no other parameters, flows and averages change. Anemone counts
// visits by the parameters as they are, so each part of a step needs those from
// before the step.
func (e *Engine) ApplyOwners(ctx context.Context, rule tensor.Rule, lo, hi int) error {
	if lo == hi { // UpdateArgs would take twice 0 for all
		e.added = 0
		return nil
	}
	return e.apply(ctx, tensor.UpdateArgs{Rule: rule, Lo: lo, Hi: hi})
}

func (e *Engine) apply(ctx context.Context, a tensor.UpdateArgs) error {
	if err := e.needFlows(ctx); err != nil {
		return err
	}
	a.Params, a.Flows, a.Rule = e.params, e.flows, a.Rule.Rounded()
	if a.Rule.Anemone != nil {
		if err := e.needAverages(ctx); err != nil {
			return err
		}
		if err := e.countVisits(ctx); err != nil {
			return err
		}
		a.Averages, a.Visits = e.averages, e.topDown
	}
	e.added = 0
	return e.exec.Update(ctx, &a)
}

// Grid is the unit of the integer flows, in rows.
func (e *Engine) Grid() float64 { return e.grid }

// StatScale is what the k-th statistic of an input without codes is divided by in the flows.
func (e *Engine) StatScale(input int32, k int) float64 {
	return layers.StatScale(e.scales, &e.prog.Inputs[input], k)
}

// ReadFlows copies the integer flows at offset, in units of Grid.
func (e *Engine) ReadFlows(ctx context.Context, offset int64, flows []int64) error {
	if err := e.needFlows(ctx); err != nil {
		return err
	}
	return e.dev.Read(ctx, flows, e.flows, int(offset))
}

// WriteFlows replaces the integer flows at offset. The caller answers for the
// number of rows in them.
func (e *Engine) WriteFlows(ctx context.Context, offset int64, flows []int64) error {
	e.added = 0
	if err := e.needFlows(ctx); err != nil {
		return err
	}
	return e.dev.Write(ctx, e.flows, int(offset), flows)
}
