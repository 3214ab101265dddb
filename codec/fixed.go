package codec

import (
	"bytes"
	"io"
	"math"
	"strconv"

	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/dataset/ndarray"
)

// fixed is the framing of arrays of whole numbers, idx and .npy: what is before the
// numbers, then rows of numbers of equal width.
type fixed struct {
	schema *dataset.Schema
	width  int
	big    bool              // the highest byte comes first
	signed bool              // to tell -1 from 255 when rows are parsed; what append writes has the same bytes
	start  []byte            // of the file, before the first row
	code   []map[int64]int32 // of a variable's numbers; nil where these are the codes
	number [][]int64         // the inverse
	rows   int               // that the header of an array to compress promises
	cut    int               // rows that next has found, or more than rows once it is behind them
}

// fixedOf returns the framing of numbers of that many bytes. They mean what they mean to readers
// of arrays: the number that the label of a category spells, or its code.
func fixedOf(s *dataset.Schema, width int, big bool, start []byte) *fixed {
	f := &fixed{schema: s, width: width, big: big, start: bytes.Clone(start), code: make([]map[int64]int32, len(s.Columns)), number: make([][]int64, len(s.Columns))}
	for v := range s.Columns {
		if v > 0 && sameLabels(s.Columns[v].Labels, s.Columns[v-1].Labels) {
			f.code[v], f.number[v] = f.code[v-1], f.number[v-1]
			continue
		}
		numbers := s.Columns[v].LabelNumbers()
		if numbers == nil {
			continue
		}
		f.code[v], f.number[v] = make(map[int64]int32), make([]int64, len(numbers))
		for code, x := range numbers {
			if x == math.Trunc(x) && math.Abs(x) < 1<<53 {
				f.code[v][int64(x)], f.number[v][code] = int32(code), int64(x)
			}
		}
	}
	return f
}

func sameLabels(a, b []string) bool {
	return len(a) == len(b) && len(a) > 0 && &a[0] == &b[0]
}

// arrayOf returns what opens a file that begins as an idx or a .npy file does, nil for others.
func arrayOf(start []byte) func(io.Reader) (*ndarray.Reader, error) {
	switch {
	case len(start) >= 4 && start[0] == 0 && start[1] == 0 && start[2] >= 8 && start[2] <= 14 && start[3] >= 1 && start[3] <= 8:
		return ndarray.OpenIDX
	case bytes.HasPrefix(start, []byte("\x93NUMPY")):
		return ndarray.OpenNPY
	}
	return nil
}

// newFixed returns the framing of a file that begins with the header of an array. Arrays whose
// numbers are not whole ones in rows of the model are refused, as none of their rows could be coded.
func newFixed(s *dataset.Schema, start []byte, open func(io.Reader) (*ndarray.Reader, error)) (*fixed, error) {
	rest := bytes.NewReader(start)
	array, err := open(rest)
	switch {
	case err != nil:
		return nil, badRows("the array %v", err)
	case array.DType.Kind == 'f':
		return nil, badRows("the array is of floating-point numbers (%v); save it as whole numbers, as by astype('i4')", array.DType)
	case array.Fortran && array.Columns() > 1:
		return nil, badRows("the array is in Fortran order; save it in C order, as by numpy.ascontiguousarray")
	case array.Columns() != len(s.Columns):
		return nil, badRows("the rows of the array have %d numbers, those of the model %d; give an array of the model's columns", array.Columns(), len(s.Columns))
	}
	f := fixedOf(s, array.DType.Size, array.DType.BigEndian, start[:len(start)-rest.Len()])
	f.signed, f.rows = array.DType.Kind == 'i', array.Rows()
	return f, nil
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

// next cuts as many rows as the header promises. What follows them is text.
func (f *fixed) next(buf []byte) (length, end int) {
	n := f.width * len(f.schema.Columns)
	switch {
	case f.cut >= f.rows:
		f.cut = f.rows + 1
		return 0, 0
	case len(buf) < n:
		return 0, 0
	}
	f.cut++
	return n, 0
}

func (f *fixed) parse(record []byte, codes []int32, _ []byte) bool {
	if len(record) != f.width*len(codes) {
		return false
	}
	for v := range codes {
		x := f.read(record[v*f.width:])
		code, ok := int32(x), x >= 0 && x < int64(f.schema.Columns[v].Categories)
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
		x := int64(code)
		if f.number[v] != nil {
			x = f.number[v][code]
		}
		at := len(dst)
		dst = append(dst, 0, 0, 0, 0, 0, 0, 0, 0)[:at+f.width]
		f.write(dst[at:], x)
	}
	return dst
}

// read returns the number of the bytes at the front of b. One of 64 bits without a sign that is
// larger than an int64 becomes another one, which is written as the same bytes.
func (f *fixed) read(b []byte) int64 {
	x := uint64(0)
	for i := range f.width {
		if f.big {
			x = x<<8 | uint64(b[i])
		} else {
			x |= uint64(b[i]) << (8 * i)
		}
	}
	if unused := 64 - 8*f.width; f.signed {
		return int64(x<<unused) >> unused
	}
	return int64(x)
}

func (f *fixed) write(b []byte, x int64) {
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
	if f.cut > f.rows {
		return "it follows the " + strconv.Itoa(f.rows) + " rows that the header of the array promises"
	}
	return "its numbers are not codes of the model's variables, of which a row has " + strconv.Itoa(len(f.schema.Columns))
}
