package oip

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/bits"
	"slices"
)

// ErrMessage means that a message does not say what the protocol wants.
var ErrMessage = errors.New("bad request")

// Limits on what a message may list, whatever its size.
const (
	MaxTensors = 64
	MaxDims    = 16
	MaxParams  = 64
	MaxName    = 1024 // bytes of a name, an id or a datatype
)

// Datatype names the type of a tensor's elements.
type Datatype string

// The datatypes of the protocol, and BF16, which its gRPC text mentions.
const (
	Bool   Datatype = "BOOL"
	Uint8  Datatype = "UINT8"
	Uint16 Datatype = "UINT16"
	Uint32 Datatype = "UINT32"
	Uint64 Datatype = "UINT64"
	Int8   Datatype = "INT8"
	Int16  Datatype = "INT16"
	Int32  Datatype = "INT32"
	Int64  Datatype = "INT64"
	FP16   Datatype = "FP16"
	BF16   Datatype = "BF16"
	FP32   Datatype = "FP32"
	FP64   Datatype = "FP64"
	Bytes  Datatype = "BYTES"
)

// Datatypes lists all of them.
var Datatypes = []Datatype{Bool, Uint8, Uint16, Uint32, Uint64, Int8, Int16, Int32, Int64, FP16, BF16, FP32, FP64, Bytes}

// Size returns the bytes of an element: 0 for BYTES, whose elements differ, and -1
// for a datatype that is not in the protocol.
func (d Datatype) Size() int {
	switch d {
	case Bool, Uint8, Int8:
		return 1
	case Uint16, Int16, FP16, BF16:
		return 2
	case Uint32, Int32, FP32:
		return 4
	case Uint64, Int64, FP64:
		return 8
	case Bytes:
		return 0
	}
	return -1
}

// Params are the parameters of a request, a tensor or a response. A value is a
// bool, an int64, a uint64, a float64 or a string.
type Params map[string]any

// Tensor is an input or an output with its contents.
type Tensor struct {
	Name     string
	Datatype Datatype
	Shape    []int64
	Params   Params
	Raw      []byte
}

// Reserve accounts for memory that a decoder is about to take, or refuses it. A nil
// Reserve refuses none.
type Reserve func(bytes int64) error

func (r Reserve) take(bytes int64) error {
	if r == nil || bytes == 0 {
		return nil
	}
	return r(bytes)
}

// Output is an output that a request asks for.
type Output struct {
	Name   string
	Params Params
}

// Request is a ModelInfer request.
type Request struct {
	Model, Version string // empty in REST, whose path names them
	ID             string
	Params         Params
	Inputs         []Tensor
	Outputs        []Output
}

// Response is the answer to a Request.
type Response struct {
	Model, Version string
	ID             string
	Params         Params
	Outputs        []Tensor
}

// elements returns the number of elements that a shape has.
func elements(shape []int64) (int64, error) {
	n := uint64(1)
	for _, d := range shape {
		if d < 0 {
			return 0, fmt.Errorf("shape: dimension %d; want 0 or more", d)
		}
	}
	for _, d := range shape {
		if d == 0 {
			return 0, nil
		}
	}
	for _, d := range shape {
		hi, lo := bits.Mul64(n, uint64(d))
		if hi != 0 || lo > math.MaxInt64 {
			return 0, fmt.Errorf("shape: %v has more elements than fit 63 bits", shape)
		}
		n = lo
	}
	return int64(n), nil
}

// check holds the contents of a tensor to its shape and datatype.
func (t *Tensor) check() error {
	size := t.Datatype.Size()
	if size < 0 {
		return fmt.Errorf("datatype: %q; want one of %v", clip(string(t.Datatype)), Datatypes)
	}
	n, err := elements(t.Shape)
	if err != nil {
		return err
	}
	if size > 0 {
		if int64(len(t.Raw)/size) != n || len(t.Raw)%size != 0 {
			return fmt.Errorf("data: %d bytes are %s of %s; shape %v wants %d", len(t.Raw), count(len(t.Raw), size), t.Datatype, t.Shape, n)
		}
		if t.Datatype == Bool {
			if i := slices.IndexFunc(t.Raw, func(b byte) bool { return b > 1 }); i >= 0 {
				return fmt.Errorf("data: element %d is %d; want 0 or 1 in a BOOL", i, t.Raw[i])
			}
		}
		return nil
	}
	found := int64(0)
	for rest := t.Raw; len(rest) > 0; found++ {
		if len(rest) < 4 || uint64(binary.LittleEndian.Uint32(rest)) > uint64(len(rest)-4) {
			return fmt.Errorf("data: element %d ends beyond the tensor's %d bytes", found, len(t.Raw))
		}
		rest = rest[4+binary.LittleEndian.Uint32(rest):]
	}
	if found != n {
		return fmt.Errorf("data: %d elements; shape %v wants %d", found, t.Shape, n)
	}
	return nil
}

