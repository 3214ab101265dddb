package simnet

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pce-engine/pce/cluster"
)

// How the broker keeps things, and how long calls wait before they ask again.
const (
	Lease      = 10 * time.Second // of records of the members and lead buckets
	AckWait    = 30 * time.Second // a job goes to another taker when not worked on
	EventAge   = time.Hour        // events that are older are not kept
	MaxPayload = 1 << 20          // bytes of a message, a value, a job or an event

	retryAfter = time.Second     // without a reply
	pollAfter  = 5 * time.Second // of calls that wait for something to come
)

// broker is what all hosts share. Its contents survive StopBroker.
type broker struct {
	running   bool
	life      int
	listeners map[string][]*listener
	buckets   map[string]*bucket
	jobs      []*job // in order of submission
	takes     uint64
	dead      []cluster.DeadLetter
	blobs     map[string][]byte
	events    map[string]*log
	waiting   []*question // in order of arrival
}

func newBroker() broker {
	return broker{
		running:   true,
		listeners: map[string][]*listener{},
		buckets: map[string]*bucket{
			cluster.MembersBucket: {lease: Lease, records: map[string]record{}},
			cluster.LeadBucket:    {lease: Lease, records: map[string]record{}},
			cluster.RunsBucket:    {records: map[string]record{}},
		},
		blobs:  map[string][]byte{},
		events: map[string]*log{},
	}
}

// StopBroker stops the broker: what is under way is lost, what it keeps stays,
// and leases still age.
func (n *Network) StopBroker() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.tracef("broker stops")
	n.broker.running = false
	n.broker.life++
	n.broker.waiting = nil
}

// StartBroker starts a stopped broker.
func (n *Network) StartBroker() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.tracef("broker starts")
	n.broker.running = true
}

// forget drops what listens for a dead host. Its questions stay until they are
// out of date: the broker does not know yet.
func (b *broker) forget(h *Host) {
	for address, all := range b.listeners {
		all = slices.DeleteFunc(all, func(l *listener) bool { return l.host == h })
		if len(all) == 0 {
			delete(b.listeners, address)
		} else {
			b.listeners[address] = all
		}
	}
}

// question is a call that has come to the broker.
type question struct {
	answer func() bool   // false: not yet
	until  time.Duration // when it is out of date, if it has to wait
	waits  bool          // for something to come; else it is answered at once
	ended  bool          // the caller does not wait any more
}

// ask has op answered by the broker, with the lock held, and waits for the reply.
// The request and the reply may be lost, so op may run several times. With waits,
// op may answer later: it runs again when something has come.
func ask[T any](ctx context.Context, h *Host, what string, waits bool, op func() (T, bool)) (answer T, err error) {
	n := h.net
	replies := make(chan T, 1)
	q := &question{waits: waits}
	q.answer = func() bool {
		v, ok := op()
		if ok {
			n.carry(h, Broker, h.id, requests, what, func() {
				select {
				case replies <- v:
				default: // an earlier one is there
				}
			})
		}
		return ok
	}
	defer func() {
		n.mu.Lock()
		q.ended = true
		n.mu.Unlock()
	}()
	patience := retryAfter
	if waits {
		patience = pollAfter
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for attempt := 1; ; attempt++ {
		if ctx.Err() != nil {
			return answer, unreachable(h, what, context.Cause(ctx))
		}
		n.mu.Lock()
		dead := h.dead
		if !dead {
			n.carry(h, h.id, Broker, requests, what, func() { n.receive(q) })
		}
		n.mu.Unlock()
		if dead && attempt > 1 {
			return answer, unreachable(h, what, errCrashed)
		}
		died := h.died
		if dead { // a caller that tries for ever must not stop the time
			died = nil
		}
		select {
		case answer = <-replies:
			return answer, nil
		case <-ctx.Done():
		case <-died:
			return answer, unreachable(h, what, errCrashed)
		case <-timer.C:
			timer.Reset(patience)
		}
	}
}

// receive is where a question comes to the broker.
func (n *Network) receive(q *question) {
	if q.waits && q.ended || q.answer() || !q.waits {
		n.broker.waiting = slices.DeleteFunc(n.broker.waiting, func(w *question) bool { return w == q })
		return
	}
	q.until = n.now() + pollAfter
	if !slices.Contains(n.broker.waiting, q) {
		n.broker.waiting = append(n.broker.waiting, q)
	}
}

// wake looks again at the questions that wait, as something has come.
func (n *Network) wake() {
	now := n.now()
	n.broker.waiting = slices.DeleteFunc(n.broker.waiting, func(q *question) bool {
		return q.ended || q.until < now || q.answer()
	})
}

// errCrashed is the cause in errors of calls of a dead life.
var errCrashed = fmt.Errorf("the host has crashed")

func unreachable(h *Host, what string, cause error) error {
	return fmt.Errorf("%w: broker: %s from %s: %w", cluster.ErrUnreachable, what, h.id, cause)
}
