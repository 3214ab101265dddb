// Package lightgbm reads LightGBM's text models, versions 2 to 4.
//
// # Shapes and units
//
// Cells, thresholds, leaf values and sums are float64, as in LightGBM. Leaves are
// numbered as LightGBM's predict_leaf does. The raw score of averaged trees
// (boosting=rf) is their average, to which the link is applied as to other scores.
// Files of version v2 are an exception: LightGBM before 2.2.3 wrote them, with leaves
// that are predictions already, and applied no link. A forest that 2.2.3 itself trained
// has a link and says v2 too; load and save it with a later LightGBM.
//
// # Errors
//
// Of one line, with the line of the file or the tree and what is wrong in it.
// Trees with linear models in their leaves are refused.
//
// # Source
//
// The documentation of LightGBM (parameters, "missing value handle", categorical
// features) and models that it wrote; decision_type has one bit for categories, one
// for the default direction and two for the kind of missing cells.
package lightgbm
