package emulator

import (
	"encoding/binary"
	"math/bits"
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
// are: words that nobody has touched since the last barrier, or this warp in the
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
	var at narrow
	if !w.touchAll(o, m, how, &at) {
		return failed
	}
	shared := w.blk.shared
	if m != all || o.size != 4 {
		for ; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m) & 31
			w.put(o, lane, shared[at[lane]:])
		}
		return next
	}
	for e, slot := range o.vec {
		d := &w.r[slot]
		for lane, a := range &at {
			d[lane] = binary.LittleEndian.Uint32(shared[int(a)+4*e:])
		}
	}
	return next
}

// storeShared is st.shared.
func storeShared(w *warp, o *op, m uint32) signal {
	var at narrow
	if !w.touchAll(o, m, plainWrite, &at) {
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
		for lane, a := range &at {
			binary.LittleEndian.PutUint32(shared[int(a)+4*e:], d[lane])
		}
	}
	return next
}

// touchAll checks the accesses of lanes, notes them and says where they are.
func (w *warp) touchAll(o *op, m uint32, how access, at *narrow) bool {
	size, off, r := o.size*uint64(len(o.vec)), uint32(o.off), &w.r[o.a]
	for lane := range at {
		at[lane] = r[lane] + off
	}
	if m == all && size >= 4 && how <= plainWrite && w.touchRun(at, size, how) {
		return true
	}
	for ; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m) & 31
		if !w.touch(uint64(at[lane]), size, lane, how) {
			return false
		}
	}
	return true
}

// touchRun notes accesses of all lanes to consecutive places, or to one, that
// nothing speaks against. If it is not sure it reports false.
func (w *warp) touchRun(at *narrow, size uint64, how access) bool {
	b, first, step := w.blk, uint64(at[0]), at[1]-at[0]
	total := size
	switch {
	case uint64(step) == size:
		total = 32 * size
	case step != 0:
		return false
	}
	want := at[0]
	for _, a := range at {
		if a != want {
			return false
		}
		want += step
	}
	n := uint64(len(b.shared))
	return first&(size-1) == 0 && first < n && n-first >= total &&
		b.touchFast(first>>2, total>>2, uint64(w.index+1), how) == total>>2
}
