package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/pce-engine/pce/dataset"
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
	Threads        int     `json:"threads"`
	Batch          int     `json:"batch"`
	Steps          int     `json:"steps"`
	Trees          int     `json:"trees"`
	CompileSeconds float64 `json:"compile_seconds"` // from the forest that is read to its first prediction
	codeKernels            // of --kernels
}

// benchForest measures predictions of a forest, as Predict makes them of float32 rows: with its own path, or as code
// under the schedule, on a card too. Rows are walked through again and again.
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
	if r.Threads == 0 {
		r.Threads = runtime.GOMAXPROCS(0)
	}
	if r.Batch > maxForestBatch/fo.Features {
		return nil, usagef("--batch %d of %d features; want at most %d rows", r.Batch, fo.Features, maxForestBatch/fo.Features)
	}
	var cells []float32
	err = a.eachNumbers(ctx, &f.config, []string{f.data}, fo, dataset.ToFloat32, 512, func(rows []float64) error {
		for _, x := range rows[:min(len(rows), maxForestBatch-len(cells))] {
			cells = append(cells, float32(x))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	n := len(cells) / fo.Features
	rows, out := make([]float32, r.Batch*fo.Features), make([]float32, r.Batch*fo.Width(0))
	begin = time.Now()
	if err := m.Predict(ctx, cells[:fo.Features], out[:fo.Width(0)]); err != nil {
		return nil, err
	}
	r.CompileSeconds = (opened + time.Since(begin)).Seconds()
	var times []time.Duration
	var total time.Duration
	next := 0
	for k := -f.warmup; f.steps == 0 && (k < 5 || total < f.least) || k < f.steps; k++ {
		for at := 0; at < r.Batch; at++ {
			copy(rows[at*fo.Features:(at+1)*fo.Features], cells[next*fo.Features:])
			next = (next + 1) % n
		}
		begin := time.Now()
		if err := m.Predict(ctx, rows, out); err != nil {
			return nil, err
		}
		if k >= 0 {
			times = append(times, time.Since(begin))
			total += times[k]
		}
	}
	slices.Sort(times)
	r.Steps, r.Samples = len(times), len(times)*r.Batch
	r.SecondsPer1k = times[len(times)/2].Seconds() * 1000 / float64(r.Batch)
	r.FastestPer1k = times[0].Seconds() * 1000 / float64(r.Batch)
	r.RowsPerSecond = 1000 / r.SecondsPer1k
	if f.kernels {
		return r, r.codeKernels.forest(ctx, a, f, code, rows, r.SecondsPer1k)
	}
	return r, nil
}

// printForestBench prints the measurement for people.
func (a *app) printForestBench(r *forestBench) error {
	_, err := fmt.Fprintf(a.stdout, `speed      %.4g rows per second (median of %d steps of %d; fastest %.4g)
device     %s, %s%s, %d threads
forest     %d trees, first prediction after %.3g s
%s`, r.RowsPerSecond, r.Steps, r.Batch, 1000/r.FastestPer1k, r.Device, r.KernelPath, orEmpty(r.Schedule), r.Threads, r.Trees, r.CompileSeconds, r.copies())
	return err
}
