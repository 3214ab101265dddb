package cpu_test

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
