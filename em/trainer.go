package em

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"time"

	"github.com/pce-engine/pce/internal/atomicfile"
	"github.com/pce-engine/pce/kernels/tensor"
)

// Trainer does one run of training: its state, its checkpoints and its metrics file. It is not
// safe for concurrent use.
type Trainer struct {
	flows   FlowSource
	opts    Options
	log     *slog.Logger
	dir     *checkpointDir // nil: none are kept
	saver   *saver         // into dir
	metrics *metricsFile   // nil: none, or not running

	state   state
	best    []float32 // parameters of the best epoch; nil: none
	lines   []byte    // the last lines of metrics
	resumed bool
	changes []Change  // since the checkpoint that Resume continued from
	saved   time.Time // when the last checkpoint was taken
	dirty   bool      // the state has moved on since, or there was none when Run began
}

// Result says what a run ended with. Resumed runs count all their parts.
type Result struct {
	Epochs  int
	Steps   int64
	TrainLL float64 // Metrics.TrainLL of the last epoch, a running mean; NaN if there was none
	ValidLL float64 // of the parameters that training kept; NaN if unknown
	Best    int     // the epoch whose parameters were kept, counted from 1; 0: the last, or BestStart
	// BestStart says that the starting parameters were kept: no epoch was better on Valid.
	BestStart bool

	Rows    int64   // rows trained on, each as often as it was
	Seconds float64 // spent in steps
}

// New returns a run over flows, whose parameters are the starting ones.
func New(flows FlowSource, o Options) (*Trainer, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if flows.Rows() == 0 {
		return nil, badOption("no training rows; give at least one")
	}
	t := &Trainer{flows: flows, opts: o, log: o.Logger, state: newState()}
	if t.log == nil {
		t.log = slog.New(slog.DiscardHandler)
	}
	if o.Checkpoints.Dir != "" {
		t.dir = &checkpointDir{dir: o.Checkpoints.Dir, keep: o.Checkpoints.Keep, log: t.log, write: atomicfile.Write}
		t.saver = &saver{dir: t.dir, log: t.log}
		if t.dir.keep == 0 {
			t.dir.keep = defaultKeep
		}
	}
	return t, nil
}

// Run trains to the end, saves the model and returns what came out. If ctx ends
// before, it writes a checkpoint of the last whole step and returns an error
// that matches ErrStopped; Run may then be called again.
func (t *Trainer) Run(ctx context.Context) (res Result, err error) {
	if err := t.start(ctx); err != nil {
		return Result{}, err
	}
	defer func() {
		if wait := t.lasting(); err == nil {
			err = wait
		} else if wait != nil {
			t.log.Error("the last checkpoint is not written", "err", wait)
		}
		if t.metrics != nil {
			err = errors.Join(err, t.metrics.close())
			t.metrics = nil
		}
	}()
	if err := t.keepStart(ctx); err != nil {
		return Result{}, t.stopped(ctx, err)
	}
	last := 0
	for i := range t.opts.Phases {
		first := last
		last += t.opts.Phases[i].Epochs
		if err := t.phase(ctx, i, first, last); err != nil {
			return Result{}, t.stopped(ctx, err)
		}
	}
	if left := last - t.state.At.Epoch; left > 0 && t.state.At.Step == 0 && t.impatient() {
		t.log.Info("patience has ended the run: the epochs that are left are not done", "epoch", t.state.At.Epoch, "left", left)
	}
	if err := t.save(ctx); err != nil {
		return Result{}, t.stopped(ctx, err)
	}
	if err := t.lasting(); err != nil { // a model comes after its checkpoint
		return Result{}, err
	}
	if err := t.keepBest(ctx); err != nil {
		return Result{}, t.stopped(ctx, err)
	}
	if t.opts.Sink != nil {
		if err := t.opts.Sink.SaveModel(ctx, t.flows); err != nil {
			return Result{}, t.stopped(ctx, err)
		}
	}
	return t.result(), nil
}

