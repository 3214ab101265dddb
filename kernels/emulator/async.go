package emulator

import (
	"math/bits"

	"github.com/pce-engine/pce/kernels/emulator/lanes"
	"github.com/pce-engine/pce/kernels/ptx"
)

// asyncCopy is a cp.async under way: its bytes arrive when it is waited for.
type asyncCopy struct {
	mask  uint32 // lanes that wait
	size  int
	group narrow // of each lane
	dst   narrow
	data  [32][16]byte
}

// cpAsync decodes copies from global to shared memory, and their groups.
func (d *decoder) cpAsync() {
	d.op.kind = kindAsync
	switch {
	case d.mod("commit_group"):
		d.op.step = commitGroup
	case d.mod("wait_all"):
		d.op.step = waitAll
	case d.mod("wait_group"):
		a := d.arg(0)
		if a.Kind != ptx.IntOperand || a.Int < 0 {
			d.refuse("wait_group takes a number")
		}
		d.op.off, d.op.step = uint64(a.Int), waitGroup
	default:
		d.copyAsync()
	}
}

func (d *decoder) copyAsync() {
	dst, src, size := d.arg(0), d.arg(1), d.arg(2)
	if dst.Kind != ptx.AddrOperand || src.Kind != ptx.AddrOperand || src.Reg.Class != ptx.D || size.Kind != ptx.IntOperand {
		return
	}
	switch {
	case size.Int != 16 && (d.mod("cg") || size.Int != 4 && size.Int != 8):
		d.refuse("cp.async of %d bytes", size.Int)
		return
	case dst.Reg.Class == ptx.R:
		d.op.b = d.slot(dst.Reg)
	case dst.Reg.Class == ptx.NoClass:
		d.op.b = d.constant(false, d.symbol(dst.Symbol))
	default:
		return
	}
	d.op.a, d.op.off = d.slot(src.Reg), uint64(src.Int)
	d.op.target = int(dst.Int)
	d.op.size = uint64(size.Int)
	d.op.c = d.constant(false, uint64(size.Int))
	if len(d.in.Args) > 3 {
		d.op.c = d.narrow(3)
	}
	d.op.step = copyAsync
}

// copyAsync is cp.async: the source is read now, the destination must not be
// touched until the copy is waited for.
func copyAsync(w *warp, o *op, m uint32) signal {
	w.copies = append(w.copies, asyncCopy{mask: m, size: int(o.size), group: w.groups})
	c := &w.copies[len(w.copies)-1]
	for ; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m) & 31
		n := uint64(w.r[o.c][lane])
		if n > o.size {
			return w.fail(lane, "cp.async reads %d bytes of %d", n, o.size)
		}
		address := w.d[o.a][lane] + o.off
		if address&(o.size-1) != 0 {
			return w.fail(lane, "%d bytes at %#x: misaligned", o.size, address)
		}
		if n > 0 {
			a, at, ok := w.locate(address, 1, lane)
			if why := w.blk.run.em.memory.why(a, address, int64(n)); ok && why != "" {
				return w.fail(lane, "%d bytes at %#x: %s", n, address, why)
			}
			if !ok || !w.readable(a, at, n, lane) {
				return failed
			}
			copy(c.data[lane][:], a.data[at:at+n])
			w.blk.loaded += n
		}
		dst := uint32(int(w.r[o.b][lane]) + o.target)
		if !w.touch(uint64(dst), o.size, lane, promise) {
			return failed
		}
		c.dst[lane] = dst
	}
	return next
}

// commitGroup ends the group of each lane.
func commitGroup(w *warp, o *op, m uint32) signal {
	for ; m != 0; m &= m - 1 {
		w.groups[bits.TrailingZeros32(m)&31]++
	}
	return next
}

// waitGroup delivers all but the last groups of each lane.
func waitGroup(w *warp, o *op, m uint32) signal {
	return w.deliver(func(c *asyncCopy) (ready uint32) {
		for i := range w.groups {
			ready |= lanes.Bit(uint64(w.groups[i]-c.group[i]) > o.off) << i
		}
		return ready & m
	})
}

// waitAll delivers all copies, those not committed too.
func waitAll(w *warp, o *op, m uint32) signal {
	return w.deliver(func(*asyncCopy) uint32 { return m })
}

// deliver writes the bytes of copies whose lanes are ready: from here on they count
// as written by this warp, and other warps need a barrier.
func (w *warp) deliver(ready func(*asyncCopy) uint32) signal {
	kept := 0
	for i := range w.copies {
		c := &w.copies[i]
		now := c.mask & ready(c)
		c.mask &^= now
		for ; now != 0; now &= now - 1 {
			lane := bits.TrailingZeros32(now) & 31
			at := uint64(c.dst[lane])
			for word := at >> 2; word < (at+uint64(c.size))>>2; word++ {
				w.blk.shadow[word] &^= 15 << bytesPromised
			}
			if !w.touch(at, uint64(c.size), lane, plainWrite) {
				return failed
			}
			copy(w.blk.shared[at:], c.data[lane][:c.size])
		}
		if c.mask != 0 {
			if kept != i {
				w.copies[kept] = *c
			}
			kept++
		}
	}
	w.copies = w.copies[:kept]
	return next
}
