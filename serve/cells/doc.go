// Package cells turns the tensors of a request into rows of a schema, which are codes of categories,
// standardised values, or plain numbers, and results into the contents of tensors.
//
// # Shapes and units
//
// A tensor x is [rows, columns], row-major; observed has a byte for each of its cells. NaN, an
// empty text and what observed marks with 0 are missing.
//
// # Errors
//
// A cell that its column cannot hold gives an error that matches oip.ErrMessage and names the
// tensor, the row and the column.
//
// # Source
//
// The datatypes are those of the Open Inference Protocol.
package cells