// start opens what the run writes to, before its first step. A directory with checkpoints is
// refused unless the run was resumed from it. A run without a checkpoint gets one also where it ends, or is
// stopped, before its first step, so that it is resumed as what it was. The metrics file is cut back to the epochs of
// the checkpoint. Changes that were allowed are saved at once: they count even if the run ends
// before its next checkpoint.
func (t *Trainer) start(ctx context.Context) error {
	if t.dir != nil {
		all, err := t.dir.list()
		switch {
		case err != nil:
			return err
		case len(all) == 0:
			t.dirty = true
		case !t.resumed:
			return badOption("%s holds the checkpoints of a run; resume it or choose another directory", t.dir.dir)
		}
		t.resumed = true
		if err := t.dir.prepare(); err != nil {
			return err
		}
	}
	if path := t.opts.MetricsFile; path != "" {
		var what string
		var err error
		if t.metrics, t.lines, what, err = openMetrics(path, t.state.At.Epoch, t.lines); err != nil {
			return err
		}
		if t.lines = keepTail(t.lines); what != "" {
			t.log.Error("the metrics file was damaged: "+what, "path", path)
		}
	}
	t.saved = time.Now()
	if len(t.changes) > 0 { // they hold from here on, also if the run ends before the next checkpoint
		t.dirty, t.changes = true, nil
		if err := t.save(ctx); err != nil {
			return err
		}
		return t.lasting()
	}
	return nil
}

// phase does what is left of phase i, the epochs first to last-1: steps until each epoch is
// complete, then its end, which evaluates and saves. It returns nil when the phase, the limit
// of steps or the patience is over, and ctx's error between two steps.
func (t *Trainer) phase(ctx context.Context, i, first, last int) error {
	st := &t.state
	if st.At.Epoch >= last || t.done() {
		return nil
	}
	plan := t.opts.plan(i, t.flows.Rows(), last, st)
	steps := plan.Steps()
	if plan.Start.Step >= steps { // only the end of the epoch is left
		plan.Start.Epoch, plan.Start.Step = st.At.Epoch+1, 0
	}
	if plan.Start.Epoch < last {
		if err := t.flows.Begin(ctx, plan); err != nil {
			return err
		}
	}
	for st.At.Epoch < last && !t.done() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if st.At.Step < steps && !t.limited() {
			at := int64(st.At.Epoch-first)*int64(steps) + int64(st.At.Step)
			weight := float64(st.Averages)
			if at == 0 { // each phase has its own
				weight = 0
			}
			rule := t.opts.Phases[i].RuleAt(at, int64(last-first)*int64(steps), weight)
			if err := t.step(ctx, rule, steps); err != nil {
				return err
			}
			continue
		}
		at := int64(st.At.Epoch-first)*int64(steps) + int64(st.At.Step) - 1
		size := t.opts.Phases[i].RuleAt(at, int64(last-first)*int64(steps), 0).Step
		if err := t.endEpoch(ctx, size, st.At.Step < steps); err != nil {
			return err
		}
	}
	return nil
}

// limited reports whether Options.Steps have been done.
func (t *Trainer) limited() bool { return t.opts.Steps > 0 && t.state.Steps >= t.opts.Steps }

// done reports whether training ends here, before the epochs do.
func (t *Trainer) done() bool {
	st := &t.state
	return st.At.Step == 0 && (t.limited() || t.impatient())
}

// impatient reports whether the last epochs were no better than the best one for
// as long as Options.Patience allows.
func (t *Trainer) impatient() bool {
	st := &t.state
	return t.opts.Patience > 0 && st.hasBest() && st.At.Epoch-max(st.BestEpoch, st.Waiting) >= t.opts.Patience
}

