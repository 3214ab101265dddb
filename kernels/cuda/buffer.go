package cuda

import (
	"context"
	"errors"
	"fmt"

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
		return errors.Join(b.dev.settle(), b.dev.release(b.ptr, b.bytes))
	})
	b.ptr, b.n = 0, 0
}

// Alloc returns n zeroed elements.
func (d *Device) Alloc(_ context.Context, t kernels.DType, n int) (kernels.Buffer, error) {
	bytes, err := kernels.Size(t, n)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d.name, err)
	}
	b := &buffer{dev: d, dtype: t, n: n, bytes: max(least, bytes)}
	err = d.do(func() (err error) {
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

// release gives memory of zeroed back, which no work uses any more.
func (d *Device) release(p Ptr, bytes int64) error {
	d.meter.bytes -= bytes
	return d.drv.Free(p)
}

// part finds the part of a buffer that a copy of a slice reaches.
func (d *Device) part(buf kernels.Buffer, offset int, s any) (*buffer, Ptr, []byte, error) {
	b, err := d.own(buf)
	if err != nil {
		return nil, 0, nil, err
	}
	t, n, bytes, ok := kernels.View(s)
	if !ok {
		return nil, 0, nil, fmt.Errorf("%w: %s: copy of %T; want a slice of a buffer's elements", kernels.ErrDevice, d.name, s)
	}
	if t != b.dtype || offset < 0 || n > b.n-offset {
		return nil, 0, nil, fmt.Errorf("%w: %s: copy of %d elements of %v at %d of a buffer of %d of %v", kernels.ErrDevice, d.name, n, t, offset, b.n, b.dtype)
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
