// Package codec compresses rows without loss by the conditional probabilities of a
// circuit, and restores them byte by byte.
//
// # How rows are coded
//
// The variables are coded one after another in an order that follows the structure
// (order.go). Before each, its distribution given the cells that are known is brought up
// to date: a plan, made once for the circuit, says which nodes that takes (plan.go). In a
// circuit that splits its variables in one way, each node is computed once upward and
// once downward for a row. The distribution is never formed: a range coder asks for the
// probability below a code, which is one dot product with a row of cumulative tables;
// two of them encode a cell and a binary search decodes it (cells.go, table.go).
// Rows are taken eight at a time, so that a weight is read once for all of them.
//
// A file is cut into records, such as lines (framing.go). A record that is exactly what
// the framing writes for a row is coded as this row, any other is stored as text, so the
// bytes come back whatever they are. Files are described in file.go.
//
// # Shapes and units
//
// Codes are [rows][variables]. Probabilities are float64, with an exponent for each node
// and row of a group; a coder divides 2^32 among the codes of a cell, and every code gets
// a share of at least 1. All arithmetic that decides about bits is +, -, * and / with
// one rounding each (masses.go), so files are the same on every processor. What a file
// takes is what the rows' log-likelihoods say, but for about 2^-24 bits per cell, some
// twelve bytes for each block of a million cells or 65,536 records, and some forty for the
// file. Memory is that of the tables, 8 bytes for each unit and code of an input, and of
// one block.
//
// # Errors
//
// Files that are damaged, cut short or hostile give errors of one line that match
// ErrFile, and files of another model errors that match ErrModel. No count of a file is
// trusted: memory grows with the bytes that are there, up to that of one block.
//
// # Source
//
// Liu, Mandt, Van den Broeck, "Lossless Compression with Probabilistic Circuits", ICLR
// 2022. There, conditionals come from upward passes alone over an order that keeps the
// nodes to evaluate few, for each row and code; here one downward pass gives what all
// codes of a variable have in common. The range coder follows Martin, "Range encoding: an
// algorithm for removing redundancy from a digitised message", 1979.
package codec
