package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/configs"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/engine"
	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/run"
)

// benchCode measures the log-likelihoods of a model that runs as code, where measure would time
// an engine of layers. Rows are walked through again and again, the first f.warmup batches are
// not counted, and gathering rows is not timed. It has no floor to compare with, since the work
// of code is not a matrix product. f.kernels asks for the time of its kernels on a card.
func benchCode(ctx context.Context, b *run.Blueprint, cfg *configs.Config, f *benchFlags, load run.Load) (*benchResult, error) {
	if on := (deviceFlags{device: load.Device}); !on.processor() {
		load.Rows = min(cfg.Train.BatchSize, run.CardRows)
	}
	e, err := b.Runner(ctx, load)
	if err != nil {
		return nil, err
	}
	defer e.Close()
	info := e.Info().Device
	r := &benchResult{
		Device: info.Name, KernelPath: info.KernelPath, Threads: info.Threads, Batch: cfg.Train.BatchSize,
		PrecisionUsed: b.Code.Type.String(), CompileSeconds: b.CompileTime.Seconds(), ofCode: true,
	}
	code, ok := e.(interface {
		Recomputed() int64
		Meter() kernels.Meter
	})
	if !ok {
		return nil, fmt.Errorf("BUG: %T does not say what it computes again", e)
	}
	if f.kernels && code.Meter() == nil {
		return nil, usagef("--kernels of code wants a card or the emulator; the CPU does not tell")
	}
	rows, batch, ll := make([]int, r.Batch), &dataset.Batch{}, make([]float64, r.Batch)
	var times []time.Duration
	var total time.Duration
	var before int64
	next := 0
	for n := -f.warmup; f.steps == 0 && (n < 5 || total < f.least) || n < f.steps; n++ {
		for i := range rows {
			rows[i] = next % b.Train.Rows()
			next++
		}
		if err := b.Train.Gather(ctx, batch, rows); err != nil {
			return nil, err
		}
		if n == 0 {
			before = code.Recomputed()
		}
		begin := time.Now()
		if err := engine.EvaluateBatch(ctx, e, batch, ll); err != nil {
			return nil, err
		}
		if n >= 0 {
			times = append(times, time.Since(begin))
			total += times[n]
		}
	}
	slices.Sort(times)
	r.Recomputed = code.Recomputed() - before
	r.Steps, r.Samples = len(times), len(times)*r.Batch
	r.SecondsPer1k = median(times).Seconds() * 1000 / float64(r.Batch)
	r.FastestPer1k = times[0].Seconds() * 1000 / float64(r.Batch)
	r.PeakGFLOPS = peak(r.Threads, r.KernelPath)
	r.judge(circuit.Count(b.Graph).SumEdges, true)
	if f.kernels {
		call := func() error { return engine.EvaluateBatch(ctx, e, batch, ll) }
		return r, r.codeKernels.time(code.Meter(), r.Batch, r.SecondsPer1k, call)
	}
	return r, nil
}
