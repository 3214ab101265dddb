package cuda_test

import (
	"slices"
	"testing"

	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/cuda"
	"github.com/pce-engine/pce/kernels/emulator"
)

// emulated opens an emulator as a device with loaders.
func emulated(t *testing.T, e *emulator.Emulator, loaders cuda.Loaders) *cuda.Device {
	t.Helper()
	d, err := cuda.Open("emulator", func() (cuda.Driver, error) { return e, nil }, loaders)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestStaging writes more than the pinned memory holds, at once and bit by bit,
// and reads it back.
func TestStaging(t *testing.T) {
	ctx := t.Context()
	for seed := range uint64(3) {
		dev := emulated(t, emulator.New(emulator.Options{Seed: seed}), nil)
		var buffers []kernels.Buffer
		var want [][]int64
		for i, n := range []int{3 << 20, 200_000, 300_000, 1, 400_000, 5, 350_000, 1 << 20} {
			b, err := dev.Alloc(ctx, kernels.Int64, n)
			if err != nil {
				t.Fatal(err)
			}
			w := make([]int64, n)
			for k := range w {
				w[k] = int64(k*(i+3) - i)
			}
			if err := dev.Write(ctx, b, 0, w); err != nil {
				t.Fatal(err)
			}
			buffers, want = append(buffers, b), append(want, slices.Clone(w))
			clear(w) // Write has taken it
		}
		for i, b := range buffers {
			got := make([]int64, b.Len())
			if err := dev.Read(ctx, got, b, 0); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, want[i]) {
				t.Errorf("seed %d: buffer %d of %d numbers comes back with others", seed, i, b.Len())
			}
			b.Free()
		}
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	}
}
