// Package cpu is the machine's processor as a device: its memory, its threads and
// the set of kernels that it has. What it runs is up to its loaders; that of tensor
// programs is package kernels/cpu/tensor.
//
// # Shapes and units
//
// Buffers are flat runs of elements that start on a cache line.
//
// # Errors
//
// Errors match kernels.ErrDevice or kernels.ErrMemory.
//
// # Goroutines
//
// The device starts none: Write and Read copy before they return, and programs run
// on the caller's goroutine and those that they start.
//
// # Source
//
// Original.
package cpu
