package em

import (
	"context"

	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/kernels/tensor"
	"github.com/pce-engine/pce/layers"
)

// FlowSource holds the parameters and the training rows, and moves the ones by
// the expected counts of the others. It is the seam between training and where
// it is computed: Local does it with one engine.
type FlowSource interface {
	// Program is what the parameters belong to.
	Program() *layers.Program
	// Rows is the number of training rows.
	Rows() int
	// Begin says which steps come next. It replaces what an earlier call said.
	Begin(ctx context.Context, p Plan) error
	// Step does the next step of the plan: the expected counts of its rows,
	// shard by shard, then one move of the parameters. It sets Rows of the rule's
	// Anemone. After an error parameters and averages are as they were, or the
	// error says that the source is lost; an error that matches the context's
	// means that nothing was lost.
	Step(ctx context.Context, rule tensor.Rule) (StepResult, error)
	// LogLikelihood evaluates the rows of src, spans of EvalRows rows in order.
	LogLikelihood(ctx context.Context, src dataset.Source) (Evaluation, error)
	// ReadParams copies parameters from the parameter buffer at offset.
	ReadParams(ctx context.Context, offset int64, params []float32) error
	// WriteParams copies parameters to the parameter buffer at offset.
	WriteParams(ctx context.Context, offset int64, params []float32) error
	// ReadAverages copies the averages of Anemone at offset of AverageLen.
	ReadAverages(ctx context.Context, offset int64, averages []float32) error
	// WriteAverages replaces the averages of Anemone at offset.
	WriteAverages(ctx context.Context, offset int64, averages []float32) error
}

// Plan is a run of steps: those of Schedule from Start up to epoch Epochs, which is not part of
// it. The rows of a step are cut into dataset.Shards of ShardRows rows, whose counts are added
// as one; epochs count from 0.
type Plan struct {
	dataset.Schedule
	ShardRows int
	Epochs    int
	Start     dataset.Cursor
	Done      int64 // steps that the run has done before
}

// StepResult is what a step saw before it moved the parameters.
type StepResult struct {
	// LogLikelihood is the sum over the rows in nats: rows are added up within
	// their shard, in order, then shards in order.
	LogLikelihood float64
	Rows          int
	Impossible    int   // rows of probability 0
	Recomputed    int64 // (vector, row) pairs that were recomputed in log space
}

// ParamReader reads parameters in the layout of a program, part by part: they may be on a card,
// or larger than memory should hold twice.
type ParamReader interface {
	Program() *layers.Program
	ReadParams(ctx context.Context, offset int64, params []float32) error
}

// ModelSink saves the model that training ends with. It may be asked to again
// when a finished run is resumed.
type ModelSink interface {
	SaveModel(ctx context.Context, params ParamReader) error
}

// SinkFunc is a ModelSink made of a function, for sinks that keep no state.
type SinkFunc func(ctx context.Context, params ParamReader) error

// SaveModel calls f with the same arguments and returns its error.
func (f SinkFunc) SaveModel(ctx context.Context, params ParamReader) error { return f(ctx, params) }
