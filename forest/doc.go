// Package forest describes decision forests: gradient-boosted trees, random
// forests and their kin, as other libraries train them. It holds the data and a
// plain evaluator. The evaluator is slow and easy to read; it defines what every
// faster one has to compute, to the bit.
//
// # Shapes and units
//
// A row has Features cells, and NaN is a missing one. A forest gives Outputs raw
// scores for each row, the margins, and Width(Prediction) numbers after its link.
// Rows and results are row-major. Leaves are given by their number in the library
// that trained the forest, one for each tree, in the order of the trees.
//
// # Exactness
//
// A forest says in which precision cells are compared, leaf values are added and
// results are rounded. Sums run in the order of the trees. So the margins of an
// imported XGBoost model are the bits that XGBoost computes on a CPU.
//
// # Errors
//
// Check returns errors that match ErrForest, Evaluate those that match ErrRequest. They
// are of one line. A
// forest that passed Check cannot make Evaluate panic or loop, whatever the cells.
//
// # Source
//
// Chen and Guestrin, "XGBoost: A Scalable Tree Boosting System" (KDD 2016), for
// default directions; Ke et al., "LightGBM" (NIPS 2017), for sets of categories;
// the operators TreeEnsemble of ONNX-ML for node modes and aggregates; Liu, Ting
// and Zhou, "Isolation Forest" (ICDM 2008), for the anomaly score.
package forest
