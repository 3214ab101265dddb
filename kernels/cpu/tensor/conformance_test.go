package tensor_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/cpu"
	"github.com/pce-engine/pce/kernels/cpu/micro"
	cputensor "github.com/pce-engine/pce/kernels/cpu/tensor"
	"github.com/pce-engine/pce/kernels/kerneltest"
)

func opener(set *micro.Set, threads int) kerneltest.Open {
	return func(t testing.TB) kernels.Device {
		d, err := cputensor.Open(cpu.Options{Threads: threads, Set: set})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
}

// sets are all sets of kernels, with -short the fastest alone: the others differ
// from it in no wait.
func sets() []*micro.Set {
	if testing.Short() {
		return micro.All()[:1]
	}
	return micro.All()
}

// conformance names the environment variable that chooses a part of the suite, as
// kerneltest.Suite.Choose takes it.
const conformance = "PCE_CONFORMANCE"

// TestConformance runs the suite with every set of kernels that this machine
// has, on one thread and, since TestThreads wants the same bits, a part of it on
// two.
func TestConformance(t *testing.T) {
	for _, set := range sets() {
		for threads, depth := range map[int]kerneltest.Depth{1: kerneltest.Full, 2: kerneltest.Brief} {
			if testing.Short() && threads == 1 {
				continue
			}
			t.Run(fmt.Sprintf("%s/threads=%d", set.Name, threads), func(t *testing.T) {
				s := kerneltest.Suite{Open: opener(set, threads), Depth: depth, Parallel: true}
				s.Choose(os.Getenv(conformance)).Run(t)
			})
		}
	}
}

// TestThreads wants the same bits from one thread, two and three.
func TestThreads(t *testing.T) {
	for _, set := range sets() {
		t.Run(set.Name, func(t *testing.T) {
			opens := []kerneltest.Open{opener(set, 1), opener(set, 2), opener(set, 3)}
			if testing.Short() {
				opens = opens[:2]
			}
			kerneltest.Same(t, kerneltest.Full, opens...)
		})
	}
}
