package main

import (
	"context"
	"fmt"
	"hash/maphash"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/pce-engine/pce"
	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/configs"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/run"
)

// comparison compares two models on the same rows. Log-likelihoods are means over rows in
// nats; what is not finite is nil.
type comparison struct {
	A string `json:"a"`
	B string `json:"b"`

	Rows int      `json:"rows"`
	ALL  *float64 `json:"a_ll"`
	BLL  *float64 `json:"b_ll"`
	// Difference is the mean of a row's log-likelihood under A less that under B, and
	// StandardError that of this mean: the deviation of the differences over the root of
	// their number. It is smaller than what the two means have apart, as rows that are
	// hard for one model are hard for the other.
	Difference    *float64 `json:"difference"`
	StandardError *float64 `json:"standard_error"` // nil also for one row
	ABetter       int      `json:"a_better"`       // rows
	BBetter       int      `json:"b_better"`
	AImpossible   int      `json:"a_impossible"` // rows of probability 0
	BImpossible   int      `json:"b_impossible"`
}

// runsCompareCommand makes the command pce runs compare. Two means over the same rows are not
// independent, so it computes the standard error of the paired differences.
func (a *app) runsCompareCommand() *cobra.Command {
	var on deviceFlags
	var data []string
	var asJSON bool
	c := &cobra.Command{
		Use:   "compare A B [--data FILE]...",
		Short: "Compare two runs on the same rows: the paired mean difference with its standard error",
		Long: `Compare the models of the runs in the directories A and B on the rows of data.test of their
configs, which must name the same files, or on those of --data. Both must be models of the same columns. It prints the mean over
rows of the log-likelihood under A less that under B, and the standard error of this mean.`,
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: completeRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.compareRuns(cmd.Context(), args[0], args[1], data, on)
			if err != nil {
				return err
			}
			if asJSON {
				return a.printJSON(c)
			}
			return a.printComparison(c)
		},
	}
	on.register(c.Flags())
	c.Flags().StringArrayVar(&data, "data", nil, "rows to compare on; repeatable; left out: the test rows of the runs")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

// compareRuns evaluates the models of two runs on the same rows, those of data or, if it is
// empty, the test rows that both configs name. Each model reads the rows as its own config
// says. Runs that read a different number of rows are a usage error, as rows could not be
// paired, and so are those that read other cells as missing, as a row would be likelier with fewer cells.
func (a *app) compareRuns(ctx context.Context, dirA, dirB string, data []string, on deviceFlags) (*comparison, error) {
	if len(data) == 0 {
		var err error
		if data, err = a.commonTest(dirA, dirB); err != nil {
			return nil, err
		}
	}
	if slices.Contains(data, "-") {
		return nil, usagef("--data -: both models read the rows, and standard input has them once; write them to a file")
	}
	for _, path := range data {
		if info, err := os.Stat(path); err == nil && info.Mode()&fs.ModeNamedPipe != 0 {
			return nil, usagef("--data %s: both models read the rows, and a pipe has them once; write them to a file", path)
		}
	}
	var ll [2][]float64
	var missing [2]missingCells
	seed := maphash.MakeSeed()
	var first *dataset.Schema
	var unread []int // columns of the first
	for i, dir := range []string{dirA, dirB} {
		f := queryFlags{run: on, model: filepath.Join(dir, run.ModelFile), data: data}
		if isFile(dir, run.ConfigFile) {
			f.config.files = []string{filepath.Join(dir, run.ConfigFile)}
		}
		m, err := f.open(ctx, a.stderr, run.QueryLogLikelihood)
		if err != nil {
			return nil, err
		}
		if first == nil {
			first = m.Schema()
			unread = unreadColumns(m, placesIn(first, first))
		}
		places := placesIn(first, m.Schema())
		what := otherVariables(first, m.Schema())
		if what == "" { // so that they have as many columns
			what = readByOne(first, unread, unreadColumns(m, places))
		}
		if what != "" {
			err = usagef("%s and %s are models of other variables, and their log-likelihoods say nothing of one another: %s; compare models of the same columns", dirA, dirB, what)
		} else {
			err = a.eachBatch(ctx, &f, m, rowsAtOnce(m.Schema()), func(b *dataset.Batch) error {
				of, err := m.LogLikelihoodBatch(ctx, b)
				missing[i].add(seed, b, places, len(ll[i]))
				ll[i] = append(ll[i], of...)
				return err
			})
		}
		if e := m.Close(); err == nil {
			err = e
		}
		if err != nil {
			return nil, err
		}
	}
	if len(ll[0]) != len(ll[1]) {
		return nil, usagef("%s reads %s and %s %d; give --data that both read alike", dirA, several(len(ll[0]), "row"), dirB, len(ll[1]))
	}
	if missing[0] != missing[1] {
		return nil, usagef("of the cells %s reads %d as missing and %s %d others, so their log-likelihoods are of other cells; train both with the same data.missing", dirA, missing[0].count, dirB, missing[1].count)
	}
	c := compareRows(ll[0], ll[1])
	c.A, c.B = dirA, dirB
	return c, nil
}