func count(n, size int) string {
	part := ""
	if n%size != 0 {
		part = " and a part of one"
	}
	if n/size == 1 {
		return "1 element" + part
	}
	return fmt.Sprintf("%d elements%s", n/size, part)
}

// Texts ranges over the elements of a BYTES tensor, which share its memory.
func (t *Tensor) Texts() iter.Seq2[int, []byte] {
	return func(yield func(int, []byte) bool) {
		i := 0
		for rest := t.Raw; len(rest) >= 4; i++ {
			n := binary.LittleEndian.Uint32(rest)
			if !yield(i, rest[4:4+n]) {
				return
			}
			rest = rest[4+n:]
		}
	}
}

// AppendText appends an element of a BYTES tensor.
func AppendText(raw []byte, text string) []byte {
	return append(binary.LittleEndian.AppendUint32(raw, uint32(len(text))), text...)
}

// AppendFloat appends x as an element of a datatype. Integers are exact up to 2^53;
// what the datatype cannot hold is an error.
func AppendFloat(raw []byte, d Datatype, x float64) ([]byte, error) {
	switch d {
	case FP64:
		return appendWord(raw, d, math.Float64bits(x)), nil
	case FP32, FP16, BF16:
		bits, near := nearest(d, x)
		if math.IsInf(near, 0) && !math.IsInf(x, 0) {
			return raw, fmt.Errorf("%v is beyond the range of %s", x, d)
		}
		return appendWord(raw, d, bits), nil
	case Bool:
		if x != 0 && x != 1 {
			return raw, fmt.Errorf("%v is not a BOOL; want 0 or 1", x)
		}
		return append(raw, byte(x)), nil
	}
	lo, hi := d.bounds()
	if !(x >= lo && x <= hi && x == math.Trunc(x)) || math.Abs(x) > 1<<53 {
		return raw, fmt.Errorf("%v is not a number of %s", x, d)
	}
	return appendWord(raw, d, uint64(int64(x))), nil
}

// nearest returns the bits of the element of FP32, FP16 or BF16 that is nearest to x, and its number.
func nearest(d Datatype, x float64) (bits uint64, number float64) {
	switch d {
	case FP16:
		h := halfBits(x)
		return uint64(h), HalfFloat(h)
	case BF16:
		b := bfloatBits(x)
		return uint64(b), BFloat(b)
	}
	return uint64(math.Float32bits(float32(x))), float64(float32(x))
}

// bounds returns the range of an integer datatype, as far as float64 is exact.
func (d Datatype) bounds() (lo, hi float64) {
	switch width := float64(8 * d.Size()); d {
	case Uint8, Uint16, Uint32, Uint64:
		return 0, math.Exp2(width) - 1
	case Int8, Int16, Int32, Int64:
		return -math.Exp2(width - 1), math.Exp2(width-1) - 1
	}
	return 1, 0
}

// appendWord appends the low bytes of an integer.
func appendWord(raw []byte, d Datatype, x uint64) []byte {
	switch d.Size() {
	case 1:
		return append(raw, byte(x))
	case 2:
		return binary.LittleEndian.AppendUint16(raw, uint16(x))
	case 4:
		return binary.LittleEndian.AppendUint32(raw, uint32(x))
	}
	return binary.LittleEndian.AppendUint64(raw, x)
}

// clip shortens a text of a message for an error.
func clip(s string) string {
	const most = 40
	if len(s) > most {
		return s[:most] + "..."
	}
	return s
}
