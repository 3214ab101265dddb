// Package lanes is the arithmetic of PTX on the 32 lanes of a warp: what an
// instruction makes of its operands, without registers, masks or memory.
//
// # Shapes and units
//
// A register of a warp is an array of 32 numbers of 32 or 64 bits, as integers; f32
// and f16x2 stand in it as their bits. Functions compute all lanes; results may be
// written over operands.
//
// # Errors
//
// A function that finds an operation by its name returns nil for one that does not
// exist. Nothing else fails: a divisor of 0 gives all ones.
//
// # Source
//
// NVIDIA, "Parallel Thread Execution ISA", versions 7.0 to 8.0. Matrix products:
// Khattak and Mikaitis, arXiv 2512.07004.
package lanes
