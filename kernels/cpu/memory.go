package cpu

import "unsafe"

// hugeBytes is the size from which memory is asked for in huge pages: rows of
// leaf tables are read in random order, and small pages make each of them a miss
// of the address cache.
const hugeBytes = 4 << 20

// Aligned returns n zeroed elements that start on a cache line.
func Aligned[T any](n int) []T {
	var t T
	size := int(unsafe.Sizeof(t))
	s := make([]T, n+64/size)
	off := 0
	if rem := int(uintptr(unsafe.Pointer(&s[0])) % 64); rem != 0 {
		off = (64 - rem) / size
	}
	if n*size >= hugeBytes {
		preferHugePages(unsafe.Slice((*byte)(unsafe.Pointer(&s[off])), n*size))
	}
	return s[off : off+n : off+n]
}
