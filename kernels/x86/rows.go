package x86

import (
	"unsafe"

	"github.com/pce-engine/pce/kernels/simt"
)

// rowsOf returns slices with room for a number of rows.
func rowsOf(list []simt.Param, rows int) []any {
	all := make([]any, len(list))
	for i, p := range list {
		n := rows * p.Width
		switch p.Type {
		case simt.F32:
			all[i] = make([]float32, n)
		case simt.F64:
			all[i] = make([]float64, n)
		case simt.I32:
			all[i] = make([]int32, n)
		case simt.I64:
			all[i] = make([]int64, n)
		case simt.U8:
			all[i] = make([]uint8, n)
		default:
			all[i] = make([]uint16, n)
		}
	}
	return all
}

// memory returns where the elements of a slice are, and how many there are.
func memory(s any) (unsafe.Pointer, int) {
	switch s := s.(type) {
	case []float32:
		return unsafe.Pointer(unsafe.SliceData(s)), len(s)
	case []float64:
		return unsafe.Pointer(unsafe.SliceData(s)), len(s)
	case []int32:
		return unsafe.Pointer(unsafe.SliceData(s)), len(s)
	case []int64:
		return unsafe.Pointer(unsafe.SliceData(s)), len(s)
	case []uint8:
		return unsafe.Pointer(unsafe.SliceData(s)), len(s)
	case []uint16:
		return unsafe.Pointer(unsafe.SliceData(s)), len(s)
	}
	panic("BUG: x86: a buffer that CheckRun lets pass")
}

// bitsOf returns the bits of the elements of a slice.
func bitsOf(s any) []uint64 {
	base, n := memory(s)
	bits := make([]uint64, n)
	for i := range bits {
		switch s.(type) {
		case []float32, []int32:
			bits[i] = uint64(*(*uint32)(unsafe.Add(base, 4*i)))
		case []float64, []int64:
			bits[i] = *(*uint64)(unsafe.Add(base, 8*i))
		case []uint8:
			bits[i] = uint64(*(*uint8)(unsafe.Add(base, i)))
		case []uint16:
			bits[i] = uint64(*(*uint16)(unsafe.Add(base, 2*i)))
		}
	}
	return bits
}

// place returns the address of a column's element for a row. The caller keeps the slice alive, and onHeap keeps it where
// it is.
func place(q *simt.Param, s any, column, row int) uint64 {
	if onHeap != nil {
		onHeap = s
	}
	base, n := memory(s)
	at, _ := q.Place(n, column, row)
	return uint64(uintptr(base)) + uint64(at*q.Type.Bits()/8)
}

// onHeap is nil, always. The compiler does not know that, so that it puts what could be kept here on the heap. Otherwise small
// slices may lie on stacks, which move as they grow: an address is a number, which does not follow.
var onHeap any

// copyRows copies n rows of a parameter from one slice to another.
func copyRows(q *simt.Param, dst any, dstRow int, src any, srcRow, n int) {
	to, toLen := memory(dst)
	from, fromLen := memory(src)
	size := q.Type.Bits() / 8
	parts, length := q.Width, n
	if q.Layout == simt.Rows {
		parts, length = 1, n*q.Width
	}
	for c := range parts {
		d, _ := q.Place(toLen, c, dstRow)
		s, _ := q.Place(fromLen, c, srcRow)
		copy(unsafe.Slice((*byte)(unsafe.Add(to, d*size)), length*size), unsafe.Slice((*byte)(unsafe.Add(from, s*size)), length*size))
	}
}
