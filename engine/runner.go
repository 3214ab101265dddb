package engine

import (
	"context"
	"fmt"
	"io"

	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/kernels"
)

// Runner is a compiled model on a device, of whatever kind: Engine is that of
// circuits. It turns rows into numbers. It is not safe for concurrent use; a Pool
// lends runners to one call at a time.
type Runner interface {
	// Schema says what a row is, nil if the runner was not told. It must not be
	// changed.
	Schema() *dataset.Schema
	// Info describes the runner.
	Info() Info
	// Evaluate hands the numbers for batch after batch to take, those of a launch or of
	// several at a time, in order: out is [rows of the launches, Info.Outputs], and take's
	// for the time of the call. next returns io.EOF after the last batch and may use a batch
	// again that it has returned.
	Evaluate(ctx context.Context, next func() (*dataset.Batch, error), take func(out []float64)) error
	// Close frees what the runner has on its device.
	Close() error
}

// Info describes a runner.
type Info struct {
	Device  kernels.Info
	Rows    int // the most rows of a launch
	Outputs int // numbers for a row: 1 where these are log-likelihoods
}

// EvaluateBatch writes the numbers that a runner gives for the rows of one batch to
// out, [rows, Info.Outputs].
func EvaluateBatch(ctx context.Context, r Runner, b *dataset.Batch, out []float64) error {
	if n := r.Info().Outputs; len(out) < b.Rows*n {
		return fmt.Errorf("%w: room for %d numbers for %d rows; want %d for each", dataset.ErrFormat, len(out), b.Rows, n)
	}
	if c, ok := r.(interface { // code, which computes a batch where it is wanted
		evaluateBatch(ctx context.Context, b *dataset.Batch, out []float64) error
	}); ok {
		return c.evaluateBatch(ctx, b, out)
	}
	given := false
	next := func() (*dataset.Batch, error) {
		if given {
			return nil, io.EOF
		}
		given = true
		return b, nil
	}
	return r.Evaluate(ctx, next, func(part []float64) { out = out[copy(out, part):] })
}
