package emulator

import (
	"encoding/binary"
	"math/bits"

	"github.com/pce-engine/pce/kernels/emulator/lanes"
	"github.com/pce-engine/pce/kernels/ptx"
)

// atom decodes atom and red, on integers.
func (d *decoder) atom() {
	t := d.typ(-1)
	d.op.kind, d.op.size = kindAtomic, uint64(t.Bytes())
	sums := d.in.Op == "red" && d.mod("global") && d.mod("add") && (t == ptx.F32 || t == ptx.F64)
	if !sums && (t.Bytes() < 4 || !lanes.IsInteger(t) && t != ptx.B32 && t != ptx.B64) {
		d.refuse("no atomics of %s: their order would show", t)
		return
	}
	i := 0
	d.op.d = -1
	if d.in.Op == "atom" {
		d.op.d, i = d.value(0, t), 1
	}
	d.address(i)
	d.op.b = d.value(i+1, t)
	f := lanes.Reduction(d.in.Mods, t)
	if sums {
		f = lanes.FloatSum(t)
	}
	if d.mod("cas") {
		d.op.c = d.value(i+2, t)
	} else if f == nil {
		return
	}
	if d.mod("shared") {
		d.op.step = func(w *warp, o *op, m uint32) signal { return w.updateShared(o, m, f) }
		return
	}
	d.k.talks = true
	d.op.step = func(w *warp, o *op, m uint32) signal { return w.updateGlobal(o, m, f) }
}

// update does an atomic operation of a lane on the bytes of a word. Without f it
// compares and swaps. It reports whether the warp has moved: whether the word changed, or,
// of red, which tells no lane what it found, in any case. Nothing waits by that.
func (w *warp) update(o *op, lane int, at []byte, f func(x, y uint64) uint64) bool {
	var old, y, z uint64
	if o.size == 8 {
		old, y = binary.LittleEndian.Uint64(at), w.d[o.b][lane]
	} else {
		old, y = uint64(binary.LittleEndian.Uint32(at)), uint64(w.r[o.b][lane])
	}
	switch {
	case f != nil:
		z = f(old, y)
	case old != y:
		z = old
	case o.size == 8:
		z = w.d[o.c][lane]
	default:
		z = uint64(w.r[o.c][lane])
	}
	if o.size == 8 {
		binary.LittleEndian.PutUint64(at, z)
	} else {
		binary.LittleEndian.PutUint32(at, uint32(z))
		z = uint64(uint32(z))
	}
	if o.d >= 0 {
		if o.size == 8 {
			w.d[o.d][lane] = old
		} else {
			w.r[o.d][lane] = uint32(old)
		}
	}
	return z != old || o.d < 0
}

func (w *warp) updateShared(o *op, m uint32, f func(x, y uint64) uint64) signal {
	for ; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m) & 31
		at := w.sharedAddress(o, lane)
		if !w.touch(at, o.size, lane, atomicUpdate) {
			return failed
		}
		if w.update(o, lane, w.blk.shared[at:at+o.size], f) {
			w.blk.moves++
		}
	}
	return yielded
}

func (w *warp) updateGlobal(o *op, m uint32, f func(x, y uint64) uint64) signal {
	n := uint64(bits.OnesCount32(m))
	w.blk.loaded += n * o.size
	w.blk.stored += n * o.size
	for ; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m) & 31
		a, at, ok := w.locate(w.d[o.a][lane]+o.off, o.size, lane)
		if !ok {
			return failed
		}
		if !a.isKnown(at, o.size) {
			return w.fail(lane, "%d bytes at %#x: not initialised", o.size, a.base+at)
		}
		if a.words != nil && !w.noteStrong(a, at, o.size, lane, true) {
			return failed
		}
		w.blk.touched[a.index] |= writes
		if w.update(o, lane, a.data[at:at+o.size], f) {
			w.blk.moves++
		}
		if a.words != nil {
			w.acquire(a.base + at)
			w.release(a.base+at, true)
		}
	}
	return yielded
}

// loadStrong is ld.volatile and ld.acquire.gpu, which orders: what was written
// before the release that it sees may be read from here on.
func loadStrong(w *warp, o *op, m uint32) signal {
	size := o.size * uint64(len(o.vec))
	w.blk.loaded += size * uint64(bits.OnesCount32(m))
	for ; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m) & 31
		a, at, ok := w.locate(w.d[o.a][lane]+o.off, size, lane)
		if !ok {
			return failed
		}
		if !a.isKnown(at, size) {
			return w.fail(lane, "%d bytes at %#x: not initialised", size, a.base+at)
		}
		if a.words != nil {
			if !w.noteStrong(a, at, size, lane, false) {
				return failed
			}
			if o.orders {
				w.acquire(a.base + at)
			}
		}
		w.put(o, lane, a.data[at:at+size])
	}
	return yielded
}

// storeStrong is st.volatile and st.release.gpu, which orders.
func storeStrong(w *warp, o *op, m uint32) signal {
	size := o.size * uint64(len(o.vec))
	w.wrote(size * uint64(bits.OnesCount32(m)))
	for ; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m) & 31
		a, at, ok := w.locate(w.d[o.a][lane]+o.off, size, lane)
		if !ok {
			return failed
		}
		w.blk.touched[a.index] |= writes
		if a.known != nil {
			copy(a.known[at:at+size], ones)
		}
		if a.words != nil {
			if !w.noteStrong(a, at, size, lane, true) {
				return failed
			}
			if o.orders {
				w.blk.fence()
				w.release(a.base+at, false)
			}
		}
		w.take(o, lane, a.data[at:at+size])
	}
	return yielded
}
