package cuda

import (
	"math"
	"runtime"
	"slices"

	"github.com/pce-engine/pce/internal/parallel"
)

// staging is pinned memory of the host that copies go through, so that they need not
// wait for what the card is doing. Copies to the card take its sections in turn: while
// one is copied, the host fills the next.
type staging struct {
	sections [4]section
	at       int    // the section that the next copy takes bytes of
	used     int    // bytes of it that copies have
	room     Stream // on which the host waits for a section
	readers  [2]reader
}

// section is a part of the memory of copies to the card.
type section struct {
	host   []byte
	copied Event // after the copies from it
	full   bool  // that event lies on the stream of copies, and has not been waited for
}

// reader is a stream of copies from the card with pinned memory of its own. There are
// two: while one copies, the host takes what the other has brought.
type reader struct {
	queue
	host []byte
}

// Bytes of pinned memory for each section of copies to the card, and for each reader.
const (
	sectionBytes = 4 << 20
	readerBytes  = 1 << 20
)

// mostUnread is how many spans that copies go to are told apart. Beyond, reads wait for all.
const mostUnread = 64

// open allocates the memory and makes the streams and events.
func (s *staging) open(drv Driver) (err error) {
	host, err := drv.AllocHost(len(s.sections)*sectionBytes + len(s.readers)*readerBytes)
	if err != nil {
		return err
	}
	for i := range s.sections {
		part := &s.sections[i]
		part.host, host = host[:sectionBytes:sectionBytes], host[sectionBytes:]
		if part.copied, err = drv.NewEvent(); err != nil {
			return err
		}
	}
	for i := range s.readers {
		r := &s.readers[i]
		r.host, host = host[:readerBytes:readerBytes], host[readerBytes:]
		if r.stream, err = drv.NewStream(); err != nil {
			return err
		}
	}
	s.room, err = drv.NewStream()
	return err
}

// free gives all sections back, whose copies have ended.
func (s *staging) free() {
	s.used = 0
	for i := range s.sections {
		s.sections[i].full = false
	}
}

// stage returns up to n bytes of staging memory that no copy uses.
func (t *Thread) stage(n int) ([]byte, error) {
	s := &t.staging
	if s.used == sectionBytes {
		if err := t.nextSection(); err != nil {
			return nil, err
		}
	}
	n = min(n, sectionBytes-s.used)
	part := s.sections[s.at].host[s.used : s.used+n : s.used+n]
	s.used += (n + 63) &^ 63
	return part, nil
}

// nextSection leaves a section to its copies, and waits for those of the next one.
func (t *Thread) nextSection() error {
	s := &t.staging
	last := &s.sections[s.at]
	if err := t.drv.Record(last.copied, t.copies.stream); err != nil {
		return err
	}
	last.full = true
	s.at, s.used = (s.at+1)%len(s.sections), 0
	next := &s.sections[s.at]
	if !next.full {
		return nil
	}
	if err := t.drv.WaitEvent(s.room, next.copied); err != nil {
		return err
	}
	next.full = false
	return t.drv.Wait(s.room)
}

// copiers is the most threads that fill staging memory.
const copiers = 8

// fill is copy, by several threads where that is faster.
func fill(dst, src []byte) {
	const least = 512 << 10 // which take about as long to copy as another thread takes to wake
	if len(dst) < 4*least {
		copy(dst, src)
		return
	}
	share := parallel.Shares{Threads: min(copiers, runtime.GOMAXPROCS(0)), Least: least, Most: 2 * least, Step: 4096}
	_ = share.Do(len(dst), func(_, at, n int) error { // which has no error
		copy(dst[at:at+n], src[at:at+n])
		return nil
	})
}

// CopyIn copies to memory at an offset, after a launch, by the number that Start
// returned: the last one that touches the memory, 0 for none in flight. Launches that
// start later see the bytes, and so do reads of the memory; src may change at once.
func (t *Thread) CopyIn(to Span, offset int64, src []byte, launch int64) error {
	dst := to.At + Ptr(offset)
	if err := t.after(&t.copies, launch); err != nil {
		return err
	}
	for len(src) > 0 {
		part, err := t.stage(len(src))
		if err != nil {
			return err
		}
		n := len(part)
		fill(part, src)
		t.writes(to)
		if err := t.drv.CopyIn(dst, part, t.copies.stream); err != nil {
			return err
		}
		src, dst = src[n:], dst+Ptr(n)
	}
	return nil
}

// writes notes that a copy to some memory follows.
func (t *Thread) writes(s Span) {
	t.unseen = true
	if slices.Contains(t.unread, s) {
		return
	}
	if t.unread = append(t.unread, s); len(t.unread) > mostUnread {
		t.unread = append(t.unread[:0], Span{0, math.MaxInt64})
	}
}

// afterWrites lets reads of a span come after the copies to it.
func (t *Thread) afterWrites(s Span) error {
	if !slices.ContainsFunc(t.unread, s.meets) {
		return nil
	}
	if err := t.drv.Record(t.written, t.copies.stream); err != nil {
		return err
	}
	t.unread = t.unread[:0]
	for i := range t.staging.readers {
		if err := t.drv.WaitEvent(t.staging.readers[i].stream, t.written); err != nil {
			return err
		}
	}
	return nil
}

// CopyOut copies from memory, after a launch likewise, and waits for it. Other launches
// and copies may be in flight meanwhile.
func (t *Thread) CopyOut(dst []byte, src Ptr, launch int64) error {
	if err := t.afterWrites(Span{src, int64(len(dst))}); err != nil {
		return err
	}
	take := func() error { return nil }
	for i := 0; len(dst) > 0; i++ {
		r := &t.staging.readers[i%2]
		if err := t.after(&r.queue, launch); err != nil {
			return err
		}
		n := min(len(dst), len(r.host))
		if err := t.drv.CopyOut(r.host[:n], src, r.stream); err != nil {
			return err
		}
		if err := take(); err != nil {
			return err
		}
		to := dst[:n]
		take = func() error {
			if err := t.wait(&r.queue); err != nil {
				return err
			}
			copy(to, r.host)
			return nil
		}
		dst, src = dst[n:], src+Ptr(n)
	}
	return take()
}
