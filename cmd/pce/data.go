package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pce-engine/pce/configs"
	"github.com/pce-engine/pce/dataset"
)

func (a *app) dataCommand() *cobra.Command {
	c := &cobra.Command{Use: "data", Short: "Look at data as training would see it"}
	c.AddCommand(a.dataListCommand(), a.dataSampleCommand(), a.dataStatsCommand())
	return c
}

func (a *app) dataListCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "list",
		Short: "List the builtin data and the kinds of files that can be read",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			builtins := dataset.Builtins()
			if asJSON {
				return a.printJSON(map[string]any{"builtin": builtins, "files": dataset.Extensions()})
			}
			_, err := fmt.Fprintf(a.stdout, "%s\nfiles: %s, all but .parquet also as .gz; any other name with data.text.unit\n",
				strings.Join(builtins, "\n"), strings.Join(dataset.Extensions(), " "))
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

// namedRows returns the paths given as arguments, or those of the training rows of the
// config. How files are read is the config's business in both cases.
func (a *app) namedRows(ctx context.Context, flags *configFlags, paths []string) ([]string, dataset.Options, error) {
	cfg, err := a.loadRowsConfig(flags)
	if err != nil {
		return nil, dataset.Options{}, err
	}
	if len(paths) == 0 {
		if err := cfg.Data.RequireTraining(); err != nil {
			return nil, dataset.Options{}, err
		}
		paths = cfg.Data.Train
	}
	o, err := a.datasetOptions(&cfg.Data, nil)
	if err != nil {
		return nil, o, err
	}
	paths, err = a.expandPaths(ctx, paths)
	return paths, o, err
}

// loadDataConfig is loadConfig, but no file needs to be named.
func (a *app) loadDataConfig(flags *configFlags) (*configs.Config, error) {
	if len(flags.files) > 0 {
		return a.loadConfig(flags)
	}
	cfg, _, err := configs.Load(configs.Options{Env: a.env, Set: flags.set})
	return cfg, err
}

// loadRowsConfig is loadDataConfig for commands that look at rows, or ask a model about them. The other sections are of no use to these, so
// that a setting there, such as a device that is another flag's, is refused, and notes, which are about training, are not told.
func (a *app) loadRowsConfig(flags *configFlags) (*configs.Config, error) {
	cfg, _, err := configs.Load(configs.Options{Files: flags.files, Env: a.env, Set: flags.set, Open: a.openConfig})
	if err != nil {
		return nil, err
	}
	return cfg, flags.refuse(func(key string) error {
		if sectionOf(key) == "data" {
			return nil
		}
		return usagef("--set %s: only the section data says how rows are read; leave it out", key)
	})
}

// splitKeys are the keys of the section data that say what is trained on, not how the rows of a model are read: which these are and
// what they look like is said by a flag and by the model.
var splitKeys = []string{"data.train", "data.valid", "data.test", "data.expected", "data.image", "data.text.length", "data.text.vocabulary"}

// ofRows refuses settings of splitKeys, for commands that ask a model about rows.
func (f *configFlags) ofRows() error {
	return f.refuse(func(key string) error {
		if !slices.Contains(splitKeys, key) {
			return nil
		}
		return usagef("--set %s: rows of a model are those of a flag, and look as the model says; leave it out", key)
	})
}

// loadAskedConfig is loadRowsConfig for commands that ask a model about rows: keys that only training reads are refused, too.
func (a *app) loadAskedConfig(flags *configFlags) (*configs.Config, error) {
	if err := flags.ofRows(); err != nil {
		return nil, err
	}
	return a.loadRowsConfig(flags)
}

// dataSampleCommand makes the command pce data sample, which prints the first rows of data as
// training would see them.
func (a *app) dataSampleCommand() *cobra.Command {
	var flags configFlags
	var n int
	c := &cobra.Command{
		Use:   "sample [PATH...]",
		Short: "Print the first rows as comma-separated cells",
		RunE: func(cmd *cobra.Command, paths []string) error {
			if n < 0 {
				return usagef("-n is %d; want how many rows to print", n)
			}
			files, o, err := a.namedRows(cmd.Context(), &flags, paths)
			if err != nil {
				return err
			}
			o.KeepText = true
			r, err := dataset.OpenReaderAll(cmd.Context(), files, o)
			if err != nil {
				return err
			}
			return errors.Join(a.printRows(cmd.Context(), r, n), r.Close())
		},
	}
	flags.registerRows(c.Flags())
	c.Flags().IntVarP(&n, "rows", "n", 10, "rows to print")
	return c
}

