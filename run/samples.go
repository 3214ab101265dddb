package run

import (
	"context"
	"fmt"
	"io"

	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/internal/atomicfile"
)

// MaxSamples bounds the rows that a run ends with, as the key samples of a config does: all of them are in memory.
const MaxSamples = 4096

// samplesFile returns the name of the file of rows drawn from the model that the run ends
// with: a picture where rows are images that can be drawn, lines where they are text, and ""
// where people would not see anything in them, or no samples are wanted.
func (r *training) samplesFile() string {
	s := r.plan.Schema
	switch channels := s.Image[2]; {
	case r.opts.Samples <= 0:
		return ""
	case channels == 1 || channels == 3:
		return SamplesFile
	case s.Unit != "":
		return TextSamplesFile
	}
	return ""
}

// checkSamples refuses samples whose picture is too large, which is drawn when all is trained.
func (r *training) checkSamples() error {
	s := r.plan.Schema
	if r.samplesFile() == SamplesFile && !dataset.FitsBeside(s, r.opts.Samples, min(r.opts.Samples, r.plan.Train.Rows())) {
		return fmt.Errorf("%w: %d samples of %d x %d pixels make a picture that is too large; ask for fewer, or for 0, in train.samples", ErrOptions, r.opts.Samples, s.Image[0], s.Image[1])
	}
	return nil
}

// draws reports whether the run ends with samples, for which a process that does not compute
// the run itself needs an engine of its own.
func (r *training) draws() bool { return r.samplesFile() != "" }

// drawSamples writes rows drawn from the model: a line for each row of text, or a picture,
// which has beside them as many training rows, spread over all of them. It is called when the
// model has been saved and evaluated. The seed of the run is that of the draws.
func (r *training) drawSamples(ctx context.Context, f Flows) error {
	name := r.samplesFile()
	if name == "" {
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
	write := func(w io.Writer) error { return writeLines(w, name, s, b) }
	if name == SamplesFile {
		var real dataset.Batch
		if err := r.plan.Train.Gather(ctx, &real, spreadRows(r.plan.Train.Rows(), r.opts.Samples)); err != nil {
			return err
		}
		write = func(w io.Writer) error { return dataset.WriteBeside(w, s, b, r.plan.Train.Schema(), &real) }
	}
	err = atomicfile.Write(r.path(name), 0o644, write)
	if err == nil {
		drawn(Stage{})
	}
	return err
}

// writeLines writes rows of text as people read them, in the format of name's extension.
func writeLines(w io.Writer, name string, s *dataset.Schema, b *dataset.Batch) error {
	out, err := dataset.NewWriter(w, name, s, b.Rows)
	if err == nil {
		err = out.Write(b)
	}
	if err != nil {
		return err
	}
	return out.Close()
}

// spreadRows returns n of rows, or all if there are fewer, at even distances.
func spreadRows(rows, n int) []int {
	out := make([]int, min(rows, n))
	for i := range out {
		out[i] = int(int64(i) * int64(rows) / int64(len(out)))
	}
	return out
}
