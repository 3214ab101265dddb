package cpu_test

import (
	"fmt"
	"testing"

	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/cpu"
	"github.com/pce-engine/pce/kernels/cpu/micro"
	"github.com/pce-engine/pce/kernels/kerneltest"
)

// TestConformance runs the suite with every set of kernels that this machine
// has, on one thread and on two.
func TestConformance(t *testing.T) {
	for _, set := range micro.All() {
		for _, threads := range []int{1, 2} {
			t.Run(fmt.Sprintf("%s/threads=%d", set.Name, threads), func(t *testing.T) {
				kerneltest.Run(t, func(t testing.TB) kernels.Device {
					d, err := cpu.Open(cpu.Options{Threads: threads, Set: set})
					if err != nil {
						t.Fatal(err)
					}
					return d
				})
			})
		}
	}
}
