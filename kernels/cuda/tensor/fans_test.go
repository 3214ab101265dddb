package tensor_test

import (
	"testing"

	executor "github.com/pce-engine/pce/kernels/cuda/tensor"
	kernel "github.com/pce-engine/pce/kernels/ptx/tensor"
	"github.com/pce-engine/pce/layers"
)

// TestTableLen counts the numbers of the largest tables beyond 32 bits: a table that passed for empty would never move.
func TestTableLen(t *testing.T) {
	for width, want := range map[uint32]int{1: 1 << 24, 255: 255 << 24, 256: 1 << 32, 257: 257 << 24} {
		if got := executor.TableLen(&kernel.Input{Codes: layers.MaxCodes, Width: width}); got != want {
			t.Errorf("%d codes of %d units: %d numbers, want %d", layers.MaxCodes, width, got, want)
		}
	}
}
