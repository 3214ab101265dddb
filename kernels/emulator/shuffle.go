package emulator

import (
	"math/bits"

	"github.com/pce-engine/pce/kernels/emulator/lanes"
	"github.com/pce-engine/pce/kernels/ptx"
)

// shfl decodes shuffles.
func (d *decoder) shfl() {
	d.op.kind = kindShuffle
	d.op.d, d.op.a = d.reg(0, ptx.R), d.narrow(1)
	d.op.b, d.op.c, d.op.e = d.narrow(2), d.narrow(3), d.narrow(4)
	// source returns the lane to read, for a lane, its operand and the bounds of its
	// segment, and whether that lies in the segment.
	var source func(lane, b, low, high, segment uint32) (uint32, bool)
	switch {
	case d.mod("up"):
		source = func(lane, b, _, high, _ uint32) (uint32, bool) { return lane - b, int32(lane-b) >= int32(high) }
	case d.mod("down"):
		source = func(lane, b, _, high, _ uint32) (uint32, bool) { return lane + b, lane+b <= high }
	case d.mod("bfly"):
		source = func(lane, b, _, high, _ uint32) (uint32, bool) { return lane ^ b, lane^b <= high }
	case d.mod("idx"):
		source = func(_, b, low, high, segment uint32) (uint32, bool) {
			from := low | b&^segment
			return from, from <= high
		}
	default:
		return
	}
	d.op.step = func(w *warp, o *op, m uint32) signal {
		if !w.sameMask(o, m) {
			return failed
		}
		from := w.r[o.a]
		for lane := range uint32(32) {
			if m>>lane&1 == 0 {
				continue
			}
			b, c := w.r[o.b][lane]&31, w.r[o.c][lane]
			segment := c >> 8 & 31
			low, high := lane&segment, lane&segment|c&31&^segment
			j, inside := source(lane, b, low, high, segment)
			if !inside {
				j = lane
			}
			if m>>j&1 == 0 {
				return w.fail(int(lane), "lane %d reads lane %d, which does not run this", lane, j)
			}
			w.r[o.d][lane] = from[j]
		}
		return next
	}
}

// sameMask checks that the lanes which run are those that the mask in o.e names,
// apart from those that have exited.
func (w *warp) sameMask(o *op, m uint32) bool {
	for rest := m; rest != 0; rest &= rest - 1 {
		if mask := w.r[o.e][bits.TrailingZeros32(rest)&31]; mask&w.alive != m {
			return w.whole(o, mask&w.alive, m)
		}
	}
	return true
}

// vote decodes votes.
func (d *decoder) vote() {
	d.op.kind = kindShuffle
	d.op.e = d.narrow(2)
	d.op.a = d.reg(1, ptx.P)
	if d.mod("ballot") {
		d.op.d = d.reg(0, ptx.R)
		d.op.step = func(w *warp, o *op, m uint32) signal {
			if !w.sameMask(o, m) {
				return failed
			}
			w.spread(o.d, w.p[o.a]&m, m)
			return next
		}
		return
	}
	var f func(p, m uint32) bool
	switch {
	case d.mod("any"):
		f = func(p, _ uint32) bool { return p != 0 }
	case d.mod("all"):
		f = func(p, m uint32) bool { return p == m }
	default:
		return
	}
	d.op.d = d.reg(0, ptx.P)
	d.op.step = func(w *warp, o *op, m uint32) signal {
		if !w.sameMask(o, m) {
			return failed
		}
		old := w.p[o.d] &^ m
		if f(w.p[o.a]&m, m) {
			old |= m
		}
		w.p[o.d] = old
		return next
	}
}

// spread writes a value to the lanes of a mask.
func (w *warp) spread(slot int32, v, m uint32) {
	w.blk.run.kernel.set.Spread(&w.r[slot], v, m)
}

// redux decodes reductions over a warp.
func (d *decoder) redux() {
	d.op.kind = kindShuffle
	d.op.d, d.op.a, d.op.e = d.reg(0, ptx.R), d.narrow(1), d.narrow(2)
	f := lanes.Reduction(d.in.Mods, d.typ(-1))
	if f == nil {
		return
	}
	d.op.step = func(w *warp, o *op, m uint32) signal {
		if !w.sameMask(o, m) {
			return failed
		}
		first := bits.TrailingZeros32(m)
		v := uint64(w.r[o.a][first])
		for i := first + 1; i < 32; i++ {
			if m>>i&1 != 0 {
				v = f(v, uint64(w.r[o.a][i]))
			}
		}
		w.spread(o.d, uint32(v), m)
		return next
	}
}
