package tensor_test

import (
	"testing"

	"github.com/pce-engine/pce/kernels/kerneltest"
)

// TestOutliers evaluates, trains and samples rows with cells far from everything
// that a model knows, on an emulated card.
func TestOutliers(t *testing.T) {
	if testing.Short() {
		t.Skip("takes an emulator seconds; run without -short")
	}
	kerneltest.Outliers(t, emulated(asHopper))
}

// TestFarTables classifies rows with cells far from everything that tables know, on an emulated card.
func TestFarTables(t *testing.T) { kerneltest.FarTables(t, emulated(asHopper)) }

// TestImages trains binomial leaves on images on an emulated card.
func TestImages(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes an emulator seconds; run without -short")
	}
	kerneltest.Images(t, emulated(asHopper), 4, 2)
}
