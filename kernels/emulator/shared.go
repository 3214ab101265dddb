package emulator

import (
	"encoding/binary"
	"math/bits"

	"github.com/pce-engine/pce/kernels/emulator/lanes"
)

// The shadow of four bytes of shared memory, from the low bits: four bits each for
// the bytes that were written ever, written since the last barrier, read since, and
// promised by a cp.async; eight bits each for the warp that wrote and the one that
// read since the last barrier, from 1; one bit for writes that were all atomic; the
// number of the barrier.
const (
	bytesWritten  = 4
	bytesRead     = 8
	bytesPromised = 12
	atWriter      = 16
	atReader      = 24
	atAtomic      = 32
	atEpoch       = 33
	lasting       = 0xf00f // what a barrier does not end
	several       = 255    // warps
)

// access says how shared memory is touched.
type access uint8

const (
	plainRead access = iota
	plainWrite
	atomicUpdate
	volatileRead
	promise // by cp.async
	arrival // of what was promised
)

// touch checks an access of a lane to shared memory and notes it.
func (w *warp) touch(at, size uint64, lane int, how access) bool {
	b := w.blk
	if n := uint64(len(b.shared)); at >= n || n-at < size {
		w.fail(lane, "%d bytes at %d: out of bounds of %d bytes of shared memory", size, at, n)
		return false
	}
	if at&(size-1) != 0 {
		w.fail(lane, "%d bytes at %d of shared memory: misaligned", size, at)
		return false
	}
	need, words := uint64(15), size>>2
	if size < 4 {
		need, words = (1<<size-1)<<(at&3), 1
	}
	me := uint64(w.index + 1)
	done := uint64(0)
	if how <= plainWrite && size >= 4 {
		done = b.touchFast(at>>2, words, me, how)
	}
	for i := done; i < words; i++ {
		p := &b.shadow[at>>2+i]
		s := *p
		if s>>atEpoch != b.epoch {
			s = s&lasting | b.epoch<<atEpoch
		}
		writer, reader := s>>atWriter&255, s>>atReader&255
		others := writer != 0 && writer != me && s>>bytesWritten&need != 0
		if s>>bytesPromised&need != 0 {
			return w.misuse(at+4*i, lane, "cp.async bytes not waited for")
		}
		if how != plainWrite && how != promise && s&need != need {
			return w.misuse(at+4*i, lane, "not initialised")
		}
		switch how {
		case volatileRead:
			continue
		case plainRead:
			if others && (writer != several || s>>atAtomic&1 != 0) {
				return w.race(at+4*i, lane, "read", "written", writer)
			}
			if reader == 0 {
				reader = me
			} else if reader != me {
				reader = several
			}
			*p = s&^(255<<atReader) | reader<<atReader | need<<bytesRead
			continue
		case atomicUpdate:
			if others && s>>atAtomic&1 == 0 {
				return w.race(at+4*i, lane, "updated", "written", writer)
			}
			if writer == 0 {
				s |= 1 << atAtomic
			}
		default:
			if others && (writer != several || s>>atAtomic&1 != 0) {
				return w.race(at+4*i, lane, "written", "written", writer)
			}
			s &^= 1 << atAtomic
		}
		if reader != 0 && reader != me && s>>bytesRead&need != 0 {
			return w.race(at+4*i, lane, "written", "read", reader)
		}
		if writer == 0 {
			writer = me
		} else if writer != me {
			writer = several
		}
		s = s&^(255<<atWriter) | writer<<atWriter | need<<bytesWritten
		if how == promise {
			s |= need << bytesPromised
		} else {
			s |= need
		}
		*p = s
	}
	return true
}

// touchFast notes an access to whole words that nothing speaks against, as most
// are: words that no warp has touched since the last barrier, or this warp in the
// same way, or other warps reading too. It returns how many words it has done.
func (b *block) touchFast(first, n, me uint64, how access) uint64 {
	words := b.shadow[first : first+n]
	now := b.epoch << atEpoch
	if how == plainRead {
		mine := 15 | 15<<bytesRead | me<<atReader | now
		for i, s := range words {
			switch {
			case s == mine:
			case s>>atEpoch != b.epoch && s&lasting == 15:
				words[i] = mine
			case s|several<<atReader == mine|several<<atReader:
				words[i] = s | several<<atReader
			default:
				return uint64(i)
			}
		}
		return n
	}
	mine := 15 | 15<<bytesWritten | me<<atWriter | now
	for i, s := range words {
		switch {
		case s == mine:
		case s>>atEpoch != b.epoch && s>>bytesPromised&15 == 0:
			words[i] = mine
		default:
			return uint64(i)
		}
	}
	return n
}

// misuse fails for bytes that must not be touched now.
func (w *warp) misuse(at uint64, lane int, what string) bool {
	w.fail(lane, "4 bytes at %d of shared memory: %s", at, what)
	return false
}

