// Package boxes finds where the missing cells of a row would have to lie for the row to reach
// each leaf of a forest. A leaf is reached in a box: one set of values for each missing cell
// that is tested on the way to it, and any values of the others. The raw scores of a forest are
// then sums over boxes, so that their expectation under a distribution of the missing cells is
//
//	E[score | known cells] = sum over boxes of value x P(box | known cells)
//
// which is exact. Leaves of different trees that share a box are one box with the sum of their
// values.
//
// # Shapes and units
//
// A row has a cell per feature, NaN where it is missing. Values of boxes are [boxes][outputs], in
// the units of the forest's raw scores, before its link, its divisor and a base that comes last.
// A set of numbers is half-open, [Low, High); a set of categories lists runs of indices of the numbers
// that the caller gave for the feature.
//
// # Errors
//
// New refuses, with forest.ErrRequest, linear models, minima and maxima over trees, and tests that
// tell single numbers apart where a missing cell may be any number. New and Find refuse those of whose sets
// memory would not hold the runs.
//
// # Source
//
// That a tree is constant on boxes, and that a tractable density therefore gives its exact
// expectation, is in Khosravi et al., "Handling missing data in decision trees: a probabilistic
// approach" (2020). Grouping leaves of all trees by their box is pce's.
package boxes
