// Package emulator is a GPU without a GPU: a cuda.Driver that interprets the PTX
// that package ptx knows, lane by lane, and refuses what a card would let pass in
// silence: accesses out of bounds, misaligned or of bytes never written, races,
// barriers that not all warps reach, warps that shuffle with lanes missing, streams
// that touch the same memory with nothing to order them. Streams work late: when
// the host waits for them.
//
// # Shapes and units
//
// A warp is 32 lanes; a register holds one value for each lane, a predicate one
// bit. Addresses and sizes count bytes. Counts are of lanes, not of warps, except
// where they say so.
//
// # Errors
//
// What a kernel does wrong is a Fault; it matches kernels.ErrDevice and names
// kernel, line, instruction, block and thread. Too little memory matches
// kernels.ErrMemory; a call with wrong arguments matches kernels.ErrDevice.
//
// # Goroutines
//
// An Emulator is called by one goroutine at a time, as every cuda.Driver. A launch whose
// blocks cannot talk to each other spreads them over Options.Threads goroutines and
// waits for all of them.
//
// # Source
//
// NVIDIA, "Parallel Thread Execution ISA", versions 7.0 to 8.0. Divergence: stack of
// regions that rejoin at immediate post-dominators (Fung et al., MICRO 2007).
// Matrix products: Khattak and Mikaitis, arXiv 2512.07004.
package emulator
