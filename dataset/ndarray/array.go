// Package ndarray reads and writes files that hold one array of numbers: NumPy's
// .npy and the idx files of MNIST.
//
// # Shapes and units
//
// An array [N, A, B, ...] is N rows of A·B·... numbers, the last axis fastest,
// whatever the order in the file. An array [N] is N rows of one number.
//
// # Errors
//
// All errors are about the file and say what is wrong; the caller adds its
// name. Headers are not believed: memory grows with what was really read.
//
// # Source
//
// NumPy enhancement proposal 1 (versions 1 to 3), and "The IDX file format" on
// the MNIST page of LeCun, Cortes, Burges.
package ndarray

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
)

// Limits on files.
const (
	MaxColumns      = 1 << 20
	MaxFortranBytes = 4 << 30 // arrays in Fortran order are read whole
)

// DType is the type of an element.
type DType struct {
	Kind      byte // 'b' Boolean, 'i' signed, 'u' unsigned, 'f' floating point
	Size      int  // bytes
	BigEndian bool
}

// String returns the type in NumPy's notation without the byte order, "u1".
func (d DType) String() string { return fmt.Sprintf("%c%d", d.Kind, d.Size) }

// Reader reads the rows of an array, in order.
type Reader struct {
	Shape   []int
	DType   DType
	Fortran bool // the first of several axes is the fastest in the file
	columns int
	element func([]byte) float64
	src     io.Reader
	next    int    // row
	row     []byte // bytes of one row
	all     []byte // Fortran order: all bytes, once read
}

func newReader(src io.Reader, d DType, shape []int, fortran bool) (*Reader, error) {
	if len(shape) == 0 {
		return nil, fmt.Errorf("holds a single number; save an array of rows")
	}
	r := &Reader{Shape: shape, DType: d, Fortran: fortran && len(shape) > 1, columns: 1, element: d.element(), src: src}
	for i, n := range shape {
		if n < 0 || n > math.MaxInt32 {
			return nil, fmt.Errorf("axis %d has %d elements; it takes 0 to %d", i, n, math.MaxInt32)
		}
		if i == 0 {
			continue
		}
		if n == 0 || r.columns > MaxColumns/n {
			return nil, fmt.Errorf("shape %v has no rows of 1 to %d numbers", shape, MaxColumns)
		}
		r.columns *= n
	}
	r.row = make([]byte, r.columns*d.Size)
	return r, nil
}

// Rows returns the number of rows that the header promises.
func (r *Reader) Rows() int { return r.Shape[0] }

// Columns returns the numbers of a row.
func (r *Reader) Columns() int { return r.columns }

// Row returns the rows read so far.
func (r *Reader) Row() int { return r.next }

// Next decodes the next row into dst, of length Columns, or returns io.EOF.
func (r *Reader) Next(dst []float64) error {
	if r.next == r.Rows() {
		if n, err := io.ReadFull(r.src, r.row[:1]); n > 0 {
			return fmt.Errorf("continues after the %d rows of its header; save one array per file", r.Rows())
		} else if err != io.EOF {
			return err
		}
		return io.EOF
	}
	if err := r.readRow(); err != nil {
		return err
	}
	r.next++
	return r.decode(dst)
}

// readRow fills r.row with the elements of the next row, last axis fastest. Arrays in Fortran
// order are read whole at the first call, since their rows are spread over the file.
func (r *Reader) readRow() error {
	if !r.Fortran {
		if _, err := io.ReadFull(r.src, r.row); err != nil {
			return r.short(err, r.next)
		}
		return nil
	}
	if r.all == nil {
		if err := r.readAll(); err != nil {
			return err
		}
	}
	// Element (n, a, b, ...) is at n + N·(a + A·(b + ...)): the first axis is
	// fastest in the file, the last in the row.
	size := r.DType.Size
	index := make([]int, len(r.Shape))
	for c := range r.columns {
		at, stride := r.next, r.Shape[0]
		for axis := 1; axis < len(r.Shape); axis++ {
			at += index[axis] * stride
			stride *= r.Shape[axis]
		}
		copy(r.row[c*size:(c+1)*size], r.all[at*size:])
		for axis := len(index) - 1; axis > 0; axis-- {
			if index[axis]++; index[axis] < r.Shape[axis] {
				break
			}
			index[axis] = 0
		}
	}
	return nil
}

