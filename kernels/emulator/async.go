package emulator

import (
	"math"
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
	n := len(w.copies)
	if n < cap(w.copies) {
		w.copies = w.copies[:n+1] // its data need no clearing
	} else {
		w.copies = append(w.copies, asyncCopy{})
	}
	c := &w.copies[n]
	c.mask, c.size, c.group = m, int(o.size), w.groups
	if s, done := w.fetchAsync(o, m, c); done {
		return s
	}
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
		clear(c.data[lane][n:])
		dst := uint32(int(w.r[o.b][lane]) + o.target)
		if !w.touch(uint64(dst), o.size, lane, promise) {
			return failed
		}
		c.dst[lane] = dst
	}
	return next
}

// fetchAsync is copyAsync where each lane copies all bytes or none, within one
// allocation, and nothing is wrong with their sources. If not it reports false, having
// changed nothing that counts.
func (w *warp) fetchAsync(o *op, m uint32, c *asyncCopy) (signal, bool) {
	run, whole := w.blk.run, uint32(0)
	address := &w.d[o.a]
	for rest := m; rest != 0; rest &= rest - 1 {
		lane := bits.TrailingZeros32(rest) & 31
		switch n := uint64(w.r[o.c][lane]); {
		case n == o.size:
			whole |= 1 << lane
		case n != 0 || (address[lane]+o.off)&(o.size-1) != 0:
			return next, false
		default:
			clear(c.data[lane][:])
		}
	}
	set, at := run.kernel.set, &w.places
	var a *allocation
	if whole != 0 {
		a = run.em.memory.find(address[bits.TrailingZeros32(whole)&31] + o.off)
	}
	switch {
	case whole == 0:
		// There is no source to look at.
	case a == nil || a.words != nil || uint64(len(a.data)) < o.size || len(a.data) > math.MaxInt32:
		return next, false
	case set.Locate(address, a.base-o.off, uint64(len(a.data))-o.size, o.size, whole, at) == lanes.Astray ||
		a.known != nil && !set.Known(&a.known[0], at, int(o.size>>2), whole):
		return next, false
	}
	n := uint64(len(w.blk.shared))
	if n < o.size || set.LocateShared(&w.r[o.b], uint32(o.target), uint32(n-o.size), uint32(o.size), m, &c.dst) == lanes.Astray {
		return next, false
	}
	for rest := whole; rest != 0; rest &= rest - 1 {
		lane := bits.TrailingZeros32(rest) & 31
		copy(c.data[lane][:o.size], a.data[at[lane]:])
	}
	if a != nil {
		w.blk.touched[a.index] |= reads
	}
	w.blk.loaded += o.size * uint64(bits.OnesCount32(whole))
	if !w.touchPlaces(lanes.Apart, o.size, m, promise, &c.dst) {
		return failed, true
	}
	return next, true
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
		if !w.touchPlaces(lanes.Apart, uint64(c.size), now, arrival, &c.dst) {
			return failed
		}
		for ; now != 0; now &= now - 1 {
			lane := bits.TrailingZeros32(now) & 31
			copy(w.blk.shared[c.dst[lane]:], c.data[lane][:c.size])
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
