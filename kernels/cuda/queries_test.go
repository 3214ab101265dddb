package cuda_test

import (
	"testing"

	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/cuda"
	"github.com/pce-engine/pce/kernels/cuda/tensor"
	"github.com/pce-engine/pce/kernels/emulator"
	"github.com/pce-engine/pce/kernels/kerneltest"
)

// TestQueries compares the answers to queries with enumeration, on an emulated card.
func TestQueries(t *testing.T) {
	if testing.Short() {
		t.Skip("enumerates circuits on the emulator, which takes seconds; run without -short")
	}
	t.Parallel()
	kerneltest.Queries(t, func(t testing.TB) kernels.Device {
		d, err := tensor.Open("emulator", func() (cuda.Driver, error) { return emulator.New(emulator.Options{Strict: true}), nil })
		if err != nil {
			t.Fatal(err)
		}
		return d
	})
}
