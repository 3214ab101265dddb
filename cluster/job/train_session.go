package job

import (
	"context"
	"fmt"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/em"
	"github.com/pce-engine/pce/engine"
	"github.com/pce-engine/pce/kernels/tensor"
	"github.com/pce-engine/pce/run"
)

// trainSession is a run of training on a worker.
type trainSession struct {
	plan     *run.Blueprint
	engine   *engine.Engine
	info     cluster.SessionInfo
	averages bool // the state has averages
	sources  map[string]dataset.Source

	rows *shardReader
	next *dataset.Batch // of evaluations
	ll   []float64
}

var _ cluster.Session = (*trainSession)(nil)

// start completes a session that has its engine and its sources.
func (s *trainSession) start() {
	s.rows, s.next = newShardReader(s.sources[trainSource]), new(dataset.Batch)
}

// Layout is where parameters, averages and flows lie in the program.
func (s *trainSession) Layout() cluster.Layout {
	return cluster.LayoutOf(s.plan.Program, s.averages)
}

// Info describes the device.
func (s *trainSession) Info() cluster.SessionInfo { return s.info }

// Prepare reads the rows of a shard ahead of Accumulate.
func (s *trainSession) Prepare(step cluster.Step, shard dataset.Span) { s.rows.prepare(step, shard) }

// Accumulate adds the flows of a shard.
func (s *trainSession) Accumulate(ctx context.Context, step cluster.Step, shard dataset.Span) (em.StepResult, error) {
	var res em.StepResult
	b, err := s.rows.read(ctx, step, shard)
	if err != nil {
		return res, err
	}
	ll := s.scratch(b.Rows)
	before := s.engine.Recomputed()
	if err := s.engine.Accumulate(ctx, b, 0, b.Rows, ll); err != nil {
		return res, err
	}
	res.Add(ll)
	res.Recomputed = s.engine.Recomputed() - before
	return res, nil
}

// scratch returns a buffer for the log-likelihoods of that many rows, which the next call takes again.
func (s *trainSession) scratch(rows int) []float64 {
	if len(s.ll) < rows {
		s.ll = make([]float64, rows)
	}
	return s.ll[:rows]
}

// LogLikelihood adds up the log-likelihoods of a span of rows of a source, under the present
// parameters. The span is at most that of an evaluation, so that sums are the same wherever
// they are computed.
func (s *trainSession) LogLikelihood(ctx context.Context, source string, rows dataset.Span) (em.Evaluation, error) {
	var res em.Evaluation
	src := s.sources[source]
	if src == nil {
		return res, fmt.Errorf("%w: no rows named %.40q", cluster.ErrJob, source)
	}
	if rows.Lo < 0 || rows.Lo >= rows.Hi || rows.Hi > src.Rows() {
		return res, fmt.Errorf("%w: rows %d to %d of %d", cluster.ErrJob, rows.Lo, rows.Hi-1, src.Rows())
	}
	list := make([]int, rows.Hi-rows.Lo)
	for i := range list {
		list[i] = rows.Lo + i
	}
	if err := src.Gather(ctx, s.next, list); err != nil {
		return res, err
	}
	ll := s.scratch(len(list))
	before := s.engine.Recomputed()
	if err := s.engine.LogLikelihood(ctx, s.next, ll); err != nil {
		return res, err
	}
	res.Add(ll)
	res.Recomputed = s.engine.Recomputed() - before
	return res, nil
}

// Query refuses: a run of training answers nothing.
func (s *trainSession) Query(context.Context, []byte) ([]byte, error) {
	return nil, fmt.Errorf("%w: a query to a run of training", cluster.ErrJob)
}

// ReadFlows copies flows from the engine.
func (s *trainSession) ReadFlows(ctx context.Context, offset int64, flows []int64) error {
	return s.engine.ReadFlows(ctx, offset, flows)
}

// WriteFlows replaces flows of the engine.
func (s *trainSession) WriteFlows(ctx context.Context, offset int64, flows []int64) error {
	return s.engine.WriteFlows(ctx, offset, flows)
}

// Apply moves the parameters of some owners.
func (s *trainSession) Apply(ctx context.Context, rule tensor.Rule, lo, hi int) error {
	return s.engine.ApplyOwners(ctx, rule, lo, hi)
}

// ReadState copies parameters, then averages.
func (s *trainSession) ReadState(ctx context.Context, offset int64, state []float32) error {
	return s.state(ctx, offset, state, s.engine.ReadParams, s.engine.ReadAverages)
}

// WriteState replaces parameters, then averages.
func (s *trainSession) WriteState(ctx context.Context, offset int64, state []float32) error {
	return s.state(ctx, offset, state, s.engine.WriteParams, s.engine.WriteAverages)
}

// state divides a stretch of the state into parameters and averages.
func (s *trainSession) state(ctx context.Context, offset int64, state []float32, params, averages func(context.Context, int64, []float32) error) error {
	n := s.plan.Program.NumParams
	if offset < n {
		k := min(int64(len(state)), n-offset)
		if err := params(ctx, offset, state[:k]); err != nil {
			return err
		}
		offset, state = offset+k, state[k:]
	}
	if len(state) == 0 {
		return nil
	}
	return averages(ctx, offset-n, state)
}

// Close ends reading and frees the engine.
func (s *trainSession) Close() error {
	s.rows.close()
	err := s.engine.Close()
	if e := s.plan.Close(); err == nil {
		err = e
	}
	return err
}
