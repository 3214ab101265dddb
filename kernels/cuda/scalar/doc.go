// Package scalar executes code on cards: modules of package simt, with the kernels of package
// kernels/ptx/scalar. One thread computes one row.
//
// A run on a set of buffers is recorded once as a graph, whose launches have threads for the number
// of rows or for the next power of two; the number itself is a control word. Tables are copied to
// the card when the program is loaded. A module in several parts has scratch memory for some
// thousand rows, and its parts follow each other for so many rows at a time.
//
// # Shapes and units
//
// Buffers have the types and lengths that the module's inputs and outputs say; the length of one
// that lies by columns, over their number, is the distance of columns.
//
// # Errors
//
// Errors match kernels.ErrDevice, or kernels.ErrMemory where the card has too little.
//
// # Source
//
// The package is pce's own.
package scalar