// missingCells are those that a run reads as missing: how many, and a sum of their hashes, which tells other ones from them.
type missingCells struct {
	count int
	sum   uint64
}

// add adds those of a batch, the first row of which has that number. places are those of the columns in the first run's model.
func (m *missingCells) add(seed maphash.Seed, b *dataset.Batch, places []int, first int) {
	for i := range b.Columns {
		for row := range b.Rows {
			if b.Columns[i].IsMissing(row) {
				m.count, m.sum = m.count+1, m.sum+maphash.Comparable(seed, [2]int{first + row, places[i]})
			}
		}
	}
}

// placesIn returns the place of each column of s in another schema: that of its name or, where one of them has none, its own.
func placesIn(other, s *dataset.Schema) []int {
	named, places := map[string]int{}, make([]int, len(s.Columns))
	for i := range other.Columns {
		named[other.Columns[i].Name] = i
	}
	for i := range places {
		var ok bool
		if places[i], ok = named[s.Columns[i].Name]; !ok || s.Columns[i].Name == "" {
			places[i] = i
		}
	}
	return places
}

// otherVariables says what keeps log-likelihoods under two schemas from being compared: the number of
// columns, a name, the vocabulary of text, or that one has a probability where the other has a density; "" if nothing
// does. Columns go by their names, or by their places where a model has none.
func otherVariables(a, b *dataset.Schema) string {
	if len(a.Columns) != len(b.Columns) {
		return fmt.Sprintf("they have %d and %d columns", len(a.Columns), len(b.Columns))
	}
	if a.Unit != b.Unit {
		return "their tokens are different"
	}
	if sorted := func(c dataset.Column) []string { return slices.Sorted(slices.Values(c.Labels)) }; a.Unit != "" && !slices.Equal(sorted(a.Columns[0]), sorted(b.Columns[0])) {
		return "their vocabularies are different" // one knows all words that it does not know as one
	}
	place := map[string]int{}
	for i, c := range b.Columns {
		place[c.Name] = i
	}
	for i := range a.Columns {
		x, y := &a.Columns[i], &b.Columns[i]
		if x.Name != "" && y.Name != "" {
			j, ok := place[x.Name]
			if !ok {
				return fmt.Sprintf("the second has no %s", a.ColumnName(i))
			}
			y = &b.Columns[j]
		}
		if hasMass(x) != hasMass(y) {
			return fmt.Sprintf("%s has probabilities in one and densities in the other", a.ColumnName(i))
		}
	}
	return ""
}

// unreadColumns returns the columns of which a model says nothing, since its circuit has no leaf of them, by the places that columns have.
func unreadColumns(m *pce.Model, places []int) (unread []int) {
	for v, codes := range circuit.RootDomains(m.Graph()) {
		if codes < 0 {
			unread = append(unread, places[v])
		}
	}
	return unread
}

