package main

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/pce-engine/pce"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/run"
)

// mpeFlags are the flags of query mpe.
type mpeFlags struct {
	query queryFlags
	of    []string
	how   pce.MPEOptions
	out   outputFlags
}

// queryMPECommand makes the command pce query mpe. Flags are checked together, before the model
// is opened, so that all that is wrong is told at once.
func (a *app) queryMPECommand() *cobra.Command {
	f := mpeFlags{how: pce.DefaultMPE}
	c := &cobra.Command{
		Use:   "mpe --model MODEL --data FILE [--of COLUMNS] [--beam N] [--candidates N] [--search N] [--seed S]",
		Short: "Fill the missing cells of rows with their most probable completion",
		Long: `Fill the missing cells of each row with the most probable completion given the others. With --of,
those of the named columns alone, with all other missing cells summed out, which stay missing.

The answer is exact where the circuit is deterministic and --of is not given. Else it is the best of
what max-product and a beam search find and of some draws, each improved cell by cell given all
others; a search by branch and bound then proves that nothing is likelier, or comes as far as --search
lets it, and a bound says how much likelier any completion could be. Standard error says which it is.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(f.query.data) == 0 {
				return usagef("no --data; give the rows to complete")
			}
			if f.of != nil && len(f.of) == 0 {
				return usagef("--of names no columns; leave it out to complete all")
			}
			if err := errors.Join(f.how.Check(), a.checkOutput(cmd.Context(), &f.out, f.query.inputs()...)); err != nil {
				return err
			}
			m, err := f.query.open(cmd.Context(), a.stderr, cmd.Name())
			if err != nil {
				return err
			}
			defer m.Close()
			if f.how.Of, err = m.Schema().FindAll(f.of); err != nil {
				return err
			}
			return a.completeRows(cmd.Context(), &f, m)
		},
	}
	f.query.register(c.Flags())
	f.query.registerData(c.Flags())
	addList(c.Flags(), &f.of, "of", "columns to complete, by name or number from 1, with all others that are missing summed out; without it, all")
	c.Flags().IntVar(&f.how.Beam, "beam", f.how.Beam, "partial completions of a row that the beam search keeps where max-product is not exact; 0: no such search")
	f.query.registerSoft(c.Flags())
	c.Flags().IntVar(&f.how.Candidates, "candidates", f.how.Candidates, "drawn completions of a row that are improved where max-product is not exact")
	c.Flags().IntVar(&f.how.Search, "search", f.how.Search, "partial completions of a row that are extended to prove that nothing is likelier where max-product is not exact; 0: no such search")
	c.Flags().Uint64Var(&f.how.Seed, "seed", 0, "seed of the draws")
	f.out.register(c.Flags(), ".csv, .npy, .txt for text, or .png for images (a line for each row: the row, then its completion)", rowsToStdout)
	return c
}

// completeRows writes the rows of --data with their missing cells filled, and notes on stderr
// whether the completions are exact or how far a bound is from them. The rows are opened as a
// whole, since some formats begin with their number and a picture shows each row beside its
// completion. Rows that are impossible keep their missing cells and are counted in a note.
// Draws depend on the seed and the number of the row, not on the size of batches.
func (a *app) completeRows(ctx context.Context, f *mpeFlags, m *pce.Model) error {
	schema := m.Schema()
	given, err := a.evidence(ctx, &f.query, f.query.data, schema)
	if err != nil {
		return err
	}
	var gaps run.Gaps
	rest := run.NewUnfilled(m.Graph(), f.how.Of)
	err = a.output(ctx, &f.out, func(w io.Writer, name string) error {
		rows, err := newCompletionWriter(&f.out, w, name, schema, given, 1, given.Rows())
		if err != nil {
			return err
		}
		b, most := &dataset.Batch{}, rowsAtOnce(schema)
		for lo := 0; lo < given.Rows(); lo += most {
			if err := rows.gather(ctx, b, repeated(lo, min(most, given.Rows()-lo), 1)); err != nil {
				return err
			}
			how, err := m.MPEBatch(ctx, b, f.how, lo)
			if err != nil {
				return err
			}
			for _, c := range how {
				gaps.Add(c.LogLikelihood, c.Bound)
			}
			rest.Add(b)
			if err := rows.Write(b); err != nil {
				return err
			}
		}
		return rows.Close()
	})
	if err != nil {
		return err
	}
	return a.note(append(rest.Notes(), gaps.Note(m.MPEExact(), f.how)))
}
