package circuit

import "math"

// Cumulative is a leaf without a finite domain whose distribution function is known.
type Cumulative interface {
	Leaf
	// Below is the probability of x and all smaller numbers.
	Below(p []float64, x float64) float64
}

var _ = []Cumulative{Gaussian{}, LogNormal{}, Poisson{}, RealHistogram{}}

// Below is that of the standard normal distribution at the distance from the mean in standard
// deviations.
func (Gaussian) Below(p []float64, x float64) float64 {
	return math.Erfc((p[0]-x)/(p[1]*math.Sqrt2)) / 2
}

// Below is the normal distribution function at the logarithm of x; 0 where x is not positive.
func (LogNormal) Below(p []float64, x float64) float64 {
	if !(x > 0) {
		return 0
	}
	return Gaussian{}.Below(p, math.Log(x))
}

// Below adds up probabilities from x away from the mode, until they are below 1e-20 of the
// first: those of the counts up to x, or of the larger ones. Many counts are integrated over.
func (l Poisson) Below(p []float64, x float64) float64 {
	if !(x >= 0) {
		return 0
	}
	const least = 1e-20
	x = math.Floor(x)
	if poissonReach(p[0], x) > manyCounts {
		if x < l.Mode(p) {
			return min(1, math.Exp(l.LogRange(p, 0, x)))
		}
		return max(0, 1-math.Exp(l.LogRange(p, x+1, math.Inf(1))))
	}
	sum, term := 0.0, 1.0
	if x < l.Mode(p) {
		for k := x; k >= 0 && term > least; k-- {
			sum += term
			term *= k / p[0]
		}
		return min(1, sum*math.Exp(l.LogProb(p, x)))
	}
	if math.IsInf(x, 1) {
		return 1
	}
	for k := x + 1; term > least; k++ {
		sum += term
		term *= p[0] / (k + 1)
	}
	return max(0, 1-sum*math.Exp(l.LogProb(p, x+1)))
}
