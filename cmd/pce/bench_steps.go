package main

import (
	"context"
	"time"

	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/engine"
	"github.com/pce-engine/pce/kernels/tensor"
)

// benchSteps does what bench measures, step after step: training steps, or passes that
// evaluate rows.
type benchSteps struct {
	engine *engine.Engine
	source dataset.Source
	train  bool
	rule   tensor.Rule
	rows   []int // of a step, which walk through the source again and again
	ll     []float64

	at      int              // the row after those that were gathered last
	batches [2]dataset.Batch // the one at hand, and the one that is gathered meanwhile
	ahead   *engine.Pass     // the rows of the next step, on their way to the device
}

// next does a step and returns its time. On a device that works while the host does, the
// rows of the step after it are gathered and sent within that time, as training does it.
func (s *benchSteps) next(ctx context.Context) (time.Duration, error) {
	if !s.train || len(s.rows) > s.engine.Info().Rows || s.rule.Anemone != nil {
		return s.whole(ctx)
	}
	p := s.ahead
	if s.ahead = nil; p == nil {
		var err error
		if p, err = s.load(ctx); err != nil {
			return 0, err
		}
	}
	begin := time.Now()
	if err := p.Step(ctx, s.rule); err != nil {
		return 0, err
	}
	if s.engine.Info().Device.Async {
		var err error
		if s.ahead, err = s.load(ctx); err != nil {
			return 0, err
		}
	}
	err := p.Wait(ctx)
	return time.Since(begin), err
}

// load gathers the next rows and brings them to the device if that has room for them.
func (s *benchSteps) load(ctx context.Context) (*engine.Pass, error) {
	b, err := s.gather(ctx)
	if err != nil {
		return nil, err
	}
	return s.engine.LoadStep(ctx, b, 0, b.Rows, s.ll)
}

// gather reads the next rows into the batch that was read before the last one.
func (s *benchSteps) gather(ctx context.Context) (*dataset.Batch, error) {
	for i := range s.rows {
		s.rows[i] = s.at
		s.at = (s.at + 1) % s.source.Rows()
	}
	s.batches[0], s.batches[1] = s.batches[1], s.batches[0]
	b := &s.batches[0]
	return b, s.source.Gather(ctx, b, s.rows)
}

// whole does a step that is not one launch, or no training, from rows that are gathered
// before its time begins.
func (s *benchSteps) whole(ctx context.Context) (time.Duration, error) {
	b, err := s.gather(ctx)
	if err != nil {
		return 0, err
	}
	begin := time.Now()
	if s.train {
		err = s.shards(ctx, b)
	} else {
		err = s.engine.LogLikelihood(ctx, b, s.ll)
	}
	return time.Since(begin), err
}

// shards does a training step of several launches, or of Anemone.
func (s *benchSteps) shards(ctx context.Context, b *dataset.Batch) error {
	for _, r := range dataset.Shards(b.Rows, s.engine.Info().Rows) {
		if err := s.engine.Accumulate(ctx, b, r.Lo, r.Hi, s.ll[r.Lo:r.Hi]); err != nil {
			return err
		}
	}
	if err := s.engine.Apply(ctx, s.rule); err != nil {
		return err
	}
	if a := s.rule.Anemone; a != nil {
		a.Weight = a.Next()
	}
	return nil
}
