package run

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strconv"

	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/em"
)

// TrainOptions say what is trained, on what, and how. Structure and Train are needed, and Dir
// for the files; the rest has defaults.
type TrainOptions struct {
	Structure Structure
	Compile   compile.Options // zero: the default
	Train     Rows
	Valid     Rows // nil: none
	Test      Rows // nil: none

	// EM says how. Without phases there are 20 epochs of mini-batch EM. Valid,
	// Sink, MetricsFile, Checkpoints.Dir, Fingerprint and AllowChanges are set by Train, and
	// KeepStart too where the starting parameters are learned with the structure.
	EM em.Options
	// Discriminative is em.Discriminative.Share; above 0 it needs Structure.Class, and log-likelihoods of the run are
	// those of that objective.
	Discriminative float64

	Options Options // Engines, Rows, Path, Numbers, Only and Soft do not count: training takes tensors
	Mixed   bool    // products of lower precision where the device has them; not for Discriminative

	Dir    string // where the run is written; created if absent
	Resume bool   // continue the run in Dir, if there is one
	Config []byte // the text of config.yaml; nil: no file
	// Settings are those that the run is made of, such as those of Config: it is
	// resumed with the same ones, but for the free ones. nil: what these options say.
	Settings     []em.Fact
	AllowChanges bool   // resume with other settings, rows or kernels all the same
	Samples      int    // rows drawn at the end into samples.png, of images, or samples.txt, of text, up to MaxSamples; 0: no file
	Name         string // kept in the model file

	// OnStage is called when a part of the work begins and when it has ended, by the
	// goroutine that called Train; nil: never.
	OnStage func(Stage)
}

// Train makes a circuit, trains it and writes the run to opts.Dir:
// model.safetensors, metrics.jsonl, checkpoints, result.json and, where asked for,
// config.yaml and samples.png or samples.txt. If ctx ends while it trains, the error matches
// em.ErrStopped and a run with Resume continues with the same bits.
func Train(ctx context.Context, opts TrainOptions) (*Result, error) {
	return TrainElsewhere(ctx, opts, Elsewhere{})
}

