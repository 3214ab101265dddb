// Package format opens files of decision forests as other libraries write them. A
// format is a package below this one: xgboost (JSON, UBJSON and the old binary
// file), lightgbm (text), onnx (the operators TreeEnsemble of ONNX-ML) and treelite
// (checkpoints).
//
// # Shapes and units
//
// A decoder gives a forest.Forest in the units of the library that trained it: cells,
// thresholds and leaf values are not scaled, trees and leaves keep their order.
//
// # Formats
//
// Model files come under any name, so a format is told by the first bytes of a
// file, after unpacking gzip. A format is a variable of type Format, which a
// program registers:
//
//	format.Register(xgboost.JSON)
//
// # Errors
//
// Files that are not valid forests give errors of one line that match ErrModel.
// A file that no registered format recognises gives an *UnknownError, which lists
// those that were tried and matches ErrModel too. A file has at most MaxBytes and
// is mapped where that can be done, so a decoder keeps none of its bytes; one that
// is cut short meanwhile is an error. What a decoder allocates is bounded by a multiple of the
// file's size, whatever counts the file claims. Nothing panics on bad input.
//
// # Source
//
// Gzip follows RFC 1952; the packages of the formats name theirs.
package format
