package run

import (
	"context"
	"io"

	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/internal/atomicfile"
)

// draws reports whether the run ends with a picture: its rows are images that
// can be drawn.
func (r *training) draws() bool {
	channels := r.plan.Schema.Image[2]
	return r.opts.Samples > 0 && (channels == 1 || channels == 3)
}

// drawSamples writes a picture of rows drawn from the model, and beside them as many
// training rows, spread over all of them.
func (r *training) drawSamples(ctx context.Context, f Flows) error {
	if !r.draws() {
		return nil
	}
	drawn := teller(r.opts.OnStage).begin(Stage{Name: StageDraw})
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
	var real dataset.Batch
	if err := r.plan.Train.Gather(ctx, &real, spreadRows(r.plan.Train.Rows(), r.opts.Samples)); err != nil {
		return err
	}
	err = atomicfile.Write(r.path(SamplesFile), 0o644, func(w io.Writer) error {
		return dataset.WriteBeside(w, s, b, r.plan.Train.Schema(), &real)
	})
	if err == nil {
		drawn(Stage{})
	}
	return err
}

// spreadRows returns n of rows, or all if there are fewer, at even distances.
func spreadRows(rows, n int) []int {
	out := make([]int, min(rows, n))
	for i := range out {
		out[i] = int(int64(i) * int64(rows) / int64(len(out)))
	}
	return out
}
