package engine

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pce-engine/pce/dataset"
)

// TestBinQuantiles wants quantiles to grow with their levels up to the last number before 1, which ends the last bin, although
// probabilities, which are rounded, may add up to less.
func TestBinQuantiles(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 8))
	b := &bins{edges: []float32{0, 1, 3, 4, 10, 11, 12, 20}}
	levels := []float64{1e-300, 0.5, 1 - 1e-9, 1 - 0x1p-52, 1 - 0x1p-53}
	for range 2000 {
		weights, p := make([]float32, 7), make([]float64, 7)
		for i := range weights {
			weights[i] = rng.Float32()
		}
		shares(p, weights)
		var quantiles []float64
		for _, q := range levels {
			quantiles = append(quantiles, b.quantile(p, q))
		}
		if last := quantiles[4]; !slices.IsSorted(quantiles) || !(math.Abs(last-20) <= 1e-6) {
			t.Fatalf("probabilities %v: quantiles %v at %v", p, quantiles, levels)
		}
	}
}

// TestNarrowBins has the logarithms of widths and densities below the least normal number.
func TestNarrowBins(t *testing.T) {
	s := &dataset.Schema{Columns: []dataset.Column{{Kind: dataset.Continuous, Scale: 1e-310, Edges: []float64{0, 1e-310, 3e-310}, Outside: 5e-324}}}
	b := binsOf(s)[0]
	for what, x := range map[string][2]float64{
		"first width": {b.logWidth[0], -713.8013788281542}, "second width": {b.logWidth[1], -713.8013788281542 + math.Ln2}, "density outside": {b.logOutside, -744.4400719213812},
	} {
		if !(math.Abs(x[0]-x[1]) <= 1e-9) {
			t.Errorf("%s: %v, want %v", what, x[0], x[1])
		}
	}
}
