package simnet

import (
	"slices"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/em"
	"github.com/pce-engine/pce/kernels/tensor"
)

// Reference is what a toy is compared with: the same steps in one place, one
// after another. It is not safe for concurrent use.
type Reference struct{ model *toyModel }

// NewReference starts where sessions of the spec start.
func NewReference(s ToySpec) (*Reference, error) {
	if err := s.validate(); err != nil {
		return nil, err
	}
	return &Reference{newToyModel(s)}, nil
}

// Flows adds the flows of the shards of a step, and returns the step's result.
func (r *Reference) Flows(step cluster.Step, shards []dataset.Span) em.StepResult {
	var all em.StepResult
	for _, shard := range shards {
		one := r.model.accumulate(step, shard)
		all.LogLikelihood += one.LogLikelihood
		all.Rows += one.Rows
		all.Impossible += one.Impossible
	}
	return all
}

// Apply moves all parameters by the flows that were added, and clears these.
func (r *Reference) Apply(rule tensor.Rule) { r.model.apply(rule, 0, len(r.model.layout.Owners)) }

// State returns a copy of the parameters, and of the averages behind them.
func (r *Reference) State() []float32 { return slices.Clone(r.model.state) }

// SetState puts other parameters and averages in place.
func (r *Reference) SetState(state []float32) { copy(r.model.state, state) }

// LogLikelihood is that of a session with this state.
func (r *Reference) LogLikelihood(source string, rows dataset.Span) em.Evaluation {
	return r.model.logLikelihood(source, rows)
}

// Query is that of a session with this state.
func (r *Reference) Query(request []byte) []byte { return r.model.query(request) }