func (r *Reader) readAll() error {
	want := int64(r.Rows()) * int64(len(r.row))
	if want > MaxFortranBytes {
		return fmt.Errorf("array of %d bytes in Fortran order; save it in C order", want)
	}
	var b bytes.Buffer
	n, err := io.Copy(&b, io.LimitReader(r.src, want))
	if err == nil && n < want {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return r.short(err, int(n/int64(len(r.row))))
	}
	r.all = b.Bytes()
	return nil
}

func (r *Reader) short(err error, rows int) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return fmt.Errorf("ends after %d of the %d rows of its header; the file is cut short", rows, r.Rows())
	}
	return err
}

// decode turns the bytes of a row into numbers.
func (r *Reader) decode(dst []float64) error {
	size := r.DType.Size
	dst = dst[:r.columns]
	switch {
	case size == 1 && r.DType.Kind != 'i':
		for i, b := range r.row {
			dst[i] = float64(b)
		}
	case r.DType == DType{Kind: 'f', Size: 4}:
		for i := range dst {
			dst[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(r.row[4*i:])))
		}
	default:
		for i := range dst {
			dst[i] = r.element(r.row[i*size : (i+1)*size])
		}
	}
	if r.DType.Kind != 'b' {
		return nil
	}
	for i, v := range dst {
		if v > 1 {
			return fmt.Errorf("row %d has %v for Boolean %d; it takes 0 or 1", r.next, v, i+1)
		}
	}
	return nil
}

// Integer returns the bits of an element of the row read last where it is an integer of 64 bits,
// which float64 may have rounded.
func (r *Reader) Integer(column int) (bits uint64, ok bool) {
	if r.DType.Size != 8 || r.DType.Kind == 'f' {
		return 0, false
	}
	return r.DType.order().Uint64(r.row[8*column:]), true
}

// order returns the order of the bytes of an element.
func (d DType) order() binary.ByteOrder {
	if d.BigEndian {
		return binary.BigEndian
	}
	return binary.LittleEndian
}

// element returns what decodes one element to a float64, or nil if the type is unknown; callers
// refuse such arrays before they read. 64-bit integers beyond 2^53 are rounded; Reader.Integer has them.
func (d DType) element() func([]byte) float64 {
	order := d.order()
	switch d.String() {
	case "b1", "u1":
		return func(b []byte) float64 { return float64(b[0]) }
	case "i1":
		return func(b []byte) float64 { return float64(int8(b[0])) }
	case "u2":
		return func(b []byte) float64 { return float64(order.Uint16(b)) }
	case "i2":
		return func(b []byte) float64 { return float64(int16(order.Uint16(b))) }
	case "u4":
		return func(b []byte) float64 { return float64(order.Uint32(b)) }
	case "i4":
		return func(b []byte) float64 { return float64(int32(order.Uint32(b))) }
	case "u8":
		return func(b []byte) float64 { return float64(order.Uint64(b)) }
	case "i8":
		return func(b []byte) float64 { return float64(int64(order.Uint64(b))) }
	case "f2":
		return func(b []byte) float64 { return half(order.Uint16(b)) }
	case "f4":
		return func(b []byte) float64 { return float64(math.Float32frombits(order.Uint32(b))) }
	case "f8":
		return func(b []byte) float64 { return math.Float64frombits(order.Uint64(b)) }
	}
	return nil
}

// half returns the value of a number of 16 bits: sign, 5 bits of exponent, 10 of
// fraction.
func half(bits uint16) float64 {
	exponent, fraction := int(bits>>10&0x1f), float64(bits&0x3ff)
	var x float64
	switch exponent {
	case 0:
		x = math.Ldexp(fraction, -24)
	case 0x1f:
		if x = math.Inf(1); fraction != 0 {
			x = math.NaN()
		}
	default:
		x = math.Ldexp(1024+fraction, exponent-25)
	}
	if bits>>15 != 0 {
		x = -x
	}
	return x
}
