// Package resize makes a circuit smaller or larger and keeps what it has learned:
// Prune leaves out the edges that rows use least, Grow gives every node a second
// copy of its units, from which training finds what to do with the room. Done in
// turn, with training in between, they move edges to where rows need them.
//
// # Shapes and units
//
// Parameters and flows are those of package circuit, in its canonical order. The flow
// of an edge is the expected number of rows that use it, in rows.
//
// # Errors
//
// Options that cannot work give errors that match ErrOptions, a graph that would
// break a limit errors that match circuit.ErrGraph. Errors of parameters and flows
// pass through.
//
// # Source
//
// Dang, Liu, Van den Broeck, "Sparse Probabilistic Circuits via Pruning and
// Growing", NeurIPS 2022. They prune single edges; here they go in blocks, which
// kernels can leave out.
package resize

import "errors"

// ErrOptions means that options cannot work.
var ErrOptions = errors.New("resize: bad options")
