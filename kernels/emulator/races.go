package emulator

import "maps"

// clock says of blocks up to which of their times something has seen their writes:
// a vector clock, in which a block's time is the number of its fences and releases.
type clock map[int32]uint32

// join takes what another clock has seen.
func (c *clock) join(o clock) {
	if *c == nil {
		*c = clock{}
	}
	for b, t := range o {
		(*c)[b] = max((*c)[b], t)
	}
}

// word says who touched four bytes of global memory in the launch that runs.
// Blocks count from 1; manyBlocks means more than one.
type word struct {
	launch  uint32
	writer  int32
	reader  int32
	written uint32 // the writer's time
	read    uint32
	wmask   uint8 // bytes
	rmask   uint8
	strong  bool // all writes were atomic, volatile or releases
}

const manyBlocks = -1

// current returns the record of a word for this launch.
func (w *warp) current(a *allocation, i uint64) *word {
	p := &a.words[i]
	if n := w.blk.run.number; p.launch != n {
		*p = word{launch: n}
	}
	return p
}

// after reports whether this block has seen what another did at a time.
func (w *warp) after(block int32, time uint32) bool {
	return block == 0 || block == w.me() || block != manyBlocks && w.blk.seen[block] >= time
}

// me is this block's number, from 1.
func (w *warp) me() int32 { return int32(w.blk.index + 1) }

// masks calls f for each word of size bytes at an offset, with the bytes as bits.
func masks(at, size uint64, f func(i uint64, mask uint8) bool) bool {
	if size < 4 {
		return f(at>>2, uint8((1<<size-1)<<(at&3)))
	}
	for i := range size >> 2 {
		if !f(at>>2+i, 15) {
			return false
		}
	}
	return true
}

// noteRead checks a plain read of global memory against the writes of other blocks.
func (w *warp) noteRead(a *allocation, at, size uint64, lane int) bool {
	return masks(at, size, func(i uint64, mask uint8) bool {
		p := w.current(a, i)
		if p.wmask&mask != 0 && !w.after(p.writer, p.written) && (p.writer != manyBlocks || p.strong) {
			return w.conflict(a, i, lane, "read", "written", p.writer)
		}
		if p.reader == 0 || p.reader == w.me() {
			p.reader, p.read = w.me(), w.blk.time
		} else {
			p.reader = manyBlocks
		}
		p.rmask |= mask
		return true
	})
}

// noteWrite checks a plain store against the reads and writes of other blocks.
func (w *warp) noteWrite(a *allocation, at, size uint64, lane int) bool {
	return masks(at, size, func(i uint64, mask uint8) bool {
		p := w.current(a, i)
		if p.wmask&mask != 0 && !w.after(p.writer, p.written) && (p.writer != manyBlocks || p.strong) {
			return w.conflict(a, i, lane, "written", "written", p.writer)
		}
		// Of several readers nothing is known but that one is another block: a fault
		// only where this block has not waited for another.
		if p.rmask&mask != 0 && !w.after(p.reader, p.read) && (p.reader != manyBlocks || len(w.blk.seen) == 0) {
			return w.conflict(a, i, lane, "written", "read", p.reader)
		}
		if p.writer == 0 || p.writer == w.me() || w.after(p.writer, p.written) {
			p.writer, p.written = w.me(), w.blk.time
		} else {
			p.writer = manyBlocks
		}
		p.wmask |= mask
		p.strong = false
		return true
	})
}

// noteStrong checks an access that may meet others like it, against plain stores.
func (w *warp) noteStrong(a *allocation, at, size uint64, lane int, writes bool) bool {
	return masks(at, size, func(i uint64, mask uint8) bool {
		p := w.current(a, i)
		if p.wmask&mask != 0 && !p.strong && !w.after(p.writer, p.written) && p.writer != manyBlocks {
			return w.conflict(a, i, lane, "updated", "written", p.writer)
		}
		if !writes {
			return true
		}
		if p.rmask&mask != 0 && !w.after(p.reader, p.read) && (p.reader != manyBlocks || len(w.blk.seen) == 0) {
			return w.conflict(a, i, lane, "updated", "read", p.reader)
		}
		if p.writer == 0 {
			p.strong = true
		}
		if p.writer == 0 || p.writer == w.me() {
			p.writer, p.written = w.me(), w.blk.time
		} else {
			p.writer = manyBlocks
		}
		p.wmask |= mask
		return true
	})
}

// conflict fails for two blocks that touch a word without waiting for each other.
func (w *warp) conflict(a *allocation, i uint64, lane int, now, before string, by int32) bool {
	address := a.base + 4*i
	if by == manyBlocks {
		w.fail(lane, "race: bytes at %#x are %s by block %d and were %s by others in this launch", address, now, w.blk.index, before)
	} else {
		w.fail(lane, "race: bytes at %#x are %s by block %d and were %s by block %d in this launch, with nothing to order them",
			address, now, w.blk.index, before, by-1)
	}
	return false
}

// fence makes what the block wrote so far part of its next release.
func (b *block) fence() {
	b.behind = maps.Clone(b.seen)
	b.behind.join(clock{int32(b.index + 1): b.time})
	b.time++
}

// release leaves what the last fence covers at an address; an atomic adds to what
// is there.
func (w *warp) release(address uint64, adds bool) {
	run := w.blk.run
	if run.sync == nil {
		run.sync = map[uint64]clock{}
	}
	c := maps.Clone(w.blk.behind)
	if adds {
		c.join(run.sync[address])
	}
	run.sync[address] = c
}

// acquire lets the block see what was released at an address.
func (w *warp) acquire(address uint64) {
	if c := w.blk.run.sync[address]; c != nil {
		w.blk.seen.join(c)
	}
}
