package simnet

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/pce-engine/pce/cluster"
)

// bus is a host's way to the broker.
type bus struct{ host *Host }

func (b bus) MaxPayload() int        { return MaxPayload }
func (b bus) Jobs() cluster.Queue    { return queue(b) }
func (b bus) Blobs() cluster.Blobs   { return blobs(b) }
func (b bus) Events() cluster.Events { return events(b) }
func (b bus) Bucket(name string) cluster.Bucket {
	return store{b.host, name}
}

func (b bus) Send(to string, message []byte) error {
	if err := fits("message", message); err != nil {
		return err
	}
	h, n := b.host, b.host.net
	message = bytes.Clone(message)
	n.mu.Lock()
	defer n.mu.Unlock()
	if h.dead {
		return unreachable(h, "message", errCrashed)
	}
	n.carry(h, h.id, Broker, messages, to, func() {
		for _, l := range n.broker.listeners[to] {
			n.carry(l.host, Broker, l.host.id, messages, to, func() { l.deliver(message) })
		}
	})
	return nil
}

// listener calls handle with the messages to an address.
type listener struct {
	host    *Host
	handle  func(message []byte)
	queue   [][]byte
	busy    bool // a goroutine hands the queue over
	stopped bool
}

func (b bus) Listen(address string, handle func(message []byte)) (stop func(), err error) {
	h, n := b.host, b.host.net
	l := &listener{host: h, handle: handle}
	n.mu.Lock()
	defer n.mu.Unlock()
	if h.dead {
		return nil, unreachable(h, "listen", errCrashed)
	}
	n.broker.listeners[address] = append(n.broker.listeners[address], l)
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		l.stopped = true
		n.broker.listeners[address] = slices.DeleteFunc(n.broker.listeners[address], func(o *listener) bool { return o == l })
	}, nil
}

// deliver queues a message that has arrived; the lock is held.
func (l *listener) deliver(message []byte) {
	l.queue = append(l.queue, bytes.Clone(message))
	if !l.busy {
		l.busy = true
		go l.hand()
	}
}

// hand calls handle until nothing is left.
func (l *listener) hand() {
	growStack()
	n := l.host.net
	for {
		n.mu.Lock()
		if len(l.queue) == 0 || l.stopped || l.host.dead {
			l.queue, l.busy = nil, false
			n.mu.Unlock()
			return
		}
		message := l.queue[0]
		l.queue = l.queue[1:]
		n.mu.Unlock()
		l.handle(message)
	}
}

// fits reports contents that are too large for the broker.
func fits(what string, content []byte) error {
	if len(content) > MaxPayload {
		return fmt.Errorf("%w: %s of %d bytes, at most %d; divide it", cluster.ErrCluster, what, len(content), MaxPayload)
	}
	return nil
}
