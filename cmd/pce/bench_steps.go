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
	batch  int       // rows of a step; steps walk through the source, and begin anew at its end
	rows   []int     // of those that are gathered at a time: a step or, in training, a launch
	ll     []float64 // likewise

	at      int              // the row after those that were gathered last
	batches [2]dataset.Batch // the one at hand, and the one that is gathered meanwhile
	ahead   *engine.Pass     // the rows of the next step, on their way to the device
}

// newBenchSteps returns steps of batch rows. Training reads the rows of one launch at a time, so a step of all rows of a table takes no
// more memory than one of a few.
func newBenchSteps(e *engine.Engine, src dataset.Source, train bool, rule tensor.Rule, batch int) *benchSteps {
	n := batch
	if train {
		n = min(n, e.Info().Rows)
	}
	return &benchSteps{engine: e, source: src, train: train, rule: rule, batch: batch, rows: make([]int, n), ll: make([]float64, n)}
}

// next does a step and returns its time. On a device that works while the host does, the
// rows of the launch after it are gathered and sent within that time, as training does it.
func (s *benchSteps) next(ctx context.Context) (time.Duration, error) {
	switch {
	case !s.train:
		return s.evaluate(ctx)
	case s.batch > len(s.rows) || s.rule.Anemone != nil:
		return s.launches(ctx)
	}
	return s.launch(ctx, s.batch, s.batch, func(p *engine.Pass) error { return p.Step(ctx, s.rule) })
}

// launch starts what start does with a pass over the next n rows, which are gathered before its time begins unless they are here already,
// and waits for it. The launch after it has then rows.
func (s *benchSteps) launch(ctx context.Context, n, then int, start func(p *engine.Pass) error) (time.Duration, error) {
	p := s.ahead
	if s.ahead = nil; p == nil {
		var err error
		if p, err = s.load(ctx, n); err != nil {
			return 0, err
		}
	}
	begin := time.Now()
	if err := start(p); err != nil {
		return 0, err
	}
	if s.engine.Info().Device.Async {
		var err error
		if s.ahead, err = s.load(ctx, then); err != nil {
			return 0, err
		}
	}
	err := p.Wait(ctx)
	return time.Since(begin), err
}

// load gathers the next n rows and brings them to the device if that has room for them.
func (s *benchSteps) load(ctx context.Context, n int) (*engine.Pass, error) {
	b, err := s.gather(ctx, n)
	if err != nil {
		return nil, err
	}
	return s.engine.LoadStep(ctx, b, 0, b.Rows, s.ll[:b.Rows])
}

// gather reads the next n rows into the batch that was read before the last one.
func (s *benchSteps) gather(ctx context.Context, n int) (*dataset.Batch, error) {
	for i := range s.rows[:n] {
		s.rows[i] = s.at
		s.at = (s.at + 1) % s.source.Rows()
	}
	s.batches[0], s.batches[1] = s.batches[1], s.batches[0]
	b := &s.batches[0]
	return b, s.source.Gather(ctx, b, s.rows[:n])
}

// evaluate is a pass over rows that are gathered before its time begins.
func (s *benchSteps) evaluate(ctx context.Context) (time.Duration, error) {
	b, err := s.gather(ctx, s.batch)
	if err != nil {
		return 0, err
	}
	begin := time.Now()
	err = s.engine.LogLikelihood(ctx, b, s.ll)
	return time.Since(begin), err
}

// launches does a training step of several launches, or of Anemone.
func (s *benchSteps) launches(ctx context.Context) (took time.Duration, err error) {
	spans := dataset.Shards(s.batch, len(s.rows))
	for i, r := range spans {
		then := spans[(i+1)%len(spans)]
		t, err := s.launch(ctx, r.Hi-r.Lo, then.Hi-then.Lo, func(p *engine.Pass) error { return p.Accumulate(ctx) })
		if err != nil {
			return 0, err
		}
		took += t
	}
	begin := time.Now()
	if err := s.engine.Apply(ctx, s.rule); err != nil {
		return 0, err
	}
	if a := s.rule.Anemone; a != nil {
		a.Weight = a.Next()
	}
	return took + time.Since(begin), nil
}
