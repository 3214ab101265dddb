package cuda

import (
	"math"
	"slices"
)

// staging is pinned memory of the host that copies go through, so that they need not
// wait for what the card is doing.
type staging struct {
	host    []byte // of copies to the card
	used    int
	readers [2]reader
}

// reader is a stream of copies from the card with pinned memory of its own. There are
// two: while one copies, the host takes what the other has brought.
type reader struct {
	queue
	host []byte
}

// Bytes of pinned memory for the copies to the card, and for those of a reader.
const (
	stagingBytes = 8 << 20
	readerBytes  = 1 << 20
)

// mostUnread is how many spans that copies go to are told apart. Beyond, reads wait for all.
const mostUnread = 64

// open allocates the memory and makes the streams of readers.
func (s *staging) open(drv Driver) error {
	host, err := drv.AllocHost(stagingBytes + len(s.readers)*readerBytes)
	if err != nil {
		return err
	}
	s.host = host[:stagingBytes]
	for i := range s.readers {
		r := &s.readers[i]
		r.host = host[stagingBytes+i*readerBytes:][:readerBytes]
		if r.stream, err = drv.NewStream(); err != nil {
			return err
		}
	}
	return nil
}

// stage returns up to n bytes of staging memory that no copy uses.
func (t *Thread) stage(n int) ([]byte, error) {
	s := &t.staging
	n = min(n, len(s.host))
	if s.used+n > len(s.host) {
		if err := t.arrive(); err != nil {
			return nil, err
		}
	}
	part := s.host[s.used : s.used+n : s.used+n]
	s.used += (n + 63) &^ 63
	return part, nil
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
		n := copy(part, src)
		t.writes(to) // now: stage may have waited for the copies before
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
