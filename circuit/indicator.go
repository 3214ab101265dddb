package circuit

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// Indicator is certain of one code: it has no parameters, and its probability
// is 1 at Value and 0 at the other codes of 0..Domain-1.
type Indicator struct {
	Domain int
	Value  int
}

// Name returns "indicator".
func (Indicator) Name() string { return "indicator" }

// NumParams returns 0.
func (Indicator) NumParams() int { return 0 }

// NumStats returns 0.
func (Indicator) NumStats() int { return 0 }

// Codes returns the size of the domain.
func (l Indicator) Codes() int { return l.Domain }

// CheckSettings wants a value inside the domain.
func (l Indicator) CheckSettings() error {
	if err := checkCodes(l.Name(), "codes", l.Domain, 1); err != nil {
		return err
	}
	if l.Value < 0 || l.Value >= l.Domain {
		return fmt.Errorf("%w: indicator of %d with %d codes; want 0 to %d", ErrLeaf, l.Value, l.Domain, l.Domain-1)
	}
	return nil
}

// Check wants a code, a whole number from 0 to Domain-1; codes other than Value are impossible,
// not invalid.
func (l Indicator) Check(x float64) error { return checkCode(l.Name(), x, l.Domain) }

// CheckParams wants no parameters at all.
func (l Indicator) CheckParams(p []float64) error { return checkParamCount(l.Name(), p, 0) }

// LogProb is 0 at the value and -Inf elsewhere.
func (l Indicator) LogProb(_ []float64, x float64) float64 {
	if x == float64(l.Value) {
		return 0
	}
	return math.Inf(-1)
}

// Mode is the value.
func (l Indicator) Mode([]float64) float64 { return float64(l.Value) }

// Sample returns the value.
func (l Indicator) Sample([]float64, *rand.Rand) float64 { return float64(l.Value) }

// Moments are the value and 0.
func (l Indicator) Moments([]float64) (mean, variance float64) { return float64(l.Value), 0 }

// Stats writes nothing: without parameters there is nothing to learn.
func (Indicator) Stats(float64, []float64) {}

// MStep changes nothing.
func (Indicator) MStep(_, _ []float64, _, _, _ float64) {}

// Init draws nothing.
func (Indicator) Init([]float64, ColumnStats, *rand.Rand) {}

// Constants are none: the table says it all.
func (Indicator) Constants() []float64 { return nil }
