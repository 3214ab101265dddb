// Package forest compiles decision forests into programs. Lower makes a sliced.Module
// of one, which is evaluated on blocks of rows.
//
// # Shapes and units
//
// The module's tests are sets of ranks. Each cut point is the least number, in the
// precision in which the forest compares cells, that is not below the threshold, so a
// rank says exactly which tests a cell passes.
//
// # Errors
//
// Errors match ErrLower and say in one line what the module cannot hold; the plain
// evaluator of package forest then serves.
//
// # Source
//
// Ranks in place of cells are folklore of histogram-based training; see XGBoost's
// documentation of "hist" and package kernels/sliced.
package forest