// race fails for two warps that touch bytes between two barriers.
func (w *warp) race(at uint64, lane int, now, before string, by uint64) bool {
	if by == several {
		w.fail(lane, "race: bytes at %d of shared memory are %s by warp %d and were %s by others since the last barrier", at, now, w.index, before)
	} else {
		w.fail(lane, "race: bytes at %d of shared memory are %s by warp %d and were %s by warp %d since the last barrier", at, now, w.index, before, by-1)
	}
	return false
}

// sharedAddress is where a lane accesses shared memory. Negative offsets wrap, so
// that what lies outside is out of bounds.
func (w *warp) sharedAddress(o *op, lane int) uint64 {
	return uint64(uint32(uint64(w.r[o.a][lane]) + o.off))
}

// loadShared is ld.shared.
func loadShared(w *warp, o *op, m uint32) signal { return w.loadShared(o, m, plainRead) }

// loadSharedVolatile is ld.volatile.shared, with which warps may wait for others.
func loadSharedVolatile(w *warp, o *op, m uint32) signal {
	if s := w.loadShared(o, m, volatileRead); s != next {
		return s
	}
	return yielded
}

func (w *warp) loadShared(o *op, m uint32, how access) signal {
	at := &w.places
	shape, ok := w.touchAll(o, o.size*uint64(len(o.vec)), m, how, at)
	if !ok {
		return failed
	}
	shared := w.blk.shared
	switch {
	case o.size != 4 || shape == lanes.Astray && m != all:
		for ; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m) & 31
			w.put(o, lane, shared[at[lane]:])
		}
	case shape == lanes.Same:
		w.fillSame(o, shared[at[bits.TrailingZeros32(m)&31]:], m)
	case shape != lanes.Astray:
		for e, slot := range o.vec {
			w.blk.run.kernel.set.Gather(&w.r[slot], &shared[4*e], at, m)
		}
	default:
		for e, slot := range o.vec {
			d := &w.r[slot]
			for lane, a := range at {
				d[lane] = binary.LittleEndian.Uint32(shared[int(a)+4*e:])
			}
		}
	}
	return next
}

// storeShared is st.shared.
func storeShared(w *warp, o *op, m uint32) signal {
	at := &w.places
	if _, ok := w.touchAll(o, o.size*uint64(len(o.vec)), m, plainWrite, at); !ok {
		return failed
	}
	shared := w.blk.shared
	if m != all || o.size != 4 {
		for ; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m) & 31
			w.take(o, lane, shared[at[lane]:])
		}
		return next
	}
	for e, slot := range o.vec {
		d := &w.r[slot]
		for lane, a := range at {
			binary.LittleEndian.PutUint32(shared[int(a)+4*e:], d[lane])
		}
	}
	return next
}

// touchAll checks the accesses of lanes to size bytes each, notes them and says where
// they are, and, if it knows, what the places have in common.
func (w *warp) touchAll(o *op, size uint64, m uint32, how access, at *narrow) (lanes.Shape, bool) {
	b := w.blk
	shape := lanes.Astray
	if n := uint64(len(b.shared)); n >= size {
		shape = b.run.kernel.set.LocateShared(&w.r[o.a], uint32(o.off), uint32(n-size), uint32(size), m, at)
	}
	if shape == lanes.Astray {
		for lane, a := range &w.r[o.a] {
			at[lane] = a + uint32(o.off)
		}
	}
	return shape, w.touchPlaces(shape, size, m, how, at)
}

// touchPlaces checks and notes the accesses of lanes to places of a shape.
func (w *warp) touchPlaces(shape lanes.Shape, size uint64, m uint32, how access, at *narrow) bool {
	b := w.blk
	marks, forbidden := b.epoch<<atEpoch, uint64(15<<bytesPromised)
	switch how {
	case plainRead:
		marks |= 15 << bytesRead
	case plainWrite:
		marks |= 15 | 15<<bytesWritten
	case arrival:
		marks, forbidden = marks|15|15<<bytesWritten, 0
	case promise:
		marks |= 15<<bytesWritten | 15<<bytesPromised
		// Two promises of one place are one too many, so nothing may be noted twice: each
		// lane counts, and its words are noted all at once or not at all.
		if shape != lanes.Astray && size != 8 {
			shape = lanes.Apart
		} else {
			shape = lanes.Astray
		}
	default:
		shape = lanes.Astray
	}
	if size < 4 {
		shape = lanes.Astray
	}
	words := int(size >> 2)
	note := func(words int, m uint32) uint32 {
		return b.run.kernel.set.Note(b.shadow, at, words, m, uint64(w.index+1), marks, forbidden, how == plainRead)
	}
	switch shape {
	case lanes.Same:
		if note(words, m&-m) == 0 {
			return true
		}
	case lanes.Row:
		if note(32*words, 1) == 0 {
			return true
		}
	}
	for m != 0 {
		if shape == lanes.Apart {
			if m = note(words, m); m == 0 {
				break
			}
		}
		lane, how := bits.TrailingZeros32(m)&31, how
		if how == arrival {
			first := at[lane] >> 2
			for i := range words {
				b.shadow[int(first)+i] &^= 15 << bytesPromised
			}
			how = plainWrite
		}
		if !w.touch(uint64(at[lane]), size, lane, how) {
			return false
		}
		m &= m - 1
	}
	return true
}
