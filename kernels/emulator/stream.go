package emulator

import (
	"math/rand/v2"
	"time"

	"github.com/pce-engine/pce/kernels/cuda"
)

// stream is a queue of work, which is done as late as a card may do it: when
// the host waits for it. So memory of the host that changes too early, or is read
// too early, shows.
type stream struct {
	id      int32
	queue   []task
	seen    clock // what comes before the stream's next work
	capture *capture
	after   []int // nodes that its next node comes after
}

// task is what a queue holds: work, a wait for a mark, or a mark.
type task struct {
	work  work
	is    moment
	wait  *mark
	marks *mark
}

// mark is a point of a stream.
type mark struct {
	stream *stream
	seen   clock
	passed bool
	at     time.Time
}

// event is the last mark or the last place in a capture that it was recorded at.
type event struct {
	mark    *mark // nil: none
	capture *capture
	after   []int
}

// stream finds a stream for a call.
func (e *Emulator) stream(call string, s cuda.Stream) (*stream, error) {
	st, ok := e.streams[s]
	if !ok {
		return nil, refused("%s on stream %d, which does not exist", call, s)
	}
	return st, nil
}

// do puts work on a stream, or records it.
func (e *Emulator) do(s *stream, w work) {
	if s.capture == nil {
		e.push(s, task{work: w, is: e.moment(s)})
		return
	}
	g := &s.capture.graph
	g.nodes = append(g.nodes, node{w, s.after})
	s.after = []int{len(g.nodes) - 1}
}

// push puts a task on a queue. With a seed some stream may do some of its work now;
// what goes wrong there is kept for the next call that waits.
func (e *Emulator) push(s *stream, t task) {
	s.queue = append(s.queue, t)
	if e.o.Seed == 0 || e.late != nil {
		return
	}
	if e.chance == nil {
		e.chance = rand.New(rand.NewPCG(e.o.Seed, 0))
	}
	some := e.queues[e.chance.IntN(len(e.queues))]
	for i := e.chance.IntN(3); i > 0 && e.late == nil; i-- {
		e.late = e.advance(some)
	}
}

// advance does the first task of a queue, if there is one.
func (e *Emulator) advance(s *stream) error {
	if len(s.queue) == 0 {
		return nil
	}
	t := s.queue[0]
	if t.wait != nil {
		if err := e.reach(t.wait); err != nil {
			return err
		}
	}
	s.queue = s.queue[1:]
	if t.work != nil {
		e.now = t.is
		if err := t.work(false); err != nil {
			e.drop()
			return err
		}
	}
	if t.marks != nil {
		t.marks.passed, t.marks.at = true, time.Now()
	}
	return nil
}

// reach does work up to a mark.
func (e *Emulator) reach(m *mark) error {
	for !m.passed {
		if err := e.advance(m.stream); err != nil {
			return err
		}
	}
	return nil
}

// drop forgets the work of all streams, after a fault.
func (e *Emulator) drop() {
	for _, s := range e.queues {
		for _, t := range s.queue {
			if t.marks != nil {
				t.marks.passed, t.marks.at = true, time.Now()
			}
		}
		s.queue = nil
	}
}

// NewStream makes a stream.
func (e *Emulator) NewStream() (cuda.Stream, error) {
	h := cuda.Stream(e.handle())
	s := &stream{id: int32(h), seen: clock{}}
	e.streams[h], e.queues = s, append(e.queues, s)
	return h, nil
}

// Wait does all work of a stream, and what that waits for. After a fault the work
// of all streams is gone.
func (e *Emulator) Wait(h cuda.Stream) error {
	s, err := e.stream("Wait", h)
	if err != nil {
		return err
	}
	if s.capture != nil {
		return refused("Wait for stream %d, which is being captured", h)
	}
	for len(s.queue) > 0 && e.late == nil {
		e.late = e.advance(s)
	}
	e.waited.join(s.seen)
	if err, e.late = e.late, nil; err != nil {
		e.drop()
	}
	return err
}

// NewEvent makes an event that has not happened.
func (e *Emulator) NewEvent() (cuda.Event, error) {
	h := cuda.Event(e.handle())
	e.events[h] = &event{}
	return h, nil
}

// Record makes the event mean the stream's work so far.
func (e *Emulator) Record(h cuda.Event, on cuda.Stream) error {
	s, err := e.stream("Record", on)
	if err != nil {
		return err
	}
	ev, ok := e.events[h]
	if !ok {
		return refused("Record of event %d, which does not exist", h)
	}
	if c := s.capture; c != nil {
		*ev = event{capture: c, after: s.after}
		c.events = append(c.events, ev)
		return nil
	}
	m := &mark{stream: s, seen: clock{}}
	m.seen.join(s.seen)
	*ev = event{mark: m}
	e.push(s, task{marks: m})
	return nil
}

// WaitEvent lets later work of the stream come after what the event means now.
// If that lies in a stream that is captured, this one is captured too.
func (e *Emulator) WaitEvent(on cuda.Stream, h cuda.Event) error {
	s, err := e.stream("WaitEvent", on)
	if err != nil {
		return err
	}
	ev, ok := e.events[h]
	switch {
	case !ok:
		return refused("WaitEvent of event %d, which does not exist", h)
	case ev.capture == nil && s.capture != nil:
		return refused("WaitEvent: stream %d is captured, event %d was recorded outside", on, h)
	case ev.capture == nil && ev.mark == nil:
		return nil
	case ev.capture == nil:
		s.seen.join(ev.mark.seen)
		e.push(s, task{wait: ev.mark})
		return nil
	case s.capture == nil:
		s.capture, s.after = ev.capture, nil
		s.capture.streams = append(s.capture.streams, s)
	case s.capture != ev.capture:
		return refused("WaitEvent: stream %d and event %d belong to different captures", on, h)
	}
	s.after = append(s.after[:len(s.after):len(s.after)], ev.after...)
	return nil
}

// Elapsed is the time between two events.
func (e *Emulator) Elapsed(from, to cuda.Event) (float64, error) {
	a, b := e.events[from], e.events[to]
	if a == nil || b == nil || a.mark == nil || b.mark == nil || !a.mark.passed || !b.mark.passed {
		return 0, refused("Elapsed from event %d to %d, which have not both happened", from, to)
	}
	return b.mark.at.Sub(a.mark.at).Seconds(), nil
}