// step moves the parameters once and counts what came of it. A log-likelihood that is NaN or
// +Inf ends the run with ErrNumber, before a checkpoint could keep such parameters. A
// checkpoint follows where Checkpoints asks for one within epochs.
func (t *Trainer) step(ctx context.Context, rule tensor.Rule, steps int) error {
	st := &t.state
	begin := time.Now()
	res, err := t.flows.Step(ctx, rule)
	if err != nil {
		return err
	}
	seconds := exact(time.Since(begin).Seconds())
	st.Averages = 0
	if rule.Anemone != nil {
		a := *rule.Anemone
		a.Rows, a.Impossible = res.Rows, res.Impossible
		st.Averages = exact(a.Next())
	}
	st.At.Step++
	st.Steps++
	st.LLSum += exact(res.LogLikelihood)
	st.Rows += int64(res.Rows)
	st.Impossible += int64(res.Impossible)
	st.TotalRows += int64(res.Rows)
	st.Seconds += seconds
	st.TotalSeconds += seconds
	t.dirty = true
	mean := float64(st.LLSum) / float64(st.Rows)
	if math.IsNaN(mean) || math.IsInf(mean, 1) {
		return fmt.Errorf("%w: %v after step %d; lower the step size or raise the pseudocount", ErrNumber, mean, st.Steps)
	}
	t.log.Debug("step done", "epoch", st.At.Epoch+1, "step", st.Steps, "ll", res.LogLikelihood/float64(res.Rows))
	if t.opts.OnStep != nil {
		t.opts.OnStep(Progress{Epoch: st.At.Epoch + 1, Epochs: t.opts.epochs(), Step: st.At.Step, Steps: steps, Rows: res.Rows, LL: mean})
	}
	c := t.opts.Checkpoints
	if c.Steps > 0 && st.Steps%c.Steps == 0 || c.Interval > 0 && time.Since(t.saved) >= c.Interval {
		return t.save(ctx)
	}
	return nil
}

// endEpoch evaluates and reports the epoch, whose last step was of stepSize. One that Options.Steps has cut is
// saved before it ends, so that a resumed run with a later end continues in it.
func (t *Trainer) endEpoch(ctx context.Context, stepSize float64, cut bool) error {
	valid := math.NaN()
	if t.opts.Valid != nil {
		all, err := t.flows.LogLikelihood(ctx, t.opts.Valid)
		if err != nil {
			return err
		}
		valid = all.Mean()
		if all.Impossible > 0 {
			t.log.Warn("validation rows have probability 0: valid_ll is -Inf and cannot tell epochs apart",
				"epoch", t.state.At.Epoch+1, "samples", all.Impossible, "first_row", all.Lowest.Row+1)
		}
	}
	if cut {
		if err := t.save(ctx); err != nil {
			return err
		}
	}
	st := &t.state
	m := Metrics{
		Epoch: st.At.Epoch + 1, Step: st.Steps, TrainLL: float64(st.LLSum) / float64(st.Rows), ValidLL: valid, StepSize: stepSize,
		Seconds: float64(st.Seconds), SamplesPerSecond: float64(st.Rows) / max(float64(st.Seconds), 1e-9),
	}
	line := metricsText(m)
	if t.metrics != nil {
		if err := t.metrics.append(line); err != nil {
			return err
		}
	}
	t.lines = keepTail(append(t.lines, line...))
	if t.opts.KeepsBest() && (!st.hasBest() || valid > float64(st.BestLL)) {
		if err := t.copyParams(ctx); err != nil {
			return err
		}
		st.BestEpoch, st.BestLL, st.BestStart = m.Epoch, exact(valid), false
	}
	t.report(m)
	st.At.Epoch, st.At.Step, st.Apart = m.Epoch, 0, false
	st.TrainLL, st.ValidLL = exact(m.TrainLL), exact(m.ValidLL)
	st.LLSum, st.Rows, st.Impossible, st.Seconds = 0, 0, 0, 0
	t.dirty = !cut
	if n := t.opts.Checkpoints.Epochs; n > 0 && st.At.Epoch%n == 0 {
		return t.save(ctx)
	}
	return nil
}

func (t *Trainer) report(m Metrics) {
	args := []any{"epoch", m.Epoch, "step", m.Step, "running_ll", m.TrainLL}
	if t.opts.Valid != nil {
		args = append(args, "valid_ll", m.ValidLL)
	}
	t.log.Info("epoch done", append(args, "samples", t.state.Rows, "dur", time.Duration(m.Seconds*float64(time.Second)))...)
	if n := t.state.Impossible; n > 0 {
		t.log.Warn("rows of probability 0 taught nothing; a pseudocount or other leaves would give them some", "epoch", m.Epoch, "samples", n)
	}
	if t.opts.OnEpoch != nil {
		t.opts.OnEpoch(m)
	}
}

