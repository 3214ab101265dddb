package engine

import (
	"context"
	"math"

	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/tensor"
)

// TopDown writes how often each unit that owns parameters is visited, in
// expectation, in a row without evidence: visits[prog.SumNorm(s)-prog.NumParams+u]
// for unit u of sum s, and InputNorm for inputs. Units that share their
// parameters are counted together. visits has length VisitLen.
func (e *Engine) TopDown(ctx context.Context, visits []float32) error {
	if err := e.countVisits(ctx); err != nil {
		return err
	}
	return e.dev.Read(ctx, visits, e.topDown, 0)
}

// countVisits fills e.topDown: without evidence every value is 1, so the flows
// are the probabilities of reaching a unit from the root.
func (e *Engine) countVisits(ctx context.Context) error {
	if err := e.need(ctx, &e.topDown, kernels.Float32, e.prog.VisitLen()); err != nil {
		return err
	}
	s := e.slot()
	s.clear(ctx)
	for _, c := range e.prog.Columns {
		at := int(c.Slot) * e.rows
		if c.Codes == 0 {
			e.value[at] = float32(math.NaN())
		} else {
			e.code.set(at, c.Codes)
		}
	}
	if err := e.send(ctx, s); err != nil {
		return err
	}
	forward := tensor.ForwardArgs{Params: e.params, Codes: s.codes, Values: s.values, LL: s.ll}
	if err := e.exec.Forward(ctx, 1, &forward); err != nil {
		return err
	}
	return e.exec.Backward(ctx, 1, &tensor.BackwardArgs{
		Params: e.params, Codes: s.codes, Values: s.values, Visits: e.topDown,
	})
}

func (e *Engine) needAverages(ctx context.Context) error {
	return e.need(ctx, &e.averages, kernels.Float32, e.prog.AverageLen())
}

// ReadAverages copies the averaged flows of Anemone at offset.
func (e *Engine) ReadAverages(ctx context.Context, offset int64, averages []float32) error {
	if err := e.needAverages(ctx); err != nil {
		return err
	}
	return e.dev.Read(ctx, averages, e.averages, int(offset))
}

// WriteAverages replaces the averaged flows of Anemone at offset.
func (e *Engine) WriteAverages(ctx context.Context, offset int64, averages []float32) error {
	if err := e.needAverages(ctx); err != nil {
		return err
	}
	return e.dev.Write(ctx, e.averages, int(offset), averages)
}
