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
	// Units is set to the unit that each row has chosen of the program's Watched inputs, in
	// their order, -1 for none: [watched, rows].
	Units []int32
}

// PosteriorsArgs are the arguments of Posteriors, which writes the distributions of columns
// given the observed cells e of each row that Forward has evaluated. Of lists columns of the
// program by number, each at most once; a row of Out is laid out as
// Program.PosteriorOffsets of package layers says.
//
//   - A column with codes has an element for each code c: the probability p(X = c | e).
//     Where the cell is observed, it is 1 at its code and 0 elsewhere. Probabilities of a
//     column add up to 1 but for the rounding of float32 on the way down from the root; those
//     below 2^-126 may be 0.
//   - A column without codes has an element for each unit of its inputs: the probability that
//     a row takes the unit, given e. They add up to 1, too, so p(X = x | e) is the mixture of
//     the units' densities. Where the cell is observed it is part of e.
//   - The same of the units of a column with rows of evidence is asked for by its number plus
//     that of the program's columns. Where such a row is what is known of the cell, the
//     distribution of its codes is that of the units' tables, limited to the evidence; the
//     column itself has zeros there.
//
// A row whose log-likelihood is -Inf has no posterior: all its elements are NaN.
//
// Posteriors computes in float32, whatever precision a program trains in, and parameters
// stay as they are.
type PosteriorsArgs struct {
	Params, Codes, Values kernels.Buffer
	Of                    []int32
	Out                   kernels.Buffer // Float32 [R, elements of a row]
}

// MaximiseArgs are the arguments of Maximise, which evaluates rows by maxima: a unit of a
// sum has the largest of its weights times its operands, and at an input whose cell is
// missing a unit has its largest probability or density. The value of the root is the largest
// that one choice of operands gives to the cells that are observed and the best values of the
// others. In a deterministic circuit that is the probability of the most probable completion; in
// others it bounds it from below.
//
// Each row is then led down from the root as by Sample, to the operand of the largest weight
// times value. Among equals it is the first in the order of the sum's partition; a
// missing cell gets the first code of the largest probability of the unit that the row takes.
// The codes are written to Codes. A row whose value is 0 chooses nothing and keeps its missing cells.
//
// Weights times values are compared in float64, so devices differ only where two operands are
// within the rounding of a value of each other.
type MaximiseArgs struct {
	Params, Codes, Values kernels.Buffer
	// Modes are the natural logs of the largest densities of the units of the inputs without
	// codes, one input of the program's Functions after the other.
	Modes []float64
	// Log is set to the natural logs of the rows' values, [rows].
	Log []float64
	// Bound, unless nil, is set to the natural logs of numbers that no completion of a
	// row exceeds, [rows]: the value of the root if inputs are maximised and sums are added up.
	Bound []float64
	// Units is set as by Sample: [watched, rows].
	Units []int32
	// Recomputed is set as by Forward.
	Recomputed int64
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
