// Package sliced evaluates decision forests on blocks of rows, one bit for each row.
// A Module is pure data; its interpreter is portable Go.
//
// # How it works
//
// A cell is replaced by its rank among the cut points of its column: the number of cuts
// that are not above it, and one more than all of them for a missing cell. Every test
// of the forest is a set of ranks, so nothing is lost. For each rank k that a test
// needs, a mask of 512 bits says which rows have a rank below k; the rows that pass a
// test are the exclusive or of a few such masks. A tree then divides the block from
// its root down: a node's rows, and the rows that pass its test, are one AND away
// from the rows of its two children. Branches that no row takes are not visited.
// The rows that are left at a leaf get its values.
//
// # Shapes and units
//
// Rows are row-major, of Module.Features cells, NaN where one is missing. Sums are
// row-major, of Module.Outputs numbers, and are added to in the order of the trees, in
// float32 or float64 as Module.Single says: the bits are those of a plain evaluation.
//
// # Errors
//
// Validate reports a module that would not be safe to run, in one line.
//
// # Source
//
// Lucchese et al., "QuickScorer" (SIGIR 2015), for bit vectors of rows and leaves;
// the division of a block by masks is pce's own.
package sliced