// readByOne says which column of a schema one of two models reads alone, of those that each does not read; "" if there is none. Cells of
// the column would count under that model alone.
func readByOne(s *dataset.Schema, a, b []int) string {
	for _, v := range slices.Concat(a, b) {
		if !slices.Contains(a, v) || !slices.Contains(b, v) {
			return "one of them alone has leaves of " + s.ColumnName(v)
		}
	}
	return ""
}

// hasMass reports whether the cells of a column have probabilities, not densities.
func hasMass(c *dataset.Column) bool { return c.Kind == dataset.Discrete || c.Counts }

// commonTest returns the paths of the test rows that two runs share. It is called where --data
// is left out; runs without a config, without test rows, or with others than each other are
// usage errors that say so.
func (a *app) commonTest(dirA, dirB string) ([]string, error) {
	var paths [2][]string
	for i, dir := range []string{dirA, dirB} {
		file := filepath.Join(dir, run.ConfigFile)
		if !isFile(dir, run.ConfigFile) {
			return nil, usagef("%s has no %s that names its test rows; give --data", dir, run.ConfigFile)
		}
		cfg, _, err := configs.Load(configs.Options{Files: []string{file}})
		if err != nil {
			return nil, err
		}
		paths[i] = slices.DeleteFunc(slices.Clone(cfg.Data.Test), func(p string) bool { return p == "" })
		if len(paths[i]) == 0 {
			return nil, usagef("%s has no test rows; give --data", file)
		}
	}
	if !slices.Equal(paths[0], paths[1]) {
		return nil, usagef("%s was tested on %q and %s on %q; give --data for both", dirA, paths[0], dirB, paths[1])
	}
	return paths[0], nil
}

// compareRows compares the log-likelihoods of the same rows, a[i] and b[i] of row i, under two
// models. Rows of probability 0 under either make the mean infinite, which is left out as nil,
// but they are counted. One row has a difference and no standard error.
func compareRows(a, b []float64) *comparison {
	c := &comparison{Rows: len(a)}
	var sumA, sumB, sum float64
	for i := range a {
		sumA, sumB, sum = sumA+a[i], sumB+b[i], sum+(a[i]-b[i])
		switch {
		case a[i] > b[i]:
			c.ABetter++
		case a[i] < b[i]:
			c.BBetter++
		}
		if math.IsInf(a[i], -1) {
			c.AImpossible++
		}
		if math.IsInf(b[i], -1) {
			c.BImpossible++
		}
	}
	n := float64(len(a))
	mean, squares := sum/n, 0.0
	for i := range a {
		d := a[i] - b[i] - mean
		squares += d * d
	}
	c.ALL, c.BLL, c.Difference = run.Finite(sumA/n), run.Finite(sumB/n), run.Finite(mean)
	c.StandardError = run.Finite(math.Sqrt(squares / (n - 1) / n))
	return c
}

func (a *app) printComparison(c *comparison) error {
	columns, _ := columnsOf(a.stdout)
	text := labelled("rows", count(int64(c.Rows)), columns) +
		labelled("A", fmt.Sprintf("%s nats per row, %s", orInfinite(c.ALL, "-inf"), c.A), columns) +
		labelled("B", fmt.Sprintf("%s nats per row, %s", orInfinite(c.BLL, "-inf"), c.B), columns)
	difference := "not finite"
	if c.Difference != nil {
		difference = fmt.Sprintf("%.4g nats per row", *c.Difference)
	}
	if c.Difference != nil && c.StandardError != nil {
		difference += fmt.Sprintf(", standard error %.2g", *c.StandardError)
	}
	text += labelled("A - B", difference, columns) +
		labelled("likelier", fmt.Sprintf("%s under A, %s under B", plural(int64(c.ABetter), "row"), count(int64(c.BBetter))), columns)
	if c.AImpossible+c.BImpossible > 0 {
		text += labelled("impossible", fmt.Sprintf("%s under A, %s under B", plural(int64(c.AImpossible), "row"), count(int64(c.BImpossible))), columns)
	}
	_, err := fmt.Fprint(a.stdout, text)
	return err
}
