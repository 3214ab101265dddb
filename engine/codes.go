package engine

import (
	"encoding/binary"
	"math"
	"slices"
	"sync"

	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/kernels"
)

// codes are the coded columns of a launch as the program reads them, [columns,
// rows]: narrow or wide, as the program says, with a column's number of codes for a
// missing cell.
type codes struct {
	narrow []uint16
	wide   []uint32
}

func newCodes(wide bool, n int) codes {
	if wide {
		return codes{wide: make([]uint32, n)}
	}
	return codes{narrow: make([]uint16, n)}
}

// dtype is the type of a device's buffer that holds the codes.
func (c *codes) dtype() kernels.DType {
	if c.wide != nil {
		return kernels.Uint32
	}
	return kernels.Uint16
}

// cells are the codes as Device.Read and Write take them.
func (c *codes) cells() any {
	if c.wide != nil {
		return c.wide
	}
	return c.narrow
}

func (c *codes) at(i int) int32 {
	if c.wide != nil {
		return int32(c.wide[i])
	}
	return int32(c.narrow[i])
}

func (c *codes) set(i int, code int32) {
	if c.wide != nil {
		c.wide[i] = uint32(code)
	} else {
		c.narrow[i] = uint16(code)
	}
}

// encode writes count cells from row lo on as codes below n, from i on. It returns
// the first row that is neither one of them nor missing, or -1.
func (c *codes) encode(i int, cells *dataset.Cells, lo, count int, n int32) int {
	if c.wide != nil {
		return encode(c.wide[i:i+count], cells, lo, uint32(n))
	}
	return encode(c.narrow[i:i+count], cells, lo, uint16(n))
}

func encode[T uint16 | uint32](out []T, cells *dataset.Cells, lo int, n T) int {
	hi := lo + len(out)
	switch {
	case cells.Codes.Wide != nil:
		return recode(out, cells.Codes.Wide[lo:hi], n)
	case cells.Codes.Narrow != nil:
		return recode(out, cells.Codes.Narrow[lo:hi], n)
	}
	for i, v := range cells.Values[lo:hi] {
		switch {
		case v != v:
			out[i] = n
		case v >= 0 && v < float32(n) && v == float32(T(v)):
			out[i] = T(v)
		default:
			return i
		}
	}
	return -1
}

// recode is encode of codes, whose missing cells hold the largest S. Where codes are narrow and n is beyond 16 bits, that is a code
// below n, and missing all the same.
func recode[T, S uint16 | uint32](out []T, codes []S, n T) int {
	end := min(uint64(n), uint64(^S(0)))
	over := uint64(0) // its highest bit: some cell is end or more
	out = out[:len(codes)]
	for i, c := range codes {
		out[i] = T(c)
		over |= end - 1 - uint64(c)
	}
	if over>>63 == 0 {
		return -1
	}
	for i, c := range codes {
		if c == ^S(0) {
			out[i] = n
		} else if uint64(c) >= uint64(n) {
			return i
		}
	}
	return -1
}

// asValues writes cells as float32 values, NaN for missing ones. It returns the
// first row that is infinite, or -1.
func asValues(cells *dataset.Cells, lo int, out []float32) int {
	if hi := lo + len(out); cells.Codes.Narrow != nil {
		values := codeValues()
		for i, c := range cells.Codes.Narrow[lo:hi] {
			out[i] = values[c]
		}
		return -1
	} else if cells.Codes.Wide != nil {
		for i := range out {
			if out[i] = float32(math.NaN()); cells.Codes.Wide[lo+i] != math.MaxUint32 {
				out[i] = float32(cells.Codes.Wide[lo+i])
			}
		}
		return -1
	}
	if copy(out, cells.Values[lo:]); !hasInfinite(out) {
		return -1
	}
	return slices.IndexFunc(out, func(v float32) bool { return math.IsInf(float64(v), 0) })
}

// hasInfinite reports whether a value is infinite. Two are looked at together, as halves of a word, and none with a branch of its own.
func hasInfinite(values []float32) bool {
	const (
		magnitude = 0x7fffffff_7fffffff
		infinity  = 0x7f800000_7f800000
		ones      = 1<<32 | 1
	)
	// Less one, a half that was infinite has its highest bit set. It borrows from the half above, whose bit does not matter then.
	half := func(word uint64) uint64 { return (word&magnitude ^ infinity) - ones }
	b, found := kernels.Memory(values), uint64(0)
	for ; len(b) >= 32; b = b[32:] {
		found |= half(binary.NativeEndian.Uint64(b)) | half(binary.NativeEndian.Uint64(b[8:])) |
			half(binary.NativeEndian.Uint64(b[16:])) | half(binary.NativeEndian.Uint64(b[24:]))
	}
	for ; len(b) > 0; b = b[4:] {
		found |= half(uint64(binary.NativeEndian.Uint32(b)))
	}
	return found&(1<<63|1<<31) != 0
}

// codeValues are narrow codes as values.
var codeValues = sync.OnceValue(func() *[1 << 16]float32 {
	t := new([1 << 16]float32)
	for c := range t {
		t[c] = float32(c)
	}
	t[math.MaxUint16] = float32(math.NaN())
	return t
})

func cellText(cells *dataset.Cells, row int) any {
	if cells.Discrete() {
		return cells.Codes.At(row)
	}
	return cells.Values[row]
}
