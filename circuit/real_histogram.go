package circuit

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sort"
)

// RealHistogram is a piecewise constant density over the real numbers, as imported circuits
// have it: bin i holds the numbers from Breaks[i] to below Breaks[i+1]. The parameters are
// the densities of the bins. They need not integrate to 1, because learners of histograms
// smooth them in ways that change the sum; samples and moments are those of the normalised
// bins. Histogram is the family of trained circuits.
type RealHistogram struct {
	Breaks []float64
	Floor  float64 // the density outside the bins, and of every bin that has less
}

// Name returns "real-histogram".
func (RealHistogram) Name() string { return "real-histogram" }

// NumParams returns the number of bins.
func (l RealHistogram) NumParams() int { return len(l.Breaks) - 1 }

// NumStats returns the number of bins.
func (l RealHistogram) NumStats() int { return len(l.Breaks) - 1 }

// Codes returns 0: the domain is not finite.
func (RealHistogram) Codes() int { return 0 }

// CheckSettings wants ascending finite breaks and a density that is not negative.
func (l RealHistogram) CheckSettings() error {
	if len(l.Breaks) < 2 || len(l.Breaks) > MaxCodes {
		return fmt.Errorf("%w: real-histogram with %d breaks; want 2 to %d", ErrLeaf, len(l.Breaks), MaxCodes)
	}
	for i, b := range l.Breaks {
		if !(math.Abs(b) <= math.MaxFloat32) || i > 0 && !(b > l.Breaks[i-1]) {
			return fmt.Errorf("%w: real-histogram break %d is %v; want ascending finite numbers", ErrLeaf, i, b)
		}
	}
	return checkFloor(l.Name(), "floor", l.Floor)
}

// Check wants a finite number that fits a float32.
func (RealHistogram) Check(x float64) error {
	if !(math.Abs(x) <= math.MaxFloat32) {
		return fmt.Errorf("real-histogram: %v; want a finite number", x)
	}
	return nil
}

// CheckParams wants densities that are finite and not all 0.
func (l RealHistogram) CheckParams(p []float64) error {
	if err := checkParamCount(l.Name(), p, l.NumParams()); err != nil {
		return err
	}
	for i, d := range p {
		if !(d >= 0 && d <= math.MaxFloat32) {
			return fmt.Errorf("%w: real-histogram: density %d is %v; want a finite number that is not negative", ErrLeaf, i, d)
		}
	}
	if total := l.total(p); !(total > 0 && total <= math.MaxFloat64) {
		return fmt.Errorf("%w: real-histogram: the densities integrate to %v; want a positive number", ErrLeaf, total)
	}
	return nil
}

// Bin returns the bin that holds x, -1 if none does.
func (l RealHistogram) Bin(x float64) int {
	i := sort.Search(len(l.Breaks), func(i int) bool { return l.Breaks[i] > x }) - 1
	if i == l.NumParams() {
		return -1
	}
	return i
}

func (l RealHistogram) width(i int) float64 { return l.Breaks[i+1] - l.Breaks[i] }

func (l RealHistogram) total(p []float64) float64 {
	sum := 0.0
	for i, d := range p {
		sum += d * l.width(i)
	}
	return sum
}

// LogProb is the log of the bin's density, at least that of Floor.
func (l RealHistogram) LogProb(p []float64, x float64) float64 {
	d := l.Floor
	if i := l.Bin(x); i >= 0 {
		d = max(d, p[i])
	}
	return Log(d)
}

// Mode is the middle of the first of the densest bins.
func (l RealHistogram) Mode(p []float64) float64 {
	best := argmax(p)
	return l.Breaks[best] + l.width(best)/2
}

// masses are the normalised masses of the bins.
func (l RealHistogram) masses(p []float64) []float64 {
	m, total := make([]float64, len(p)), l.total(p)
	for i, d := range p {
		m[i] = d * l.width(i) / total
	}
	return m
}

// Sample draws a bin by its mass, then a number of it.
func (l RealHistogram) Sample(p []float64, rng *rand.Rand) float64 {
	i := drawIndex(l.masses(p), rng)
	return l.Breaks[i] + rng.Float64()*l.width(i)
}

// Moments are those of the bins, normalised, each as a uniform distribution. The floor outside
// the bins has no moments and does not count.
func (l RealHistogram) Moments(p []float64) (mean, variance float64) {
	m := l.masses(p)
	for i, q := range m {
		mean += q * (l.Breaks[i] + l.width(i)/2)
	}
	for i, q := range m {
		w := l.width(i)
		d := l.Breaks[i] + w/2 - mean
		variance += q * (d*d + w*w/12)
	}
	return mean, variance
}

// Stats is the one-hot vector of the bin; zeros outside the bins.
func (l RealHistogram) Stats(x float64, t []float64) {
	clear(t)
	if i := l.Bin(x); i >= 0 {
		t[i] = 1
	}
}

// MStep sets densities by the relative frequencies of the bins; the pseudocount is spread by
// the widths of bins of positive density.
func (l RealHistogram) MStep(p, sum []float64, _, pseudocount, step float64) {
	evidence := pseudocount
	for i, d := range p {
		if d > 0 {
			evidence += sum[i]
		}
	}
	if !(evidence > 0) {
		return
	}
	m := l.masses(p)
	updateMasses(m, sum, l.width, pseudocount, step)
	for i := range p {
		p[i] = m[i] / l.width(i)
	}
}

// Init draws densities proportional to exp(-2u) with uniform u.
func (l RealHistogram) Init(p []float64, _ ColumnStats, rng *rand.Rand) {
	drawMasses(p, l.width, rng)
	for i := range p {
		p[i] /= l.width(i)
	}
}

// Constants are the floor, then the breaks.
func (l RealHistogram) Constants() []float64 {
	return append([]float64{l.Floor}, l.Breaks...)
}
