package safetensors

import (
	"encoding/binary"
	"fmt"
	"io"
)

// Write writes a file with the given tensors, in order. It calls data once for
// each tensor; data appends the elements to the sink, in as many pieces as it
// likes, so no tensor needs to be in memory as a whole.
func Write(w io.Writer, metadata map[string]string, tensors []Tensor, data func(t *Tensor, s *Sink) error) error {
	header, err := formatHeader(metadata, tensors)
	if err != nil {
		return err
	}
	if _, err := w.Write(header); err != nil {
		return err
	}
	buf := make([]byte, 0, chunkBytes)
	for i := range tensors {
		t := &tensors[i]
		s := &Sink{w: w, tensor: t, left: t.Len(), buf: buf}
		if err := data(t, s); err != nil {
			return err
		}
		if s.left != 0 {
			return fmt.Errorf("%w: %d of the %d elements of %q were not written", ErrUse, s.left, t.Len(), t.Name)
		}
	}
	return nil
}

// Sink takes the elements of one tensor.
type Sink struct {
	w      io.Writer
	tensor *Tensor
	left   int64 // elements to come
	buf    []byte
}

// Append writes further elements of the sink's tensor, whose type they have. More than the
// tensor's shape holds, and another type, are errors that match ErrUse; fewer show when the
// tensor ends.
func Append[T Element](s *Sink, v []T) error {
	if d := DTypeOf[T](); d != s.tensor.DType {
		return fmt.Errorf("%w: %q has type %s, not %s", ErrUse, s.tensor.Name, s.tensor.DType, d)
	}
	if int64(len(v)) > s.left {
		return fmt.Errorf("%w: %d elements for %q, which has room for %d more", ErrUse, len(v), s.tensor.Name, s.left)
	}
	size := s.tensor.DType.Size()
	for len(v) > 0 {
		n := min(len(v), chunkBytes/size)
		b, err := binary.Append(s.buf[:0], binary.LittleEndian, v[:n])
		if err != nil {
			return fmt.Errorf("safetensors: tensor %q: %w", s.tensor.Name, err)
		}
		if _, err := s.w.Write(b); err != nil {
			return err
		}
		v, s.left = v[n:], s.left-int64(n)
	}
	return nil
}
