// Package onnx reads decision forests from ONNX models: the operators
// TreeEnsembleRegressor and TreeEnsembleClassifier of ai.onnx.ml 1 to 4, and
// TreeEnsemble of version 5, with all node modes and missing value tracks.
//
// # Shapes and units
//
// A model has one such node. Nodes that only pass its results along (Identity, ZipMap,
// a Cast of labels) may follow, and a Cast to FLOAT or DOUBLE may stand on either side;
// anything else is refused by name, for its effect would be missing. Cells are float32,
// or float64 if the thresholds are doubles or the operator reads an input of the graph
// that is double; what a Cast rounds is rounded. The operators leave the order
// of the sums open: scores are added in float64, and results are float32 but for
// those of TreeEnsemble with doubles. Leaves are numbered as in the file.
//
// # Errors
//
// Of one line, with the attribute or node and what is wrong in it. Fields that a
// file claims and does not hold are refused before anything is allocated for them.
//
// # Source
//
// The operators' documentation at onnx.ai, onnx.proto (protocol buffers, "Encoding"),
// and, for classifiers of two classes with the weights of one of them alone, where
// that text says little, what ONNX Runtime 1.30 does. Where its labels contradict its
// scores, or its scores leave out base values, such files are refused. If both classes
// have weights, one that a row's leaves do not add to has the score 0; the runtime takes
// the score of class 0 for that of class 1 in rows that have only this one.
package onnx
