package job

import (
	"context"
	"fmt"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/em"
	"github.com/pce-engine/pce/kernels/tensor"
)

// Answerer answers the questions of a run on a worker. One goroutine uses it.
type Answerer interface {
	// Answer answers a request. It depends on the request alone: any worker may get it,
	// and another one again.
	Answer(ctx context.Context, request []byte) ([]byte, error)
	Info() cluster.SessionInfo
	Close() error
}

// Answering returns a session that answers questions and does not train.
func Answering(a Answerer) cluster.Session { return answering{a} }

// answering is an Answerer as a session.
type answering struct{ Answerer }

// errNoTraining is what steps get from a session that does none.
var errNoTraining = fmt.Errorf("%w: a step of training in a run of queries", cluster.ErrJob)

// Query answers a request.
func (s answering) Query(ctx context.Context, request []byte) ([]byte, error) {
	return s.Answer(ctx, request)
}

// Layout is empty: nothing moves.
func (answering) Layout() cluster.Layout { return cluster.Layout{} }

// Prepare has nothing to read ahead: requests bring their rows.
func (answering) Prepare(cluster.Step, dataset.Span) {}

// Accumulate refuses.
func (answering) Accumulate(context.Context, cluster.Step, dataset.Span) (em.StepResult, error) {
	return em.StepResult{}, errNoTraining
}

// LogLikelihood refuses.
func (answering) LogLikelihood(context.Context, string, dataset.Span) (em.Evaluation, error) {
	return em.Evaluation{}, errNoTraining
}

// ReadFlows refuses.
func (answering) ReadFlows(context.Context, int64, []int64) error { return errNoTraining }

// WriteFlows refuses.
func (answering) WriteFlows(context.Context, int64, []int64) error { return errNoTraining }

// Apply refuses.
func (answering) Apply(context.Context, tensor.Rule, int, int) error { return errNoTraining }

// ReadState has nothing to copy.
func (answering) ReadState(_ context.Context, _ int64, state []float32) error {
	return noState(len(state))
}

// WriteState has nothing to replace.
func (answering) WriteState(_ context.Context, _ int64, state []float32) error {
	return noState(len(state))
}

func noState(n int) error {
	if n > 0 {
		return errNoTraining
	}
	return nil
}