// TrainElsewhere is Train of a run that others compute; opts.Options say how
// samples are drawn, here. Without Flows it is computed in this process.
func TrainElsewhere(ctx context.Context, opts TrainOptions, by Elsewhere) (_ *Result, err error) {
	if opts.Train == nil {
		return nil, fmt.Errorf("%w: no training rows; set Train", ErrOptions)
	}
	if opts.Samples < 0 || opts.Samples > MaxSamples { // they are drawn when all is trained, too late for a mistake
		return nil, fmt.Errorf("%w: Samples is %d, want 0..%d", ErrOptions, opts.Samples, MaxSamples)
	}
	if opts.Valid != nil {
		opts.Valid = readOnceFor(opts.Valid)
	}
	lock, err := claim(opts.Dir, opts.Resume)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()

	b, kept, err := opts.build(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	if by.Prepare != nil {
		if err := by.Prepare(ctx, b.Train.Rows(), &opts); err != nil {
			return nil, err
		}
	}
	r := &training{opts: opts, flows: by.Flows, plan: b, kept: kept, load: TrainLoad(opts, b.Train.Rows())}
	for _, split := range []struct {
		name string
		rows Rows
		src  *dataset.Source
	}{{"valid", opts.Valid, &r.valid}, {"test", opts.Test, &r.test}} {
		if split.rows == nil {
			continue
		}
		if *split.src, err = teller(opts.OnStage).read(ctx, split.name, split.rows, b.Schema); err != nil {
			return nil, err
		}
		r.load.Tables += tableBytes(*split.src)
	}
	if r.drawsApart() {
		r.load.Draws = r.drawing().Rows
	}
	if err := r.check(); err != nil {
		return nil, err
	}
	if err := r.startConfig(); err != nil {
		return nil, err
	}
	if err := b.warnFar(ctx, opts.EM.Logger, kept || !opts.Structure.learned()); err != nil {
		return nil, err
	}
	freeHeap() // what building took; the engine needs its own
	losses, far := 0, em.Progress{}
	for {
		res, lost, err := r.train(ctx)
		if !lost {
			return res, err
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("%w: the last steps are not saved (%v); resume to continue from the last checkpoint", em.ErrStopped, err)
		}
		if r.last.Epoch > far.Epoch || r.last.Epoch == far.Epoch && r.last.Step > far.Step {
			losses, far = 0, r.last
		}
		if losses++; losses > mostLosses {
			return nil, fmt.Errorf("%w; given up after %d losses without a step farther, look at what computes and at its memory", err, losses)
		}
		if l := opts.EM.Logger; l != nil {
			l.Error("the parameters are lost, continuing from the last checkpoint", "err", err)
		}
		r.opts.Resume = true
	}
}

// mostLosses is how often in a row the parameters may be lost without a step farther than before, as they are where a step ends what
// computes it each time.
const mostLosses = 10

// em returns the training options with the default phases.
func (o *TrainOptions) em() em.Options {
	e := o.EM
	if len(e.Phases) == 0 {
		e.Phases = []em.Phase{{
			Rule: em.MiniBatch, Epochs: 20, BatchRows: 512, Pseudocount: 0.1,
			StepSize: em.Schedule{{Shape: em.Linear, Length: 1, From: 0.9, To: 0.05}},
		}}
	}
	return e
}

// learns reports whether the starting parameters are learned with the structure, so that
// training must not lose them.
func (o *TrainOptions) learns() bool {
	return o.Structure.Kind == "learnspn" && o.Structure.Graph == nil
}

// training is a run in the making.
type training struct {
	opts        TrainOptions
	flows       OpenFlows // nil: an engine of this process
	plan        *Blueprint
	kept        bool // plan is that of the run's checkpoints
	load        Load
	valid, test dataset.Source
	last        em.Progress // of the newest step of flows that may be lost
}

func (r *training) path(name string) string { return filepath.Join(r.opts.Dir, name) }

// em returns the training options for the run's rows.
func (r *training) em() em.Options {
	o := r.opts.em()
	o.Valid = r.valid
	o.KeepStart = o.KeepStart || r.valid != nil && r.opts.learns()
	return o
}

// check finds what cannot work before anything is written.
func (r *training) check() error {
	o := r.em()
	if err := o.Validate(); err != nil {
		return err
	}
	if err := r.checkDiscriminative(); err != nil {
		return err
	}
	if err := r.checkSamples(); err != nil {
		return err
	}
	if _, err := r.plan.strings(r.meta()); err != nil { // else the model could not be saved
		return err
	}
	if _, err := r.load.withDefaults().place(); err != nil {
		return err
	}
	if r.flows == nil {
		return r.plan.check(r.load)
	}
	if r.draws() {
		return r.plan.check(r.drawing())
	}
	return nil
}

// checkDiscriminative looks at Discriminative.
func (r *training) checkDiscriminative() error {
	d := r.opts.Discriminative
	if d == 0 {
		return nil
	}
	if r.flows != nil {
		return fmt.Errorf("%w: discriminative training on a cluster; train on one machine", ErrOptions)
	}
	if r.plan.class == 0 {
		return fmt.Errorf("%w: discriminative training without a class; name its column", ErrOptions)
	}
	for _, p := range r.em().Phases {
		if p.Epochs > 0 && p.Rule != em.MiniBatch {
			return fmt.Errorf("%w: discriminative training by %s; choose %s, whose step sizes fall", ErrOptions, p.Rule, em.MiniBatch)
		}
	}
	return r.discriminative().Validate(r.plan.Schema, r.plan.Program)
}

func (r *training) discriminative() *em.Discriminative {
	return &em.Discriminative{Class: r.plan.class - 1, Share: r.opts.Discriminative}
}

// train does what is left of the run. lost says that the device's parameters are
// gone but the run is not: the caller may continue from the last checkpoint.
func (r *training) train(ctx context.Context) (_ *Result, lost bool, err error) {
	f, err := r.open(ctx)
	if err != nil {
		return nil, false, err
	}
	defer func() {
		lost = err != nil && f.Lost(err)
		err = errors.Join(err, f.Close())
	}()
	if r.flows != nil { // an engine of this process has them
		if err := r.plan.write(ctx, f, true); err != nil {
			return nil, false, err
		}
	}
	o := r.em()
	if told := o.OnStep; r.flows != nil {
		o.OnStep = func(p em.Progress) {
			r.last = p
			if told != nil {
				told(p)
			}
		}
	}
	o.MetricsFile, o.Checkpoints.Dir = r.path(MetricsFile), r.path(CheckpointDir)
	o.AllowChanges = r.opts.AllowChanges
	if o.Fingerprint, err = r.fingerprint(ctx, f); err != nil {
		return nil, false, err
	}
	o.Sink = em.SinkFunc(func(ctx context.Context, params em.ParamReader) error {
		if err := r.removeResult(); err != nil {
			return err
		}
		return r.plan.Save(ctx, r.path(ModelFile), params, r.meta())
	})
	t, err := em.New(f, o)
	if err != nil {
		return nil, false, err
	}
	if r.opts.Resume {
		found, err := t.Resume(ctx)
		if err != nil {
			return nil, false, err
		}
		if err := r.renewConfig(t, found); err != nil {
			return nil, false, err
		}
	}
	if err := r.saveCircuit(); err != nil {
		return nil, false, err
	}
	tell := teller(r.opts.OnStage)
	stage := r.stage(t, f)
	trained := tell.begin(stage)
	res, err := t.Run(ctx)
	if err != nil {
		return nil, false, err
	}
	stage.ValidLL = res.ValidLL
	trained(stage)
	out := r.result(res)
	evaluated := tell.begin(Stage{Name: StageEvaluate})
	if err := r.evaluate(ctx, f, out); err != nil {
		return nil, false, err
	}
	evaluated(Stage{})
	if err := r.drawSamples(ctx, f); err != nil {
		return nil, false, err
	}
	// Workers say what they are once they have computed, and a run that is resumed after its end computes nothing before.
	out.Device, out.PrecisionUsed, out.Recomputed = f.Device(), f.PrecisionUsed(), f.Recomputed()
	return out, false, r.writeResult(out)
}

// stage describes the training that begins.
func (r *training) stage(t *em.Trainer, f Flows) Stage {
	o := r.em()
	dimensions, masses := r.plan.Schema.Dimensions()
	s := Stage{
		Name: StageTrain, Rows: r.plan.Train.Rows(), Variables: dimensions,
		Bits:   r.opts.Discriminative == 0 && masses && (r.plan.Schema.Image != [3]int{} || r.plan.Schema.Unit != ""),
		Device: f.Device(), Precision: f.PrecisionUsed(), ValidLL: t.BestValid(),
	}
	for _, p := range o.Phases {
		s.Epochs += p.Epochs
	}
	if r.opts.Resume {
		s.Resumed, s.ResumedSteps, _ = t.Resumed()
	}
	return s
}

// result returns what is known of a run without an evaluation.
func (r *training) result(res em.Result) *Result {
	sizes := r.plan.sizes()
	out := &Result{
		Nodes: sizes.Nodes(), Edges: sizes.Edges(), Parameters: sizes.Params(),
		Variables: r.plan.Graph.NumVars, Unit: r.plan.Schema.Unit,
		BestEpoch:        res.Best,
		StructureSeconds: r.plan.StructureTime.Seconds(), CompileSeconds: r.plan.CompileTime.Seconds(), TrainSeconds: res.Seconds,
		SamplesPerSecond: float64(res.Rows) / max(res.Seconds, 1e-9),
		Epochs:           res.Epochs, Steps: res.Steps,
		Out: r.opts.Dir, Version: ReadVersion(),
	}
	if out.BestEpoch == 0 && !res.BestStart {
		out.BestEpoch = res.Epochs
	}
	if d := r.discriminative(); d.Share > 0 {
		out.Objective = objective(d, r.plan.Schema)
		if out.Class = r.plan.Schema.Columns[d.Class].Name; out.Class == "" {
			out.Class = strconv.Itoa(d.Class + 1)
		}
	}
	return out
}

// objective says in words what a discriminative run raises.
func objective(d *em.Discriminative, s *dataset.Schema) string {
	class := s.ColumnName(d.Class)
	if d.Share == 1 {
		return fmt.Sprintf("log p(%s given the others)", class)
	}
	return fmt.Sprintf("log p(row) - %v log p(all but %s)", d.Share, class)
}

// evaluate adds the log-likelihoods under the parameters that were saved. Those of
// the training rows during training are running means, of parameters that moved.
func (r *training) evaluate(ctx context.Context, f Flows, out *Result) error {
	for _, split := range []struct {
		name string
		src  dataset.Source
		ll   *float64
	}{{"train", r.plan.Train, &out.TrainLL}, {"valid", r.valid, &out.ValidLL}, {"test", r.test, &out.TestLL}} {
		*split.ll = math.NaN()
		if split.src == nil || split.src.Rows() == 0 {
			continue
		}
		e, err := f.LogLikelihood(ctx, split.src)
		if err != nil {
			return err
		}
		*split.ll = e.Mean()
		for _, w := range Warnings(split.name, e, r.plan.Schema) {
			out.Warnings = append(out.Warnings, w)
			if l := r.opts.EM.Logger; l != nil {
				l.Warn(w)
			}
		}
	}
	if !math.IsNaN(out.TestLL) && r.opts.Discriminative == 0 {
		out.TestBPD, out.TestPerplexity = Measures(out.TestLL, r.plan.Schema)
	}
	return nil
}

func (r *training) meta() map[string]string {
	if r.opts.Name == "" {
		return nil
	}
	return map[string]string{"name": r.opts.Name}
}
