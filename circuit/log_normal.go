package circuit

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/pce-engine/pce/internal/elementary"
)

// LogNormal is the distribution of a positive number whose natural logarithm is
// normal. Its parameters are the mean and the standard deviation of the logarithm.
type LogNormal struct {
	MinSigma float64 // floor of the standard deviation in training; 0 means 0.01
}

// leastPositive and mostFinite bound what is drawn: the numbers stay positive and
// finite as float32.
const (
	leastPositive = 0x1p-126
	mostFinite    = math.MaxFloat32
)

// Name returns "log-normal".
func (LogNormal) Name() string { return "log-normal" }

// NumParams returns 2.
func (LogNormal) NumParams() int { return 2 }

// NumStats returns 2.
func (LogNormal) NumStats() int { return 2 }

// Codes returns 0: the domain is not finite.
func (LogNormal) Codes() int { return 0 }

// CheckSettings wants a floor that is a float32 and not negative.
func (l LogNormal) CheckSettings() error { return checkFloor(l.Name(), "min_sigma", l.MinSigma) }

// Check wants a positive number that fits a float32.
func (LogNormal) Check(x float64) error {
	if !(x > 0 && x <= mostFinite) {
		return fmt.Errorf("log-normal: %v; want a positive number, at most 3.4e38", x)
	}
	return nil
}

// CheckParams wants a finite mean and a positive standard deviation.
func (l LogNormal) CheckParams(p []float64) error { return checkLocationScale(l.Name(), p) }

// LogProb is the log density of a Gaussian at log x, less log x; -Inf where x is
// not positive.
func (LogNormal) LogProb(p []float64, x float64) float64 {
	if !(x > 0) {
		return math.Inf(-1)
	}
	y := Log(x)
	return Gaussian{}.LogProb(p, y) - y
}

// QuadraticCell returns the logarithm of x, whose density is that of a Gaussian divided by x.
func (LogNormal) QuadraticCell(x float64) (g, off float64, ok bool) {
	if !(x > 0) {
		return 0, 0, false
	}
	y := math.Log(x)
	return y, -y, true
}

// QuadraticUnit returns the terms of the Gaussian of logarithms.
func (LogNormal) QuadraticUnit(p []float64) (add, slope, curve, centre float64) {
	return Gaussian{}.QuadraticUnit(p)
}

// Mode is exp(mean - sigma²), below the median exp(mean).
func (LogNormal) Mode(p []float64) float64 { return positive(p[0] - p[1]*p[1]) }

// Sample draws a value.
func (LogNormal) Sample(p []float64, rng *rand.Rand) float64 {
	return positive(p[0] + p[1]*rng.NormFloat64())
}

// positive is exp(y) within the positive float32 numbers.
func positive(y float64) float64 { return min(max(math.Exp(y), leastPositive), mostFinite) }

// Moments are those of the number, not of its logarithm. The variance has factors that float64 does not hold where it holds
// their product: from 1 on, exp(s)-1 is a factor 1-exp(-s) and an exponent.
func (LogNormal) Moments(p []float64) (mean, variance float64) {
	s := p[1] * p[1]
	mean = elementary.Exp(p[0] + s/2)
	if s < 1 {
		return mean, math.Expm1(s) * elementary.Exp(2*p[0]+s)
	}
	return mean, -math.Expm1(-s) * elementary.Exp(2*p[0]+2*s)
}

// Stats are log x and its square: the M-step is that of a Gaussian on the logarithm. They are zeros where x is not
// positive, as other leaves of the variable may have it: no flow goes through this one then, and must not meet a NaN.
func (LogNormal) Stats(x float64, t []float64) {
	if !(x > 0) {
		clear(t)
		return
	}
	y := math.Log(x)
	t[0], t[1] = y, y*y
}

// MStep matches mean and variance of the logarithm; the pseudocount observes the
// present parameters' expected statistics.
func (l LogNormal) MStep(p, sum []float64, weight, pseudocount, step float64) {
	Gaussian(l).MStep(p, sum, weight, pseudocount, step)
}

// Init draws a start for the logarithm as Gaussian.Init does, of a column whose
// logarithms have the mean and the variance that a log-normal column of the same
// moments has.
func (l LogNormal) Init(p []float64, col ColumnStats, rng *rand.Rand) {
	logs := ColumnStats{}
	if col.known() && col.Mean > 0 {
		logs.Variance = math.Log1p(max(col.Variance, 0) / (col.Mean * col.Mean))
		logs.Mean = math.Log(col.Mean) - logs.Variance/2
		logs.Max = 1 // known
	}
	Gaussian(l).Init(p, logs, rng)
}

// Constants are the floor of the standard deviation.
func (l LogNormal) Constants() []float64 { return Gaussian(l).Constants() }
