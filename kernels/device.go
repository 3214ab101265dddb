// Package kernels is the contract of devices: their memory, the modules that they
// load, the programs that these become, and their errors. It knows nothing of
// what a program computes: each kind has a contract of its own, that of circuits
// in package kernels/tensor.
//
// # Shapes and units
//
// A buffer is a flat run of elements of one type; offsets and lengths count
// elements. The shapes of a program's arguments are part of its own contract.
//
// # Errors
//
// Devices return errors that match ErrDevice or ErrMemory.
//
// # Source
//
// The seam follows the drivers of GPUs: memory, modules, and calls that are
// enqueued in order.
package kernels

import (
	"context"
	"errors"
)

// Errors that callers may test for with errors.Is.
var (
	// ErrDevice means that a device is absent or refused a call.
	ErrDevice = errors.New("kernels: device")
	// ErrMemory means that a device has too little memory for a buffer.
	ErrMemory = errors.New("kernels: out of memory")
)

// Info describes a device.
type Info struct {
	Name       string // "cpu", "cuda:0", "emulator"
	KernelPath string // "avx512", "avx2", "generic", "sm_90", ...
	Card       string // "NVIDIA H200", where it is one
	Threads    int    // worker threads; 0 where it has no meaning
	Async      bool   // calls of a program return before their work is done, and copies do not wait for it
}

// Buffer is device memory of Len elements. It belongs to the device that
// allocated it and lives until Close of the device or Free, which may be called
// more than once.
type Buffer interface {
	DType() DType
	Len() int
	Free()
}

// Device owns memory and runs the programs that it has loaded. It is not safe for
// concurrent use, nor are its buffers and programs: one goroutine owns them all.
type Device interface {
	Info() Info
	// Alloc returns n zeroed elements.
	Alloc(ctx context.Context, t DType, n int) (Buffer, error)
	// Load makes a program of a module. A kind of module that the device has no
	// loader for is an error that names those that it has.
	Load(ctx context.Context, m Module) (Program, error)
	// Write copies src, a slice of the buffer's element type, to the buffer at offset.
	Write(ctx context.Context, dst Buffer, offset int, src any) error
	// Read copies from the buffer at offset to dst, a slice of the buffer's element type.
	Read(ctx context.Context, dst any, src Buffer, offset int) error
	// Sync waits for all calls and copies.
	Sync(ctx context.Context) error
	// Close releases the device with its buffers and programs.
	Close() error
}
