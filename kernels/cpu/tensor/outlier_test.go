package tensor_test

import (
	"testing"

	"github.com/pce-engine/pce/kernels/cpu/micro"
	"github.com/pce-engine/pce/kernels/kerneltest"
)

// TestOutliers evaluates, trains and samples rows with cells far from everything
// that a model knows, with every set of kernels.
func TestOutliers(t *testing.T) {
	for _, set := range micro.All() {
		t.Run(set.Name, func(t *testing.T) { kerneltest.Outliers(t, opener(set, 2)) })
	}
}

// TestFarTables classifies rows with cells far from everything that tables know, with every set of kernels.
func TestFarTables(t *testing.T) {
	for _, set := range micro.All() {
		t.Run(set.Name, func(t *testing.T) { kerneltest.FarTables(t, opener(set, 2)) })
	}
}

// TestImages trains binomial leaves on images with every set of kernels.
func TestImages(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a second; run without -short")
	}
	for _, set := range sets() {
		t.Run(set.Name, func(t *testing.T) { kerneltest.Images(t, opener(set, 2), 4, 5) })
	}
}
