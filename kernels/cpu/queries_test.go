package cpu_test

import (
	"testing"

	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/cpu"
	"github.com/pce-engine/pce/kernels/cpu/micro"
	"github.com/pce-engine/pce/kernels/cpu/tensor"
	"github.com/pce-engine/pce/kernels/kerneltest"
)

// TestQueries compares the answers to queries with enumeration, on every set of kernels of the
// machine.
func TestQueries(t *testing.T) {
	for _, set := range micro.All() {
		t.Run(set.Name, func(t *testing.T) {
			kerneltest.Queries(t, func(t testing.TB) kernels.Device {
				d, err := tensor.Open(cpu.Options{Threads: 1, Set: set})
				if err != nil {
					t.Fatal(err)
				}
				return d
			})
		})
	}
}
