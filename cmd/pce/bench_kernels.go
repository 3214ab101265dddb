package main

import (
	"context"
	"errors"
	"fmt"

	lower "github.com/pce-engine/pce/compile/forest"
	"github.com/pce-engine/pce/compile/forest/schedule"
	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/device"
	"github.com/pce-engine/pce/kernels/nest"
)

// codeKernels is what bench says of code on a card beyond the time of a call.
type codeKernels struct {
	KernelsPer1k *float64 `json:"kernel_seconds_per_1k_samples,omitempty"` // rows and results in the card's memory
	CopyShare    *float64 `json:"copy_share,omitempty"`                    // of the time of a call that is not the kernels'
}

// kernelSteps is how many calls kernels are timed in.
const kernelSteps = 10

// time finds what the kernels take of calls of rows rows, which take callPer1k seconds
// for a thousand rows when they are not timed from inside.
func (k *codeKernels) time(m kernels.Meter, rows int, callPer1k float64, call func() error) error {
	steps := kernelSteps
	if m.Instructions() != nil { // the emulator
		steps = 1
	}
	m.Measure(kernels.MeasurePhases)
	defer m.Measure(kernels.MeasureNothing)
	for range steps {
		if err := call(); err != nil {
			return err
		}
	}
	seconds := 0.0
	for _, p := range m.Phases() {
		seconds += p.Seconds
	}
	per1k := seconds * 1000 / float64(steps*rows)
	share := max(0, 1-per1k/callPer1k)
	k.KernelsPer1k, k.CopyShare = &per1k, &share
	return nil
}

// forest times the kernels of a forest's code under a schedule, on the rows of the calls that r measured, whose trees add adds to sums.
func (k *codeKernels) forest(ctx context.Context, a *app, f *benchFlags, code *scheduleFlags, r *forestBench, add func(p *nest.Program, sums []float64) error) (err error) {
	fo, text, hits, err := code.read(a, f.model, f.run.threads, f.batch)
	if err != nil {
		return err
	}
	s, err := schedule.Parse(text)
	if err != nil {
		return err
	}
	c, err := lower.CompileCard(fo, s, hits)
	if err != nil {
		return err
	}
	at, err := device.Find(f.run.device)
	if err != nil {
		return err
	}
	p, closer, err := at.OpenNest(ctx, c.Module, device.Options{Threads: f.run.threads})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closer()) }()
	sums := make([]float64, r.Batch*fo.Outputs)
	call := func() error { return add(p, sums) }
	if err := call(); err != nil { // makes buffers and graphs
		return err
	}
	return k.time(p.Meter(), r.Batch, r.SecondsPer1k, call)
}

// copies is a line for people about the share of copies; nothing where kernels were not timed.
func (k *codeKernels) copies() string {
	if k.KernelsPer1k == nil {
		return ""
	}
	return fmt.Sprintf("kernels    %.4g s per 1000 samples; %.0f %% of a call is copies and the host's work\n", *k.KernelsPer1k, 100**k.CopyShare)
}
