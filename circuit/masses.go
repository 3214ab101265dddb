package circuit

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// MinProb is the smallest positive probability that an update leaves behind: a
// positive probability never becomes 0, because an exact 0 is structural.
const MinProb = 0x1p-100

// MaxCodes is the largest finite domain: every code of it is exact as a float32.
const MaxCodes = 1 << 24

// massTolerance is how far the sum of stored probabilities may be from 1; files
// of other programs print six digits.
const massTolerance = 1e-3

// massLeaf gives a family whose parameters are the probabilities of its codes
// all methods that depend on the parameters only.
type massLeaf struct{}

// ParamsAreTable returns true: parameter c is the probability of code c.
func (massLeaf) ParamsAreTable() bool { return true }

// LogProb is the log of parameter x, -Inf where that is 0.
func (massLeaf) LogProb(p []float64, x float64) float64 { return Log(p[int(x)]) }

// Mode is the first of the most probable codes.
func (massLeaf) Mode(p []float64) float64 { return float64(argmax(p)) }

// Sample draws a code by inversion of one uniform number.
func (massLeaf) Sample(p []float64, rng *rand.Rand) float64 { return float64(drawIndex(p, rng)) }

// Moments are those of the code as a number, whatever the codes mean.
func (massLeaf) Moments(p []float64) (mean, variance float64) {
	for c, q := range p {
		mean += q * float64(c)
	}
	for c, q := range p {
		d := float64(c) - mean
		variance += q * d * d
	}
	return mean, variance
}

// Stats is the one-hot vector of the code.
func (massLeaf) Stats(x float64, t []float64) {
	clear(t)
	t[int(x)] = 1
}

// MStep sets the relative frequencies; the pseudocount is spread evenly over
// the codes of positive probability.
func (massLeaf) MStep(p, sum []float64, _, pseudocount, step float64) {
	updateMasses(p, sum, evenShare, pseudocount, step)
}

// Init draws probabilities proportional to exp(-2u) with uniform u.
func (massLeaf) Init(p []float64, _ ColumnStats, rng *rand.Rand) {
	drawMasses(p, evenShare, rng)
}

// Constants are none: the number of codes is that of the parameters.
func (massLeaf) Constants() []float64 { return nil }

func evenShare(int) float64 { return 1 }

// updateMasses blends p with the relative frequencies of sum, where the
// pseudocount is spread by share over the entries of positive probability.
func updateMasses(p, sum []float64, share func(i int) float64, pseudocount, step float64) {
	total, shares := pseudocount, 0.0
	for i, q := range p {
		if q > 0 {
			total += sum[i]
			shares += share(i)
		}
	}
	if !(total > 0) {
		return
	}
	mass := 0.0
	for i, q := range p {
		if q > 0 {
			fresh := (sum[i] + pseudocount*share(i)/shares) / total
			p[i] = max((1-step)*q+step*fresh, MinProb)
			mass += p[i]
		}
	}
	for i := range p {
		p[i] = floorProb(p[i] / mass)
	}
}

// floorProb keeps a positive probability at or above MinProb.
func floorProb(q float64) float64 {
	if q > 0 {
		return max(q, MinProb)
	}
	return q
}

func drawMasses(p []float64, share func(i int) float64, rng *rand.Rand) {
	mass := 0.0
	for i := range p {
		p[i] = share(i) * math.Exp(-initSpread*rng.Float64())
		mass += p[i]
	}
	for i := range p {
		p[i] /= mass
	}
}

func checkMasses(name string, p []float64, n int) error {
	if err := checkParamCount(name, p, n); err != nil {
		return err
	}
	mass := 0.0
	for i, q := range p {
		if !(q >= 0 && q <= 1+massTolerance) {
			return fmt.Errorf("%w: %s: parameter %d is %v; want a probability", ErrLeaf, name, i, q)
		}
		mass += q
	}
	if !(math.Abs(mass-1) <= massTolerance) {
		return fmt.Errorf("%w: %s: probabilities sum to %v; normalise them to 1", ErrLeaf, name, mass)
	}
	return nil
}

func checkParamCount(name string, p []float64, n int) error {
	if len(p) != n {
		return fmt.Errorf("%w: %s has %d parameters; want %d", ErrLeaf, name, len(p), n)
	}
	return nil
}

func checkCodes(name, setting string, codes, least int) error {
	if codes < least || codes > MaxCodes {
		return fmt.Errorf("%w: %s with %d %s; want %d to %d", ErrLeaf, name, codes, setting, least, MaxCodes)
	}
	return nil
}

func checkCode(name string, x float64, codes int) error {
	if !(x >= 0 && x < float64(codes)) || x != math.Trunc(x) {
		return fmt.Errorf("%s: %v is not a code (want 0..%d)", name, x, codes-1)
	}
	return nil
}

func argmax(p []float64) int {
	best := 0
	for i, q := range p {
		if q > p[best] {
			best = i
		}
	}
	return best
}

// drawIndex draws an index with probability proportional to p.
func drawIndex(p []float64, rng *rand.Rand) int {
	mass := 0.0
	for _, q := range p {
		mass += q
	}
	u, last := mass*rng.Float64(), 0
	for i, q := range p {
		if q > 0 {
			if u < q {
				return i
			}
			u -= q
			last = i
		}
	}
	return last // the rounding of the subtractions ate the end
}
