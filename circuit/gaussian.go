package circuit

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// Gaussian is the normal distribution over the real numbers. Its parameters
// are the mean and the standard deviation.
type Gaussian struct {
	MinSigma float64 // floor of the standard deviation in training; 0 means 0.01
}

const defaultMinSigma = 0.01

// Name returns "gaussian".
func (Gaussian) Name() string { return "gaussian" }

// NumParams returns 2.
func (Gaussian) NumParams() int { return 2 }

// NumStats returns 2.
func (Gaussian) NumStats() int { return 2 }

// Codes returns 0: the domain is not finite.
func (Gaussian) Codes() int { return 0 }

// CheckSettings wants a floor that is a float32 and not negative.
func (l Gaussian) CheckSettings() error { return checkFloor(l.Name(), "min_sigma", l.MinSigma) }

// Check wants a finite number that fits a float32, as rows are stored.
func (Gaussian) Check(x float64) error {
	if !(math.Abs(x) <= math.MaxFloat32) {
		return fmt.Errorf("gaussian: %v; want a number within ±3.4e38", x)
	}
	return nil
}

// CheckParams wants a finite mean and a positive standard deviation.
func (l Gaussian) CheckParams(p []float64) error { return checkLocationScale(l.Name(), p) }

// LogProb is -½((x-mean)/sigma)² - log sigma - ½ log 2π.
func (Gaussian) LogProb(p []float64, x float64) float64 {
	z := (x - p[0]) / p[1]
	return -z*z/2 - Log(p[1]) - 0.5*math.Log(2*math.Pi)
}

// QuadraticCell returns x: the log density is quadratic in it.
func (Gaussian) QuadraticCell(x float64) (g, off float64, ok bool) { return x, 0, true }

// QuadraticUnit returns the terms of LogProb around the mean.
func (Gaussian) QuadraticUnit(p []float64) (add, slope, curve, centre float64) {
	return -math.Log(p[1]) - 0.5*math.Log(2*math.Pi), 0, 1 / (2 * p[1] * p[1]), p[0]
}

// Mode is the mean.
func (Gaussian) Mode(p []float64) float64 { return p[0] }

// Sample draws a value.
func (Gaussian) Sample(p []float64, rng *rand.Rand) float64 { return p[0] + p[1]*rng.NormFloat64() }

// Moments are the mean and the square of the standard deviation.
func (Gaussian) Moments(p []float64) (mean, variance float64) { return p[0], p[1] * p[1] }

// Stats are x and x².
func (Gaussian) Stats(x float64, t []float64) { t[0], t[1] = x, x*x }

// MStep matches mean and variance; the pseudocount observes the present
// parameters' expected statistics.
func (l Gaussian) MStep(p, sum []float64, weight, pseudocount, step float64) {
	mean, variance, ok := blendMoments(p[0], p[1]*p[1], sum, weight, pseudocount, step)
	if !ok {
		return
	}
	p[0] = mean
	p[1] = max(math.Sqrt(max(variance, 0)), orDefault(l.MinSigma, defaultMinSigma))
}

// Init draws a mean from the column's normal distribution and a standard
// deviation of half to all of the column's.
func (l Gaussian) Init(p []float64, col ColumnStats, rng *rand.Rand) {
	mean, sd := 0.0, 1.0
	if col.known() {
		mean, sd = col.Mean, math.Sqrt(max(col.Variance, 0))
	}
	p[0] = mean + sd*rng.NormFloat64()
	p[1] = max(sd*(0.5+0.5*rng.Float64()), orDefault(l.MinSigma, defaultMinSigma))
}

// Constants are the floor of the standard deviation.
func (l Gaussian) Constants() []float64 {
	return []float64{orDefault(l.MinSigma, defaultMinSigma)}
}

// blendMoments returns mean and variance of the statistics (x, x²), blended
// with those of the present parameters; false without evidence.
func blendMoments(mean, variance float64, sum []float64, weight, pseudocount, step float64) (m, v float64, ok bool) {
	total := weight + pseudocount
	if !(total > 0) {
		return 0, 0, false
	}
	square := variance + mean*mean
	m = (1-step)*mean + step*(sum[0]+pseudocount*mean)/total
	v = (1-step)*square + step*(sum[1]+pseudocount*square)/total - m*m
	return m, v, true
}

func checkLocationScale(name string, p []float64) error {
	if err := checkParamCount(name, p, 2); err != nil {
		return err
	}
	if !(math.Abs(p[0]) <= math.MaxFloat32) {
		return fmt.Errorf("%w: %s: mean is %v; want a number within ±3.4e38", ErrLeaf, name, p[0])
	}
	if !(p[1] > 0 && p[1] <= math.MaxFloat32) {
		return fmt.Errorf("%w: %s: width is %v; want a positive number, at most 3.4e38", ErrLeaf, name, p[1])
	}
	return nil
}

func checkFloor(name, setting string, x float64) error {
	if !(x >= 0 && x <= math.MaxFloat32) {
		return fmt.Errorf("%w: %s: %s is %v; want a positive number, at most 3.4e38, or 0 for the default", ErrLeaf, name, setting, x)
	}
	return nil
}

func orDefault(x, byDefault float64) float64 {
	if x == 0 {
		return byDefault
	}
	return x
}
