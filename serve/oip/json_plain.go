package oip

import (
	"encoding/binary"
	"math"
)

// plain says which numbers of a datatype are read without looking at them twice:
// integers from 0 to most, as a compact list has them.
type plain struct {
	datatype Datatype
	most     int64
}

func newPlain(d Datatype) plain {
	switch d {
	case Uint8, Int8, Uint16, Int16, Uint32, Int32:
		_, hi := d.bounds()
		return plain{d, int64(hi)}
	case Uint64, Int64, FP64:
		return plain{d, 1 << 50}
	case FP32:
		return plain{d, 1 << 24}
	}
	return plain{d, -1}
}

// plain reads elements as long as each is a plain number with a comma behind it, so
// that at least one element is left to be read with care, and raw has room. It returns how many it read.
// Most tensors in JSON are lists of small integers: this is three times as fast.
func (s *scanner) plain(raw []byte, p plain) ([]byte, int) {
	le, n := binary.LittleEndian, 0
	for p.most >= 0 && cap(raw)-len(raw) >= p.datatype.Size() {
		at := s.pos
		x := int64(0)
		for at < len(s.text) && s.text[at]-'0' <= 9 && at-s.pos < 16 {
			x = 10*x + int64(s.text[at]-'0')
			at++
		}
		if at == s.pos || s.text[s.pos] == '0' && at > s.pos+1 || x > p.most || at == len(s.text) || s.text[at] != ',' {
			break
		}
		// A space and a digit behind the comma is how most libraries write lists.
		next := at + 1
		if next < len(s.text) && s.text[next] == ' ' {
			next++
		}
		if next == len(s.text) || s.text[next]-'0' > 9 {
			break
		}
		s.pos = next
		n++
		switch p.datatype {
		case Uint8, Int8:
			raw = append(raw, byte(x))
		case Uint16, Int16:
			raw = le.AppendUint16(raw, uint16(x))
		case Uint32, Int32:
			raw = le.AppendUint32(raw, uint32(x))
		case FP32:
			raw = le.AppendUint32(raw, math.Float32bits(float32(x)))
		case FP64:
			raw = le.AppendUint64(raw, math.Float64bits(float64(x)))
		default:
			raw = le.AppendUint64(raw, uint64(x))
		}
	}
	return raw, n
}
