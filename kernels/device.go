// Package kernels defines where compiled programs run: the Device interface and
// what passes through it. No method knows about circuits.
//
// # Shapes and units
//
// A buffer is a flat run of elements of one type; offsets and lengths count
// elements. The arguments of each kernel give their shapes in tensor.go.
//
// # Errors
//
// Devices return errors that match ErrDevice or ErrMemory.
//
// # Source
//
// The seam follows the drivers of GPUs: memory, modules, launches.
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

// DType is the type of a buffer's elements.
type DType uint8

// The element types.
const (
	Float32 DType = iota
	Float64
	Int64
	Uint16
	Uint32
)

// Bytes returns the size of one element.
func (t DType) Bytes() int {
	switch t {
	case Float32, Uint32:
		return 4
	case Float64, Int64:
		return 8
	}
	return 2
}

// Info describes a device.
type Info struct {
	Name       string // "cpu", "cuda:0", "emulator"
	KernelPath string // "avx512", "avx2", "generic", "sm_90", ...
	Card       string // "NVIDIA H200", where it is one
	Threads    int    // worker threads; 0 where it has no meaning
	Async      bool   // a launch returns before its work is done, and copies do not wait for it
	Mixed      bool   // products of lower precision in the flows of a mixed module
	MixedBlock int    // units of the smallest blocks that have such products
	MixedUnits int    // units of a program's typical sum from which on they are taken
	// MixedForward says that log-likelihoods of a mixed module have that precision too.
	MixedForward bool
}

// Buffer is device memory of Len elements. It belongs to the device that
// allocated it and lives until Close of the device or Free.
type Buffer interface {
	DType() DType
	Len() int
	Free()
}

// Module is a compiled program in a form that a device may be able to load:
// a tensor program, PTX text, a code program. ModuleKind names the form.
type Module interface{ ModuleKind() string }

// Kernel is an entry point of a loaded module.
type Kernel interface{ KernelName() string }

// Arg is an argument of a launch: a Buffer, or a pointer to a struct that the
// kernel's package documents.
type Arg any

// Device runs kernels. It is not safe for concurrent use; one goroutine owns it.
type Device interface {
	Info() Info
	// Alloc returns n zeroed elements.
	Alloc(ctx context.Context, t DType, n int) (Buffer, error)
	// Load makes the kernels of a module ready, by name.
	Load(ctx context.Context, m Module) (map[string]Kernel, error)
	// Launch runs a kernel on rows rows. It may return before the work is done, which
	// then sees the buffers as the calls before it left them; what the device sets in
	// args is there, and errors surface, at the latest when a buffer of the launch was
	// read or after Sync.
	Launch(ctx context.Context, k Kernel, rows int, args ...Arg) error
	// Write copies src, a slice of the buffer's element type, to the buffer at offset.
	Write(ctx context.Context, dst Buffer, offset int, src any) error
	// Read copies from the buffer at offset to dst, a slice of the buffer's element type.
	Read(ctx context.Context, dst any, src Buffer, offset int) error
	// Sync waits for all launches and copies.
	Sync(ctx context.Context) error
	Close() error
}
