package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pce-engine/pce"
	"github.com/pce-engine/pce/compile/forest/tune"
	"github.com/pce-engine/pce/forest"
	"github.com/pce-engine/pce/run"
)

// tuneFlags are the flags of forest tune.
type tuneFlags struct {
	predictFlags
	options pce.TuneOptions
	other   []string
	cache   string
	dry     bool
	asJSON  bool
}

// forestTuning is the output of forest tune.
type forestTuning struct {
	Digest  string `json:"digest"`
	Trees   int    `json:"trees"`
	Rows    int    `json:"rows"` // that batches are made of
	Threads int    `json:"threads"`
	*pce.Tuning
	RowsPerSecond float64      `json:"rows_per_second"`
	File          string       `json:"file,omitempty"` // that keeps the choice
	Other         []otherPaths `json:"other,omitempty"`
}

// otherPaths is the search with another set of instructions, and what its fastest schedule loses with the machine's own.
type otherPaths struct {
	*pce.Tuning
	RowsPerSecond float64 `json:"rows_per_second"`
	// Loss is how much longer calls take on the first path under the fastest schedule of this one than under its own.
	Loss float64 `json:"loss"`
}

// tuneCommand makes the command pce forest tune.
func (a *app) tuneCommand() *cobra.Command {
	var f tuneFlags
	c := &cobra.Command{
		Use:   "tune MODEL --data FILE [--batch N] [--exhaustive]",
		Short: "Choose the fastest schedule of a decision forest on this machine",
		Long: `Choose the schedule under which calls of --batch rows of a decision forest are fastest on this machine: a cost
model orders the schedules of a template, and one in fifty of them is timed, one of each representation at least. The choice is kept for this forest, set of
instructions and batch, and predict, bench and serve use it with --schedule auto.

With --exhaustive every schedule is timed after that, and the fastest ten and the search's choice once more in turn; the
fastest of these is kept.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.model = args[0]
			return a.tuneForest(cmd.Context(), &f)
		},
	}
	f.rows(c.Flags())
	c.Flags().IntVar(&f.run.threads, "threads", 0, "CPU threads; 0: one per core")
	c.Flags().IntVar(&f.options.Batch, "batch", forestBatch, "rows of a call")
	addList(c.Flags(), &f.options.Represent, "represent", "allow only these representations of trees, of "+strings.Join(tune.Representations(), ", "))
	c.Flags().BoolVar(&f.options.Exhaustive, "exhaustive", false, "time every schedule of the template")
	c.Flags().DurationVar(&f.options.Budget, "budget", 0, "stop timing schedules after this long; 0: when all are timed")
	addList(c.Flags(), &f.other, "other", "search with these sets of instructions too, such as avx2, and say what their schedules lose on the machine's own")
	c.Flags().StringVar(&f.cache, "cache", "", "folder that keeps the choice; empty: pce/schedules in the user's folder for caches")
	c.Flags().BoolVar(&f.dry, "dry-run", false, "keep nothing")
	c.Flags().BoolVar(&f.asJSON, "json", false, "print one JSON object with every schedule")
	return c
}

// maxTuneRows bounds the rows that batches are made of.
const maxTuneRows = 1 << 16

// tuneForest chooses a schedule and keeps it.
func (a *app) tuneForest(ctx context.Context, f *tuneFlags) error {
	if len(f.data) == 0 {
		return usagef("no --data; give the rows to time schedules with")
	}
	if f.options.Batch < 1 {
		return usagef("--batch %d; want 1 row or more", f.options.Batch)
	}
	fo, err := run.OpenForest(f.model)
	if err != nil {
		return err
	}
	if err := checkRows(fo); err != nil {
		return fmt.Errorf("%s: %w", f.model, err)
	}
	var rows []float64
	most := min(maxTuneRows, max(1, maxForestBatch/fo.Features))
	if err := a.firstNumbers(ctx, &f.config, f.data, fo, most, func(more []float64) { rows = append(rows, more...) }); err != nil {
		return err
	}
	opts := pce.Options{Threads: f.run.threads}
	dir, err := a.beforeTuning(f, fo, opts)
	if err != nil {
		return err
	}
	t, err := pce.TuneForest(ctx, fo, rows, opts, f.options)
	if err != nil {
		return fmt.Errorf("%s: %w", f.model, err)
	}
	r := &forestTuning{Digest: fmt.Sprintf("%x", fo.Digest()), Trees: len(fo.Trees), Rows: len(rows) / fo.Features, Threads: f.run.threads, Tuning: t}
	if r.Threads == 0 {
		r.Threads = runtime.GOMAXPROCS(0)
	}
	r.RowsPerSecond = float64(t.Batch) / t.Fastest().Seconds
	for _, path := range f.other {
		o, err := otherPath(ctx, fo, rows, opts, f, t, path)
		if err != nil {
			return fmt.Errorf("%s: %s: %w", f.model, path, err)
		}
		r.Other = append(r.Other, *o)
	}
	if !f.dry {
		r.File, err = a.keep(dir, fo, r)
	}
	if f.asJSON { // what was measured is printed where it cannot be kept, too
		return errors.Join(err, a.printJSON(r))
	}
	return errors.Join(err, a.printTuning(r))
}

// beforeTuning refuses what would otherwise fail after minutes of timing: sets of instructions that the machine does not
// have, and a folder for the choice, which is returned, that cannot be made.
func (a *app) beforeTuning(f *tuneFlags, fo *forest.Forest, opts pce.Options) (dir string, err error) {
	for _, path := range f.other {
		if paths := pce.KernelPaths(); !slices.Contains(paths, path) {
			return "", usagef("--other %.40q: this machine has no such set of instructions; want some of %s", path, strings.Join(paths, ", "))
		}
		there := opts
		there.KernelPath = path
		m, err := pce.NewForest(fo, there)
		if err != nil {
			return "", fmt.Errorf("%s: --other %s: %w", f.model, path, err)
		}
		m.Close()
	}
	if dir = f.cache; f.dry {
		return dir, nil
	}
	if dir == "" {
		if dir, err = a.scheduleCache(); err != nil {
			return "", err
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", usagef("no folder for the choice: %v; name one with --cache, or keep nothing with --dry-run", err)
	}
	return dir, nil
}

// otherPath searches with other kernels, and times their fastest schedule with those of t, in turn with its own.
func otherPath(ctx context.Context, fo *forest.Forest, rows []float64, opts pce.Options, f *tuneFlags, t *pce.Tuning, path string) (*otherPaths, error) {
	there := opts
	there.KernelPath = path
	o, err := pce.TuneForest(ctx, fo, rows, there, f.options)
	if err != nil {
		return nil, err
	}
	r := &otherPaths{Tuning: o, RowsPerSecond: float64(o.Batch) / o.Fastest().Seconds}
	r.Loss, err = pce.CompareSchedules(ctx, fo, rows, opts, t.Batch, o.Fastest().Schedule, t.Fastest().Schedule)
	return r, err
}

// keep writes the choice into a folder. A file there that cannot be used is replaced, with a note.
func (a *app) keep(dir string, fo *forest.Forest, r *forestTuning) (file string, err error) {
	_, wrong := tune.Load(dir, fo.Digest(), r.Path, r.Batch)
	for _, err := range wrong {
		a.tell("note: a kept schedule is passed over, and written anew if it is of this batch: %v", err)
	}
	if file, err = tune.Save(dir, fo.Digest(), tune.Kept{Path: r.Path, Batch: r.Batch, Threads: r.Threads, Schedule: r.Fastest().Schedule, RowsPerSecond: r.RowsPerSecond, When: r.When}); err != nil {
		return "", err
	}
	return file, nil
}

// printTuning prints the choice for people.
func (a *app) printTuning(r *forestTuning) error {
	tried := 0
	for i := range r.Points {
		if r.Points[i].Seconds > 0 || r.Points[i].Error != "" {
			tried++
		}
	}
	text := fmt.Sprintf("choice     %.4g rows per second in calls of %d, %s, %s\n", r.RowsPerSecond, r.Batch, r.Path, several(r.Threads, "thread"))
	text += fmt.Sprintf("searched   %s, %d of them timed\n", several(len(r.Points), "schedule"), r.Timed)
	if len(r.Finals) > 0 {
		all := "all tried"
		if !r.Complete {
			all = fmt.Sprintf("%d of %d tried when the budget ended", tried, len(r.Points))
		}
		text += fmt.Sprintf("exhaustive %s, %d of them legal and timed; the search's takes %.1f %% longer than the choice, in turn\n", all, r.Legal, 100*r.Distance)
	}
	for _, o := range r.Other {
		text += fmt.Sprintf("%-10s %.4g rows per second; its schedule takes %.1f %% longer than the choice on %s\n", o.Path, o.RowsPerSecond, 100*o.Loss, r.Path)
	}
	if r.File != "" {
		text += "kept       " + r.File + "\n"
	}
	_, err := fmt.Fprint(a.stdout, text+"\n"+r.Fastest().Schedule)
	return err
}
