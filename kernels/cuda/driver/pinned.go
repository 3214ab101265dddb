//go:build cuda && cgo

package driver

// #include <cuda.h>
import "C"

import "unsafe"

// AllocHost returns memory of the host that stays where it is, which the card can
// read and write while kernels run. It is freed with cu.MemFreeHost.
func AllocHost(bytes int) ([]byte, error) {
	var p unsafe.Pointer
	if err := check(C.cuMemHostAlloc(&p, C.size_t(bytes), 0)); err != nil {
		return nil, err
	}
	return unsafe.Slice((*byte)(p), bytes), nil
}
