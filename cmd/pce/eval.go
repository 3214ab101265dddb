package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pce-engine/pce"
	"github.com/pce-engine/pce/cluster/job"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/run"
)

// readRows is how many rows of a file are in memory at a time, and readCells how
// many cells of them, if a row has no more.
const (
	readRows  = 4096
	readCells = 1 << 23
)

// rowsAtOnce is how many rows of a model are read or drawn at a time.
func rowsAtOnce(s *dataset.Schema) int {
	return min(readRows, max(1, readCells/max(1, len(s.Columns))))
}

// queryFlags are the flags of every command that asks a model about rows.
type queryFlags struct {
	config configFlags
	run    deviceFlags
	path   pathFlag
	model  string
	data   []string
	soft   bool
}

// inputs are the files that a query reads, and paths of rows.
func (f *queryFlags) inputs() []string {
	return slices.Concat([]string{f.model}, f.config.files, f.data)
}

func (f *queryFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.model, "model", "", "model file")
	flags.StringArrayVar(&f.config.files, "config", nil, "config file whose data section says how rows are read; repeatable")
	flags.StringArrayVar(&f.config.set, "set", nil, "key=value, such as data.header=no; repeatable")
	f.run.register(flags)
	f.path.register(flags)
}

func (f *queryFlags) registerData(flags *pflag.FlagSet) {
	flags.StringArrayVar(&f.data, "data", nil, "rows: a file, directory, pattern, builtin source or - for standard input; repeatable")
}

func (f *queryFlags) registerSoft(flags *pflag.FlagSet) {
	flags.BoolVar(&f.soft, "soft", false, "read cells 30..40, 30.. and ..40 as ranges, {a|b} as sets and [0.2|0.8] as likelihoods of the categories, see docs/queries.md")
}

// open opens the model of the flags for queries of one kind, for which the path is chosen; the caller closes it. A
// model file of an earlier version, whose damage need not show, is opened with a line to notes.
// A decision forest, no --model and an unknown path are errors. While it works the garbage
// collector runs more often, see openGC.
func (f *queryFlags) open(ctx context.Context, notes io.Writer, kind string) (*pce.Model, error) {
	if f.model == "" {
		return nil, usagef("no --model; give a model file, such as model.safetensors of a run")
	}
	defer headroom(openGC)()
	o := runOptions(f.run.device, f.run.threads)
	how, err := f.path.how()
	if err != nil {
		return nil, err
	}
	o.Path, o.Numbers, o.Only, o.Soft = how.Path, how.Numbers, kind, f.soft
	m, err := pce.Open(ctx, f.model, o)
	if err == nil && m.Forest() != nil {
		m.Close()
		return nil, fmt.Errorf("%w: %s is a decision forest; ask it with pce predict", pce.ErrKind, f.model)
	}
	if err == nil {
		noteModel(notes, f.model, m)
	}
	return m, err
}

// noteModel says what a user has to know of a model file that can be used all the same: it has no checksum, or is about numbers that cells do
// not hold.
func noteModel(w io.Writer, path string, m *pce.Model) {
	if m.Unchecked() {
		noteUnchecked(w, path)
	}
	if coarse := m.Coarse(); coarse != "" {
		tell(w, "warning: %s: %s", path, coarse)
	}
}

// noteUnchecked says that a model file has no checksum.
func noteUnchecked(w io.Writer, path string) {
	tell(w, "note: %s is of an earlier version, without a checksum: damage to its parameters need not show", path)
}

// groups are the paths of rows that are opened together, since data.text.max_bytes and the wish for one row at least are about
// all files of a command. A builtin source is opened alone.
func (f *queryFlags) groups() (groups [][]string) {
	for _, path := range f.data {
		if n := len(groups); n > 0 && !job.IsBuiltin(path) && !job.IsBuiltin(groups[n-1][0]) {
			groups[n-1] = append(groups[n-1], path)
			continue
		}
		groups = append(groups, []string{path})
	}
	return groups
}

// reader opens rows of a model, those of a group of paths.
func (a *app) reader(ctx context.Context, f *queryFlags, schema *dataset.Schema, group []string) (dataset.Reader, error) {
	cfg, err := a.loadAskedConfig(&f.config)
	if err != nil {
		return nil, err
	}
	o, err := a.queryOptions(&cfg.Data, schema)
	if err != nil {
		return nil, err
	}
	o.Soft = f.soft
	paths, err := a.expandPaths(ctx, group)
	if err != nil {
		return nil, err
	}
	return dataset.OpenReaderAll(ctx, paths, o)
}

