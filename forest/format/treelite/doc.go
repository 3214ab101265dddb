// Package treelite reads checkpoints of treelite 4, the files that its
// Model.serialize writes. Forests of scikit-learn come this way.
//
// # Shapes and units
//
// A checkpoint has float32 or float64 thresholds and leaves; sums and predictions
// have the same precision. Cells are float32 in either case, as scikit-learn
// rounds them before it compares: a checkpoint does not say which library trained
// it, and a cell is on the other side of a float64 threshold only where the two
// differ by less than float32 resolves. The outputs are those of treelite's own
// evaluator, GTIL: [targets][classes], flattened.
//
// # Errors
//
// Of one line, with the byte of the file or the tree and what is wrong in it.
// Checkpoints of treelite 3 are refused: load them with treelite 4 and serialize
// them again.
//
// # Source
//
// The documentation of treelite, "Treelite Serialization Format v4", and files that
// version 4.2 wrote, which have columns where that text has records.
package treelite
