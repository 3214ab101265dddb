package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pce-engine/pce"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/forest"
	"github.com/pce-engine/pce/run"
)

// predictFlags are the flags of predict.
type predictFlags struct {
	config  configFlags
	model   string
	density string
	data    []string
	run     deviceFlags
	out     outputFlags
	margin  bool
	leaf    bool
	class   bool
	code    scheduleFlags
}

// what is the kind of results that the flags ask for.
func (f *predictFlags) what() forest.What {
	switch {
	case f.margin:
		return forest.Margin
	case f.leaf:
		return forest.Leaves
	case f.class:
		return forest.Class
	}
	return forest.Prediction
}

// inputs are the files that are read, and paths of rows.
func (f *predictFlags) inputs() []string {
	return slices.Concat([]string{f.model, f.density, f.code.file, f.code.profile}, f.config.files, f.data)
}

// rows registers the flags that say where rows come from.
func (f *predictFlags) rows(flags *pflag.FlagSet) {
	flags.StringArrayVar(&f.data, "data", nil, "rows: a file, directory, pattern or - for standard input; repeatable")
	flags.StringArrayVar(&f.config.files, "config", nil, "config file whose data section says how rows are read; repeatable")
	flags.StringArrayVar(&f.config.set, "set", nil, "key=value, such as data.header=no; repeatable")
}

