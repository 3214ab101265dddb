// Package lanes turns columns of cells into what code reads: bytes, where every cell of a model fits one. It also
// widens log-likelihoods, and finds whether one is too low.
//
// # Shapes and units
//
// A column is a slice with a cell for each row. A missing cell is NaN as a value, 65535 as a code and Missing
// as a byte.
//
// # Numbers
//
// On amd64 with AVX2 assembly takes 32 cells at a time, with AVX-512 numbers 64 at a time; internal/gen/cells writes it, and "go generate" remakes it. The loops in
// Go give the same results. The tag noasm leaves the assembly out.
//
// # Errors
//
// Every function reports cells that a caller may have to refuse; which one it is the caller finds by looking at them
// one by one. A destination that is shorter than its source panics, as indices out of range do.
//
// # Source
//
// The loops are plain conversions.
package lanes

//go:generate go -C ../../internal/gen run ./cells ../../engine/lanes
