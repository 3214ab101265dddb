package tensor

import (
	"fmt"

	"github.com/pce-engine/pce/kernels"
)

// ForwardArgs are the arguments of Forward.
type ForwardArgs struct {
	Params kernels.Buffer // Float32
	Codes  kernels.Buffer // Uint16, or Uint32 where the program has wide codes, [coded columns, R]
	Values kernels.Buffer // Float32 [value columns, R]
	LL     kernels.Buffer // Float64 [R], natural logs
	// Recomputed is set, once the work is done, to the number of (vector, row)
	// pairs that were recomputed in log space.
	Recomputed int64
}

// BackwardArgs are the arguments of Backward. With Visits it only writes the
// flow through each unit that owns parameters: that of all units which share
// them, summed over the rows. With Rule, not Anemone, the parameters move at
// once, and no flows are kept; otherwise the shard's flows are rounded to the
// grid and added to Flows.
type BackwardArgs struct {
	Params, Codes, Values kernels.Buffer
	Flows                 kernels.Buffer // Int64 [FlowLen]
	Visits                kernels.Buffer // Float32 [VisitLen]
	Rule                  *Rule
}

// UpdateArgs are the arguments of Update, which clears Flows. Anemone alone
// takes Averages, which it moves on, and Visits. Only what belongs to the owners
// Lo to Hi-1 of the program changes, everything else keeps its bits; both 0
// means all owners.
type UpdateArgs struct {
	Params, Flows kernels.Buffer
	Averages      kernels.Buffer // Float32 [AverageLen]
	Visits        kernels.Buffer // Float32 [VisitLen]
	Rule          Rule
	Lo, Hi        int
}

// Part returns the range of owners that change, of n.
func (a *UpdateArgs) Part(n int) (lo, hi int, err error) {
	if a.Lo == 0 && a.Hi == 0 {
		return 0, n, nil
	}
	if a.Lo < 0 || a.Hi < a.Lo || a.Hi > n {
		return 0, 0, fmt.Errorf("%w: update of the owners %d to %d; there are %d, counted from 0", kernels.ErrDevice, a.Lo, a.Hi-1, n)
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
	Params, Codes, Values kernels.Buffer
	Seed                  uint64
	First                 int // number of the first row of the call in the request
	// Units is set to the unit that each row takes of the inputs without codes, in
	// the order of the program's Functions, or -1: [functions, rows].
	Units []int32
}

// InspectArgs are the arguments of Inspect: the natural-log values of the units
// of a vector after Forward, [rows, units].
type InspectArgs struct {
	Params, Codes, Values kernels.Buffer
	Vector                int
	Log                   []float64
}

// StepArgs are the arguments of Step: those of Forward, and Flows or Rule as
// Backward takes them.
type StepArgs struct {
	ForwardArgs
	Flows kernels.Buffer
	Rule  *Rule
}
