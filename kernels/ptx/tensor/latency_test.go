package tensor_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/pce-engine/pce/kernels/emulator"
	"github.com/pce-engine/pce/kernels/ptx"
	"github.com/pce-engine/pce/kernels/ptx/tensor"
)

// What follows are measures of how long a warp waits for memory, as the emulator has no
// clock: how many loads are on their way at once in the text of a kernel, and how often
// a warp goes round its loops.

// inFlight is the most loads from a space ("global", "shared") that are issued before the
// first of their values is used, anywhere in a kernel's text.
func inFlight(k *ptx.Kernel, space string) int {
	var pending []ptx.Reg
	most := 0
	for _, s := range k.Body {
		if s.Inst == nil { // a label: what comes before depends on the way here
			pending = nil
			continue
		}
		in, first := s.Inst, 0
		load := in.Op == "ld" && slices.Contains(in.Mods, space)
		if load {
			first = 1 // the destination
		}
		used := []ptx.Reg{in.Guard}
		for _, a := range in.Args[min(first, len(in.Args)):] {
			used = append(append(used, a.Reg), a.Vec...)
		}
		pending = slices.DeleteFunc(pending, func(r ptx.Reg) bool { return slices.Contains(used, r) })
		if load {
			pending = append(pending, in.Args[0].Reg)
			most = max(most, len(pending))
		}
	}
	return most
}

// rounds is how many branches back a warp takes at most in a launch: the least bound on
// them with which try, which makes the launch on a card of its own, returns no error.
func rounds(t *testing.T, try func(o emulator.Options) error) int {
	t.Helper()
	passes := func(jumps int) bool { return try(emulator.Options{Jumps: jumps}) == nil }
	high := 1
	for !passes(high) {
		if high *= 2; high > 1<<20 {
			t.Fatal("no bound on the branches is enough")
		}
	}
	low := high / 2 // is not enough, or is 0, which means no bound
	for low+1 < high {
		if mid := (low + high) / 2; passes(mid) {
			high = mid
		} else {
			low = mid
		}
	}
	return high
}

// TestNormaliseLatency wants the weights of four steps in flight, and a round of the
// loops for each four.
func TestNormaliseLatency(t *testing.T) {
	const size, blocks = 32, 2
	v := tensor.Variant{Block: size, Major: 8}
	for _, steps := range []int{1, 4, 5, 64} {
		var counts emulator.Counts
		try := func(o emulator.Options) error {
			c := newRowCard(t, v, o)
			weights := make([]float32, blocks*steps*size*size)
			list := make([]tensor.Step, steps)
			for i := range weights {
				weights[i] = float32(i%7) + 1
			}
			for i := range list {
				list[i].Param = uint32(i * blocks)
			}
			c.put(tensor.ArgParams, weights)
			c.put(tensor.ArgGroups, []tensor.Group{{Blocks: blocks, Steps: uint32(steps)}}, tensor.GroupSize)
			c.put(tensor.ArgSteps, list, tensor.StepSize)
			c.put(tensor.ArgList, []uint32{0})
			err := c.try(tensor.KernelNormalise, 1)
			counts = c.Counts()[tensor.KernelNormalise]
			return err
		}
		// 256 threads have 2048 weights of a step in 8 rounds, with two loops in each.
		got, want := rounds(t, try), 8*(1+2*((steps+3)/4))
		if got != want {
			t.Errorf("%d steps: %d rounds of loops, want %d", steps, got, want)
		}
		if err := try(emulator.Options{}); err != nil {
			t.Fatal(err)
		}
		t.Logf("%d steps: %d rounds; %s", steps, got, describe(counts))
	}
	for _, k := range v.RowModule().Kernels {
		if n := inFlight(k, "global"); k.Name == tensor.KernelNormalise && n != 4 {
			t.Errorf("%d loads in flight, want 4", n)
		}
	}
}

// describe tells what a kernel has executed, by instructions of a warp.
func describe(c emulator.Counts) string {
	all := c.Integer + c.FMA + c.Float + c.Special + c.Convert + c.LoadGlobal + c.StoreGlobal + c.LoadShared + c.StoreShared +
		c.Shuffle + c.Barrier + c.Control
	return fmt.Sprintf("%d instructions, %d loads and %d stores of memory, %d loads and %d stores of shared memory, %d shuffles",
		all/32, c.LoadGlobal/32, c.StoreGlobal/32, c.LoadShared/32, c.StoreShared/32, c.Shuffle/32)
}
