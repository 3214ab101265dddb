package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/forest"
	"github.com/pce-engine/pce/kernels/nest"
)

// Defaults and bounds of bench for forests.
const (
	forestBatch    = 4096
	maxForestBatch = 1 << 26 // cells
)

// forestBench is the output of bench for a forest; times are medians over the steps.
type forestBench struct {
	RowsPerSecond  float64 `json:"rows_per_second"`
	SecondsPer1k   float64 `json:"seconds_per_1k_samples"`
	FastestPer1k   float64 `json:"fastest_seconds_per_1k"`
	Samples        int     `json:"samples"`
	Device         string  `json:"device"`
	KernelPath     string  `json:"kernel_path"` // sliced, code or plain, and the instructions
	Schedule       string  `json:"schedule,omitempty"`
	Threads        int     `json:"threads"` // that may compute: 1 under a schedule without parallel; 0 on a card, which has none of these
	Batch          int     `json:"batch"`
	Steps          int     `json:"steps"`
	Trees          int     `json:"trees"`
	Cells          string  `json:"cells"`           // of the calls: the type in which the forest compares
	CompileSeconds float64 `json:"compile_seconds"` // from the forest that is read to its first prediction
	codeKernels            // of --kernels
}

// benchForest measures predictions of a forest, of rows in the precision in which it compares, as pce predict has them: with its own path,
// or as code under the schedule, on a card too. Rows are walked through again and again.
func (a *app) benchForest(ctx context.Context, f *benchFlags, code *scheduleFlags) (*forestBench, error) {
	if err := f.path.forest(f.model); err != nil {
		return nil, err
	}
	if f.kernels && (code.file == "" || f.run.processor()) {
		return nil, usagef("--kernels of a forest wants --schedule and --device, a card or emulator; the CPU does not tell")
	}
	batch := f.batch
	if batch == 0 {
		batch = forestBatch
	}
	begin := time.Now()
	m, err := code.open(a, f.model, f.run, batch)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	opened := time.Since(begin)
	fo := m.Forest()
	r := &forestBench{Device: f.run.device, KernelPath: m.ForestPath(), Schedule: code.file, Threads: f.run.threads, Batch: batch, Trees: len(fo.Trees)}
	if f.run.processor() {
		r.Device = "cpu"
	}
	switch {
	case !f.run.processor():
		r.Threads = 0
	case code.alone:
		r.Threads = 1
	case r.Threads == 0:
		r.Threads = runtime.GOMAXPROCS(0)
	}
	if r.Batch > maxForestBatch/fo.Features {
		return nil, usagef("--batch %d of %d features; want at most %d rows", r.Batch, fo.Features, maxForestBatch/fo.Features)
	}
	r.CompileSeconds = opened.Seconds()
	if fo.Input == forest.Float32 {
		return r, benchRows(ctx, a, f, code, fo, r, maxForestBatch, func(rows, out []float32) error { return m.Predict(ctx, rows, out) })
	}
	return r, benchRows(ctx, a, f, code, fo, r, maxForestBatch, func(rows, out []float64) error { return m.Evaluate(ctx, forest.Prediction, rows, out) })
}

// errEnough ends reading rows that are not needed.
var errEnough = errors.New("enough rows")

// firstNumbers calls use with the first rows of paths, most of them at most, for what measures a forest. What comes after them is not
// read, as it may have no end, and a note says so.
func (a *app) firstNumbers(ctx context.Context, config *configFlags, paths []string, fo *forest.Forest, most int, use func(rows []float64)) error {
	left := most
	err := a.eachNumbers(ctx, config, paths, fo, dataset.ToFloat32, 512, func(rows []float64) error {
		n := len(rows) / fo.Features
		use(rows[:min(n, left)*fo.Features])
		if n > left {
			return errEnough
		}
		left -= n
		return ctx.Err()
	})
	if errors.Is(err, errEnough) {
		a.tell("note: of %s the first %s are measured", strings.Join(paths, ", "), plural(int64(most), "row"))
		err = nil
	}
	return err
}

// benchRows measures calls of predict for benchForest, on the first rows that fit into most cells: what comes after them is not read, as it may
// have no end.
func benchRows[T float32 | float64](ctx context.Context, a *app, f *benchFlags, code *scheduleFlags, fo *forest.Forest, r *forestBench, most int, predict func(rows, out []T) error) error {
	var cells []T
	err := a.firstNumbers(ctx, &f.config, []string{f.data}, fo, most/fo.Features, func(rows []float64) {
		for _, x := range rows {
			cells = append(cells, T(x))
		}
	})
	if err != nil {
		return err
	}
	n := len(cells) / fo.Features
	rows, out := make([]T, r.Batch*fo.Features), make([]T, r.Batch*fo.Width(forest.Prediction))
	r.Cells = fmt.Sprintf("%T", rows[0])
	begin := time.Now()
	if err := predict(cells[:fo.Features], out[:fo.Width(forest.Prediction)]); err != nil {
		return err
	}
	r.CompileSeconds += time.Since(begin).Seconds()
	var times []time.Duration
	var total time.Duration
	next := 0
	for k := -f.warmup; f.steps == 0 && (k < 5 || total < f.least) || k < f.steps; k++ {
		for at := 0; at < r.Batch; at++ {
			copy(rows[at*fo.Features:(at+1)*fo.Features], cells[next*fo.Features:])
			next = (next + 1) % n
		}
		begin := time.Now()
		if err := predict(rows, out); err != nil {
			return err
		}
		if k >= 0 {
			times = append(times, time.Since(begin))
			total += times[k]
		}
	}
	slices.Sort(times)
	r.Steps, r.Samples = len(times), len(times)*r.Batch
	r.SecondsPer1k = median(times).Seconds() * 1000 / float64(r.Batch)
	r.FastestPer1k = times[0].Seconds() * 1000 / float64(r.Batch)
	r.RowsPerSecond = 1000 / r.SecondsPer1k
	if f.kernels {
		return r.codeKernels.forest(ctx, a, f, code, r, func(p *nest.Program, sums []float64) error { return nest.Sums(ctx, p, rows, sums) })
	}
	return nil
}

// threads says on how many threads a CPU predicts.
func (r *forestBench) threads() string {
	if r.Threads == 0 {
		return ""
	}
	return ", " + several(r.Threads, "thread")
}

// printForestBench prints the measurement for people.
func (a *app) printForestBench(r *forestBench) error {
	_, err := fmt.Fprintf(a.stdout, `speed      %.4g rows per second (median of %s of %d; fastest %.4g)
device     %s, %s%s%s
forest     %s, first prediction after %.3g s
%s`, r.RowsPerSecond, several(r.Steps, "step"), r.Batch, 1000/r.FastestPer1k, r.Device, r.KernelPath, orEmpty(r.Schedule), r.threads(), several(r.Trees, "tree"), r.CompileSeconds, r.copies())
	return err
}
