// Package tensor holds the kernels of tensor programs as generators of PTX, and
// the tables they read. A kernel is specialised to the size of blocks, to the
// precision and to the kinds of leaves; the same kernel serves every vector of a
// level, each in its own blocks of threads.
//
// # Shapes and units
//
// The value of unit u of vector v in row r is val[v][r][u] · 2^exp[v][r]. The
// largest operand of a sum in a row lies in [1, 2) after scaling by its vector's
// exponent. Flows count rows; the ratio of a unit is its flow over its mantissa.
//
// # Errors
//
// Generators panic on variants that do not exist; kernels report nothing: rows
// that they cannot represent are marked for the kernels in log space.
//
// # Source
//
// Liu, Ahmed, Van den Broeck, "Scaling Tractable Probabilistic Circuits: A Systems
// Perspective", ICML 2024, for flows; the kernels are this project's.
package tensor
