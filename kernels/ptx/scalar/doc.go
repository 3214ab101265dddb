// Package scalar makes PTX of modules of package simt: kernels in which one thread computes
// one row. It is the counterpart of package kernels/x86 for cards.
//
// Every operation becomes the instructions that have its result to the bit: FMA is explicit and
// nothing else is contracted, each rounding is named, subnormal numbers are kept, and what the
// language of cards leaves to the type of an operand, such as the integer that a NaN becomes, is
// selected. Branches and loops become branches of threads.
//
// A module with more than Options.Part instructions is cut into parts, a kernel for each, because
// the time of the driver's assembler grows faster than a kernel. What a later part needs of an
// earlier one goes through scratch memory, where the rows of a warp have theirs together, value by
// value: a thread finds its row once, and every value is a known distance from there.
//
// In large modules, sums of the same values with other constants become loops over tables of
// weights (Options.Roll), as that time grows with the number of instructions too.
//
// # Shapes and units
//
// Thread i of block b has row base + b·Threads + i. Buffers lie as package simt says; a column of
// one that lies by columns starts Step bytes after the one before. Scratch has Program.Scratch
// bytes for each row of a launch.
//
// # Errors
//
// Lower returns errors that match simt.ErrModule for modules that are not verified, and ErrOptions
// for options that no card has.
//
// # Source
//
// Sommer, Axenie, Koch, "SPNC: An Open-Source MLIR-Based Compiler for Fast Sum-Product Network
// Inference on CPUs and GPUs", CGO 2022, for tables beside cascades of selections.
package scalar
