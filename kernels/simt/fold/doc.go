// Package fold reduces values in nests of loops: many iterations combine values into one element of a buffer, by any
// operator that is associative and commutative. Plan finds the loops whose iterations would meet in an element while they
// run at the same time, and gives each of them elements of its own (privatisation), which are combined behind the loop.
// Nests of such loops are combined in stages. A reduction is lowered to loops over elements (Program), whose elements are
// the lanes of a simt module, or to values in the registers of a lane (Registers).
//
// # Shapes and units
//
// A Buffer has elements in row-major order of its Sizes. An element is one number of each of its operator's Types, so
// arg-max has two: a number and its index. A private buffer has the iterations of its loop as a first dimension.
//
// # Numbers
//
// Private elements are combined in an order that the nest alone decides, whatever the number of threads. For floats that
// order differs from that of one loop, so sums may differ in their last bits.
//
// # Errors
//
// Errors match ErrNest and name the loop or the buffer.
//
// # Source
//
// SilvanForge: A Schedule-Guided Retargetable Compiler for Decision Tree Inference, SOSP 2024, on legal parallel
// reductions: reduce, reduce_dimension and reduce_dimension_inplace.
package fold
