package main

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/pce-engine/pce/em"
	"github.com/pce-engine/pce/report"
	"github.com/pce-engine/pce/report/tensorboard"
	"github.com/pce-engine/pce/run"
)

// events writes what epochs come to for TensorBoard. A directory that cannot be written
// is found before the run begins; what fails later is a warning, as the same figures are
// in metrics.jsonl.
type events struct {
	dir string
	run string // its directory
	of  string // what its figures are: log-likelihood, or objective of a discriminative run
	log *slog.Logger
	w   *tensorboard.Writer // nil: not yet, or not any more

	again bool // earlier files may be of the same run
}

// newEvents has the callbacks of a run write events too.
func newEvents(dir string, o *run.TrainOptions, log *slog.Logger) (*events, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("%w: --tensorboard: %w", errUsage, err)
	}
	e := &events{dir: dir, run: o.Dir, of: "log-likelihood", log: log, again: o.Resume}
	if o.Discriminative > 0 {
		e.of = "objective"
	}
	onStage, onEpoch := o.OnStage, o.EM.OnEpoch
	o.OnStage = func(s run.Stage) {
		onStage(s)
		if s.Name == run.StageTrain && !s.Done {
			e.begin(s)
		}
	}
	o.EM.OnEpoch = func(m em.Metrics) {
		onEpoch(m)
		e.epoch(m)
	}
	return e, nil
}

// begin starts an event file for training that begins, or continues from a checkpoint, or from
// the start where there is none: what earlier files of the run have after that does not count.
func (e *events) begin(s run.Stage) {
	e.close()
	w, err := tensorboard.Create(e.dir)
	if err == nil && e.again {
		err = w.Restart(e.from(s))
	}
	e.w, e.again = w, true
	e.check(err)
}

// from returns the first step whose points in earlier files do not count: the one after the last epoch that is done. Later
// steps may be done as well, and where train.steps ended there, their part of an epoch has a point too.
func (e *events) from(s run.Stage) int64 {
	if s.Resumed == 0 {
		return 1
	}
	epochs, _ := report.ReadEpochs(filepath.Join(e.run, run.MetricsFile)) // the run reads the file too, and says what is wrong with it
	for _, x := range epochs {
		if x.Epoch == s.Resumed && x.Step > 0 {
			return x.Step + 1
		}
	}
	return s.ResumedSteps + 1
}

func (e *events) epoch(m em.Metrics) {
	if e.w == nil {
		return
	}
	e.check(e.w.Scalars(m.Step,
		tensorboard.Scalar{Tag: e.of + "/training", Value: m.TrainLL},
		tensorboard.Scalar{Tag: e.of + "/validation", Value: m.ValidLL},
		tensorboard.Scalar{Tag: "training/step size", Value: m.StepSize},
		tensorboard.Scalar{Tag: "training/rows per second", Value: m.SamplesPerSecond},
		tensorboard.Scalar{Tag: "training/seconds of the epoch", Value: m.Seconds},
	))
}

// check gives the file up after an error.
func (e *events) check(err error) {
	if err != nil {
		e.log.Warn("no more events are written for TensorBoard", "err", err)
		e.close()
	}
}

func (e *events) close() {
	if e.w != nil {
		e.w.Close() // every event has been written
		e.w = nil
	}
}
