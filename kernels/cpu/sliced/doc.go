// Package sliced runs the forests of package kernels/sliced on the CPU: on blocks of 512
// rows with a bit for each, or one row at a time. Results are the bits of the module's
// interpreter, whatever the instruction set, the block or the path.
//
// # How it works
//
// A block goes through four loops. Cells become ranks among the cuts of their column.
// Ranks become masks, one for each cut that a test compares with: trees share them. The
// top levels of a tree, at most eight, are evaluated for all rows at once: the number of
// the leaf that a row reaches is eight bits, and each node chooses them from its
// children's by its mask. Then the leaves' values are looked up and added. Rows that
// have not reached a leaf by then walk on by their ranks, eight at a time and those of
// several blocks before the next tree.
//
// One row goes down complete trees with one comparison and one addition with carry for
// each level.
//
// # Shapes and units
//
// Rows are row-major, of Module.Features cells, NaN where one is missing. Sums are
// row-major, of Module.Outputs numbers.
//
// # Errors
//
// New and Select report an invalid module, and a set of loops that this machine cannot
// run, in one line.
//
// # Source
//
// Ranks and masks follow QuickScorer (SIGIR 2015) and its vector versions; choosing the
// bits of leaves by masks is pce's own. generic.go defines every loop in plain Go. The
// assembly (z*_amd64.s) is written by internal/gen/sliced; "go generate" remakes it.
package sliced

//go:generate go -C ../../../internal/gen run ./sliced ../../kernels/cpu/sliced
