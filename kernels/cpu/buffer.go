package cpu

import (
	"context"
	"fmt"
	"unsafe"

	"github.com/pce-engine/pce/kernels"
)

// Buffer is memory of one element type, aligned to a cache line.
type Buffer struct {
	dev    *Device
	dtype  kernels.DType
	n      int
	writes int // from outside, so far
	memory []byte
}

// DType returns the type of the elements.
func (b *Buffer) DType() kernels.DType { return b.dtype }

// Len returns the number of elements, 0 after Free.
func (b *Buffer) Len() int { return b.n }

// Free drops the memory.
func (b *Buffer) Free() {
	b.dev.Count(-int64(len(b.memory)))
	b.n, b.memory = 0, nil
}

// Writes counts the calls of Device.Write so far: what a program remembers of the
// elements holds as long as the number stays, as far as no program writes them.
func (b *Buffer) Writes() int { return b.writes }

// Elements returns the memory of a buffer whose elements are of type T, else nil.
func Elements[T kernels.Element](b *Buffer) []T {
	if b.dtype != kernels.TypeOf[T]() || b.n == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b.memory))), b.n)
}

// Alloc returns n zeroed elements.
func (d *Device) Alloc(_ context.Context, t kernels.DType, n int) (kernels.Buffer, error) {
	bytes, err := kernels.Size(t, n)
	if err != nil {
		return nil, fmt.Errorf("cpu: %w", err)
	}
	d.Count(bytes)
	return &Buffer{dev: d, dtype: t, n: n, memory: Aligned[byte](int(bytes))}, nil
}

// Own returns a buffer of this device, for programs that work on its memory.
func (d *Device) Own(b kernels.Buffer) (*Buffer, error) {
	own, ok := b.(*Buffer)
	if !ok || own.dev != d {
		return nil, fmt.Errorf("%w: cpu: buffer of another device (%T)", kernels.ErrDevice, b)
	}
	return own, nil
}

// Write copies src to the buffer at offset.
func (d *Device) Write(_ context.Context, dst kernels.Buffer, offset int, src any) error {
	b, at, cells, err := d.part(dst, offset, src)
	if err != nil {
		return err
	}
	b.writes++
	copy(at, cells)
	return nil
}

// Read copies from the buffer at offset to dst.
func (d *Device) Read(_ context.Context, dst any, src kernels.Buffer, offset int) error {
	_, at, cells, err := d.part(src, offset, dst)
	if err != nil {
		return err
	}
	copy(cells, at)
	return nil
}

// part returns the memory that a copy of a slice reaches, and that of the slice.
func (d *Device) part(buf kernels.Buffer, offset int, s any) (b *Buffer, at, cells []byte, err error) {
	if b, err = d.Own(buf); err != nil {
		return nil, nil, nil, err
	}
	t, n, cells, ok := kernels.View(s)
	if !ok {
		return nil, nil, nil, fmt.Errorf("%w: cpu: copy of %T; want a slice of a buffer's elements", kernels.ErrDevice, s)
	}
	if t != b.dtype || offset < 0 || n > b.n-offset {
		return nil, nil, nil, fmt.Errorf("%w: cpu: copy of %d elements of %v at %d of a buffer of %d of %v", kernels.ErrDevice, n, t, offset, b.n, b.dtype)
	}
	return b, b.memory[offset*t.Bytes():], cells, nil
}
