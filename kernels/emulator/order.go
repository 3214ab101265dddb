package emulator

import (
	"fmt"

	"github.com/pce-engine/pce/kernels"
)

// moment is a place in the order of the streams' work: the time on a stream's own
// clock, and what comes before it. What the host has waited for comes before all
// that it asks for later.
type moment struct {
	stream int32
	time   uint32
	seen   clock
}

// moment is that of the stream's next work.
func (e *Emulator) moment(s *stream) moment {
	s.seen.join(e.waited)
	s.seen[s.id]++
	m := moment{s.id, s.seen[s.id], clock{}}
	m.seen.join(s.seen)
	return m
}

// use is work that has touched an allocation.
type use struct {
	stream int32
	time   uint32
	what   string
}

// Ways to touch memory, as bits.
const (
	reads  = 1
	writes = 2
)

// touch notes that the work that is done now has touched an allocation, and looks
// for work of other streams that did so with nothing between them, if one of the
// two has written. Memory counts as a whole.
func (e *Emulator) touch(a *allocation, how uint8, what string) error {
	now := use{e.now.stream, e.now.time, what}
	before := func(u use) bool { return u.time <= e.now.seen[u.stream] }
	if !before(a.writer) {
		return raced(a, now, a.writer, "written")
	}
	if how&writes == 0 {
		if a.readers == nil {
			a.readers = map[int32]use{}
		}
		a.readers[now.stream] = now
		return nil
	}
	for _, u := range a.readers {
		if !before(u) {
			return raced(a, now, u, "read")
		}
	}
	a.writer = now
	clear(a.readers)
	return nil
}

// raced is the error of two streams that touch memory with nothing to order them.
func raced(a *allocation, now, other use, how string) error {
	return fmt.Errorf("emulator: race between streams: %s (stream %d) touches %d bytes at %#x, %s by %s (stream %d) with no event or wait between them: %w",
		now.what, now.stream, a.size, a.base, how, other.what, other.stream, kernels.ErrDevice)
}
