// Package reference evaluates circuits slowly and obviously: float64, log
// space, one row and one unit at a time. It is the oracle that the tests of
// every kernel compare with.
//
// # Shapes and units
//
// A row is a []float64 with one cell for each variable; NaN is a missing cell.
// Params holds one slice for each node in the canonical order of package
// circuit, nil for nodes that own none. Values are natural logarithms, flows
// are expected counts: 1 at the root for each row.
//
// # Errors
//
// Functions that take rows return errors that match ErrRow; bad graphs and
// parameters give errors that match circuit.ErrGraph.
//
// # Source
//
// Flows and expectation maximisation follow Choi, Dang, Van den Broeck, "Group
// Fairness by Probabilistic Modeling with Latent Fair Decisions", AAAI 2021,
// and Peharz et al., "Einsum Networks", ICML 2020.
package reference
