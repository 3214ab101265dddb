// Package xgboost reads models of XGBoost in all of its formats, JSON, UBJSON and
// the old binary file that XGBoost 3.1 no longer reads, and writes JSON.
//
// # Shapes and units
//
// Trees keep their order, their node numbers and the precision of XGBoost, float32.
// base_score of a file is a prediction; the forest's Base is the margin that it
// means, computed as the GNU C library's logf computes it on Linux, and a vector of
// them (XGBoost 3.1) is one for each output.
//
// # Errors
//
// Of one line, with the byte of the file or the tree and what is wrong in it.
// Depth of nesting, sizes of arrays and strings are bounded by the file: a count
// that the file cannot hold is refused before anything is allocated for it.
//
// # Source
//
// RFC 8259 (with the words NaN and Infinity that XGBoost writes), ubjson.org
// draft 12, and the documentation of XGBoost, "Introduction to Model IO" and its
// JSON schema. The layout of the old binary file was taken as a fact from files, and
// the constants of the logarithm in margins from the GNU C library (since 2.28).
package xgboost
