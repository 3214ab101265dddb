package safetensors

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
)

// DType is the element type of a tensor.
type DType uint8

// The element types.
const (
	F32 DType = iota + 1
	F64
	I32
	I64
	U8
	U16
	U64
)

// dtypes has the name and the size in bytes of each element type.
var dtypes = [...]struct {
	name string
	size int
}{
	F32: {"F32", 4},
	F64: {"F64", 8},
	I32: {"I32", 4},
	I64: {"I64", 8},
	U8:  {"U8", 1},
	U16: {"U16", 2},
	U64: {"U64", 8},
}

// String returns the name of the type in files, or "invalid".
func (d DType) String() string {
	if d == 0 || int(d) >= len(dtypes) {
		return "invalid"
	}
	return dtypes[d].name
}

// Size returns the bytes of one element, 0 for an invalid type.
func (d DType) Size() int {
	if int(d) >= len(dtypes) {
		return 0
	}
	return dtypes[d].size
}

// parseDType finds a type by its name in files.
func parseDType(name string) (DType, error) {
	for d, t := range dtypes {
		if d > 0 && t.name == name {
			return DType(d), nil
		}
	}
	return 0, fmt.Errorf("type %q is not among F32 F64 I32 I64 U8 U16 U64; convert the tensor", name)
}

// Element is a Go type that tensors can be read into and written from.
type Element interface {
	float32 | float64 | int32 | int64 | uint8 | uint16 | uint64
}

// DTypeOf returns the element type of a Go type.
func DTypeOf[T Element]() DType {
	switch any(*new(T)).(type) {
	case float32:
		return F32
	case float64:
		return F64
	case int32:
		return I32
	case int64:
		return I64
	case uint8:
		return U8
	case uint16:
		return U16
	}
	return U64
}

// Tensor describes one tensor of a file.
type Tensor struct {
	Name  string
	DType DType
	Shape []int64 // nil for a scalar

	offset int64 // first byte, counted from the start of the data
}

// Len returns the number of elements.
func (t *Tensor) Len() int64 {
	n := int64(1)
	for _, d := range t.Shape {
		n *= d
	}
	return n
}

// size returns the bytes of the tensor, or an error if it has no type, a
// negative dimension or more bytes than an int64 counts.
func (t *Tensor) size() (int64, error) {
	n := uint64(t.DType.Size())
	if n == 0 {
		return 0, fmt.Errorf("tensor %q has no valid type", t.Name)
	}
	for _, d := range t.Shape {
		if d < 0 {
			return 0, fmt.Errorf("tensor %q has the negative dimension %d", t.Name, d)
		}
	}
	if slices.Contains(t.Shape, 0) {
		return 0, nil
	}
	for _, d := range t.Shape {
		hi, lo := bits.Mul64(n, uint64(d))
		if hi != 0 || lo > math.MaxInt64 {
			return 0, fmt.Errorf("tensor %q of shape %v is too large", t.Name, t.Shape)
		}
		n = lo
	}
	return int64(n), nil
}
