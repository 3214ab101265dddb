package kernels

import (
	"fmt"
	"unsafe"
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
	Int32
	Uint8
	numTypes
)

// DTypes lists all element types.
func DTypes() []DType {
	all := make([]DType, numTypes)
	for i := range all {
		all[i] = DType(i)
	}
	return all
}

// Element is the Go type of a buffer's elements.
type Element interface {
	float32 | float64 | int64 | uint16 | uint32 | int32 | uint8
}

// TypeOf returns the element type that T is.
func TypeOf[T Element]() DType {
	t, _, _, _ := View([]T(nil))
	return t
}

// Bytes returns the size of one element. It panics for a type that is not in
// DTypes.
func (t DType) Bytes() int {
	switch t {
	case Float64, Int64:
		return 8
	case Float32, Uint32, Int32:
		return 4
	case Uint16:
		return 2
	case Uint8:
		return 1
	}
	panic(fmt.Sprintf("BUG: kernels: no size of element type %d", uint8(t)))
}

// String returns the name of the Go type.
func (t DType) String() string {
	names := [numTypes]string{"float32", "float64", "int64", "uint16", "uint32", "int32", "uint8"}
	if t >= numTypes {
		return fmt.Sprintf("DType(%d)", uint8(t))
	}
	return names[t]
}

// mostBytes is more memory than an address space of 48 bits holds.
const mostBytes = 1 << 48

// Size returns the bytes of a buffer of n elements for Device.Alloc. A number
// below 0 or an unknown type is an error that matches ErrDevice; more than any
// machine can address is one that matches ErrMemory.
func Size(t DType, n int) (int64, error) {
	switch {
	case t >= numTypes:
		return 0, fmt.Errorf("%w: buffer of %d elements of %v; want one of %v", ErrDevice, n, t, DTypes())
	case n < 0:
		return 0, fmt.Errorf("%w: buffer of %d elements; want 0 or more", ErrDevice, n)
	case n >= mostBytes/t.Bytes():
		return 0, fmt.Errorf("%w: buffer of %d elements of %v", ErrMemory, n, t)
	}
	return int64(n) * int64(t.Bytes()), nil
}

// View returns the element type, the length and the memory of a slice that
// Device.Read or Write was given. It reports false for anything but a slice of an
// Element.
func View(s any) (t DType, n int, memory []byte, ok bool) {
	switch s := s.(type) {
	case []float32:
		return Float32, len(s), Memory(s), true
	case []float64:
		return Float64, len(s), Memory(s), true
	case []int64:
		return Int64, len(s), Memory(s), true
	case []uint16:
		return Uint16, len(s), Memory(s), true
	case []uint32:
		return Uint32, len(s), Memory(s), true
	case []int32:
		return Int32, len(s), Memory(s), true
	case []uint8:
		return Uint8, len(s), s, true
	}
	return 0, 0, nil, false
}

// Memory returns the memory of a slice.
func Memory[T Element](s []T) []byte {
	if len(s) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(s[0])))
}
