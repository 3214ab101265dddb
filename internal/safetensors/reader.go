package safetensors

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
)

// File is an open safetensors file whose header has been checked.
type File struct {
	// Tensors are in the order of their data. The slice is read-only.
	Tensors []Tensor
	// Metadata are the file's strings; nil if it has none.
	Metadata map[string]string

	index  map[string]int
	data   *io.SectionReader
	closer io.Closer
}

// Open opens the file at path and checks its header.
func Open(path string) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("safetensors: %w", err)
	}
	file, err := open(f)
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("%w: %s", err, path)
	}
	file.closer = f
	return file, nil
}

func open(f *os.File) (*File, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: not a regular file", ErrFormat)
	}
	return NewFile(f, info.Size())
}

// NewFile checks the header of a file of size bytes that is read through r: every tensor must
// lie within the file, and none may overlap another. Nothing is allocated beyond the header's
// own bytes. r must stay open while the File is used.
func NewFile(r io.ReaderAt, size int64) (*File, error) {
	var prefix [prefixBytes]byte
	if size < prefixBytes {
		return nil, fmt.Errorf("%w: %d bytes are too few for a header", ErrFormat, size)
	}
	if err := readFull(r, prefix[:], 0); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint64(prefix[:])
	if n > MaxHeaderBytes || int64(n) > size-prefixBytes {
		return nil, fmt.Errorf("%w: a header of %d bytes in a file of %d; the file is cut short or no safetensors file", ErrFormat, n, size)
	}
	header := make([]byte, n)
	if err := readFull(r, header, prefixBytes); err != nil {
		return nil, err
	}
	dataAt := prefixBytes + int64(n)
	tensors, metadata, err := parseHeader(header, size-dataAt)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	f := &File{
		Tensors:  tensors,
		Metadata: metadata,
		index:    make(map[string]int, len(tensors)),
		data:     io.NewSectionReader(r, dataAt, size-dataAt),
	}
	for i := range tensors {
		f.index[tensors[i].Name] = i
	}
	return f, nil
}

// Tensor finds a tensor by its name.
func (f *File) Tensor(name string) (*Tensor, bool) {
	i, ok := f.index[name]
	if !ok {
		return nil, false
	}
	return &f.Tensors[i], true
}

// Close closes the file if Open opened it.
func (f *File) Close() error {
	if f.closer == nil {
		return nil
	}
	return f.closer.Close()
}

// Read fills dst with the elements of a tensor from the given offset on. The
// type of dst is the type of the tensor. It needs a small fixed buffer.
func Read[T Element](f *File, name string, offset int64, dst []T) error {
	t, ok := f.Tensor(name)
	if !ok {
		return fmt.Errorf("%w: there is no tensor %q", ErrUse, name)
	}
	if want := DTypeOf[T](); t.DType != want {
		return fmt.Errorf("%w: %q has type %s, not %s", ErrUse, name, t.DType, want)
	}
	if n := t.Len(); offset < 0 || offset > n || int64(len(dst)) > n-offset {
		return fmt.Errorf("%w: %q has %d elements, asked for %d from %d on", ErrUse, name, n, len(dst), offset)
	}
	size := t.DType.Size()
	at := t.offset + offset*int64(size)
	buf := make([]byte, min(chunkBytes, len(dst)*size))
	for len(dst) > 0 {
		n := min(len(dst), chunkBytes/size)
		if err := readFull(f.data, buf[:n*size], at); err != nil {
			return fmt.Errorf("%w (tensor %q)", err, name)
		}
		if _, err := binary.Decode(buf[:n*size], binary.LittleEndian, dst[:n]); err != nil {
			return fmt.Errorf("safetensors: tensor %q: %w", name, err)
		}
		dst, at = dst[n:], at+int64(n*size)
	}
	return nil
}

// readFull reads exactly len(b) bytes; a file that ends before is damaged.
func readFull(r io.ReaderAt, b []byte, at int64) error {
	n, err := r.ReadAt(b, at)
	if n == len(b) {
		return nil
	}
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: the file ends at byte %d", ErrFormat, at+int64(n))
	}
	return fmt.Errorf("safetensors: %w", err)
}
