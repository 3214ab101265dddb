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

// BackwardArgs are the arguments of Backward, which does one of three things. With
// Visits it writes the flow through each unit that owns parameters, summed over the
// rows and over the units that share them, and nothing else. With Rule, which may not
// be Anemone, the parameters move at once and no flows are kept. With Flows the flows
// of the rows are rounded to the grid and added to Flows.
type BackwardArgs struct {
	Params, Codes, Values kernels.Buffer
	Flows                 kernels.Buffer // Int64 [FlowLen]
	Visits                kernels.Buffer // Float32 [VisitLen]
	Rule                  *Rule
}

// UpdateArgs are the arguments of Update, which clears Flows. Averages and Visits are
// for Anemone alone; Averages are updated. Lo and Hi restrict the update to the owners
// Lo to Hi-1 of the program: everything of other owners keeps its bits. Both 0 means
// all owners.
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
		return 0, 0, fmt.Errorf("%w: update of the owners %d to %d, want a range within 0..%d", kernels.ErrDevice, a.Lo, a.Hi-1, n-1)
	}
	return a.Lo, a.Hi, nil
}

// SampleArgs are the arguments of Sample. Each row is drawn from the root down: at a
// unit of a sum it chooses an operand in proportion to weight times value, and with it
// a unit of each factor; at an input whose cell is missing it chooses a code in
// proportion to the table. The codes are written to Codes, so the values of the last
// Forward are not those of the cells any more. A row whose log-likelihood is -Inf
// chooses nothing and keeps its missing cells.
//
// The choice at vector v in row r of the call is the first whose running sum is above
// NewDraws(Seed, First).Row(r).Uniform(v) times the total. Operands come in the order of
// the sum's partition, codes from 0. Sums are in float64, in an order that depends on
// the program alone, so devices differ only where a number falls within the rounding of
// a value.
type SampleArgs struct {
	Params, Codes, Values kernels.Buffer
	Seed                  uint64
	First                 int // number of the first row of the call in the request
	// Units is set to the unit that each row has chosen of the inputs without codes, in
	// the order of the program's Functions, -1 for none: [functions, rows].
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
