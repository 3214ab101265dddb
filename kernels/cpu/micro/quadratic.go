package micro

// TermUnits is the number of units whose terms lie together in QuadraticArgs.Terms.
const TermUnits = 8

// The terms of a unit, in the order in which QuadraticArgs.Terms has them.
const (
	TermAdd = iota
	TermSlope
	TermCurve
	TermCentre
	NumTerms
)

// absent is the log of a unit that only fills the last TermUnits: below every log of a unit.
const absent = -1e300

// Terms returns room for the terms of width units, all of them absent: values of 0.
func Terms(width int) []float64 {
	t := make([]float64, (width+TermUnits-1)/TermUnits*TermUnits*NumTerms)
	for u := range len(t) / NumTerms {
		ClearTerms(t, u)
	}
	return t
}

// ClearTerms makes a unit of Terms absent.
func ClearTerms(t []float64, unit int) { SetTerms(t, unit, absent, 0, 0, 0) }

// SetTerms sets the terms of a unit of Terms.
func SetTerms(t []float64, unit int, add, slope, curve, centre float64) {
	of := t[unit/TermUnits*TermUnits*NumTerms+unit%TermUnits:]
	of[TermAdd*TermUnits], of[TermSlope*TermUnits] = add, slope
	of[TermCurve*TermUnits], of[TermCentre*TermUnits] = curve, centre
}

// QuadraticArgs are the arguments of Set.Quadratic: for r < Rows, j < Width, with the
// terms of unit j,
//
//	d := G[r] - centre
//	l[j] := add + slope*G[r] - curve*d*d
//	top := max_j l[j]
//	e := ceil(top + Off[r])
//	Out[r][j] = 2^(l[j] + Off[r] - e)              float32, to 0.6 units in the last place
//	Exp[r] = e
//
// so all logs are of base 2, and the largest value of a row lies above one half and is at
// most 1. An exponent e at Lost or below gives Lost, and values that are relative to the
// row's largest; one above Most gives Most. Values below about 2^-126 are 0 in Out, or
// with Own a number of about 1, Out[r][j]·2^Own[r][j], with the whole number Own[r][j]
// down to -2^28, exact to -2^24, and both 0 below. Own is 0 elsewhere.
//
// G, Off and the terms are finite, and so are the logs. Terms is of [⌈Width/8⌉][NumTerms][TermUnits]
// float64, as of function Terms; Logs has room for Width rounded up to TermUnits.
type QuadraticArgs struct {
	Rows, Width int
	G, Off      *float64
	Terms       *float64
	Logs        *float64
	Out         *float32
	OutRow      int
	Exp         *int32
	Own         *float32 // rows OutRow apart, or nil
}
