// Package compile turns a circuit into a layers.Program by a list of named
// passes, readable top to bottom in compile.go.
//
// # Shapes and units
//
// Programs count in blocks of units, see package layers. Edges count weights
// that exist; padded edges count every weight of every block of every row of a
// partition, padding included.
//
// # Errors
//
// Compile returns errors that match circuit.ErrGraph or ErrOptions.
//
// # Source
//
// Layering and grouping follow Liu, Ahmed, Van den Broeck, "Scaling Tractable
// Probabilistic Circuits: A Systems Perspective", ICML 2024; where the grouping
// departs from the paper's Algorithm 2, partition.go says so.
package compile
