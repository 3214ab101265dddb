package main

import (
	"context"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pce-engine/pce"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/run"
)

// answerFlags are the flags of a query that has numbers for each row as its answer.
type answerFlags struct {
	query queryFlags
	out   outputFlags
}

// answerCommand completes c to a command that writes numbers for each row of --data. query
// makes the question once the model is known, since names of columns and what may be asked
// depend on it; flags that cannot work are its errors. An output that exists without --force is
// refused before the model is opened.
func (a *app) answerCommand(c *cobra.Command, query func(m *pce.Model) (*pce.Query, error)) *cobra.Command {
	var f answerFlags
	c.Args = cobra.NoArgs
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := a.checkOutput(cmd.Context(), &f.out, f.query.inputs()...); err != nil {
			return err
		}
		m, err := f.query.open(cmd.Context(), a.stderr, cmd.Name())
		if err != nil {
			return err
		}
		defer m.Close()
		q, err := query(m)
		if err != nil {
			return err
		}
		return a.answerRows(cmd.Context(), &f, m, q)
	}
	f.query.register(c.Flags())
	f.query.registerData(c.Flags())
	f.query.registerSoft(c.Flags())
	f.out.register(c.Flags(), ".csv or .npy", answersToStdout)
	return c
}

func (a *app) queryLoglikCommand() *cobra.Command {
	var given []string
	c := a.answerCommand(&cobra.Command{
		Use:   "loglik --model MODEL --data FILE [--given COLUMNS]",
		Short: "Write the natural-log likelihood of each row; missing cells are marginalised",
	}, func(m *pce.Model) (*pce.Query, error) { return m.NewQuery(pce.QueryLogLikelihood, given...) })
	addList(c.Flags(), &given, "given", "columns, by name or number from 1: the likelihood is that of the other observed cells given these")
	return c
}

func (a *app) queryConditionalCommand() *cobra.Command {
	var of []string
	c := a.answerCommand(&cobra.Command{
		Use:   "conditional --model MODEL --data FILE --of COLUMNS",
		Short: "Write the distributions of columns given each row's observed cells",
		Long: `Write the distributions of columns given each row's observed cells, a line for each row: for
one column after the other the probabilities of its categories, in their order, or mean and
variance of a continuous one. An observed cell is certain.`,
	}, func(m *pce.Model) (*pce.Query, error) {
		if len(of) == 0 {
			return nil, usagef("no --of; name the columns whose distributions are wanted")
		}
		return m.NewQuery(pce.QueryConditional, of...)
	})
	addList(c.Flags(), &of, "of", "columns, by name or number from 1")
	return c
}

func (a *app) queryClassifyCommand() *cobra.Command {
	var class string
	var all bool
	c := a.answerCommand(&cobra.Command{
		Use:   "classify --model MODEL --data FILE --class COLUMN",
		Short: "Write the likeliest category of a column given the row's other cells, and its probability",
	}, func(m *pce.Model) (*pce.Query, error) {
		if class == "" {
			return nil, usagef("no --class; name the column that rows are classified by")
		}
		q, err := m.NewQuery(pce.QueryClass, class)
		if err == nil {
			q.All = all
		}
		return q, err
	})
	c.Flags().StringVar(&class, "class", "", "column of the class, by name or number from 1; what rows say in it does not count")
	c.Flags().BoolVar(&all, "probabilities", false, "write the probability of every category, in their order, instead of the likeliest one's")
	return c
}

// answerRows writes the answer to a query about the rows of --data: a line, or a row of an
// array, for each. Rows are answered in batches and written as they come, but .npy begins with
// the number of its rows, so the answers for such a file are kept until all are known. Rows of
// probability 0 have NaN as their answer; they are counted and noted on stderr, which is not an
// error. So are columns that no leaf reads, whose moments are NaN in every row.
func (a *app) answerRows(ctx context.Context, f *answerFlags, m *pce.Model, q *pce.Query) error {
	s := m.Schema()
	var unanswered run.Unanswered
	width := q.Width(s)
	batches := func(take func(answers []float64) error) error {
		most := min(rowsAtOnce(s), max(1, readCells/width))
		return a.eachBatch(ctx, &f.query, m, most, func(b *dataset.Batch) error {
			answers, err := m.Answer(ctx, q, b)
			if err != nil {
				return err
			}
			for row := range slices.Chunk(answers, width) {
				unanswered.Add(row)
			}
			return take(answers)
		})
	}
	err := a.output(ctx, &f.out, func(w io.Writer, name string) error {
		count := -1
		if strings.EqualFold(filepath.Ext(name), ".npy") { // which begins with the number of its rows
			var kept [][]float64
			total := 0
			if err := batches(func(answers []float64) error {
				kept, total = append(kept, answers), total+len(answers)
				return nil
			}); err != nil {
				return err
			}
			count = total / width
			batches = func(take func(answers []float64) error) error {
				for _, answers := range kept {
					if err := take(answers); err != nil {
						return err
					}
				}
				return nil
			}
		}
		dst, err := q.NewWriter(w, name, s, count)
		if err != nil {
			return err
		}
		if err := batches(func(answers []float64) error {
			for ; len(answers) > 0; answers = answers[width:] {
				if err := dst.Write(answers[:width]); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			return err
		}
		return dst.Close()
	})
	if err != nil {
		return err
	}
	return a.note(unanswered.Notes(q, m.Graph()))
}
