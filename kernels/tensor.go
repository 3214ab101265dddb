package kernels

import "fmt"

// The kernels of a tensor program, by the names under which Load returns them.
// They share the workspace of the loaded module: Backward, Sample and Inspect read
// what the last Forward left, for the same rows.
const (
	Forward  = "forward"  // ForwardArgs: log-likelihoods of a block of rows
	Backward = "backward" // BackwardArgs: expected counts of the same rows
	Step     = "step"     // StepArgs: Forward and Backward in one launch
	Update   = "update"   // UpdateArgs: moves the parameters by the flows added so far
	Sample   = "sample"   // SampleArgs: draws the missing cells of the same rows
	Inspect  = "inspect"  // InspectArgs: copies node values out
)

// ForwardArgs are the arguments of Forward, with R the rows the module was
// loaded for.
type ForwardArgs struct {
	Params Buffer // Float32
	Codes  Buffer // Uint16, or Uint32 where the program has wide codes, [coded columns, R]
	Values Buffer // Float32 [value columns, R]
	LL     Buffer // Float64 [R], natural logs
	// Recomputed is set, once the work is done, to the number of (vector, row)
	// pairs that were recomputed in log space.
	Recomputed int64
}

// Rule says how parameters move: θ ← (1-Step)·θ + Step·θ_new, where θ_new comes
// from the flows plus Pseudocount spread over the weights of a unit. With
// Anemone it is the rule of that name.
type Rule struct {
	Step        float64
	Pseudocount float64
	Anemone     *Anemone
}

// Anemone is the rule of that name. With averages A ← Momentum·A +
// (1-Momentum)·flows, and F = A divided by their weight, the parameters of a
// unit that is visited V times in a row without evidence become
//
//	G = (Step/Rows)·F + (1-Step)·V·θ
//	θ ← (G + Pseudocount/n) / (ΣG + Pseudocount)
//
// with n the number of its parameters.
type Anemone struct {
	Momentum float64 // share of the averages that stays, below 1
	// Weight is the sum of the shares that flows have in the averages so far; 0
	// starts them afresh.
	Weight float64
	Rows   int // of the flows
}

// Next returns the weight of the averages after the update.
func (a *Anemone) Next() float64 { return a.Momentum*a.Weight + (1 - a.Momentum) }

// BackwardArgs are the arguments of Backward. With Visits it only writes the
// flow through each unit that owns parameters: that of all units which share
// them, summed over the rows. With Rule, not Anemone, the parameters move at
// once, and no flows are kept; otherwise the shard's flows are rounded to the
// grid and added to Flows.
type BackwardArgs struct {
	Params, Codes, Values Buffer
	Flows                 Buffer // Int64 [FlowLen]
	Visits                Buffer // Float32 [VisitLen]
	Rule                  *Rule
}

// UpdateArgs are the arguments of Update, which clears Flows. Anemone alone
// takes Averages, which it moves on, and Visits. Only what belongs to the owners
// Lo to Hi-1 of the program changes, everything else keeps its bits; both 0
// means all owners.
type UpdateArgs struct {
	Params, Flows Buffer
	Averages      Buffer // Float32 [AverageLen]
	Visits        Buffer // Float32 [VisitLen]
	Rule          Rule
	Lo, Hi        int
}

// Part returns the range of owners that change, of n.
func (a *UpdateArgs) Part(n int) (lo, hi int, err error) {
	if a.Lo == 0 && a.Hi == 0 {
		return 0, n, nil
	}
	if a.Lo < 0 || a.Hi < a.Lo || a.Hi > n {
		return 0, 0, fmt.Errorf("%w: update of the owners %d to %d; there are %d, counted from 0", ErrDevice, a.Lo, a.Hi-1, n)
	}
	return a.Lo, a.Hi, nil
}

// SampleArgs are the arguments of Sample. A row goes down from the root: at a unit
// of a sum it takes an operand in proportion to weight times value, and with it a
// unit of each factor; where its cell is missing it takes a code of the input that
// it comes to in proportion to the table. Missing codes are replaced in Codes, so
// that the values of the last Forward no longer belong to them. A row whose
// log-likelihood is -Inf takes nothing.
//
// The choice at vector v in row r of the launch is the first in order whose sum up
// to there is above NewDraws(Seed, First).Row(r).Uniform(v) times the sum of all:
// operands in the order of the sum's partition, codes from 0. Sums are taken in float64, in an
// order that depends on the program alone. So devices differ only where a number
// falls within the rounding of a value.
type SampleArgs struct {
	Params, Codes, Values Buffer
	Seed                  uint64
	First                 int // number of the launch's first row in the request
	// Units is set to the unit that each row takes of the inputs without codes, in
	// the order of the program's Functions, or -1: [functions, rows].
	Units []int32
}

// InspectArgs are the arguments of Inspect: the natural-log values of the units
// of a vector after Forward, [rows, units].
type InspectArgs struct {
	Params, Codes, Values Buffer
	Vector                int
	Log                   []float64
}

// StepArgs are the arguments of Step: those of Forward, and Flows or Rule as
// Backward takes them.
type StepArgs struct {
	ForwardArgs
	Flows Buffer
	Rule  *Rule
}