// predictCommand makes the command pce predict. The rows of a forest are numbers, which are
// read by the forest's features and not by a schema, so it has its own flags rather than those
// of queries.
func (a *app) predictCommand() *cobra.Command {
	var f predictFlags
	c := &cobra.Command{
		Use:   "predict --model FOREST --data FILE [--margin [--density CIRCUIT] | --leaf | --class]",
		Short: "Write a decision forest's prediction for each row",
		Long: `Write a decision forest's prediction for each row, as the library that trained it predicts:
a line for each row, numbers separated by commas, each in the shortest form that reads
back in the library's type. The forest comes from XGBoost (JSON, UBJSON or the old binary
file), LightGBM (text), ONNX-ML or treelite. Rows are read and written as they come, so
files may be larger than memory. An empty cell, ?, NA or nan is missing, and so are columns
that a file with a header lacks.

With --density the raw scores are those that are expected given the cells that are there: the
average over what the missing ones may be, by a circuit trained on rows of the same columns.

With --schedule the walks are compiled as the file says (docs/forests.md), with the same results.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.predictRows(cmd.Context(), &f) },
	}
	c.Flags().StringVar(&f.model, "model", "", "file of the forest")
	c.Flags().StringVar(&f.density, "density", "", "model file of a circuit over the forest's columns: raw scores become those expected where cells are missing; needs --margin")
	f.rows(c.Flags())
	f.run.register(c.Flags())
	c.Flags().BoolVar(&f.margin, "margin", false, "write raw scores, before the link")
	c.Flags().BoolVar(&f.leaf, "leaf", false, "write the number of the leaf in each tree, as the library numbers them")
	c.Flags().BoolVar(&f.class, "class", false, "write the class")
	c.MarkFlagsMutuallyExclusive("margin", "leaf", "class")
	f.code.register(c.Flags())
	f.out.register(c.Flags(), ".csv", answersToStdout)
	return c
}

// predictRows writes the results of all rows of the flags as they are computed, so neither rows
// nor results are held in memory. Flags that cannot work, a result that the forest does not
// have (--class of a regression) and an output that exists without --force are refused before
// any row is read. A file is complete or is not written.
func (a *app) predictRows(ctx context.Context, f *predictFlags) error {
	switch {
	case f.model == "":
		return usagef("no --model; give the file of a forest")
	case len(f.data) == 0:
		return usagef("no --data; give the rows to predict")
	case f.density != "" && !f.margin:
		return usagef("--density without --margin: the expected score is exact, and what a link or a class makes of it is not what is expected of them; add --margin")
	case f.density != "" && (f.code.given() || !f.run.processor()):
		return usagef("--density beside --schedule, --profile or --device: expected scores are sums over the leaves that a row may reach, without code and on the CPU; leave these out")
	case strings.EqualFold(filepath.Ext(f.out.path), ".npy"):
		return usagef("%s: predictions are written as they come, and a .npy file begins with their number; write .csv", f.out.path)
	case slices.Contains([]string{".tsv", ".parquet", ".png", ".gz", ".idx"}, strings.ToLower(filepath.Ext(f.out.path))): // readers go by the name
		return usagef("%s: predictions are written as numbers with commas between them; write .csv", f.out.path)
	}
	if err := a.checkOutput(ctx, &f.out, f.inputs()...); err != nil {
		return err
	}
	m, err := f.code.open(a, f.model, f.run, readRows)
	if err != nil {
		return err
	}
	defer m.Close()
	if err := m.Forest().Has(f.what()); err != nil {
		return fmt.Errorf("%s: %w", f.model, err)
	}
	compute := func(ctx context.Context, rows, results []float64) error {
		return m.Evaluate(ctx, f.what(), rows, results)
	}
	var marks []string // of missing cells, that the density keeps
	if f.density != "" {
		density, err := a.openDensity(ctx, f)
		if err != nil {
			return err
		}
		defer density.Close()
		marks = density.Schema().Missing
		if compute, err = a.expected(f, m, density); err != nil {
			return err
		}
	}
	return a.output(ctx, &f.out, func(w io.Writer, _ string) error {
		out := forest.NewWriter(w, m.Forest(), f.what())
		if err := a.evaluate(ctx, f, m, marks, compute, out.Write); err != nil {
			return err
		}
		return out.Close()
	})
}

// openForest opens the file of a forest.
func openForest(path string, threads int) (*pce.Model, error) {
	f, err := run.OpenForest(path)
	if err != nil {
		return nil, err
	}
	m, err := pce.NewForest(f, pce.Options{Threads: threads})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}

// evaluate calls take with the results of one row after the other, which compute gives for some
// rows at a time. Cells are missing that have one of the marks, too.
func (a *app) evaluate(ctx context.Context, f *predictFlags, m *pce.Model, marks []string, compute func(ctx context.Context, rows, results []float64) error, take func(row []float64) error) error {
	fo, width := m.Forest(), m.Forest().Width(f.what())
	most := min(rowsAtOnce(m.Schema()), max(1, readCells/max(1, width)))
	results := make([]float64, most*width)
	single := dataset.ToFloat32
	if f.density != "" {
		single = dataset.ToEither // for the circuit a cell is what the file says
	}
	o, err := a.numberOptions(&f.config)
	if err != nil {
		return err
	}
	o.Missing = slices.Concat(o.Missing, marks)
	return a.eachNumbersOf(ctx, o, f.data, fo, single, most, func(rows []float64) error {
		results := results[:len(rows)/fo.Features*width]
		if err := compute(ctx, rows, results); err != nil {
			return err
		}
		for at := 0; at < len(rows)/fo.Features; at++ {
			if err := take(results[at*width : (at+1)*width]); err != nil {
				return err
			}
		}
		return nil
	})
}

// checkRows is Check of a forest, and reports more features than rows may have.
func checkRows(f *forest.Forest) error {
	if err := f.Check(); err != nil {
		return err
	}
	if f.Features < 1 || f.Features > dataset.MaxColumns {
		return fmt.Errorf("%w: %d features; rows have 1 to %d", forest.ErrForest, f.Features, dataset.MaxColumns)
	}
	return nil
}

// numberOptions says how the rows of a forest are read, by the config of the flags.
func (a *app) numberOptions(config *configFlags) (dataset.Options, error) {
	cfg, err := a.loadAskedConfig(config)
	if err != nil {
		return dataset.Options{}, err
	}
	return a.queryOptions(&cfg.Data, nil)
}

// eachNumbers is eachNumbersOf with the options of a config.
func (a *app) eachNumbers(ctx context.Context, config *configFlags, paths []string, f *forest.Forest, single dataset.Rounding, most int, use func(rows []float64) error) error {
	o, err := a.numberOptions(config)
	if err != nil {
		return err
	}
	return a.eachNumbersOf(ctx, o, paths, f, single, most, use)
}

// eachNumbersOf calls use with the rows of all paths, most of them at a time or as many as readCells; none in all of them is an error. A forest that compares in
// float32 gets its cells as single says.
func (a *app) eachNumbersOf(ctx context.Context, o dataset.Options, paths []string, f *forest.Forest, single dataset.Rounding, most int, use func(rows []float64) error) error {
	paths, err := a.expandPaths(ctx, paths)
	if err != nil {
		return err
	}
	if f.Input != forest.Float32 {
		single = dataset.ToFloat64
	}
	rows, total := make([]float64, min(most, max(1, readCells/f.Features))*f.Features), 0
	for _, path := range paths {
		r, err := dataset.OpenNumbers(path, f.Features, f.Names, single, o)
		if err != nil {
			return err
		}
		for err == nil {
			var n int
			if n, err = r.Read(ctx, rows); err == nil {
				err = use(rows[:n*f.Features])
				total += n
			}
		}
		if errors.Is(err, io.EOF) {
			err = nil
		}
		if err := errors.Join(err, r.Close()); err != nil {
			return err
		}
	}
	if total == 0 {
		return fmt.Errorf("%w: %s has no rows", run.ErrOptions, strings.Join(paths, ", "))
	}
	return nil
}
