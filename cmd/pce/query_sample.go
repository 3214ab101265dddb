package main

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pce-engine/pce"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/run"
)

// sampleFlags are the flags of query sample.
type sampleFlags struct {
	query queryFlags
	n     int
	seed  uint64
	given string
	out   outputFlags
}

// querySampleCommand makes the command pce query sample. Flags that cannot work and an output
// that exists without --force are refused before the model is opened.
func (a *app) querySampleCommand() *cobra.Command {
	var f sampleFlags
	c := &cobra.Command{
		Use:   "sample --model MODEL [-n N] [--seed S] [--given FILE]",
		Short: "Draw rows, or complete the missing cells of given rows",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.n < 1 {
				return usagef("-n is %d; want 1 or more", f.n)
			}
			if f.query.soft && f.given == "" {
				return usagef("--soft without --given; give the rows with ranges, sets or likelihoods")
			}
			if f.given == "" && len(f.query.config.set)+len(f.query.config.files) > 0 {
				return usagef("--set and --config without --given; they say how its rows are read, leave them out")
			}
			if err := a.checkOutput(cmd.Context(), &f.out, append(f.query.inputs(), f.given)...); err != nil {
				return err
			}
			m, err := f.query.open(cmd.Context(), a.stderr, cmd.Name())
			if err != nil {
				return err
			}
			defer m.Close()
			return a.sample(cmd.Context(), &f, m)
		},
	}
	f.query.register(c.Flags())
	f.query.registerSoft(c.Flags())
	c.Flags().IntVarP(&f.n, "rows", "n", 1, "rows to draw; with --given, completions of each row, one after another")
	c.Flags().Uint64Var(&f.seed, "seed", 0, "seed of the draws")
	c.Flags().StringVar(&f.given, "given", "", "rows whose missing cells are drawn given the others; - is standard input")
	f.out.register(c.Flags(), ".csv, .npy, .txt for text, or .png for images (with --given, a line for each given row: the row, then its completions)", rowsToStdout)
	return c
}

// sample draws f.n rows, or f.n completions of each row of --given, and writes them in batches.
// Row i depends on the seed and i alone, so that fewer rows are the first of more. Given rows
// that are impossible keep their missing cells and are counted in a note on stderr.
func (a *app) sample(ctx context.Context, f *sampleFlags, m *pce.Model) error {
	schema, total := m.Schema(), f.n
	var given dataset.Source
	if f.given != "" {
		var err error
		if given, err = a.evidence(ctx, &f.query, []string{f.given}, schema); err != nil {
			return err
		}
		if total = given.Rows() * f.n; total/f.n != given.Rows() {
			return usagef("-n %d completions of %s are too many", f.n, several(given.Rows(), "row"))
		}
	}
	rest := run.NewUnfilled(m.Graph(), nil)
	err := a.output(ctx, &f.out, func(w io.Writer, name string) error {
		rows, err := newCompletionWriter(&f.out, w, name, schema, given, f.n, total)
		if err != nil {
			return err
		}
		b, most := &dataset.Batch{}, rowsAtOnce(schema)
		for lo := 0; lo < total; lo += most {
			n := min(most, total-lo)
			if given == nil {
				b = dataset.NewBatch(schema, n)
			} else if err := rows.gather(ctx, b, repeated(lo, n, f.n)); err != nil {
				return err
			}
			if err := m.SampleBatch(ctx, b, f.seed, lo); err != nil {
				return err
			}
			rest.Add(b)
			if err := rows.Write(b); err != nil {
				return err
			}
		}
		return rows.Close()
	})
	return errors.Join(err, a.note(rest.Notes()))
}

// completionWriter writes completed rows, as a picture beside what they were made of.
type completionWriter struct {
	dataset.Writer // nil: a picture
	picture        *dataset.CompletionWriter
	from           dataset.Source
	given          dataset.Batch
}

// newCompletionWriter returns a writer of total rows, which are times completions of each
// row of given, or rows without any evidence if given is nil.
func newCompletionWriter(f *outputFlags, w io.Writer, name string, s *dataset.Schema, given dataset.Source, times, total int) (c *completionWriter, err error) {
	c = &completionWriter{from: given}
	if given != nil && strings.EqualFold(filepath.Ext(name), ".png") {
		c.picture, err = dataset.NewCompletionWriter(w, s, given.Rows(), times)
		return c, err
	}
	if f.stdout() {
		name = f.rowsName(s)
	}
	c.Writer, err = dataset.NewWriter(w, name, s, total)
	return c, err
}

// gather fills b with given rows, and keeps them if they are drawn too.
func (c *completionWriter) gather(ctx context.Context, b *dataset.Batch, rows []int) error {
	if c.picture != nil {
		if err := c.from.Gather(ctx, &c.given, rows); err != nil {
			return err
		}
	}
	return c.from.Gather(ctx, b, rows)
}

// Write writes b, the rows that were gathered last, with their missing cells filled.
func (c *completionWriter) Write(b *dataset.Batch) error {
	if c.picture != nil {
		return c.picture.Write(&c.given, b)
	}
	return c.Writer.Write(b)
}

// Close ends the file. A picture is written here, once all of its rows are known; one that
// lacks rows is an error.
func (c *completionWriter) Close() error {
	if c.picture != nil {
		return c.picture.Close()
	}
	return c.Writer.Close()
}

// evidence opens rows whose missing cells a query fills. What their files say in the others
// is kept, as it is written again.
func (a *app) evidence(ctx context.Context, f *queryFlags, paths []string, schema *dataset.Schema) (dataset.Source, error) {
	cfg, err := a.loadAskedConfig(&f.config)
	if err != nil {
		return nil, err
	}
	o, err := a.queryOptions(&cfg.Data, schema)
	if err != nil {
		return nil, err
	}
	o.KeepText, o.Soft = true, f.soft
	return a.openAll(ctx, paths, o)
}

// repeated returns which given rows the samples lo to lo+n-1 complete, each
// given row times times.
func repeated(lo, n, times int) []int {
	rows := make([]int, n)
	for i := range rows {
		rows[i] = (lo + i) / times
	}
	return rows
}
