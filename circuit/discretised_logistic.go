package circuit

import (
	"math"
	"math/rand/v2"
)

// DiscretisedLogistic is a logistic distribution rounded to the codes
// 0..Domain-1; the end codes take the tails. Its parameters are the mean and
// the scale of the logistic distribution, in codes.
type DiscretisedLogistic struct {
	Domain   int     // number of codes
	MinScale float64 // floor of the scale in training; 0 means 0.1
}

const defaultMinScale = 0.1

// Name returns "discretised-logistic".
func (DiscretisedLogistic) Name() string { return "discretised-logistic" }

// NumParams returns 2.
func (DiscretisedLogistic) NumParams() int { return 2 }

// NumStats returns 2.
func (DiscretisedLogistic) NumStats() int { return 2 }

// Codes returns the size of the domain.
func (l DiscretisedLogistic) Codes() int { return l.Domain }

// CheckSettings wants at least two codes, and a floor that is a float32 and not negative.
func (l DiscretisedLogistic) CheckSettings() error {
	if err := checkCodes(l.Name(), "codes", l.Domain, 2); err != nil {
		return err
	}
	return checkFloor(l.Name(), "min_scale", l.MinScale)
}

// Check wants a code, a whole number from 0 to Domain-1.
func (l DiscretisedLogistic) Check(x float64) error { return checkCode(l.Name(), x, l.Domain) }

// CheckParams wants a finite mean and a positive scale.
func (l DiscretisedLogistic) CheckParams(p []float64) error { return checkLocationScale(l.Name(), p) }

// LogProb is the log of S(b) - S(a), where S is the logistic function and a and
// b are the borders x ∓ ½ as distances from the mean in scales. It equals
// log(1 - e^(a-b)) - log(1 + e^a) - log(1 + e^-b), which loses no digits.
func (l DiscretisedLogistic) LogProb(p []float64, x float64) float64 {
	lp := 0.0
	if x > 0 {
		lp -= softplus((x - 0.5 - p[0]) / p[1])
	}
	if x < float64(l.Domain-1) {
		lp -= softplus(-(x + 0.5 - p[0]) / p[1])
		if x > 0 {
			lp += math.Log(-math.Expm1(-1 / p[1]))
		}
	}
	return lp
}

// softplus is log(1 + e^x).
func softplus(x float64) float64 { return max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }

// Mode is the code nearest to the mean, or an end code whose tail is heavier.
func (l DiscretisedLogistic) Mode(p []float64) float64 {
	last := float64(l.Domain - 1)
	best := min(max(math.Round(p[0]), 0), last)
	for _, x := range []float64{0, last} {
		if l.LogProb(p, x) > l.LogProb(p, best) {
			best = x
		}
	}
	return best
}

// Sample draws from the logistic distribution and rounds.
func (l DiscretisedLogistic) Sample(p []float64, rng *rand.Rand) float64 {
	u := 1 - rng.Float64() // in (0, 1]
	x := p[0] + p[1]*math.Log(u/(1-u))
	return min(max(math.Round(x), 0), float64(l.Domain-1))
}

// Moments are those of the code, summed over all codes.
func (l DiscretisedLogistic) Moments(p []float64) (mean, variance float64) {
	square := 0.0
	for c := range l.Domain {
		d := float64(c) - p[0] // near the mean, so that the squares stay small
		q := math.Exp(l.LogProb(p, float64(c)))
		mean += q * d
		square += q * d * d
	}
	return p[0] + mean, square - mean*mean
}

// Stats are x and x².
func (DiscretisedLogistic) Stats(x float64, t []float64) { t[0], t[1] = x, x*x }

// MStep matches mean and variance with those of the logistic distribution,
// s²π²/3, plus 1/12 for the rounding. The folded tails are not corrected for,
// so the step is near the maximum of the likelihood, not at it. The pseudocount
// observes the present parameters' expected statistics.
func (l DiscretisedLogistic) MStep(p, sum []float64, weight, pseudocount, step float64) {
	const perScale = math.Pi * math.Pi / 3
	mean, variance, ok := blendMoments(p[0], p[1]*p[1]*perScale+1./12, sum, weight, pseudocount, step)
	if !ok {
		return
	}
	p[0] = mean
	p[1] = max(math.Sqrt(max(variance-1./12, 0)/perScale), orDefault(l.MinScale, defaultMinScale))
}

// Init draws a mean near the column's and a scale of half to all of the
// column's; without column statistics they cover the domain.
func (l DiscretisedLogistic) Init(p []float64, col ColumnStats, rng *rand.Rand) {
	last := float64(l.Domain - 1)
	mean, sd := last/2, last/4
	if col.known() {
		mean, sd = col.Mean, math.Sqrt(max(col.Variance, 0))
	}
	p[0] = min(max(mean+sd*rng.NormFloat64(), 0), last)
	p[1] = max(sd*math.Sqrt(3)/math.Pi*(0.5+0.5*rng.Float64()), orDefault(l.MinScale, defaultMinScale))
}

// Constants are the floor of the scale.
func (l DiscretisedLogistic) Constants() []float64 {
	return []float64{orDefault(l.MinScale, defaultMinScale)}
}
