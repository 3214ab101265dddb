package circuit

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
)

// RealHistogram is a piecewise constant density over the real numbers, as imported circuits
// have it: bin i holds the numbers from Breaks[i] to below Breaks[i+1], both as float32. The parameters are
// the densities of the bins. They need not integrate to 1, because learners of histograms
// smooth them in ways that change the sum; samples and moments are those of the normalised
// bins. Where all breaks are whole they are those of whole numbers, since networks over counts
// and categories are written so: the numbers Breaks[i] to Breaks[i+1]-1 share the mass of bin i.
// Histogram is the family of trained circuits.
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

// StatsAreShares returns true: a statistic is 0 or 1, whatever the cells are.
func (RealHistogram) StatsAreShares() bool { return true }

// Codes returns 0: the domain is not finite.
func (RealHistogram) Codes() int { return 0 }

// CheckSettings wants ascending finite breaks and a density that is not negative.
func (l RealHistogram) CheckSettings() error {
	if len(l.Breaks) < 2 || len(l.Breaks) > MaxCodes {
		return fmt.Errorf("%w: real-histogram with %d breaks; want 2 to %d", ErrLeaf, len(l.Breaks), MaxCodes)
	}
	for i, b := range l.Breaks {
		if !(math.Abs(b) <= math.MaxFloat32) || i > 0 && !(b > l.Breaks[i-1]) {
			return fmt.Errorf("%w: real-histogram break %d is %v; want ascending numbers within ±3.4e38", ErrLeaf, i, b)
		}
	}
	return checkFloor(l.Name(), "floor", l.Floor)
}

// Check wants a finite number that fits a float32.
func (RealHistogram) Check(x float64) error {
	if !(math.Abs(x) <= math.MaxFloat32) {
		return fmt.Errorf("real-histogram: %v; want a number within ±3.4e38", x)
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
			return fmt.Errorf("%w: real-histogram: density %d is %v; want a number from 0 to 3.4e38", ErrLeaf, i, d)
		}
	}
	if total := l.total(p); !(total > 0 && total <= math.MaxFloat64) {
		return fmt.Errorf("%w: real-histogram: the densities integrate to %v; want a positive number", ErrLeaf, total)
	}
	return nil
}

// Cuts returns the breaks as they are compared with cells. Cells are float32, and so are these, each the nearest to a break: a cell that was
// written as the break itself would else lie in the bin below where it was rounded down.
func (l RealHistogram) Cuts() []float64 {
	cuts := make([]float64, len(l.Breaks))
	for i := range cuts {
		cuts[i] = l.cut(i)
	}
	return cuts
}

func (l RealHistogram) cut(i int) float64 { return float64(float32(l.Breaks[i])) }

// Bin returns the bin that holds a cell, -1 if none does.
func (l RealHistogram) Bin(x float64) int {
	i := sort.Search(len(l.Breaks), func(i int) bool { return l.cut(i) > x }) - 1
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

// Steps returns the breaks.
func (l RealHistogram) Steps() []float64 { return l.Breaks }

// Whole reports whether the leaf is one of whole numbers.
func (l RealHistogram) Whole() bool {
	return !slices.ContainsFunc(l.Breaks, func(b float64) bool { return b != math.Trunc(b) })
}

// Mode is the middle of the first of the densest bins, or its first whole number.
func (l RealHistogram) Mode(p []float64) float64 {
	best := argmax(p)
	if l.Whole() {
		return l.Breaks[best]
	}
	return l.Breaks[best] + l.width(best)/2
}

// Masses are the normalised masses of the bins.
func (l RealHistogram) Masses(p []float64) []float64 {
	m, total := make([]float64, len(p)), l.total(p)
	for i, d := range p {
		m[i] = d * l.width(i) / total
	}
	return m
}

// Sample draws a bin by its mass, then a number of it, also as the float32 that a cell keeps: behind the last bin the density is the
// floor, which may be 0.
func (l RealHistogram) Sample(p []float64, rng *rand.Rand) float64 {
	i := drawIndex(l.Masses(p), rng)
	x := l.Breaks[i] + rng.Float64()*l.width(i)
	if l.Whole() {
		x = min(math.Floor(x), l.Breaks[i+1]-1) // x may be rounded up to the next bin
	}
	last := float64(math.Nextafter32(float32(l.Breaks[i+1]), -math.MaxFloat32))
	return min(x, max(last, l.cut(i)))
}

// Moments are those of the bins, normalised, each as a uniform distribution. The floor outside
// the bins has no moments and does not count.
func (l RealHistogram) Moments(p []float64) (mean, variance float64) {
	return l.RangeMoments(p, math.Inf(-1), math.Inf(1))
}

// Below adds up the normalised bins up to x.
func (l RealHistogram) Below(p []float64, x float64) float64 {
	sum := 0.0
	l.eachPart(p, math.Inf(-1), x, func(mass, _, _ float64) { sum += mass })
	return min(1, sum)
}

// LogRange adds up the parts of the normalised bins that lie in the range.
func (l RealHistogram) LogRange(p []float64, low, high float64) float64 {
	sum := 0.0
	l.eachPart(p, low, high, func(mass, _, _ float64) { sum += mass })
	return Log(min(1, sum))
}

// RangeMoments are those of the parts of the bins, each as a uniform distribution.
func (l RealHistogram) RangeMoments(p []float64, low, high float64) (mean, variance float64) {
	total := 0.0
	l.eachPart(p, low, high, func(mass, part, _ float64) {
		mean += mass * part
		total += mass
	})
	mean /= total
	l.eachPart(p, low, high, func(mass, part, own float64) { variance += mass * ((part-mean)*(part-mean) + own) })
	return mean, variance / total
}

// RangeMode returns a number of the largest density in a range, both ends included: one of the first of the densest
// parts of bins, its middle or its first whole number. It returns false where LogRange has no probability; the floor does not count.
func (l RealHistogram) RangeMode(p []float64, low, high float64) (x float64, ok bool) {
	whole, top := l.Whole(), math.Inf(-1)
	for i, d := range p {
		from, to := max(low, l.Breaks[i]), min(high, l.Breaks[i+1])
		if whole {
			from = math.Ceil(from)
			if !(from <= high && from < l.Breaks[i+1]) {
				continue
			}
		} else if !(from < to) {
			continue
		}
		if d > 0 && max(d, l.Floor) > top {
			if top, ok, x = max(d, l.Floor), true, from; !whole {
				x = from + (to-from)/2
			}
		}
	}
	return x, ok
}

// eachPart gives the parts of the bins that lie in a range, both ends included: the mass of each, its mean and its
// variance. No part has the floor outside the bins.
func (l RealHistogram) eachPart(p []float64, low, high float64, take func(mass, mean, variance float64)) {
	half, unit := 0.0, 0.0 // of whole numbers, each of which is the interval up to the next one
	if l.Whole() {
		low, high, half, unit = math.Ceil(low), math.Floor(high)+1, 0.5, 1
	}
	for i, m := range l.Masses(p) {
		from, to := max(low, l.Breaks[i]), min(high, l.Breaks[i+1])
		if w := to - from; w > 0 && m > 0 {
			take(m*(w/l.width(i)), from+w/2-half, (w*w-unit)/12)
		}
	}
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
	m := l.Masses(p)
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

// Constants are the floor, then the cuts.
func (l RealHistogram) Constants() []float64 {
	return append([]float64{l.Floor}, l.Cuts()...)
}
