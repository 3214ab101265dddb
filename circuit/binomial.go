package circuit

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// Binomial counts the successes of Trials independent trials: codes 0..Trials.
// Its parameter is the probability of success.
type Binomial struct{ Trials int }

// belowOne is the largest float32 below 1: nearer probabilities would round to
// 1 and make a failure impossible for good.
const belowOne = 1 - 0x1p-24

// Name returns "binomial".
func (Binomial) Name() string { return "binomial" }

// NumParams returns 1.
func (Binomial) NumParams() int { return 1 }

// NumStats returns 1.
func (Binomial) NumStats() int { return 1 }

// Codes returns Trials + 1.
func (l Binomial) Codes() int { return l.Trials + 1 }

// CheckSettings wants 1 to MaxCodes-1 trials; the error matches ErrLeaf.
func (l Binomial) CheckSettings() error {
	if l.Trials < 1 || l.Trials >= MaxCodes {
		return fmt.Errorf("%w: binomial with %d trials; want 1 to %d", ErrLeaf, l.Trials, MaxCodes-1)
	}
	return nil
}

// Check wants a whole number of at most Trials.
func (l Binomial) Check(x float64) error { return checkCode(l.Name(), x, l.Codes()) }

// CheckParams wants one probability; 0 and 1 are allowed and stay what they are in training.
func (l Binomial) CheckParams(p []float64) error {
	if err := checkParamCount(l.Name(), p, 1); err != nil {
		return err
	}
	if !(p[0] >= 0 && p[0] <= 1) {
		return fmt.Errorf("%w: binomial: p is %v; want a probability", ErrLeaf, p[0])
	}
	return nil
}

// LogProb is log C(n,x) + x·log p + (n-x)·log(1-p), and -Inf where p of 0 or 1 rules x out.
func (l Binomial) LogProb(p []float64, x float64) float64 {
	n := float64(l.Trials)
	a, _ := math.Lgamma(n + 1)
	b, _ := math.Lgamma(x + 1)
	c, _ := math.Lgamma(n - x + 1)
	lp := a - b - c
	if x > 0 {
		lp += x * Log(p[0])
	}
	if x < n {
		lp += (n - x) * math.Log1p(-p[0])
	}
	return lp
}

// ChainStart returns the log of P(0) = (1-p)^n, and the odds p/(1-p).
func (l Binomial) ChainStart(p float64) (log, odds float64) {
	return float64(l.Trials) * math.Log1p(-p), p / (1 - p)
}

// Factor is P(x+1)/P(x) without the odds: (n-x)/(x+1). With ChainStart it gives all
// probabilities by multiplications.
func (l Binomial) Factor(x int) float64 { return float64(l.Trials-x) / float64(x+1) }

// Mode is the whole part of (n+1)·p, at most n.
func (l Binomial) Mode(p []float64) float64 {
	return min(math.Floor(float64(l.Trials+1)*p[0]), float64(l.Trials))
}

// Sample draws by inversion, from the mode outwards, in a time of the order of the standard
// deviation.
func (l Binomial) Sample(p []float64, rng *rand.Rand) float64 {
	return drawUnimodal(l.Mode(p), float64(l.Trials), func(x float64) float64 { return l.LogProb(p, x) }, rng)
}

// Moments are n·p and n·p·(1-p), in successes.
func (l Binomial) Moments(p []float64) (mean, variance float64) {
	mean = float64(l.Trials) * p[0]
	return mean, mean * (1 - p[0])
}

// Stats is x, the number of successes.
func (Binomial) Stats(x float64, t []float64) { t[0] = x }

// MStep matches the mean; half of the trials of the pseudocount succeed. A p of
// exactly 0 or 1 stays.
func (l Binomial) MStep(p, sum []float64, weight, pseudocount, step float64) {
	total := weight + pseudocount
	if !(total > 0) || p[0] == 0 || p[0] == 1 {
		return
	}
	fresh := (sum[0]/float64(l.Trials) + pseudocount/2) / total
	p[0] = clampSuccess((1-step)*p[0] + step*fresh)
}

// Init draws p around the column's mean, as wide as the column, and at most one unit of log-odds: with many trials a distribution is
// narrow, and units far from all counts would leave all rows to one of them. Where counts are farther apart than such units reach, it draws
// any log-odds between those of the least and the largest.
func (l Binomial) Init(p []float64, col ColumnStats, rng *rand.Rand) {
	n, odds, width := float64(l.Trials), 0.0, 1.0
	if col.known() {
		least := min(0.02, 0.5/n)
		q := min(max(col.Mean/n, least), 1-least)
		odds = math.Log(q / (1 - q))
		variance := n * q * (1 - q) // which is also how far a unit of log-odds moves the mean
		if col.Variance-variance > variance*variance {
			at := func(x float64) float64 {
				x = min(max(x, 0), n)
				return math.Log((x + 0.5) / (n - x + 0.5))
			}
			low, high := at(col.Min), at(col.Max)
			p[0] = clampSuccess(1 / (1 + math.Exp(-low-(high-low)*rng.Float64())))
			return
		}
		width = min(1, math.Sqrt(max(col.Variance, variance))/variance)
	}
	odds += width * rng.NormFloat64()
	p[0] = clampSuccess(1 / (1 + math.Exp(-odds)))
}

// Constants are the number of trials, and the least and the largest p of training.
func (l Binomial) Constants() []float64 {
	return []float64{float64(l.Trials), MinProb, belowOne}
}

func clampSuccess(p float64) float64 { return min(max(p, MinProb), belowOne) }