// printRows prints the first n rows of r, or all if there are fewer, as CSV without a header, as
// dataset.NewWriter writes it. The rows behind them are not read.
func (a *app) printRows(ctx context.Context, r dataset.Reader, n int) error {
	w, err := dataset.NewWriter(a.stdout, "stdout.csv", r.Schema(), n)
	if err != nil {
		return err
	}
	most, b := rowsAtOnce(r.Schema()), &dataset.Batch{}
	for n > 0 {
		err := r.Read(ctx, b, min(n, most))
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if err := w.Write(b); err != nil {
			return err
		}
		n -= b.Rows
	}
	return w.Close()
}

// columnStats is a column in the output of data stats. Figures of a column without an observed
// cell are nil.
type columnStats struct {
	Name       string   `json:"name,omitempty"`
	Kind       string   `json:"kind"`
	Categories int      `json:"categories,omitempty"`
	Missing    int      `json:"missing"`
	Mean       *float64 `json:"mean"`
	Variance   *float64 `json:"variance"`
	Min        *float64 `json:"min"`
	Max        *float64 `json:"max"`
}

// dataStats is the output of data stats.
type dataStats struct {
	Rows         int           `json:"rows"`
	Variables    int           `json:"variables"`
	MissingCells int           `json:"missing_cells"`
	Image        []int         `json:"image,omitempty"`
	Unit         dataset.Unit  `json:"unit,omitempty"`
	Columns      []columnStats `json:"columns"`
}

// stats reads all rows and returns type, range and missing cells of every column. Mean, variance and range are of the numbers
// of the file, not of the cells as they are stored; texts that are not numbers count by their codes.
func stats(ctx context.Context, src dataset.Source) (*dataStats, error) {
	sums, err := dataset.SummarizeNumbers(ctx, src)
	if err != nil {
		return nil, err
	}
	schema := src.Schema()
	s := &dataStats{Rows: src.Rows(), Variables: len(sums), Unit: schema.Unit}
	if schema.Image != [3]int{} {
		s.Image = slices.Clone(schema.Image[:])
	}
	for i, sum := range sums {
		c := &schema.Columns[i]
		missing := src.Rows() - sum.Observed
		s.MissingCells += missing
		stats := columnStats{Name: c.Name, Kind: c.Kind.String(), Categories: c.Categories, Missing: missing}
		if sum.Observed > 0 {
			stats.Mean, stats.Variance, stats.Min, stats.Max = &sum.Mean, &sum.Variance, &sum.Min, &sum.Max
		}
		s.Columns = append(s.Columns, stats)
	}
	return s, nil
}

// shownColumns is how many columns data stats prints without --json.
const shownColumns = 20

// print prints the statistics of the first shownColumns columns and says how many more there
// are; JSON has all.
func (s *dataStats) print(a *app) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %s, %s", several(s.Rows, "row"), several(s.Variables, "variable"), several(s.MissingCells, "missing cell"))
	if s.Image != nil {
		fmt.Fprintf(&b, ", images %d×%d×%d", s.Image[0], s.Image[1], s.Image[2])
	}
	if s.Unit != "" {
		fmt.Fprintf(&b, ", tokens: %s", s.Unit)
	}
	b.WriteByte('\n')
	for i, c := range s.Columns[:min(shownColumns, len(s.Columns))] {
		name := printable(c.Name)
		if name == "" {
			name = strconv.Itoa(i + 1)
		}
		kind := c.Kind
		if c.Categories > 0 {
			kind = fmt.Sprintf("%s:%d", c.Kind, c.Categories)
		}
		mean, variance, span := "-", "-", "-"
		if c.Mean != nil {
			mean, variance, span = fmt.Sprintf("%.4g", *c.Mean), fmt.Sprintf("%.4g", *c.Variance), fmt.Sprintf("%g..%g", *c.Min, *c.Max)
		}
		fmt.Fprintf(&b, "%-16s %-14s mean %-10s variance %-10s range %s  missing %d\n", name, kind, mean, variance, span, c.Missing)
	}
	if more := len(s.Columns) - shownColumns; more > 0 {
		fmt.Fprintf(&b, "and %d more; --json has them all\n", more)
	}
	_, err := fmt.Fprint(a.stdout, b.String())
	return err
}

// dataStatsCommand makes the command pce data stats, which prints what training would see of
// data, without training: the types that were found for the columns, their ranges and missing
// cells. Without paths the training data of --config are read.
func (a *app) dataStatsCommand() *cobra.Command {
	var flags configFlags
	var asJSON bool
	c := &cobra.Command{
		Use:   "stats [PATH...]",
		Short: "Print rows, types, ranges and missing cells",
		RunE: func(cmd *cobra.Command, paths []string) error {
			files, o, err := a.namedRows(cmd.Context(), &flags, paths)
			if err != nil {
				return err
			}
			src, err := dataset.OpenAll(cmd.Context(), files, o)
			if err != nil {
				return err
			}
			s, err := stats(cmd.Context(), src)
			if err != nil {
				return err
			}
			if asJSON {
				return a.printJSON(s)
			}
			return s.print(a)
		},
	}
	flags.registerRows(c.Flags())
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}
