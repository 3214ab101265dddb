package cuda

import (
	"context"
	"errors"
	"fmt"
	"unsafe"

	"github.com/pce-engine/pce/kernels"
)

// buffer is memory of the card, of one element type.
type buffer struct {
	dev    *Device
	dtype  kernels.DType
	n      int
	bytes  int64
	ptr    Ptr
	writes int   // from outside, so far
	used   int64 // the number of the last launch that has it
}

func (b *buffer) DType() kernels.DType { return b.dtype }
func (b *buffer) Len() int             { return b.n }

// Free gives the memory back when nothing uses it. A driver that refuses has lost
// its card, which the next call will say.
func (b *buffer) Free() {
	if b.ptr == 0 {
		return
	}
	_ = b.dev.do(func() error {
		b.dev.meter.bytes -= b.bytes
		return errors.Join(b.dev.settle(), b.dev.drv.Free(b.ptr))
	})
	b.ptr, b.n = 0, 0
}

// Alloc returns n zeroed elements.
func (d *Device) Alloc(_ context.Context, t kernels.DType, n int) (kernels.Buffer, error) {
	if n < 0 || t > kernels.Uint32 {
		return nil, fmt.Errorf("%w: %s: alloc of %d elements of type %d", kernels.ErrDevice, d.name, n, t)
	}
	b := &buffer{dev: d, dtype: t, n: n, bytes: max(least, int64(n)*int64(t.Bytes()))}
	err := d.do(func() (err error) {
		b.ptr, err = d.zeroed(b.bytes)
		return err
	})
	if err != nil {
		return nil, err
	}
	return b, nil
}

// least is the bytes of the smallest allocation: one element of any type.
const least = 8

// zeroed allocates cleared memory. It runs on the driver's thread, as do the
// executor's copies.
func (d *Device) zeroed(bytes int64) (Ptr, error) {
	bytes = max(bytes, least)
	p, err := d.drv.Alloc(bytes)
	if err != nil {
		return 0, err
	}
	d.meter.bytes += bytes
	d.meter.most = max(d.meter.most, d.meter.bytes)
	d.unseen = true
	return p, d.drv.Clear(p, bytes, d.copies)
}

// raw is the memory of a slice of numbers.
func raw[T uint16 | uint32 | float32 | float64 | int64](s []T) []byte {
	if len(s) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(s[0])))
}

// view returns the memory of a slice that Read and Write take, and its type.
func view(s any) ([]byte, kernels.DType, int, bool) {
	switch s := s.(type) {
	case []float32:
		return raw(s), kernels.Float32, len(s), true
	case []float64:
		return raw(s), kernels.Float64, len(s), true
	case []int64:
		return raw(s), kernels.Int64, len(s), true
	case []uint16:
		return raw(s), kernels.Uint16, len(s), true
	case []uint32:
		return raw(s), kernels.Uint32, len(s), true
	}
	return nil, 0, 0, false
}

// part finds the part of a buffer that a copy of a slice reaches.
func (d *Device) part(buf kernels.Buffer, offset int, s any) (*buffer, Ptr, []byte, error) {
	b, err := d.own(buf)
	if err != nil {
		return nil, 0, nil, err
	}
	bytes, t, n, ok := view(s)
	if !ok || t != b.dtype || offset < 0 || n > b.n-offset {
		return nil, 0, nil, fmt.Errorf("%w: %s: copy of %d elements (%T) at %d of a buffer of %d of type %d", kernels.ErrDevice, d.name, n, s, offset, b.n, b.dtype)
	}
	return b, b.ptr + Ptr(offset*t.Bytes()), bytes, nil
}

func (d *Device) own(b kernels.Buffer) (*buffer, error) {
	c, ok := b.(*buffer)
	if !ok || c.dev != d {
		return nil, fmt.Errorf("%w: %s: buffer of another device (%T)", kernels.ErrDevice, d.name, b)
	}
	return c, nil
}

// Write copies src to the buffer at offset.
func (d *Device) Write(_ context.Context, dst kernels.Buffer, offset int, src any) error {
	b, at, bytes, err := d.part(dst, offset, src)
	if err != nil {
		return err
	}
	b.writes++
	return d.do(func() error {
		if err := d.afterLaunch(b.used); err != nil {
			return err
		}
		return d.copyIn(at, bytes)
	})
}

// Read copies from the buffer at offset to dst.
func (d *Device) Read(_ context.Context, dst any, src kernels.Buffer, offset int) error {
	b, at, bytes, err := d.part(src, offset, dst)
	if err != nil {
		return err
	}
	return d.do(func() error {
		if err := d.afterLaunch(b.used); err != nil {
			return err
		}
		return d.copyOut(bytes, at)
	})
}

// staging is memory of the host that copies go through, so that they need not
// wait for what the card is doing.
type staging struct {
	host []byte
	used int
}

const stagingBytes = 8 << 20

// stage returns room for up to n bytes that no copy uses.
func (d *Device) stage(n int) ([]byte, error) {
	s := &d.staging
	n = min(n, len(s.host))
	if s.used+n > len(s.host) {
		if err := d.arrive(); err != nil {
			return nil, err
		}
	}
	room := s.host[s.used : s.used+n : s.used+n]
	s.used += (n + 63) &^ 63
	return room, nil
}

// copyIn copies to memory that launches so far do not use, or that later copies
// come after.
func (d *Device) copyIn(dst Ptr, src []byte) error {
	for len(src) > 0 {
		room, err := d.stage(len(src))
		if err != nil {
			return err
		}
		n := copy(room, src)
		d.unseen = true
		if err := d.drv.CopyIn(dst, room, d.copies); err != nil {
			return err
		}
		src, dst = src[n:], dst+Ptr(n)
	}
	return nil
}

// copyOut copies from memory likewise, and waits for it.
func (d *Device) copyOut(dst []byte, src Ptr) error {
	for len(dst) > 0 {
		room, err := d.stage(len(dst))
		if err != nil {
			return err
		}
		if err := d.drv.CopyOut(room, src, d.copies); err != nil {
			return err
		}
		if err := d.arrive(); err != nil {
			return err
		}
		n := copy(dst, room)
		dst, src = dst[n:], src+Ptr(n)
	}
	return nil
}
