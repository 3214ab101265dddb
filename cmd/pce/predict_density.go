package main

import (
	"context"
	"fmt"

	"github.com/pce-engine/pce"
)

// openDensity opens the circuit of --density, which the caller closes, with room for ranges.
func (a *app) openDensity(ctx context.Context, f *predictFlags) (*pce.Model, error) {
	defer headroom(openGC)()
	o := runOptions("cpu", f.run.threads)
	o.Soft = true
	m, err := pce.Open(ctx, f.density, o)
	if err == nil && m.Forest() != nil {
		m.Close()
		return nil, fmt.Errorf("%w: --density %s is a decision forest; give a circuit, which has probabilities", pce.ErrKind, f.density)
	}
	if err == nil {
		noteModel(a.stderr, f.density, m)
	}
	return m, err
}

// countedRows are the rows by which the cost of expected scores is judged before the work starts.
const countedRows = 64

// expected returns what computes the expected raw scores of rows. Its first call notes for how
// many rows the circuit is asked.
func (a *app) expected(f *predictFlags, m, density *pce.Model) (func(ctx context.Context, rows, results []float64) error, error) {
	e, err := pce.NewExpectation(m, density)
	if err != nil {
		return nil, fmt.Errorf("%s, --density %s: %w", f.model, f.density, err)
	}
	done, width := 0, m.Forest().Features
	return func(ctx context.Context, rows, results []float64) error {
		if done == 0 {
			some := min(countedRows, len(rows)/width)
			boxes, err := e.Boxes(rows[:some*width])
			if err != nil {
				return err
			}
			if err := a.tell("note: %d boxes in the first %s; the density gives each one's probability", boxes, several(some, "row")); err != nil {
				return err
			}
		}
		if err := e.Margins(ctx, rows, results); err != nil {
			return fmt.Errorf("after %s: %w", several(done, "row"), err)
		}
		done += len(rows) / width
		return nil
	}, nil
}