// keepStart makes the starting parameters the best so far, before the first step of a run
// that keeps them.
func (t *Trainer) keepStart(ctx context.Context) error {
	st := &t.state
	if !t.opts.KeepStart || st.hasBest() || st.Steps > 0 {
		return nil
	}
	all, err := t.flows.LogLikelihood(ctx, t.opts.Valid)
	if err != nil {
		return err
	}
	if err := t.copyParams(ctx); err != nil {
		return err
	}
	st.BestStart, st.BestLL = true, exact(all.Mean())
	return nil
}

// copyParams makes the parameters those of the best epoch.
func (t *Trainer) copyParams(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx) // half a copy would be saved
	n := t.flows.Program().NumParams
	if t.best == nil {
		t.best = make([]float32, n)
	}
	for at := int64(0); at < n; at += chunkFloats {
		if err := t.flows.ReadParams(ctx, at, t.best[at:min(at+chunkFloats, n)]); err != nil {
			return err
		}
	}
	return nil
}

// keepBest puts the parameters of the best epoch back. Those at hand are of steps after it where the run was stopped within the
// next one and is to end before that, or that one was to begin again.
func (t *Trainer) keepBest(ctx context.Context) error {
	at := t.state.At
	if t.best == nil || !t.opts.KeepsBest() || t.state.BestEpoch == at.Epoch && at.Step == 0 && !t.state.Apart {
		return nil
	}
	for at := int64(0); at < int64(len(t.best)); at += chunkFloats {
		if err := t.flows.WriteParams(ctx, at, t.best[at:min(at+chunkFloats, int64(len(t.best)))]); err != nil {
			return err
		}
	}
	if t.state.BestStart {
		t.log.Info("kept the starting parameters: no epoch was better", "valid_ll", float64(t.state.BestLL))
		return nil
	}
	t.log.Info("kept the best epoch", "epoch", t.state.BestEpoch, "valid_ll", float64(t.state.BestLL))
	return nil
}

// save takes a checkpoint if there is anything new. When it returns, the checkpoint
// holds the present state, and is written while the run continues; lasting waits for it.
func (t *Trainer) save(ctx context.Context) error {
	if t.dir == nil || !t.dirty {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	err := t.saver.save(t.state.Steps, func(w io.Writer) error {
		rows := t.flows.Rows()
		return writeCheckpoint(ctx, w, t.flows, t.best, t.opts.settings(rows), t.opts.fingerprint(rows), t.lines, &t.state)
	})
	if err != nil {
		return err
	}
	t.dirty, t.saved = false, time.Now()
	return nil
}

// lasting waits until the last checkpoint that was taken would outlast a power cut.
func (t *Trainer) lasting() error {
	if t.saver == nil {
		return nil
	}
	err := t.saver.wait()
	t.dirty = t.dirty || err != nil
	return err
}

// stopped turns the error of a run whose context ended into ErrStopped, after a
// checkpoint; other errors stay as they are.
func (t *Trainer) stopped(ctx context.Context, err error) error {
	if ctx.Err() == nil || !errors.Is(err, ctx.Err()) {
		return err
	}
	if err := errors.Join(t.save(ctx), t.lasting()); err != nil {
		return err
	}
	where := fmt.Sprintf("%d epochs and %d steps are done", t.state.At.Epoch, t.state.Steps)
	if t.dir == nil {
		return fmt.Errorf("%w: %s; no checkpoints are kept", ErrStopped, where)
	}
	return fmt.Errorf("%w: %s; resume to continue", ErrStopped, where)
}

func (t *Trainer) result() Result {
	st := &t.state
	r := Result{
		Epochs: st.At.Epoch, Steps: st.Steps, TrainLL: float64(st.TrainLL), ValidLL: float64(st.ValidLL),
		Rows: st.TotalRows, Seconds: float64(st.TotalSeconds),
	}
	if t.opts.KeepsBest() && t.best != nil {
		r.ValidLL, r.Best, r.BestStart = float64(st.BestLL), st.BestEpoch, st.BestStart
	}
	return r
}
