// Package gosource writes a program of equations as Go: loops in an order that package schedule finds.
//
// # Shapes and units
//
// The source is one file of the standard library's packages: a function Compute from sizes and inputs to outputs,
// arrays in row-major order, and a main that reads inputs from files and writes the outputs. Every element of the
// arrays that outputs need is computed, also those that package reduction, which starts from the outputs, never looks
// at.
//
// # Errors
//
// Errors of package schedule where the program has no affine order. What the source cannot express is refused
// with the statement: a draw over a domain that is not convex.
// The emitted program checks indices that depend on data, and the weights of draws; its integers wrap around
// beyond 64 bits, which package reduction reports.
//
// # Source
//
// Loop bounds by Fourier-Motzkin elimination: Ancourt and Irigoin, "Scanning polyhedra with DO loops", 1991.
package gosource
