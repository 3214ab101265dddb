package cuda

import (
	"context"
	"errors"
	"fmt"

	"github.com/pce-engine/pce/kernels"
)

// Span is memory of the card.
type Span struct {
	At    Ptr
	Bytes int64
}

// meets reports whether two spans have bytes in common.
func (s Span) meets(o Span) bool {
	return s.At < o.At+Ptr(o.Bytes) && o.At < s.At+Ptr(s.Bytes)
}

// CheckFree refuses allocations of sizes, in bytes, that are together more than the card
// has free. Who asks before the first of many does not fail at the last one.
func (t *Thread) CheckFree(sizes []int64) error {
	free, err := t.drv.FreeMemory()
	if err != nil {
		return err
	}
	var need int64
	for _, n := range sizes {
		need += max(n, least)
	}
	if need > free {
		return fmt.Errorf("%w: %s: the program needs %d MiB, %d of %d MiB are free, %d MiB are this device's; take fewer rows at a time, or end other programs on the card",
			kernels.ErrMemory, t.name, (need+1<<20-1)>>20, free>>20, t.card.Memory>>20, t.meter.bytes>>20)
	}
	return nil
}

// Alloc returns cleared memory of at least as many bytes, for a program.
func (t *Thread) Alloc(bytes int64) (Span, error) {
	s := Span{Bytes: max(bytes, least)}
	var err error
	if s.At, err = t.drv.Alloc(s.Bytes); err != nil {
		return Span{}, err
	}
	t.meter.bytes += s.Bytes
	t.meter.most = max(t.meter.most, t.meter.bytes)
	t.writes(s)
	if err := t.drv.Clear(s.At, s.Bytes, t.copies.stream); err != nil {
		return Span{}, errors.Join(err, t.Free(s))
	}
	return s, nil
}

// least is the bytes of the smallest allocation: one element of any type.
const least = 8

// Free gives memory of Alloc back, which no launch or copy in flight uses any more:
// after Settle, at the latest.
func (t *Thread) Free(s Span) error {
	t.meter.bytes -= s.Bytes
	return t.drv.Free(s.At)
}

// Buffer is memory of the card, of one element type: a kernels.Buffer.
type Buffer struct {
	dev    *Device
	dtype  kernels.DType
	n      int
	span   Span
	writes int
	used   int64
}

// DType returns the type of the elements.
func (b *Buffer) DType() kernels.DType { return b.dtype }

// Len returns the number of elements, 0 after Free.
func (b *Buffer) Len() int { return b.n }

// At returns the address of the first element.
func (b *Buffer) At() Ptr { return b.span.At }

// Writes returns how often the buffer was written from outside.
func (b *Buffer) Writes() int { return b.writes }

// Used returns the number of the last launch that uses the buffer, 0 for none.
func (b *Buffer) Used() int64 { return b.used }

// Free gives the memory back when nothing uses it. What goes wrong, the next call that waits says.
func (b *Buffer) Free() {
	if b.span.At == 0 {
		return
	}
	_ = b.dev.Do(func(t *Thread) error { // fails when the device is closed
		t.Keep(t.Settle(), t.Free(b.span))
		return nil
	})
	b.span, b.n = Span{}, 0
}

// Alloc returns n zeroed elements.
func (d *Device) Alloc(_ context.Context, dtype kernels.DType, n int) (kernels.Buffer, error) {
	bytes, err := kernels.Size(dtype, n)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d.name, err)
	}
	b := &Buffer{dev: d, dtype: dtype, n: n}
	err = d.Do(func(t *Thread) (err error) {
		b.span, err = t.Alloc(bytes)
		return err
	})
	if err != nil {
		return nil, err
	}
	return b, nil
}

// Own returns a buffer of this device as what it is.
func (d *Device) Own(b kernels.Buffer) (*Buffer, error) {
	c, ok := b.(*Buffer)
	if !ok || c.dev != d {
		return nil, fmt.Errorf("%w: %s: buffer of another device (%T)", kernels.ErrDevice, d.name, b)
	}
	return c, nil
}

// part finds the part of a buffer that a copy of a slice reaches: its first byte and the
// slice as bytes.
func (d *Device) part(buf kernels.Buffer, offset int, s any) (b *Buffer, at int64, bytes []byte, err error) {
	if b, err = d.Own(buf); err != nil {
		return nil, 0, nil, err
	}
	dtype, n, bytes, ok := kernels.View(s)
	if !ok {
		return nil, 0, nil, fmt.Errorf("%w: %s: copy of %T; want a slice of a buffer's elements", kernels.ErrDevice, d.name, s)
	}
	if dtype != b.dtype || offset < 0 || n > b.n-offset {
		return nil, 0, nil, fmt.Errorf("%w: %s: copy of %d elements of %v at %d of a buffer of %d of %v", kernels.ErrDevice, d.name, n, dtype, offset, b.n, b.dtype)
	}
	return b, int64(offset * dtype.Bytes()), bytes, nil
}

// Write copies src to the buffer at offset.
func (d *Device) Write(_ context.Context, dst kernels.Buffer, offset int, src any) error {
	b, at, bytes, err := d.part(dst, offset, src)
	if err != nil {
		return err
	}
	b.writes++
	return d.Do(func(t *Thread) error { return t.CopyIn(b.span, at, bytes, b.used) })
}

// Read copies from the buffer at offset to dst.
func (d *Device) Read(_ context.Context, dst any, src kernels.Buffer, offset int) error {
	b, at, bytes, err := d.part(src, offset, dst)
	if err != nil {
		return err
	}
	return d.Do(func(t *Thread) error { return t.CopyOut(bytes, b.At()+Ptr(at), b.used) })
}
