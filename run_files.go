package pce

import (
	"context"
	"io"

	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/engine"
	"github.com/pce-engine/pce/internal/atomicfile"
)

// writeConfig writes the config that made the run.
func (r *run) writeConfig() error {
	if r.opts.Config == nil {
		return nil
	}
	return atomicfile.Write(r.path(ConfigFile), 0o644, func(w io.Writer) error {
		_, err := w.Write(r.opts.Config)
		return err
	})
}

// drawSamples writes a picture of rows drawn from the model, where rows are
// images that can be drawn.
func (r *run) drawSamples(ctx context.Context, e *engine.Engine) error {
	s := r.plan.Schema
	if r.opts.Samples <= 0 || s.Image[2] != 1 && s.Image[2] != 3 {
		return nil
	}
	b := dataset.NewBatch(s, r.opts.Samples)
	if err := e.Sample(ctx, b, r.opts.EM.Seed, 0); err != nil {
		return err
	}
	return atomicfile.Write(r.path(SamplesFile), 0o644, func(w io.Writer) error {
		picture, err := dataset.NewWriter(w, SamplesFile, s, b.Rows)
		if err != nil {
			return err
		}
		if err := picture.Write(b); err != nil {
			return err
		}
		return picture.Close()
	})
}
