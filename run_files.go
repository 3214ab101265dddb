package pce

import (
	"context"
	"io"

	"github.com/pce-engine/pce/dataset"
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

// draws reports whether the run ends with a picture: its rows are images that
// can be drawn.
func (r *run) draws() bool {
	channels := r.plan.Schema.Image[2]
	return r.opts.Samples > 0 && (channels == 1 || channels == 3)
}

// drawSamples writes a picture of rows drawn from the model.
func (r *run) drawSamples(ctx context.Context, f Flows) error {
	if !r.draws() {
		return nil
	}
	e, done, err := r.sampler(ctx, f)
	if err != nil {
		return err
	}
	defer done()
	s := r.plan.Schema
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
