package kerneltest_test

import (
	"testing"

	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/cpu"
	"github.com/pce-engine/pce/kernels/cpu/micro"
	cputensor "github.com/pce-engine/pce/kernels/cpu/tensor"
	"github.com/pce-engine/pce/kernels/kerneltest"
)

// TestQueries holds the enumeration of kerneltest.Queries against the device that needs
// nothing of the machine; the packages of devices play it on theirs.
func TestQueries(t *testing.T) {
	sets := micro.All()
	kerneltest.Queries(t, func(t testing.TB) kernels.Device {
		d, err := cputensor.Open(cpu.Options{Threads: 1, Set: sets[len(sets)-1]})
		if err != nil {
			t.Fatal(err)
		}
		return d
	})
}
