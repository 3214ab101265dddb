package tensor_test

import (
	"context"
	"slices"
	"testing"

	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/emulator"
	"github.com/pce-engine/pce/kernels/tensor"
)

// TestKernelTimes wants every launch of a step to be timed, and steps that are measured
// kernel by kernel, before and after others, to give the bits of steps that are not.
func TestKernelTimes(t *testing.T) {
	if testing.Short() {
		t.Skip("three runs of one circuit take the emulator half a second; run without -short")
	}
	const n = 70 // two tiles of rows
	s := newSmall(t, 4, n)
	type result struct {
		ll     []float64
		params [][]float32
	}
	steps := func(details ...kernels.Detail) (out result, phases []kernels.Phase, launches []string) {
		e := emulator.New(emulator.Options{})
		dev := openOn(t, e)
		m := s.build(t, dev)
		for _, d := range details {
			dev.Measure(d)
			before := len(e.Log())
			ll := make([]float64, n)
			if err := m.Engine.Step(context.Background(), s.batch, 0, n, tensor.Rule{Step: 0.5}, ll); err != nil {
				t.Fatal(err)
			}
			out.ll = append(out.ll, ll...)
			if d == kernels.MeasureKernels {
				phases = dev.Phases() // which waits for the card
				launches = nil
				for _, r := range e.Log()[before:] {
					launches = append(launches, r.Kernel)
					if r.Graph {
						t.Errorf("%s is launched by a graph", r.Kernel)
					}
				}
			}
		}
		out.params = m.Read(t)
		return out, phases, launches
	}
	plain, _, _ := steps(kernels.MeasureNothing, kernels.MeasureNothing, kernels.MeasureNothing, kernels.MeasureNothing)
	timed, phases, launches := steps(kernels.MeasureNothing, kernels.MeasureKernels, kernels.MeasurePhases, kernels.MeasureNothing)
	if !slices.Equal(timed.ll, plain.ll) {
		t.Error("measured steps have other log-likelihoods")
	}
	for i := range plain.params {
		if !slices.Equal(timed.params[i], plain.params[i]) {
			t.Errorf("measured steps have other parameters of node %d", i)
		}
	}
	counts := map[string]int{}
	for _, name := range launches {
		counts[name]++
	}
	for _, p := range phases {
		if p.Kernel == "" || !(p.Seconds > 0) {
			t.Errorf("%+v has no kernel or no time", p)
		}
		counts[p.Kernel] -= p.Launches
	}
	for name, left := range counts {
		if left != 0 {
			t.Errorf("%d launches of %s are not timed", left, name)
		}
	}
	if len(launches) == 0 {
		t.Error("no launches")
	}
}
