package circuit

import (
	"fmt"
	"math/rand/v2"
	"sort"
)

// Histogram is a piecewise constant distribution over the codes 0..N-1. Bin i
// holds the codes Edges[i]..Edges[i+1]-1, so Edges starts at 0, ascends and ends
// at N. The parameters are the masses of the bins; the codes of a bin share its
// mass evenly. Codes that cannot occur form a bin of mass 0.
type Histogram struct{ Edges []int }

// Name returns "histogram".
func (Histogram) Name() string { return "histogram" }

// NumParams returns the number of bins.
func (l Histogram) NumParams() int { return len(l.Edges) - 1 }

// NumStats returns the number of bins.
func (l Histogram) NumStats() int { return len(l.Edges) - 1 }

// TableIsShares returns true: a code's probability is a share of its bin's mass.
func (Histogram) TableIsShares() bool { return true }

// Codes returns the last edge.
func (l Histogram) Codes() int { return l.Edges[len(l.Edges)-1] }

// CheckSettings wants ascending edges from 0 to at most MaxCodes.
func (l Histogram) CheckSettings() error {
	if len(l.Edges) < 2 || l.Edges[0] != 0 {
		return fmt.Errorf("%w: histogram with edges %v; want 0, then at least one more", ErrLeaf, clip(l.Edges))
	}
	for i, e := range l.Edges[1:] {
		if e <= l.Edges[i] {
			return fmt.Errorf("%w: histogram edge %d is %d after %d; want ascending edges", ErrLeaf, i+1, e, l.Edges[i])
		}
	}
	return checkCodes(l.Name(), "codes", l.Codes(), 1)
}

func clip(e []int) []int { return e[:min(len(e), 4)] }

// Check wants a code, a whole number below the last edge.
func (l Histogram) Check(x float64) error { return checkCode(l.Name(), x, l.Codes()) }

// CheckParams wants masses that sum to 1 within 1e-3, as files of other programs round them.
func (l Histogram) CheckParams(p []float64) error { return checkMasses(l.Name(), p, l.NumParams()) }

func (l Histogram) bin(x float64) int { return sort.SearchInts(l.Edges, int(x)+1) - 1 }

func (l Histogram) width(i int) float64 { return float64(l.Edges[i+1] - l.Edges[i]) }

// LogProb is the log of the bin's mass divided by its width.
func (l Histogram) LogProb(p []float64, x float64) float64 {
	i := l.bin(x)
	return Log(p[i] / l.width(i))
}

// Mode is the first code of the bin with the largest mass per code.
func (l Histogram) Mode(p []float64) float64 {
	best := 0
	for i := range p {
		if p[i]/l.width(i) > p[best]/l.width(best) {
			best = i
		}
	}
	return float64(l.Edges[best])
}

// Sample draws a bin, then one of its codes.
func (l Histogram) Sample(p []float64, rng *rand.Rand) float64 {
	i := drawIndex(p, rng)
	return float64(l.Edges[i] + rng.IntN(l.Edges[i+1]-l.Edges[i]))
}

// Moments are those of the code as a number.
func (l Histogram) Moments(p []float64) (mean, variance float64) {
	center := func(i int) float64 { return float64(l.Edges[i]+l.Edges[i+1]-1) / 2 }
	for i, q := range p {
		mean += q * center(i)
	}
	for i, q := range p {
		d, w := center(i)-mean, l.width(i)
		variance += q * (d*d + (w*w-1)/12)
	}
	return mean, variance
}

// Stats is the one-hot vector of the bin.
func (l Histogram) Stats(x float64, t []float64) {
	clear(t)
	t[l.bin(x)] = 1
}

// MStep sets the relative frequencies of the bins; the pseudocount is spread
// evenly over the codes of the bins of positive mass.
func (l Histogram) MStep(p, sum []float64, _, pseudocount, step float64) {
	updateMasses(p, sum, l.width, pseudocount, step)
}

// Init draws densities proportional to exp(-2u) with uniform u.
func (l Histogram) Init(p []float64, _ ColumnStats, rng *rand.Rand) { drawMasses(p, l.width, rng) }

// Constants are the edges.
func (l Histogram) Constants() []float64 {
	edges := make([]float64, len(l.Edges))
	for i, e := range l.Edges {
		edges[i] = float64(e)
	}
	return edges
}
