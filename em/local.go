package em

import (
	"context"
	"errors"
	"io"
	"math"

	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/engine"
	"github.com/pce-engine/pce/kernels/tensor"
	"github.com/pce-engine/pce/layers"
)

// Local is a FlowSource over one engine. It reads rows ahead of the engine, and
// loads those of the next launch while the device works.
type Local struct {
	eng    *engine.Engine
	src    dataset.Source
	loader *dataset.Loader
	ahead  *rows // that come next; nil: not read yet
	ll     []float64
	stale  bool // a step was given up: flows are left in the engine

	discriminator *discriminator // nil: training is generative
}

// rows are those of a launch.
type rows struct {
	pass *engine.Pass
	err  error // of loading them
	of   *dataset.Step
}

var _ FlowSource = (*Local)(nil)

// NewLocal trains an engine that was opened for training on the rows of src.
// The engine stays the caller's to close.
func NewLocal(eng *engine.Engine, src dataset.Source) *Local {
	return &Local{eng: eng, src: src, ll: make([]float64, eng.Info().Rows)}
}

// Close ends reading ahead, and waits for it; the engine and the source stay open.
func (l *Local) Close() {
	if l.loader != nil {
		l.loader.Close()
		l.loader, l.ahead = nil, nil
	}
}

// Program is the engine's program, to which parameters and flows belong.
func (l *Local) Program() *layers.Program { return l.eng.Program() }

// Rows is the number of training rows, those of the source.
func (l *Local) Rows() int { return l.src.Rows() }

// Begin starts to read the rows of a plan ahead of Step. What was read for an earlier plan is
// dropped. A plan whose shards exceed the engine's launches gives an error that matches
// ErrOptions.
func (l *Local) Begin(ctx context.Context, p Plan) error {
	l.Close()
	if err := p.Validate(); err != nil {
		return err
	}
	if need := min(p.ShardRows, p.StepRows(0)); need > l.eng.Info().Rows {
		return badOption("shards of %d rows on an engine for %d; open it with Options.LaunchRows", need, l.eng.Info().Rows)
	}
	var err error
	l.loader, err = dataset.NewLoader(ctx, l.src, dataset.LoaderOptions{
		BatchRows: p.BatchRows, MinSteps: p.MinSteps, ShardRows: p.ShardRows, Seed: p.Seed, InOrder: p.InOrder, Epochs: p.Epochs, Start: p.Start,
	})
	return err
}

// Step does the next step: fused if its rows are one shard, but for Anemone.
// Once the parameters begin to move the context no longer interrupts it.
func (l *Local) Step(ctx context.Context, rule tensor.Rule) (StepResult, error) {
	var res StepResult
	if l.stale {
		if err := l.clearFlows(ctx); err != nil {
			return res, err
		}
	}
	if l.discriminator != nil {
		return l.discriminate(ctx, rule)
	}
	moving := context.WithoutCancel(ctx)
	before := l.eng.Recomputed()
	for ends := false; !ends; {
		r, err := l.next(ctx)
		if err != nil {
			return res, err
		}
		if ends = r.of.Ends; ends && r.of.Span.Lo == 0 && rule.Anemone == nil {
			err = r.pass.Step(moving, rule)
		} else {
			l.stale = true
			err = r.pass.Accumulate(ctx)
		}
		if err != nil {
			return res, err
		}
		// What goes wrong with the rows that come next is the next step's error.
		l.ahead, _ = l.read(ctx)
		if err := r.pass.Wait(moving); err != nil {
			return res, err
		}
		res.Add(l.ll[:r.of.Span.Hi-r.of.Span.Lo])
	}
	res.Recomputed = l.eng.Recomputed() - before
	if !l.stale {
		return res, nil
	}
	if rule.Anemone != nil {
		a := *rule.Anemone
		a.Rows, a.Impossible, rule.Anemone = res.Rows, res.Impossible, &a
	}
	if err := l.eng.Apply(moving, rule); err != nil {
		return res, err
	}
	l.stale = false
	return res, nil
}

// next returns the rows of the next launch.
func (l *Local) next(ctx context.Context) (r *rows, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if l.loader == nil {
		return nil, errors.New("em: step without a plan; call Begin first")
	}
	if r, l.ahead = l.ahead, nil; r == nil {
		r, err = l.read(ctx)
	}
	switch {
	case errors.Is(err, io.EOF):
		return nil, errors.New("em: step after the end of the plan; call Begin for further ones")
	case err != nil:
		return nil, err
	}
	return r, r.err
}

// read reads the rows after the last ones, and loads them. An error of reading comes
// again with the next call, unless it is the context's.
func (l *Local) read(ctx context.Context) (*rows, error) {
	s, err := l.loader.Next(ctx)
	if err != nil {
		return nil, err
	}
	r := &rows{of: s}
	r.pass, r.err = l.eng.LoadStep(ctx, s.Batch, 0, s.Batch.Rows, l.ll)
	return r, nil
}

// Add adds the rows of the next shard. Shards must come in order: the sum's bits depend on it.
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
	n := l.Program().FlowLen()
	zeros := make([]int64, min(n, chunkFloats))
	for at := int64(0); at < n; at += chunkFloats {
		if err := l.eng.WriteFlows(ctx, at, zeros[:min(chunkFloats, n-at)]); err != nil {
			return err
		}
	}
	l.stale = false
	return nil
}

// LogLikelihood evaluates the rows of src with the present parameters, see Evaluate; those of Discriminate are of its
// objective.
func (l *Local) LogLikelihood(ctx context.Context, src dataset.Source) (Evaluation, error) {
	if l.discriminator != nil {
		return l.evaluate(ctx, src)
	}
	return Evaluate(ctx, l.eng, src)
}

// ReadParams copies parameters from the engine; offset and len(params) must lie within the
// program's.
func (l *Local) ReadParams(ctx context.Context, offset int64, params []float32) error {
	return l.eng.ReadParams(ctx, offset, params)
}

// WriteParams copies parameters to the engine; the next Step uses them.
func (l *Local) WriteParams(ctx context.Context, offset int64, params []float32) error {
	return l.eng.WriteParams(ctx, offset, params)
}

// ReadAverages copies the averages of Anemone from the engine, zeros before its first step; an
// engine that keeps none yet allocates them.
func (l *Local) ReadAverages(ctx context.Context, offset int64, averages []float32) error {
	return l.eng.ReadAverages(ctx, offset, averages)
}

// WriteAverages copies averages of Anemone to the engine, which allocates them if it keeps none
// yet.
func (l *Local) WriteAverages(ctx context.Context, offset int64, averages []float32) error {
	return l.eng.WriteAverages(ctx, offset, averages)
}
