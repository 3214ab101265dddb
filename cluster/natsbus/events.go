package natsbus

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nuid"

	"github.com/pce-engine/pce/cluster"
)

// Bounds of the events that wait to be stored.
const (
	maxWaitingEvents = 4096
	maxWaitingBytes  = 16 << 20
)

// events is a cluster.Events.
type events struct{ bus *Bus }

// Events keeps what runs report for seven days, 256 MiB at most. What is
// published waits in memory, in order, while there is no connection; when there
// is no more room for it Publish fails, and matches cluster.ErrUnreachable.
func (b *Bus) Events() cluster.Events { return &events{b} }

func (e *events) Publish(run string, event []byte) error {
	if err := checkToken("run", run); err != nil {
		return err
	}
	msg := &nats.Msg{Subject: ownedSubject(eventPrefix, run), Data: append([]byte(nil), event...), Header: nats.Header{idHeader: {nuid.Next()}}}
	if err := e.bus.checkSize(event, msg.Header); err != nil {
		return fmt.Errorf("event of run %s: %w", run, err)
	}
	return e.bus.events.add(msg)
}

// eventQueue holds what waits to be stored. One goroutine stores it in order.
type eventQueue struct {
	bus     *Bus
	mu      sync.Mutex
	waiting []*nats.Msg
	bytes   int
	closed  bool
	more    chan struct{} // has room for one
	empty   chan struct{} // closed when nothing waits, once closed is set
	stop    context.CancelFunc
	done    chan struct{}
}

func newEventQueue(b *Bus) *eventQueue {
	ctx, stop := context.WithCancel(context.Background())
	q := &eventQueue{bus: b, more: make(chan struct{}, 1), empty: make(chan struct{}), stop: stop, done: make(chan struct{})}
	go q.store(ctx)
	return q
}

func (q *eventQueue) add(msg *nats.Msg) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed:
		return fmt.Errorf("%w: event: %w", cluster.ErrUnreachable, errClosed)
	case len(q.waiting) >= maxWaitingEvents || q.bytes+len(msg.Data) > maxWaitingBytes:
		return fmt.Errorf("%w: event: %d wait for the broker already", cluster.ErrUnreachable, len(q.waiting))
	}
	q.waiting = append(q.waiting, msg)
	q.bytes += len(msg.Data)
	q.wake()
	return nil
}

func (q *eventQueue) wake() {
	select {
	case q.more <- struct{}{}:
	default:
	}
}

// first returns the event to store next, nil if there is none.
func (q *eventQueue) first() (m *nats.Msg, closed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		return nil, q.closed
	}
	return q.waiting[0], q.closed
}

func (q *eventQueue) drop() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.bytes -= len(q.waiting[0].Data)
	q.waiting[0] = nil
	q.waiting = q.waiting[1:]
}

func (q *eventQueue) store(ctx context.Context) {
	defer close(q.done)
	for {
		m, closed := q.first()
		switch {
		case m == nil && closed:
			close(q.empty)
			return
		case m == nil:
			select {
			case <-q.more:
			case <-ctx.Done():
				return
			}
			continue
		}
		_, _, err := q.bus.publish(ctx, m, quick)
		if ctx.Err() != nil { // the bus is being closed
			return
		}
		if errors.Is(err, ErrStorage) { // it waits until the broker stores again
			continue
		}
		if err != nil {
			q.bus.log.Warn("an event was not stored", "subject", m.Subject, "err", err)
		}
		q.drop()
	}
}

// close stores what waits, for some time.
func (q *eventQueue) close(timeout time.Duration) error {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.wake()
	t := time.NewTimer(timeout)
	defer t.Stop()
	select {
	case <-q.empty:
	case <-q.done:
	case <-t.C:
	}
	q.stop()
	<-q.done
	q.mu.Lock()
	defer q.mu.Unlock()
	if n := len(q.waiting); n > 0 {
		return fmt.Errorf("%w: %d events were not stored", cluster.ErrUnreachable, n)
	}
	return nil
}

// Read takes the events up to the newest one that is stored when it begins.
func (e *events) Read(ctx context.Context, run string, handle func(event []byte) bool) error {
	if err := checkToken("run", run); err != nil {
		return err
	}
	newest, err := e.bus.get(ctx, eventsStream, query{Last: ownedSubject(eventPrefix, run)})
	if isNoRecord(err) {
		return nil
	}
	if err == nil {
		_, err = e.bus.walk(ctx, eventsStream, ownedSubject(eventPrefix, run), 0, func(m stored) (bool, error) {
			return m.Sequence <= newest.Sequence && handle(m.Data) && m.Sequence < newest.Sequence, nil
		})
	}
	if err != nil {
		return fmt.Errorf("events of run %s: %w", run, err)
	}
	return nil
}

// Follow returns nil when handle returns false, or ctx ends while no event is
// missing.
func (e *events) Follow(ctx context.Context, run string, handle func(event []byte) bool) error {
	if err := checkToken("run", run); err != nil {
		return err
	}
	b := e.bus
	// The server tells of each event that it has stored. What is told while
	// there is no connection is found by asking again.
	told := make(chan *nats.Msg, 1)
	sub, err := b.nc.Subscribe(ownedSubject(toldPrefix, run), func(*nats.Msg) {
		select {
		case told <- nil:
		default:
		}
	})
	if err != nil {
		return fmt.Errorf("%w: events of run %s: %v", cluster.ErrUnreachable, run, err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	again := time.NewTicker(time.Second)
	defer again.Stop()
	from, ended := uint64(0), false
	for {
		from, err = b.walk(ctx, eventsStream, ownedSubject(eventPrefix, run), from, func(m stored) (bool, error) {
			ended = !handle(m.Data)
			return !ended && ctx.Err() == nil, nil
		})
		switch {
		case ended:
			return nil
		case err != nil:
			return fmt.Errorf("events of run %s: %w", run, err)
		case ctx.Err() != nil:
			return nil
		}
		select {
		case <-told:
		case <-again.C:
		case <-ctx.Done():
			return nil
		}
	}
}
