package lanes

import (
	"github.com/pce-engine/pce/kernels/ptx"
)

// Bit is 1 for true.
func Bit(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

func equal[T number](a, b *[32]T) (m uint32) {
	for i := range a {
		m |= Bit(a[i] == b[i]) << i
	}
	return m
}

func less[T number](a, b *[32]T) (m uint32) {
	for i := range a {
		m |= Bit(a[i] < b[i]) << i
	}
	return m
}

func lessEqual[T number](a, b *[32]T) (m uint32) {
	for i := range a {
		m |= Bit(a[i] <= b[i]) << i
	}
	return m
}

// ordered says which lanes have no NaN.
func ordered[T number](a, b *[32]T) (m uint32) {
	for i := range a {
		m |= Bit(a[i] == a[i] && b[i] == b[i]) << i
	}
	return m
}

// compares returns a comparison of all lanes by its name, or nil. Those with a u at
// the end hold for operands without order, too.
func compares[T number](name string, floats bool) func(a, b *[32]T) uint32 {
	if !floats {
		switch name {
		case "lo":
			name = "lt"
		case "ls":
			name = "le"
		case "hi":
			name = "gt"
		case "hs":
			name = "ge"
		}
	}
	switch name {
	case "eq":
		return equal[T]
	case "ne":
		return func(a, b *[32]T) uint32 { return ^equal(a, b) & ordered(a, b) }
	case "lt":
		return less[T]
	case "le":
		return lessEqual[T]
	case "gt":
		return func(a, b *[32]T) uint32 { return less(b, a) }
	case "ge":
		return func(a, b *[32]T) uint32 { return lessEqual(b, a) }
	}
	if !floats {
		return nil
	}
	switch name {
	case "equ":
		return func(a, b *[32]T) uint32 { return equal(a, b) | ^ordered(a, b) }
	case "neu":
		return func(a, b *[32]T) uint32 { return ^equal(a, b) }
	case "ltu":
		return func(a, b *[32]T) uint32 { return ^lessEqual(b, a) }
	case "leu":
		return func(a, b *[32]T) uint32 { return ^less(b, a) }
	case "gtu":
		return func(a, b *[32]T) uint32 { return ^lessEqual(a, b) }
	case "geu":
		return func(a, b *[32]T) uint32 { return ^less(a, b) }
	case "num":
		return ordered[T]
	case "nan":
		return func(a, b *[32]T) uint32 { return ^ordered(a, b) }
	}
	return nil
}

// Compare32 returns a comparison of registers of 16 or 32 bits by its name, or nil.
func Compare32(name string, t ptx.Type) func(a, b *Narrow) uint32 {
	switch t {
	case ptx.F32:
		return cast[float32, Narrow](compares[float32](name, true))
	case ptx.S32:
		return cast[int32, Narrow](compares[int32](name, false))
	case ptx.U32, ptx.B32:
		return compares[uint32](name, false)
	case ptx.U16, ptx.S16, ptx.B16:
		f := compares[int64](name, false)
		if f == nil {
			return nil
		}
		return func(a, b *Narrow) uint32 {
			var x, y [32]int64
			for i := range x {
				x[i], y[i] = int64(Extend(uint64(a[i]), t)), int64(Extend(uint64(b[i]), t))
			}
			return f(&x, &y)
		}
	}
	return nil
}

// Compare64 returns a comparison of registers of 64 bits by its name, or nil.
func Compare64(name string, t ptx.Type) func(a, b *Wide) uint32 {
	switch t {
	case ptx.F64:
		return cast[float64, Wide](compares[float64](name, true))
	case ptx.S64:
		return cast[int64, Wide](compares[int64](name, false))
	case ptx.U64, ptx.B64:
		return compares[uint64](name, false)
	}
	return nil
}

// cast makes a comparison of registers from one of what they hold.
func cast[T number, F Narrow | Wide](f func(a, b *[32]T) uint32) func(a, b *F) uint32 {
	if f == nil {
		return nil
	}
	return func(a, b *F) uint32 { return f(as[T](a), as[T](b)) }
}
