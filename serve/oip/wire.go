package oip

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
)

// Wire types of protocol buffers.
const (
	varintWire = 0
	eightWire  = 1
	bytesWire  = 2
	fourWire   = 5
)

// field is one field of a message: its number, its wire type, and its value as a
// number or as bytes that share the message's memory.
type field struct {
	number int
	wire   int
	word   uint64
	bytes  []byte
}

// fields calls f for every field of a message, in order.
func fields(message []byte, f func(field) error) error {
	for rest := message; len(rest) > 0; {
		tag, n := binary.Uvarint(rest)
		if n <= 0 || tag>>3 == 0 || tag>>3 >= 1<<29 {
			return fmt.Errorf("a field number is cut off or out of range, %d bytes before the end of a message", len(rest))
		}
		rest = rest[n:]
		x := field{number: int(tag >> 3), wire: int(tag & 7)}
		short := false
		switch x.wire {
		case varintWire:
			if x.word, n = binary.Uvarint(rest); n <= 0 {
				short = true
				break
			}
			rest = rest[n:]
		case eightWire:
			if short = len(rest) < 8; !short {
				x.word, rest = binary.LittleEndian.Uint64(rest), rest[8:]
			}
		case fourWire:
			if short = len(rest) < 4; !short {
				x.word, rest = uint64(binary.LittleEndian.Uint32(rest)), rest[4:]
			}
		case bytesWire:
			size, n := binary.Uvarint(rest)
			if short = n <= 0 || size > uint64(len(rest)-n); !short {
				x.bytes, rest = rest[n:n+int(size):n+int(size)], rest[n+int(size):]
			}
		default:
			return fmt.Errorf("field %d has the wire type %d, which the protocol does not use", x.number, x.wire)
		}
		if short {
			return fmt.Errorf("field %d is cut off", x.number)
		}
		if err := f(x); err != nil {
			return err
		}
	}
	return nil
}

// want fails unless the field has a wire type.
func (f field) want(wire int) error {
	if f.wire != wire {
		return fmt.Errorf("field %d has the wire type %d, want %d", f.number, f.wire, wire)
	}
	return nil
}

// text reads a short string.
func (f field) text(to *string, name string) error {
	if err := f.want(bytesWire); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if len(f.bytes) > MaxName {
		return fmt.Errorf("%s: longer than %d bytes", name, MaxName)
	}
	*to = string(f.bytes)
	return nil
}

// integers calls f for each number of a repeated field, packed or not.
func (f field) integers(take func(uint64) error) error {
	if f.wire == varintWire {
		return take(f.word)
	}
	if err := f.want(bytesWire); err != nil {
		return err
	}
	for rest := f.bytes; len(rest) > 0; {
		x, n := binary.Uvarint(rest)
		if n <= 0 {
			return fmt.Errorf("a number of field %d is cut off", f.number)
		}
		if err := take(x); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}

// Appending: the counterparts of the above. Zero values are left out, as proto3 has it.

func appendTag(dst []byte, number, wire int) []byte {
	return binary.AppendUvarint(dst, uint64(number)<<3|uint64(wire))
}

func appendVarint(dst []byte, number int, x uint64) []byte {
	if x == 0 {
		return dst
	}
	return binary.AppendUvarint(appendTag(dst, number, varintWire), x)
}

func appendBool(dst []byte, number int, x bool) []byte {
	if !x {
		return dst
	}
	return append(appendTag(dst, number, varintWire), 1)
}

func appendText(dst []byte, number int, s string) []byte {
	if s == "" {
		return dst
	}
	return append(binary.AppendUvarint(appendTag(dst, number, bytesWire), uint64(len(s))), s...)
}

func appendBytes(dst []byte, number int, b []byte) []byte {
	return append(binary.AppendUvarint(appendTag(dst, number, bytesWire), uint64(len(b))), b...)
}

// appendMessage appends a message that fill appends.
func appendMessage(dst []byte, number int, fill func([]byte) []byte) []byte {
	return appendBytes(dst, number, fill(nil))
}

func appendParams(dst []byte, number int, p Params) []byte {
	for _, key := range slices.Sorted(maps.Keys(p)) {
		x := p[key]
		dst = appendMessage(dst, number, func(entry []byte) []byte {
			return appendMessage(appendText(entry, 1, key), 2, func(v []byte) []byte {
				switch x := x.(type) {
				case bool:
					b := byte(0)
					if x {
						b = 1
					}
					return append(appendTag(v, 1, varintWire), b)
				case int64:
					return binary.AppendUvarint(appendTag(v, 2, varintWire), uint64(x))
				case string:
					return appendBytes(v, 3, []byte(x))
				case float64:
					return binary.LittleEndian.AppendUint64(appendTag(v, 4, eightWire), math.Float64bits(x))
				case uint64:
					return binary.AppendUvarint(appendTag(v, 5, varintWire), x)
				}
				return v
			})
		})
	}
	return dst
}
