package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/em"
	"github.com/pce-engine/pce/engine"
	"github.com/pce-engine/pce/kernels/tensor"
	"github.com/pce-engine/pce/run"
)

// querySession answers questions about a model on a worker: the log-likelihoods
// of the rows of a block, as float64 numbers, or drawn rows, as a block.
type querySession struct {
	plan  *run.Blueprint
	pool  *engine.Pool[*engine.Engine]
	kind  string
	info  cluster.SessionInfo
	batch dataset.Batch
}

var _ cluster.Session = (*querySession)(nil)

// Prepare has nothing to read ahead: requests bring their rows.
func (s *querySession) Prepare(cluster.Step, dataset.Span) {}

// sampleRequest asks for rows First to First+Rows-1 of those that a seed draws.
type sampleRequest struct {
	First int    `json:"first"`
	Rows  int    `json:"rows"`
	Seed  uint64 `json:"seed"`
}

// errNoTraining is what steps get from a session that does none.
var errNoTraining = fmt.Errorf("%w: a step of training in a run of queries", cluster.ErrJob)

// Layout is empty: nothing moves.
func (s *querySession) Layout() cluster.Layout { return cluster.Layout{} }

// Info describes the device.
func (s *querySession) Info() cluster.SessionInfo { return s.info }

// Query answers a request.
func (s *querySession) Query(ctx context.Context, request []byte) ([]byte, error) {
	schema := s.plan.Schema
	if s.kind == kindSample {
		var r sampleRequest
		if err := strictJSON(request, &r); err != nil {
			return nil, fmt.Errorf("%w: request: %v", cluster.ErrJob, err)
		}
		if r.First < 0 || r.Rows < 1 || r.Rows > readRows || r.First > math.MaxInt-r.Rows || schema.BlockBytes(r.Rows) > maxBlockBytes {
			return nil, fmt.Errorf("%w: request of %d rows from row %d on", cluster.ErrJob, r.Rows, r.First)
		}
		s.batch.Resize(schema, r.Rows)
		draw := func(e *engine.Engine) error { return e.Sample(ctx, &s.batch, r.Seed, r.First) }
		if err := s.pool.Do(ctx, r.Rows, draw); err != nil {
			return nil, err
		}
		return dataset.AppendBlock(nil, schema, &s.batch)
	}
	if err := dataset.DecodeBlock(schema, request, &s.batch); err != nil {
		return nil, err
	}
	ll := make([]float64, s.batch.Rows)
	if err := s.pool.Do(ctx, s.batch.Rows, func(e *engine.Engine) error { return e.LogLikelihood(ctx, &s.batch, ll) }); err != nil {
		return nil, err
	}
	out := make([]byte, 0, 8*len(ll))
	for _, x := range ll {
		out = binary.LittleEndian.AppendUint64(out, math.Float64bits(x))
	}
	return out, nil
}

// encode writes the request as Query reads it.
func (r sampleRequest) encode() ([]byte, error) { return json.Marshal(r) }

// Close frees the model.
func (s *querySession) Close() error { return errors.Join(s.pool.Close(), s.plan.Close()) }

// Accumulate refuses.
func (s *querySession) Accumulate(context.Context, cluster.Step, dataset.Span) (em.StepResult, error) {
	return em.StepResult{}, errNoTraining
}

// LogLikelihood refuses.
func (s *querySession) LogLikelihood(context.Context, string, dataset.Span) (em.Evaluation, error) {
	return em.Evaluation{}, errNoTraining
}

// ReadFlows refuses.
func (s *querySession) ReadFlows(context.Context, int64, []int64) error { return errNoTraining }

// WriteFlows refuses.
func (s *querySession) WriteFlows(context.Context, int64, []int64) error { return errNoTraining }

// Apply refuses.
func (s *querySession) Apply(context.Context, tensor.Rule, int, int) error { return errNoTraining }

// ReadState has nothing to copy.
func (s *querySession) ReadState(_ context.Context, _ int64, state []float32) error {
	return noState(len(state))
}

// WriteState has nothing to replace.
func (s *querySession) WriteState(_ context.Context, _ int64, state []float32) error {
	return noState(len(state))
}

func noState(n int) error {
	if n > 0 {
		return errNoTraining
	}
	return nil
}
