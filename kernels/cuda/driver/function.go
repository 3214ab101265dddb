//go:build cuda && cgo

package driver

/*
#include <cuda.h>

// The driver wants a pointer to each argument.
static CUresult launch(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned block, unsigned shared, CUstream s,
                       uint64_t *slots, unsigned n) {
  void *at[512];
  for (unsigned i = 0; i < n; i++) at[i] = slots + i;
  return cuLaunchKernel(f, gx, gy, gz, block, 1, 1, shared, s, at, NULL);
}
#cgo noescape launch
#cgo nocallback launch
*/
import "C"

import (
	"unsafe"

	"gorgonia.org/cu"
)

// MaxArgs is the most arguments of eight bytes that a kernel takes.
const MaxArgs = 512

// OptInShared is the attribute of a device with the shared memory that a block may
// have once AllowShared asked for it.
const OptInShared cu.DeviceAttribute = C.CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN

// Handles of gorgonia.org/cu are structs of one pointer; these lines do not compile
// if that changes.
const (
	_ = -(unsafe.Sizeof(cu.Function{}) - unsafe.Sizeof(uintptr(0)))
	_ = -(unsafe.Sizeof(cu.Stream{}) - unsafe.Sizeof(uintptr(0)))
	_ = -(unsafe.Sizeof(cu.Module{}) - unsafe.Sizeof(uintptr(0)))
)

func function(f cu.Function) C.CUfunction { return *(*C.CUfunction)(unsafe.Pointer(&f)) }
func stream(s cu.Stream) C.CUstream       { return *(*C.CUstream)(unsafe.Pointer(&s)) }

// AllowShared lets launches of f ask for that many bytes of dynamic shared memory.
func AllowShared(f cu.Function, bytes int) error {
	return check(C.cuFuncSetAttribute(function(f), C.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, C.int(bytes)))
}

// Launch starts f with the arguments in args, a slot of eight bytes each and at
// most MaxArgs.
func Launch(f cu.Function, grid [3]int, block, shared int, s cu.Stream, args []uint64) error {
	return check(C.launch(function(f), C.uint(grid[0]), C.uint(grid[1]), C.uint(grid[2]), C.uint(block), C.uint(shared),
		stream(s), (*C.uint64_t)(unsafe.SliceData(args)), C.uint(len(args))))
}
