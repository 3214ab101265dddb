package parquet

import (
	"encoding/binary"
	"errors"
	"os"
)

const (
	maxFooterBytes = 8 << 20
	maxDepth       = 32 // of structs and lists in each other
)

var errFooter = errors.New("its footer makes no sense; is this a Parquet file?")

// checkFooter walks through a file's footer before the decoder does, which
// allocates as many elements as a list claims to have. After the check, a list
// has at most as many elements as the footer has bytes.
func checkFooter(f *os.File, size int64) error {
	if size < 12 {
		return errFooter
	}
	var end [8]byte
	if _, err := f.ReadAt(end[:], size-8); err != nil {
		return err
	}
	length := int64(binary.LittleEndian.Uint32(end[:]))
	if string(end[4:]) != "PAR1" || length > size-12 || length > maxFooterBytes {
		return errFooter
	}
	footer := make([]byte, length)
	if _, err := f.ReadAt(footer, size-8-length); err != nil {
		return err
	}
	w := walker{rest: footer}
	return w.value(typeStruct, 0)
}

// walker goes through values of Thrift's compact protocol.
type walker struct{ rest []byte }

// The types of the compact protocol.
const (
	typeTrue   = 1
	typeFalse  = 2
	typeByte   = 3
	typeInt16  = 4
	typeInt32  = 5
	typeInt64  = 6
	typeDouble = 7
	typeBinary = 8
	typeList   = 9
	typeSet    = 10
	typeStruct = 12
	typeUUID   = 13
)

// take returns the next n bytes.
func (w *walker) take(n uint64) ([]byte, error) {
	if n > uint64(len(w.rest)) {
		return nil, errFooter
	}
	b := w.rest[:n]
	w.rest = w.rest[n:]
	return b, nil
}

func (w *walker) byte() (byte, error) {
	b, err := w.take(1)
	if err != nil {
		return 0, err
	}
	return b[0], nil
}

func (w *walker) varint() (uint64, error) {
	v, n := binary.Uvarint(w.rest)
	if n <= 0 {
		return 0, errFooter
	}
	w.rest = w.rest[n:]
	return v, nil
}

// value skips a value that is alone or in a list, without decoding it. It is the check that the
// footer's own lengths stay within it, and its depth within maxDepth, before the Parquet
// library decodes it.
func (w *walker) value(kind byte, depth int) error {
	if depth > maxDepth {
		return errFooter
	}
	var err error
	switch kind {
	case typeTrue, typeFalse, typeByte:
		_, err = w.take(1)
	case typeInt16, typeInt32, typeInt64:
		_, err = w.varint()
	case typeDouble:
		_, err = w.take(8)
	case typeUUID:
		_, err = w.take(16)
	case typeBinary:
		var n uint64
		if n, err = w.varint(); err == nil {
			_, err = w.take(n)
		}
	case typeList, typeSet:
		err = w.list(depth)
	case typeStruct:
		err = w.fields(depth)
	default: // maps (11), which Parquet does not use, and unknown types
		err = errFooter
	}
	return err
}

func (w *walker) list(depth int) error {
	head, err := w.byte()
	if err != nil {
		return err
	}
	n := uint64(head >> 4)
	if n == 15 {
		if n, err = w.varint(); err != nil {
			return err
		}
	}
	for range n { // each takes at least a byte, so a false n ends soon
		if err := w.value(head&15, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (w *walker) fields(depth int) error {
	for {
		head, err := w.byte()
		if err != nil || head == 0 {
			return err
		}
		if head>>4 == 0 {
			if _, err := w.varint(); err != nil { // the field's number
				return err
			}
		}
		if kind := head & 15; kind != typeTrue && kind != typeFalse {
			if err := w.value(kind, depth+1); err != nil {
				return err
			}
		}
	}
}
