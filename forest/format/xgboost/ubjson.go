package xgboost

import (
	"encoding/binary"
	"math"
	"slices"
	"strconv"
)

// ubjsonSource reads UBJSON, draft 12, as XGBoost writes it: lengths and typed arrays
// included, objects without a type.
type ubjsonSource struct{ cursor }

// take returns the next n bytes.
func (s *ubjsonSource) take(n uint64) ([]byte, error) {
	if n > uint64(len(s.b)-s.at) {
		return nil, s.errorf("the file ends within a value of %d bytes; it is cut short", n)
	}
	b := s.b[s.at : s.at+int(n)]
	s.at += int(n)
	return b, nil
}

// marker reads the type of the next value, past no-ops.
func (s *ubjsonSource) marker() (byte, error) {
	for s.at < len(s.b) {
		s.at++
		if c := s.b[s.at-1]; c != 'N' {
			return c, nil
		}
	}
	return 0, s.errorf("the file ends where a value should be; it is cut short")
}

// next returns the marker that follows, without reading it; 0 at the end.
func (s *ubjsonSource) next() byte {
	for s.at < len(s.b) && s.b[s.at] == 'N' {
		s.at++
	}
	if s.at == len(s.b) {
		return 0
	}
	return s.b[s.at]
}

// size returns the bytes of a number of a type, 0 for other types.
func size(marker byte) uint64 {
	switch marker {
	case 'i', 'U':
		return 1
	case 'I':
		return 2
	case 'l', 'd':
		return 4
	case 'L', 'D':
		return 8
	}
	return 0
}

// value decodes the bytes of a number.
func value(marker byte, b []byte) float64 {
	switch marker {
	case 'i':
		return float64(int8(b[0]))
	case 'U':
		return float64(b[0])
	case 'I':
		return float64(int16(binary.BigEndian.Uint16(b)))
	case 'l':
		return float64(int32(binary.BigEndian.Uint32(b)))
	case 'L':
		return float64(int64(binary.BigEndian.Uint64(b)))
	case 'd':
		return float64(math.Float32frombits(binary.BigEndian.Uint32(b)))
	}
	return math.Float64frombits(binary.BigEndian.Uint64(b))
}

// number reads a number whose marker was read.
func (s *ubjsonSource) number(marker byte) (float64, error) {
	switch marker {
	case 'T':
		return 1, nil
	case 'F':
		return 0, nil
	}
	n := size(marker)
	if n == 0 {
		return 0, s.errorf("type %q where a number should be", marker)
	}
	b, err := s.take(n)
	if err != nil {
		return 0, err
	}
	return value(marker, b), nil
}

// length reads a length with its type.
func (s *ubjsonSource) length() (uint64, error) {
	marker, err := s.marker()
	if err != nil {
		return 0, err
	}
	if size(marker) == 0 || marker == 'd' || marker == 'D' {
		return 0, s.errorf("type %q where a length should be", marker)
	}
	n, err := s.number(marker)
	if err != nil {
		return 0, err
	}
	if n < 0 || n > float64(len(s.b)) {
		return 0, s.errorf("a length of %v in a file of %d bytes", n, len(s.b))
	}
	return uint64(n), nil
}

func (s *ubjsonSource) string() (string, error) {
	n, err := s.length()
	if err != nil {
		return "", err
	}
	b, err := s.take(n)
	return string(b), err
}

// container reads the head of an array or object: its type, 0 if its elements have
// one each, and its number of elements, -1 if it has an end.
func (s *ubjsonSource) container(open byte) (marker byte, count int64, err error) {
	got, err := s.marker()
	if err != nil {
		return 0, 0, err
	}
	if got != open {
		return 0, 0, s.errorf("type %q where %q should be", got, open)
	}
	if s.next() == '$' {
		s.at++
		if marker, err = s.marker(); err != nil {
			return 0, 0, err
		}
		if s.next() != '#' {
			return 0, 0, s.errorf("a typed array without a length")
		}
	}
	if s.next() != '#' {
		return marker, -1, nil
	}
	s.at++
	n, err := s.length()
	return marker, int64(n), err
}

// items calls item for each element of a container.
func (s *ubjsonSource) items(count int64, end byte, item func() error) error {
	return nested(&s.depth, func() error {
		for i := int64(0); i != count; i++ {
			if count < 0 && s.next() == end {
				s.at++
				return nil
			}
			if err := item(); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *ubjsonSource) object(field func(key string) error) error {
	marker, count, err := s.container('{')
	if err != nil {
		return err
	}
	if marker != 0 {
		return s.errorf("an object whose values have one type; XGBoost writes none")
	}
	return s.items(count, '}', func() error {
		key, err := s.string()
		if err != nil {
			return err
		}
		return field(key)
	})
}

func (s *ubjsonSource) array(item func() error) error {
	marker, count, err := s.container('[')
	if err != nil {
		return err
	}
	if marker != 0 {
		return s.errorf("an array of type %q where one of any values should be", marker)
	}
	return s.items(count, ']', item)
}

func (s *ubjsonSource) numbers(into []float64) ([]float64, error) {
	marker, count, err := s.container('[')
	if err != nil {
		return nil, err
	}
	if marker == 0 {
		out := into[:0]
		err := s.items(count, ']', func() error {
			marker, err := s.marker()
			if err != nil {
				return err
			}
			x, err := s.number(marker)
			out = append(out, x)
			return err
		})
		return out, err
	}
	b, err := s.elements(marker, count)
	if err != nil {
		return nil, err
	}
	out := slices.Grow(into[:0], int(count))[:count]
	width := int(size(marker))
	for i := range out {
		out[i] = value(marker, b[i*width:])
	}
	return out, nil
}

// elements returns the bytes of a typed array.
func (s *ubjsonSource) elements(marker byte, count int64) ([]byte, error) {
	n := size(marker)
	if n == 0 {
		return nil, s.errorf("an array of type %q where numbers should be", marker)
	}
	return s.take(n * uint64(count)) // count is at most the size of the file
}

func (s *ubjsonSource) text() (string, error) {
	marker, err := s.marker()
	if err != nil {
		return "", err
	}
	if marker == 'S' {
		return s.string()
	}
	x, err := s.number(marker)
	return strconv.FormatFloat(x, 'g', -1, 64), err
}

func (s *ubjsonSource) from(at cursor) source { return &ubjsonSource{at} }

// jump is skip, as typed arrays are passed over at once.
func (s *ubjsonSource) jump() bool { return s.next() == '{' && s.skip() == nil }

func (s *ubjsonSource) skip() error {
	switch s.next() {
	case '{':
		return s.object(func(string) error { return s.skip() })
	case '[':
		marker, count, err := s.container('[')
		if err != nil {
			return err
		}
		if marker == 0 {
			return s.items(count, ']', s.skip)
		}
		_, err = s.elements(marker, count)
		return err
	}
	marker, err := s.marker()
	if err != nil {
		return err
	}
	switch marker {
	case 'Z':
		return nil
	case 'C':
		_, err = s.take(1)
	case 'S', 'H':
		_, err = s.string()
	default:
		_, err = s.number(marker)
	}
	return err
}
