package onnx

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

var errShort = errors.New("a field is longer than the file; it is cut short")

// field is a field of a protocol buffer: a number for wire types 0, 1 and 5, bytes
// for wire type 2.
type field struct {
	id, wire int
	num      uint64
	bytes    []byte
}

// fields calls use with each field of a message.
func fields(b []byte, use func(field) error) error {
	for len(b) > 0 {
		key, n := binary.Uvarint(b)
		if n <= 0 || key>>3 == 0 || key>>3 > 1<<29 {
			return errors.New("a field has no number; the file is damaged")
		}
		b = b[n:]
		f := field{id: int(key >> 3), wire: int(key & 7)}
		switch f.wire {
		case 0:
			if f.num, n = binary.Uvarint(b); n <= 0 {
				return errShort
			}
			b = b[n:]
		case 1, 5:
			n := 8
			if f.wire == 5 {
				n = 4
			}
			if len(b) < n {
				return errShort
			}
			if n == 4 {
				f.num = uint64(binary.LittleEndian.Uint32(b))
			} else {
				f.num = binary.LittleEndian.Uint64(b)
			}
			b = b[n:]
		case 2:
			size, n := binary.Uvarint(b)
			if n <= 0 || size > uint64(len(b)-n) {
				return errShort
			}
			f.bytes = b[n : n+int(size)]
			b = b[n+int(size):]
		default:
			return fmt.Errorf("field %d has wire type %d; the file is damaged", f.id, f.wire)
		}
		if err := use(f); err != nil {
			return err
		}
	}
	return nil
}

// ints appends the integers of a field, packed or not.
func (f field) ints(out []int64) ([]int64, error) {
	if f.wire != 2 {
		return append(out, int64(f.num)), nil
	}
	for b := f.bytes; len(b) > 0; {
		x, n := binary.Uvarint(b)
		if n <= 0 {
			return nil, errShort
		}
		out = append(out, int64(x))
		b = b[n:]
	}
	return out, nil
}

// float32s appends the float32 numbers of a field, packed or not.
func (f field) float32s(out []float64) ([]float64, error) {
	if f.wire != 2 {
		return append(out, float64(math.Float32frombits(uint32(f.num)))), nil
	}
	if len(f.bytes)%4 != 0 {
		return nil, fmt.Errorf("%d bytes of float32 numbers", len(f.bytes))
	}
	for b := f.bytes; len(b) > 0; b = b[4:] {
		out = append(out, float64(math.Float32frombits(binary.LittleEndian.Uint32(b))))
	}
	return out, nil
}

// float64s appends the float64 numbers of a field, packed or not.
func (f field) float64s(out []float64) ([]float64, error) {
	if f.wire != 2 {
		return append(out, math.Float64frombits(f.num)), nil
	}
	if len(f.bytes)%8 != 0 {
		return nil, fmt.Errorf("%d bytes of float64 numbers", len(f.bytes))
	}
	for b := f.bytes; len(b) > 0; b = b[8:] {
		out = append(out, math.Float64frombits(binary.LittleEndian.Uint64(b)))
	}
	return out, nil
}

// Types of the elements of a tensor.
const (
	tensorFloat32 = 1
	tensorUint8   = 2
	tensorFloat64 = 11
)

// attribute is an attribute of a node. Tensors lie in floats or ints.
type attribute struct {
	name    string
	text    string
	ints    []int64
	floats  []float64
	strings []string
	wide    bool // floats are those of a tensor of float64
}

func parseAttribute(b []byte) (attribute, error) {
	var a attribute
	err := fields(b, func(f field) (err error) {
		switch f.id {
		case 1:
			a.name = string(f.bytes)
		case 2, 7:
			a.floats, err = f.float32s(a.floats)
		case 3, 8:
			a.ints, err = f.ints(a.ints)
		case 4:
			a.text = string(f.bytes)
		case 9:
			a.strings = append(a.strings, string(f.bytes))
		case 5:
			err = a.tensor(f.bytes)
		}
		return err
	})
	if err != nil {
		return a, fmt.Errorf("attribute %.60q: %w", a.name, err)
	}
	return a, nil
}

// tensor reads a tensor of float32, float64 or uint8, as fields or as raw bytes.
func (a *attribute) tensor(b []byte) error {
	kind := uint64(0)
	var raw field
	err := fields(b, func(f field) (err error) {
		switch f.id {
		case 2:
			kind = f.num
		case 4:
			a.floats, err = f.float32s(a.floats)
		case 5:
			a.ints, err = f.ints(a.ints)
		case 10:
			a.floats, err = f.float64s(a.floats)
		case 9:
			raw = f
		}
		return err
	})
	if err != nil {
		return err
	}
	switch kind {
	case tensorFloat32:
		if raw.wire == 2 {
			a.floats, err = raw.float32s(a.floats)
		}
	case tensorFloat64:
		a.wide = true
		if raw.wire == 2 {
			a.floats, err = raw.float64s(a.floats)
		}
	case tensorUint8:
		for _, x := range raw.bytes {
			a.ints = append(a.ints, int64(x))
		}
	default:
		err = fmt.Errorf("a tensor of type %d; want float32 (1), uint8 (2) or float64 (11)", kind)
	}
	return err
}
