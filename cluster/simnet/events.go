package simnet

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/pce-engine/pce/cluster"
)

// log is what the broker keeps of the events of a run.
type log struct {
	first  int // number of events[0]
	events [][]byte
	times  []time.Duration
}

// trim drops events that are too old.
func (l *log) trim(now time.Duration) {
	old := 0
	for old < len(l.times) && now-l.times[old] >= EventAge {
		old++
	}
	l.first += old
	l.events, l.times = l.events[old:], l.times[old:]
}

// events is a host's view of the events.
type events struct{ host *Host }

func (s events) Publish(run string, event []byte) error {
	if err := fits("event", event); err != nil {
		return err
	}
	event = bytes.Clone(event)
	h, n := s.host, s.host.net
	n.mu.Lock()
	defer n.mu.Unlock()
	if h.dead {
		return unreachable(h, "event", errCrashed)
	}
	n.carry(h, h.id, Broker, requests, "event of "+run, func() {
		l := n.broker.events[run]
		if l == nil {
			l = &log{}
			n.broker.events[run] = l
		}
		l.trim(n.now())
		l.events = append(l.events, event)
		l.times = append(l.times, n.now())
		n.wake()
	})
	return nil
}

// batch is a piece of a log.
type batch struct {
	next   int // number of the event after it
	events [][]byte
}

func (s events) Read(ctx context.Context, run string, handle func(event []byte) bool) error {
	n := s.host.net
	got, err := ask(ctx, s.host, "events of "+run, false, func() (batch, bool) {
		l := n.broker.events[run]
		if l == nil {
			return batch{}, true
		}
		l.trim(n.now())
		return batch{events: slices.Clone(l.events)}, true
	})
	if err != nil {
		return err
	}
	for _, event := range got.events {
		if !handle(bytes.Clone(event)) {
			break
		}
	}
	return nil
}

func (s events) Follow(ctx context.Context, run string, handle func(event []byte) bool) error {
	n := s.host.net
	for next := 0; ; {
		from := next
		got, err := ask(ctx, s.host, "events of "+run, true, func() (batch, bool) {
			l := n.broker.events[run]
			if l == nil {
				return batch{}, false
			}
			l.trim(n.now())
			skip := max(0, from-l.first)
			if skip >= len(l.events) {
				return batch{}, false
			}
			return batch{l.first + len(l.events), slices.Clone(l.events[skip:])}, true
		})
		if err != nil {
			return err
		}
		for _, event := range got.events {
			if !handle(bytes.Clone(event)) {
				return nil
			}
		}
		next = got.next
	}
}

var _ cluster.Events = events{}
