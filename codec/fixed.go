package codec

import (
	"bytes"
	"encoding/binary"
	"regexp"
	"strconv"

	"github.com/pce-engine/pce/dataset"
)

// fixed is the framing of arrays of whole numbers, idx and .npy: what is before the
// numbers, then rows of numbers of equal width.
type fixed struct {
	schema *dataset.Schema
	width  int
	big    bool   // the highest byte comes first
	start  []byte // of the file, before the first row
	code   []map[uint32]int32
	number [][]uint32
}

// fixedOf returns the framing of numbers of that many bytes. A category with a label is
// the number that the label says.
func fixedOf(s *dataset.Schema, width int, big bool, start []byte) *fixed {
	f := &fixed{schema: s, width: width, big: big, start: bytes.Clone(start), code: make([]map[uint32]int32, len(s.Columns)), number: make([][]uint32, len(s.Columns))}
	for v := range s.Columns {
		labels := s.Columns[v].Labels
		switch {
		case labels == nil:
		case v > 0 && sameLabels(labels, s.Columns[v-1].Labels):
			f.code[v], f.number[v] = f.code[v-1], f.number[v-1]
		default:
			f.code[v], f.number[v] = make(map[uint32]int32), make([]uint32, len(labels))
			for code, l := range labels {
				if x, err := strconv.ParseUint(l, 10, 32); err == nil {
					f.code[v][uint32(x)], f.number[v][code] = int32(code), uint32(x)
				}
			}
		}
	}
	return f
}

func sameLabels(a, b []string) bool {
	return len(a) == len(b) && len(a) > 0 && &a[0] == &b[0]
}

// npyHead matches the header of an array of whole numbers in rows.
var npyHead = regexp.MustCompile(`^\{'descr': '([<>|])[ui]([124])', 'fortran_order': False, 'shape': \([0-9, ]*\), ?\} *\n?$`)

// newFixed returns the framing of a file that begins as an idx or a .npy file of whole
// numbers does, nil for others.
func newFixed(s *dataset.Schema, start []byte) *fixed {
	switch {
	case len(start) >= 4 && start[0] == 0 && start[1] == 0 && start[3] >= 1 && start[3] <= 8:
		width, ok := map[byte]int{0x08: 1, 0x09: 1, 0x0B: 2, 0x0C: 4}[start[2]]
		if before := 4 + 4*int(start[3]); ok && len(start) >= before {
			return fixedOf(s, width, true, start[:before])
		}
	case len(start) >= 12 && string(start[:6]) == "\x93NUMPY":
		from, n := 10, int(binary.LittleEndian.Uint16(start[8:]))
		if start[6] > 1 {
			from, n = 12, int(min(binary.LittleEndian.Uint32(start[8:]), recordBytes))
		}
		if len(start) < from+n {
			return nil
		}
		if m := npyHead.FindSubmatch(start[from : from+n]); m != nil {
			return fixedOf(s, int(m[2][0]-'0'), m[1][0] == '>', start[:from+n])
		}
	}
	return nil
}

func (f *fixed) facts() []byte {
	big := byte(0)
	if f.big {
		big = 1
	}
	return append([]byte{factFixed, byte(f.width), big}, f.start...)
}

func (f *fixed) head() []byte     { return f.start }
func (f *fixed) columns() []int32 { return identity(f.schema) }
func (f *fixed) marks() int       { return 0 }
func (f *fixed) ending() string   { return "" }

func (f *fixed) next(buf []byte) (length, end int) {
	if n := f.width * len(f.schema.Columns); len(buf) >= n {
		return n, 0
	}
	return 0, 0
}

func (f *fixed) parse(record []byte, codes []int32, _ []byte) bool {
	if len(record) != f.width*len(codes) {
		return false
	}
	for v := range codes {
		x := f.read(record[v*f.width:])
		code, ok := int32(x), x < uint32(f.schema.Columns[v].Categories)
		if f.code[v] != nil {
			code, ok = f.code[v][x]
		}
		if !ok {
			return false
		}
		codes[v] = code
	}
	return true
}

func (f *fixed) append(dst []byte, codes []int32, _ []byte) []byte {
	for v, code := range codes {
		x := uint32(code)
		if f.number[v] != nil {
			x = f.number[v][code]
		}
		at := len(dst)
		dst = append(dst, 0, 0, 0, 0)[:at+f.width]
		f.write(dst[at:], x)
	}
	return dst
}

func (f *fixed) read(b []byte) (x uint32) {
	for i := range f.width {
		if f.big {
			x = x<<8 | uint32(b[i])
		} else {
			x |= uint32(b[i]) << (8 * i)
		}
	}
	return x
}

func (f *fixed) write(b []byte, x uint32) {
	for i := range b {
		if f.big {
			b[len(b)-1-i] = byte(x)
		} else {
			b[i] = byte(x)
		}
		x >>= 8
	}
}

func (f *fixed) problem(record []byte) string {
	return "its numbers are not codes of the model's variables, of which a row has " + strconv.Itoa(len(f.schema.Columns))
}