// eachBatch calls do with the rows of all paths of a command, in order, at most that many at a
// time, read by the model's schema. The batch is reused: do copies what it keeps. The first
// error, of reading or of do, ends it; no path at all is a usage error.
func (a *app) eachBatch(ctx context.Context, f *queryFlags, m *pce.Model, most int, do func(b *dataset.Batch) error) error {
	if len(f.data) == 0 {
		return usagef("no --data; give the rows to ask about")
	}
	b := &dataset.Batch{}
	for _, group := range f.groups() {
		r, err := a.reader(ctx, f, m.Schema(), group)
		if err != nil {
			return err
		}
		for err == nil {
			if err = r.Read(ctx, b, most); err == nil {
				err = do(b)
			}
		}
		if errors.Is(err, io.EOF) {
			err = nil
		}
		if err := errors.Join(err, r.Close()); err != nil {
			return err
		}
	}
	return nil
}

// logLikelihoods returns the log-likelihood of every row of all paths.
func (a *app) logLikelihoods(ctx context.Context, f *queryFlags, m *pce.Model) ([]float64, error) {
	var all []float64
	err := a.eachBatch(ctx, f, m, rowsAtOnce(m.Schema()), func(b *dataset.Batch) error {
		ll, err := m.LogLikelihoodBatch(ctx, b)
		all = append(all, ll...)
		return err
	})
	return all, err
}

// warn prints what makes figures doubtful, a line for each.
func (a *app) warn(warnings []string) error {
	for _, w := range warnings {
		if err := a.tell("warning: %s", w); err != nil {
			return err
		}
	}
	return nil
}

// note prints what a user should know of a result, a line for each.
func (a *app) note(notes []string) error {
	for _, n := range notes {
		if err := a.tell("note: %s", n); err != nil {
			return err
		}
	}
	return nil
}

// evalCommand makes the command pce eval, which prints the mean log-likelihood of rows and
// what follows from it, or how well a column is known from the others.
func (a *app) evalCommand() *cobra.Command {
	var f queryFlags
	var asJSON bool
	var class string
	c := &cobra.Command{
		Use:   "eval --model MODEL --data FILE [--class COLUMN]",
		Short: "Print the mean log-likelihood of rows, bits per dimension of discrete ones and the perplexity of text",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("class") {
				m, err := f.open(cmd.Context(), a.stderr, "")
				if err != nil {
					return err
				}
				defer m.Close()
				c, err := a.classify(cmd.Context(), &f, m, class)
				if err != nil {
					return err
				}
				if err := a.warn(c.Warnings); err != nil {
					return err
				}
				if asJSON {
					return a.printJSON(c)
				}
				return c.print(a.stdout)
			}
			m, err := f.open(cmd.Context(), a.stderr, pce.QueryLogLikelihood)
			if err != nil {
				return err
			}
			defer m.Close()
			ll, err := a.logLikelihoods(cmd.Context(), &f, m)
			if err != nil {
				return err
			}
			e := run.Evaluate(slices.Values(ll), m.Schema())
			if err := a.warn(e.Warnings); err != nil {
				return err
			}
			if asJSON {
				return a.printJSON(e)
			}
			text := fmt.Sprintf("rows                %d\nlog-likelihood      %s nats per row\n", e.Rows, orInfinite(e.LL, "-inf"))
			for _, m := range []struct {
				name string
				of   *run.Measure
			}{{"bits per dimension", e.BPD}, {"perplexity", e.Perplexity}} {
				if m.of != nil {
					text += fmt.Sprintf("%-20s%s\n", m.name, strings.TrimPrefix(strings.ToLower(fmt.Sprintf("%.6g", *m.of)), "+"))
				}
			}
			_, err = io.WriteString(a.stdout, text)
			return err
		},
	}
	f.register(c.Flags())
	f.registerData(c.Flags())
	c.Flags().StringVar(&class, "class", "", "instead, how well this column, by name or number from 1, is classified given the others")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

func orInfinite(x *float64, infinite string) string {
	if x == nil {
		return infinite
	}
	return fmt.Sprintf("%.6g", *x)
}
