package circuit

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// Poisson counts events: whole numbers from 0, without an end. Its parameter is
// the rate, the mean number of events.
type Poisson struct{}

// maxRate bounds the rate, so that what adds up its counts ends.
const maxRate = 1e12

// Name returns "poisson".
func (Poisson) Name() string { return "poisson" }

// NumParams returns 1.
func (Poisson) NumParams() int { return 1 }

// NumStats returns 1.
func (Poisson) NumStats() int { return 1 }

// Codes returns 0: the domain is not finite.
func (Poisson) Codes() int { return 0 }

// CheckSettings returns nil: the family has no settings.
func (Poisson) CheckSettings() error { return nil }

// Check wants a whole number that is not negative.
func (Poisson) Check(x float64) error {
	if !(x >= 0 && x <= math.MaxFloat32) || x != math.Trunc(x) {
		return fmt.Errorf("poisson: %v is not a count (want 0, 1, 2, ...)", x)
	}
	return nil
}

// CheckParams wants one positive rate, small enough that adding up its counts ends.
func (l Poisson) CheckParams(p []float64) error {
	if err := checkParamCount(l.Name(), p, 1); err != nil {
		return err
	}
	if !(p[0] > 0 && p[0] <= maxRate) {
		return fmt.Errorf("%w: poisson: rate is %v; want a positive number up to %g", ErrLeaf, p[0], maxRate)
	}
	return nil
}

// LogProb is x·log rate - rate - log x!, with x a count that Check allows. For large counts these are up to 10^13 and
// cancel, so Stirling's series for log x! joins its terms to those of the rate: what is left are the deviance and the
// series' end. C. Loader, "Fast and Accurate Computation of Binomial Probabilities", 2000.
func (Poisson) LogProb(p []float64, x float64) float64 {
	if math.IsInf(x, 0) {
		return math.Inf(-1)
	}
	const large = 32
	if x < large {
		f, _ := math.Lgamma(x + 1)
		return x*Log(p[0]) - p[0] - f
	}
	return -deviance(x, p[0]) - math.Log(2*math.Pi*x)/2 - stirlingError(x)
}

// deviance is x·log(x/rate) + rate - x, without cancellation near x = rate: with v = (rate-x)/(rate+x) the logarithm is
// -2·(v + v³/3 + v⁵/5 + ...), and rate-x - 2·x·v is (rate-x)·v.
func deviance(x, rate float64) float64 {
	d := rate - x
	if math.Abs(d) > 0.2*x {
		return d - x*Log(rate/x)
	}
	v := d / (rate + x)
	sum, power := d*v, 2*x*v
	for k := 3.0; ; k += 2 {
		power *= v * v
		next := sum - power/k
		if next == sum {
			return sum
		}
		sum = next
	}
}

// stirlingError is log x! less log(2πx)/2 + x·log x - x, to 1e-16 for x from 32 on.
func stirlingError(x float64) float64 {
	y := 1 / (x * x)
	return (1./12 - y*(1./360-y*(1./1260-y/1680))) / x
}

// QuadraticCell returns x, in which the log mass is linear but for the factorial.
func (Poisson) QuadraticCell(x float64) (g, off float64, ok bool) {
	f, _ := math.Lgamma(x + 1)
	return x, -f, x >= 0 && !math.IsInf(f, 0)
}

// QuadraticUnit returns the terms of LogProb, which has no curve.
func (Poisson) QuadraticUnit(p []float64) (add, slope, curve, centre float64) {
	return -p[0], math.Log(p[0]), 0, 0
}

// Mode is the whole part of the rate.
func (Poisson) Mode(p []float64) float64 { return math.Floor(p[0]) }

// Sample draws from the mode outwards, or by rejection where that would take long.
func (l Poisson) Sample(p []float64, rng *rand.Rand) float64 {
	return drawUnimodal(l.Mode(p), math.MaxFloat64, func(x float64) float64 { return l.LogProb(p, x) }, rng)
}

// Moments are both the rate.
func (Poisson) Moments(p []float64) (mean, variance float64) { return p[0], p[0] }

// Stats is x, the count.
func (Poisson) Stats(x float64, t []float64) { t[0] = x }

// MStep matches the mean; the pseudocount observes the present rate.
func (Poisson) MStep(p, sum []float64, weight, pseudocount, step float64) {
	total := weight + pseudocount
	if !(total > 0) {
		return
	}
	fresh := (sum[0] + pseudocount*p[0]) / total
	p[0] = min(max((1-step)*p[0]+step*fresh, MinProb), maxRate)
}

// Init draws a rate within a factor of 1.65 of the column's mean, and no farther from it than two of its deviations: units far
// from all large counts, beside which a Poisson distribution is narrow, would leave all rows to one of them. Where counts are of several
// magnitudes, more different than the mean is large, it draws any magnitude between the least and the largest. The mean is enough to know,
// also of a column that holds one large count, of which a rate near 1 leaves no probability.
func (Poisson) Init(p []float64, col ColumnStats, rng *rand.Rand) {
	mean, width, u := 1.0, 1.0, rng.Float64()
	if col.Mean > 0 {
		mean = min(max(col.Mean, 0.01), maxRate/2)
	}
	if col.known() {
		if col.Variance-mean > mean*mean { // what a Poisson distribution of that mean lacks
			least, largest := min(max(col.Min, min(0.5, mean)), maxRate), min(col.Max, maxRate)
			p[0] = least * math.Pow(largest/least, u)
			return
		}
		width = min(1, 4*math.Sqrt(max(col.Variance, mean))/mean)
	}
	p[0] = mean * math.Exp(width*(u-0.5))
}

// Constants are the least and the largest rate of training.
func (Poisson) Constants() []float64 { return []float64{MinProb, maxRate} }
