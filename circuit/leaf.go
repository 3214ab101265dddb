package circuit

import (
	"math/rand/v2"
	"reflect"
)

// Leaf is a family of univariate distributions with its fixed settings, such
// as the number of categories. It holds no parameters: these are passed in, as
// p of length NumParams, float64 copies of the node's float32 parameters of one
// unit. A Leaf is immutable and safe for concurrent use.
type Leaf interface {
	// Name is the family's name in configs and files: "categorical", ...
	Name() string
	// NumParams is the number of parameters of one unit.
	NumParams() int
	// NumStats is the length of the sufficient statistic T(x).
	NumStats() int
	// Codes is the size of a finite domain: x is one of 0..Codes-1 and the
	// family can be tabulated. 0 means that the domain is not finite.
	Codes() int
	// CheckSettings returns an error if the fixed settings are impossible. The
	// other methods may only be called when it returns nil.
	CheckSettings() error
	// Check returns an error that says what x must be, or nil.
	Check(x float64) error
	// CheckParams returns an error if p are not parameters of this family.
	CheckParams(p []float64) error
	// LogProb is the natural log of the density or mass at x. A missing x is
	// the caller's business: its log marginal is 0.
	LogProb(p []float64, x float64) float64
	// Mode is a point of largest density.
	Mode(p []float64) float64
	// Sample draws one value.
	Sample(p []float64, rng *rand.Rand) float64
	// Moments are mean and variance.
	Moments(p []float64) (mean, variance float64)
	// Stats writes T(x) to t, of length NumStats.
	Stats(x float64, t []float64)
	// MStep moves p towards the maximum-likelihood parameters of the expected
	// statistics: sum holds Σ flow·T(x) and weight Σ flow over observed cells.
	// The pseudocount is spread over the family's prior. A step of 1 replaces
	// p, a smaller one blends (1-step)·E_p[T] + step·new before solving for p.
	// If weight and pseudocount are both 0, p stays.
	MStep(p, sum []float64, weight, pseudocount, step float64)
	// Init draws starting parameters for one unit. col describes the
	// variable's data; its fields may be zero, meaning unknown.
	Init(p []float64, col ColumnStats, rng *rand.Rand)
	// Constants are the fixed settings, as numbers, in the order that devices
	// expect, with defaults and the bounds of parameters in training put in.
	Constants() []float64
}

// ColumnStats is what Leaf.Init may know of a variable's data: moments and range over its
// observed cells, in the numbers that leaves see. Max = Min, as in the zero value, means that
// the spread is unknown.
type ColumnStats struct {
	Mean, Variance float64
	Min, Max       float64
}

// known reports whether the statistics say how numbers are spread.
func (c ColumnStats) known() bool { return c.Max > c.Min }

// Tabular is a leaf that can say that its parameters are its table:
// parameter c is the probability of code c.
type Tabular interface{ ParamsAreTable() bool }

// ParamsAreTable reports whether parameter c of the leaf is the probability of
// code c. The table of any other finite leaf is exp(LogProb) of its codes, each with an
// exponent of its own, or without one where a method TableIsShares() bool returns true:
// then float32 holds the probabilities as well as the parameters.
func ParamsAreTable(l Leaf) bool {
	t, ok := l.(Tabular)
	return ok && t.ParamsAreTable()
}

// SameLeaf reports whether two leaves are the same family with the same
// settings, so that their parameters may be shared.
func SameLeaf(a, b Leaf) bool { return reflect.DeepEqual(a, b) }
