// Package lanes is the arithmetic of PTX on the 32 lanes of a warp. Functions in Go
// define what an instruction makes of its operands. A Set has assembly that does the
// same straight from the registers of a warp, under the mask of the lanes that run,
// and that looks at the memory of all lanes at once.
//
// # Shapes and units
//
// A register of a warp is an array of 32 numbers of 32 or 64 bits, as integers; f32
// and f16x2 are in it as their bits. Functions compute all lanes; results may be
// written over operands. A Set finds registers in a file: a block of memory with the
// registers of one warp.
//
// # Errors
//
// A function that finds an operation by its name returns nil for one that does not
// exist. Nothing else fails: a divisor of 0 gives all ones. Sets check no bounds but
// those that Locate is asked about: callers own offsets in files.
//
// # Source
//
// NVIDIA, "Parallel Thread Execution ISA", versions 7.0 to 8.0. Matrix products:
// Khattak and Mikaitis, arXiv 2512.07004. The assembly (z*_amd64.s) is written by
// internal/gen/lanes; "go generate" remakes it.
package lanes
