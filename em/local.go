package em

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/engine"
	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/layers"
)

// Local is a FlowSource over one engine. It reads rows ahead of the engine.
type Local struct {
	eng    *engine.Engine
	src    dataset.Source
	loader *dataset.Loader
	ll     []float64
	stale  bool // a step was given up: flows are left in the engine
}

var _ FlowSource = (*Local)(nil)

// NewLocal trains an engine that was opened for training on the rows of src.
// The engine stays the caller's to close.
func NewLocal(eng *engine.Engine, src dataset.Source) *Local {
	return &Local{eng: eng, src: src, ll: make([]float64, eng.Rows())}
}

// Close ends reading ahead; the engine stays open.
func (l *Local) Close() {
	if l.loader != nil {
		l.loader.Close()
		l.loader = nil
	}
}

// Program is the engine's program.
func (l *Local) Program() *layers.Program { return l.eng.Program() }

// Rows is the number of training rows.
func (l *Local) Rows() int { return l.src.Rows() }

// Begin starts to read the rows of a plan.
func (l *Local) Begin(ctx context.Context, p Plan) error {
	l.Close()
	if need := min(p.ShardRows, p.BatchRows); need > l.eng.Rows() {
		return badOption("shards of %d rows on an engine for %d; open it with Options.LaunchRows", need, l.eng.Rows())
	}
	var err error
	l.loader, err = dataset.NewLoader(ctx, l.src, dataset.LoaderOptions{
		BatchRows: p.BatchRows, ShardRows: p.ShardRows, Seed: p.Seed, InOrder: p.InOrder, Epochs: p.Epochs, Start: p.Start,
	})
	return err
}

// Step does the next step: fused if its rows are one shard, but for Anemone.
// Once the parameters begin to move the context no longer interrupts it.
func (l *Local) Step(ctx context.Context, rule kernels.Rule) (StepResult, error) {
	var res StepResult
	if l.stale {
		if err := l.clearFlows(ctx); err != nil {
			return res, err
		}
	}
	moving := context.WithoutCancel(ctx)
	before := l.eng.Recomputed()
	for {
		s, err := l.next(ctx)
		if err != nil {
			return res, err
		}
		ll := l.ll[:s.Batch.Rows]
		if s.Ends && s.Span.Lo == 0 && rule.Anemone == nil {
			err = l.eng.Step(moving, s.Batch, 0, s.Batch.Rows, rule, ll)
		} else {
			l.stale = true
			err = l.eng.Accumulate(ctx, s.Batch, 0, s.Batch.Rows, ll)
		}
		if err != nil {
			return res, err
		}
		res.Add(ll)
		if s.Ends {
			break
		}
	}
	res.Recomputed = l.eng.Recomputed() - before
	if !l.stale {
		return res, nil
	}
	if rule.Anemone != nil {
		a := *rule.Anemone
		a.Rows, rule.Anemone = res.Rows, &a
	}
	if err := l.eng.Apply(moving, rule); err != nil {
		return res, err
	}
	l.stale = false
	return res, nil
}

func (l *Local) next(ctx context.Context) (*dataset.Step, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if l.loader == nil {
		return nil, errors.New("em: step without a plan; call Begin first")
	}
	s, err := l.loader.Next(ctx)
	if errors.Is(err, io.EOF) {
		return nil, errors.New("em: step after the end of the plan; call Begin for further ones")
	}
	return s, err
}

// Add adds the rows of the next shard.
func (r *StepResult) Add(ll []float64) {
	sum := 0.0
	for _, x := range ll {
		sum += x
		if math.IsInf(x, -1) {
			r.Impossible++
		}
	}
	r.LogLikelihood += sum
	r.Rows += len(ll)
}

// clearFlows removes what a step that was given up has added.
func (l *Local) clearFlows(ctx context.Context) error {
	zeros := make([]int64, chunkFloats)
	for at, n := int64(0), l.Program().FlowLen(); at < n; at += chunkFloats {
		if err := l.eng.WriteFlows(ctx, at, zeros[:min(chunkFloats, n-at)]); err != nil {
			return err
		}
	}
	l.stale = false
	return nil
}

// LogLikelihood returns the mean log-likelihood of the rows of src.
func (l *Local) LogLikelihood(ctx context.Context, src dataset.Source) (float64, error) {
	return MeanLogLikelihood(ctx, l.eng, src)
}

// ReadParams copies parameters from the engine.
func (l *Local) ReadParams(ctx context.Context, offset int64, params []float32) error {
	return l.eng.ReadParams(ctx, offset, params)
}

// WriteParams copies parameters to the engine.
func (l *Local) WriteParams(ctx context.Context, offset int64, params []float32) error {
	return l.eng.WriteParams(ctx, offset, params)
}

// ReadAverages copies the averages of Anemone from the engine.
func (l *Local) ReadAverages(ctx context.Context, offset int64, averages []float32) error {
	return l.eng.ReadAverages(ctx, offset, averages)
}

// WriteAverages copies averages of Anemone to the engine.
func (l *Local) WriteAverages(ctx context.Context, offset int64, averages []float32) error {
	return l.eng.WriteAverages(ctx, offset, averages)
}

// EvalRows is the rows that MeanLogLikelihood adds up before it adds the sum to
// the total.
const EvalRows = 512

// MeanLogLikelihood returns the mean log-likelihood of the rows of src in nats:
// -Inf if one of them is impossible. It reads rows ahead of the engine. Rows are
// added up within spans of EvalRows rows, in order, then spans in order, so that
// the bits do not depend on the rows of a launch.
func MeanLogLikelihood(ctx context.Context, eng *engine.Engine, src dataset.Source) (float64, error) {
	batch := EvalRows * max(1, eng.Rows()/EvalRows)
	loader, err := dataset.NewLoader(ctx, src, dataset.LoaderOptions{BatchRows: batch, InOrder: true, Epochs: 1})
	if err != nil {
		return 0, err
	}
	defer loader.Close()
	ll := make([]float64, batch)
	total := 0.0
	for {
		s, err := loader.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return 0, err
		}
		if err := eng.LogLikelihood(ctx, s.Batch, ll); err != nil {
			return 0, err
		}
		for span := range slices.Chunk(ll[:s.Batch.Rows], EvalRows) {
			sum := 0.0
			for _, x := range span {
				sum += x
			}
			total += sum
		}
	}
	if math.IsNaN(total) {
		return 0, fmt.Errorf("%w for a row to evaluate; the parameters are damaged", ErrNumber)
	}
	return total / float64(src.Rows()), nil
}
