package tensor_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/pce-engine/pce/kernels/cuda/tensor/plan"
	"github.com/pce-engine/pce/kernels/emulator"
	kernel "github.com/pce-engine/pce/kernels/ptx/tensor"
	"github.com/pce-engine/pce/layers"
)

// TestWide trains on a card with one multiprocessor, which gets wide tiles wherever
// there are any, and on one without the shared memory for most of them, where the others do not pay,
// and wants the same bits.
func TestWide(t *testing.T) {
	launched := map[string]bool{}
	for _, p := range wideSubjects() {
		if strings.HasPrefix(p.name, "harsh") || testing.Short() && (p.name == "wide" || p.name == "elements") {
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			var want []uint64
			for _, card := range []emulator.Options{{Multiprocessors: 132, SharedMemory: 48 << 10}, {Multiprocessors: 1}} {
				dev := emulated(card)(t)
				defer dev.Close()
				j := p.build(t, dev, 32)
				tables, err := plan.NewTables(layers.Module{Program: j.Result.Program, Rows: p.rows, Train: true})
				if err != nil {
					t.Fatal(err)
				}
				tables.Processors = card.Multiprocessors
				if card.SharedMemory > 0 {
					tables.Shared = card.SharedMemory
				}
				s := plan.NewSchedule(tables, true)
				for _, part := range [][]plan.Work{s.Forward, s.Backward, s.Move, s.Count} {
					for _, w := range part {
						if !slices.Contains(wideKernels, w.Kernel) {
							continue
						}
						launched[w.Kernel] = true
						// Few sums of 64 units pay for wide patches on any card; the other circuits compare these.
						patches := p.name == "elements" && (w.Kernel == kernel.KernelMoveWide || w.Kernel == kernel.KernelCountWide)
						if card.SharedMemory > 0 && !patches {
							t.Errorf("%s for %d blocks of threads, with %d bytes of shared memory", w.Kernel, w.Blocks, card.SharedMemory)
						}
					}
				}
				var out outcome
				for _, w := range works {
					if w.name != "step" && w.name != "shards" {
						continue
					}
					if err := j.Write(t.Context()); err != nil {
						t.Fatal(err)
					}
					if err := w.run(j, t.Context(), j.batch, &out); err != nil {
						t.Fatal(err)
					}
				}
				if want == nil {
					want = out.words
				}
				if !slices.Equal(out.words, want) {
					t.Error("other bits from wide tiles")
				}
			}
		})
	}
	for _, k := range wideKernels {
		if !launched[k] {
			t.Errorf("no circuit launches %s", k)
		}
	}
}
