// Package trees makes a circuit of a decision forest and rows: a density over the features that the forest's trees divide, so that
// questions which a forest cannot answer, with cells missing, are answered exactly.
//
// A tree is a sum over its leaves, of which a row without missing cells reaches one, so the sum is deterministic. A leaf is a product of
// histograms of the rows that reach it, one for each feature, which are 0 outside of the leaf's box, and for classifiers the shares of the
// classes that the forest predicts for these rows. The forest is the mean of its trees.
//
// # Shapes and units
//
// Rows are row-major, with a cell for each feature, NaN where it is missing. The circuit has a continuous variable for each feature, with
// the cuts of the forest's tests as edges of bins, and behind these, of a classifier, a discrete one for the class. Cells are float32. Where the
// forest compares float64, one that is rounded to the same float32 as the threshold of a test takes the way of a cell that equals the threshold.
//
// # Errors
//
// Forests that are not trees of comparisons, and circuits that would be too large, are errors that match ErrTrees.
//
// # Source
//
// Correia, Peharz, de Campos, "Joints in Random Forests", NeurIPS 2020, with the leaves fully factorised. docs/divergence.md says what differs.
package trees
