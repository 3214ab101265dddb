// Package tensor is the contract of tensor programs, the compiled form of
// circuits: what a loaded one can do, on whichever device, and with which
// arguments.
//
// # Shapes and units
//
// Buffers have the element types and lengths of the arguments below, row-major,
// with R the rows that the module was loaded for. Log-likelihoods are natural
// logs, flows are expected counts.
//
// # Errors
//
// Errors match kernels.ErrDevice or kernels.ErrMemory.
//
// # Source
//
// Flows, and the program that they need, follow Liu, Ahmed, Van den Broeck,
// "Scaling Tractable Probabilistic Circuits: A Systems Perspective", ICML 2024.
// Random numbers are those of SplitMix64, as draws.go says.
package tensor

import (
	"context"

	"github.com/pce-engine/pce/kernels"
)

// Program is a tensor program on a device.
//
// A call works on the first rows rows of its buffers. It may return before its
// work is done: calls take effect in the order they are made, and output fields of
// the arguments and any error are available after the next Read of one of the
// buffers, or after Sync. Sample, Maximise and Inspect are the exceptions: what they
// set in their arguments is there when they return.
//
// Calls share the program's workspace: Backward, Posteriors, Sample and Inspect read
// what the last Forward left, for the same rows. Backward, Posteriors and Maximise
// overwrite it, so another Forward comes before the next of these calls. Backward, Step and
// Update are refused unless the module was loaded for training, Posteriors and Maximise
// unless it was loaded for queries.
type Program interface {
	kernels.Program
	// Precision says where products are of lower precision than float32.
	Precision() Precision
	// Forward evaluates rows.
	Forward(ctx context.Context, rows int, a *ForwardArgs) error
	// Backward computes the expected counts of the rows that Forward has evaluated.
	Backward(ctx context.Context, rows int, a *BackwardArgs) error
	// Step is Forward and Backward in one call.
	Step(ctx context.Context, rows int, a *StepArgs) error
	// Update moves the parameters by the flows that were added up so far.
	Update(ctx context.Context, a *UpdateArgs) error
	// Sample draws the missing cells of the rows that Forward has evaluated.
	Sample(ctx context.Context, rows int, a *SampleArgs) error
	// Posteriors writes the distributions of columns given the observed cells of the
	// rows that Forward has evaluated.
	Posteriors(ctx context.Context, rows int, a *PosteriorsArgs) error
	// Maximise evaluates rows by maxima and fills their missing cells with the choice
	// of the largest value. It needs no Forward.
	Maximise(ctx context.Context, rows int, a *MaximiseArgs) error
	// Inspect copies the values of a vector.
	Inspect(ctx context.Context, rows int, a *InspectArgs) error
}

// Precision says which products of a program are of lower precision than float32.
type Precision struct {
	Values bool // those of Forward, and with them log-likelihoods
	Flows  bool // those of Backward
}

// String is the precision of training: mixed where flows have products of lower
// precision, else fp32.
func (p Precision) String() string {
	if p.Flows {
		return "mixed"
	}
	return "fp32"
}
