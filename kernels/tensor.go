package kernels

// The kernels of a tensor program, by the names under which Load returns them.
// They share the workspace of the loaded module: backward reads what the last
// forward left, for the same rows.
const (
	Forward  = "forward"  // ForwardArgs: log-likelihoods of a block of rows
	Backward = "backward" // BackwardArgs: expected counts of the same rows
	Update   = "update"   // UpdateArgs: moves the parameters by the flows added so far
	Inspect  = "inspect"  // InspectArgs: copies node values out
)

// ForwardArgs are the arguments of Forward, with R the rows the module was
// loaded for.
type ForwardArgs struct {
	Params Buffer // Float32
	Codes  Buffer // Uint16 [coded columns, R]
	Values Buffer // Float32 [value columns, R]
	LL     Buffer // Float64 [R], natural logs
	// Recomputed is set to the number of (vector, row) pairs that were
	// recomputed in log space.
	Recomputed int64
}

// Rule says how parameters move: θ ← (1-Step)·θ + Step·θ_new, where θ_new comes
// from the flows plus Pseudocount spread over the weights of a unit.
type Rule struct {
	Step        float64
	Pseudocount float64
}

// BackwardArgs are the arguments of Backward. With Rule the parameters move at
// once, and no flows are kept; otherwise the shard's flows are rounded to the
// grid and added to Flows.
type BackwardArgs struct {
	Params, Codes, Values Buffer
	Flows                 Buffer // Int64 [FlowLen]
	Rule                  *Rule
}

// UpdateArgs are the arguments of Update, which clears Flows.
type UpdateArgs struct {
	Params, Flows Buffer
	Rule          Rule
}

// InspectArgs are the arguments of Inspect: the natural-log values of the units
// of a vector after Forward, [rows, units].
type InspectArgs struct {
	Params, Codes, Values Buffer
	Vector                int
	Log                   []float64
}

// Grid is the unit that expected counts are rounded to, in rows.
const Grid = 1.0 / (1 << 40)
