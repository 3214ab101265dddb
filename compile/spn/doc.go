// Package spn compiles circuits to code: a simt module whose lanes are rows and whose
// operations are those of the circuit, unit by unit. It suits irregular circuits, such as
// sum-product networks of other programs; regular ones are faster as tensor programs.
//
// # Passes
//
// Compile is a list of passes, readable top to bottom: import (units become scalar operations;
// equal ones are one), fold (products within products and sums within sums that nothing else
// reads become one operation; weights of 0 go), ranges (the least and largest value of each
// operation over all inputs), choice of space, absorb (weights go into tables of leaves), lift (powers of 2
// go into them too, where values of linear space may be too small), emit, bound. With Options.Joint emit makes tables of
// operations over few variables. CompileClasses fixes a variable to each of its codes while it imports
// a circuit, so that there is a root for each.
//
// Program.HiSPN prints the query and the graph behind ranges, Program.LoSPN what was emitted, as operations in tasks: spans
// (span.go) say which instructions are one operation.
//
// # Shapes and units
//
// The module has one input x, f32 by columns, [variable][row], with NaN for a missing cell and
// codes as numbers; with Options.Bytes u8 by rows, [row][variable], with MissingByte for a missing
// cell. It has one output of the type of values, [root][row]: natural-log likelihoods.
//
// # Numbers
//
// In linear space values are probabilities, in log space their logarithms to base 2. Linear
// space is chosen where no value of any row overflows; where one may be too small, rows whose
// likelihood is below Program.Least have to be computed again by Program.Exact: of float32 in float64, of float64 in log space.
// Where that would be long code for rows that the circuit hardly draws they are for Program.Again, on the host.
// In scaled space (scaled.go) values are probabilities over a power of 2 that the units of a node
// share in each row; rows that lose too much below it have NaN and are for Program.Again.
// Program.Bound says how far results are from those of circuit/reference: the count of roundings
// on the way, in units of the last place, each of which is at most one half unit.
//
// # Errors
//
// A circuit with leaves that code does not have is an error that matches ErrCode. Bad
// parameters give errors that match circuit.ErrGraph; a circuit that is too large as scalar
// operations one that matches ErrCode.
//
// # Source
//
// Sommer et al., "SPNC: An Open-Source MLIR-Based Compiler for Fast Sum-Product Network
// Inference on CPUs and GPUs", CGO 2022. Its choice of a number format by error analysis is
// replaced by bounds on every operation.
package spn
