package circuit

import (
	"fmt"
	"slices"
	"testing"
)

// TestConstants holds the settings that devices read to those that an M-step obeys.
func TestConstants(t *testing.T) {
	for _, c := range []struct {
		leaf Leaf
		want []float64
	}{
		{Bernoulli{}, nil},
		{Categorical{Categories: 3}, nil},
		{Indicator{Domain: 3, Value: 1}, nil},
		{Gaussian{}, []float64{0.01}},
		{Gaussian{MinSigma: 0.5}, []float64{0.5}},
		{LogNormal{}, []float64{0.01}},
		{LogNormal{MinSigma: 0.5}, []float64{0.5}},
		{Poisson{}, []float64{0x1p-100, 1e12}},
		{Binomial{Trials: 9}, []float64{9, 0x1p-100, 1 - 0x1p-24}},
		{DiscretisedLogistic{Domain: 4}, []float64{0.1}},
		{DiscretisedLogistic{Domain: 4, MinScale: 0.25}, []float64{0.25}},
		{Histogram{Edges: []int{0, 2, 5}}, []float64{0, 2, 5}},
	} {
		t.Run(fmt.Sprintf("%T%+v", c.leaf, c.leaf), func(t *testing.T) {
			got := c.leaf.Constants()
			if !slices.Equal(got, c.want) {
				t.Fatalf("%v, want %v", got, c.want)
			}
			// Statistics of nothing but zeros drive parameters to their least values.
			p, least := []float64{3, 3}, got
			switch c.leaf.(type) {
			case Gaussian, LogNormal, DiscretisedLogistic:
				c.leaf.MStep(p, []float64{0, 0}, 1, 0, 1)
				p = p[1:]
			case Poisson:
				c.leaf.MStep(p, []float64{0}, 1, 0, 1)
			case Binomial:
				p[0], least = 0.5, got[1:]
				c.leaf.MStep(p, []float64{0}, 1, 0, 1)
			default:
				return
			}
			if p[0] != least[0] {
				t.Fatalf("an M-step leaves %v, want %v", p[0], least[0])
			}
		})
	}
}
