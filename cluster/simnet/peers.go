package simnet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/pce-engine/pce/cluster"
)

// How connections between peers behave.
const (
	Stall  = 5 * time.Second // Send gives up when a peer was not there for this long
	Window = 1 << 20         // bytes under way to a peer, or not handled yet

	frameOverhead = 64 // bytes that count for a frame in addition to its payload
)

// peers is a host's way to other hosts.
type peers struct {
	host     *Host
	endpoint cluster.Endpoint
	admitted map[string]cluster.Endpoint
	handle   func(from string, f *cluster.Frame)
	closed   bool
	in       map[string]*inbox // by the name of the sender
}

// conn is what one life of a host sends to one of another. Its frames arrive in
// order.
type conn struct {
	from, to *Host
	cuts     int           // how often it was cut: a frame of before does not arrive
	flying   int           // bytes under way
	held     int           // bytes that have arrived and are not handled
	last     time.Duration // when the latest frame arrives
	room     chan struct{} // closed and made anew when bytes get free
}

func (c *conn) linked() bool {
	n := c.from.net
	return n.linked(c.from.id, c.to.id) && n.linked(c.to.id, c.from.id)
}

// cut loses all that is under way.
func (c *conn) cut() {
	c.cuts++
	c.flying = 0
	c.freed()
}

func (c *conn) freed() {
	close(c.room)
	c.room = make(chan struct{})
}

// inbox is what has come from one sender.
type inbox struct {
	queue []arrival
	idle  chan struct{} // nil, or closed when the goroutine that hands the queue over ends
}

type arrival struct {
	conn  *conn
	frame *cluster.Frame
	held  int // bytes of the window
}

func (p *peers) Endpoint() cluster.Endpoint { return p.endpoint }

func (p *peers) Admit(members map[string]cluster.Endpoint) {
	n := p.host.net
	n.mu.Lock()
	defer n.mu.Unlock()
	p.admitted = maps.Clone(members)
	n.notify()
}

func (p *peers) Handle(f func(from string, f *cluster.Frame)) {
	n := p.host.net
	n.mu.Lock()
	defer n.mu.Unlock()
	p.handle = f
}

// Close waits for calls of the handler, which therefore must not call it.
func (p *peers) Close() error {
	n := p.host.net
	n.mu.Lock()
	p.closed = true
	n.notify()
	var busy []chan struct{}
	for _, in := range p.in {
		if in.idle != nil {
			busy = append(busy, in.idle)
		}
	}
	n.mu.Unlock()
	for _, idle := range busy {
		select {
		case <-idle:
		case <-p.host.died:
		}
	}
	return nil
}

// takes reports whether frames of a host are taken now.
func (p *peers) takes(from *Host) bool {
	e, ok := p.admitted[from.id]
	return ok && e == from.peers.endpoint && !p.closed && !p.host.dead
}

var (
	errNotAdmitted = errors.New("it is not admitted")
	errClosed      = errors.New("this side is closed")
	errStalled     = fmt.Errorf("no way to it for %v", Stall)
)

func (p *peers) Send(ctx context.Context, to string, f *cluster.Frame) error {
	if f == nil || len(f.Payload) > cluster.MaxFrameBytes {
		return fmt.Errorf("%w: frame to %s above %d bytes, or none; divide it", cluster.ErrCluster, to, cluster.MaxFrameBytes)
	}
	n := p.host.net
	var stall <-chan time.Time
	for {
		if ctx.Err() != nil {
			return p.unreachable(to, context.Cause(ctx))
		}
		n.mu.Lock()
		c, err := p.connect(to)
		room := (<-chan struct{})(nil)
		if c != nil {
			size := len(f.Payload) + frameOverhead
			if used := c.flying + c.held; used == 0 || used+size <= Window {
				c.send(f, size)
				n.mu.Unlock()
				return nil
			}
			room, stall = c.room, nil
		}
		changed := n.changed
		n.mu.Unlock()
		if err != nil {
			return p.unreachable(to, err)
		}
		if c == nil && stall == nil {
			timer := time.NewTimer(Stall)
			defer timer.Stop()
			stall = timer.C
		}
		select {
		case <-room:
		case <-changed:
		case <-ctx.Done():
		case <-stall:
			return p.unreachable(to, errStalled)
		}
	}
}

func (p *peers) unreachable(to string, cause error) error {
	return fmt.Errorf("%w: %s from %s: %w", cluster.ErrUnreachable, to, p.host.id, cause)
}

// connect returns the connection to a peer, nil if there is none now, and an
// error if there will be none.
func (p *peers) connect(to string) (*conn, error) {
	e, ok := p.admitted[to]
	switch {
	case p.host.dead:
		return nil, errCrashed
	case p.closed:
		return nil, errClosed
	case !ok:
		return nil, errNotAdmitted
	}
	n := p.host.net
	h := n.hosts[to]
	if h == nil || h.peers.endpoint != e || !h.peers.takes(p.host) {
		return nil, nil
	}
	for _, c := range n.conns {
		if c.from == p.host && c.to == h {
			if !c.linked() {
				return nil, nil
			}
			return c, nil
		}
	}
	c := &conn{from: p.host, to: h, room: make(chan struct{})}
	if !c.linked() {
		return nil, nil
	}
	n.conns = append(n.conns, c)
	return c, nil
}

// send lets a frame go; the lock is held.
func (c *conn) send(f *cluster.Frame, size int) {
	n := c.from.net
	l := n.link(c.from.id, c.to.id, frames)
	breaks, doubled, overtakes := l.chance(n.faults.Break), l.chance(n.faults.DuplicateFrame), l.chance(n.faults.Overtake)
	at := n.now() + l.delay(n.faults)
	if breaks {
		n.tracef("%s → %s breaks at %s", c.from.id, c.to.id, (*frameName)(f))
		c.cut()
		return
	}
	mine := *f
	mine.Payload = bytes.Clone(f.Payload)
	c.flying += size
	if !overtakes {
		at = max(at, c.last)
		c.last = at
	}
	c.arrive(&mine, size, at)
	if doubled {
		n.tracef("%s → %s doubles %s", c.from.id, c.to.id, (*frameName)(f))
		again := mine
		again.Payload = bytes.Clone(f.Payload)
		c.arrive(&again, 0, at+l.delay(n.faults))
	}
}

// arrive lets a frame that takes size bytes of the window arrive at a time.
func (c *conn) arrive(f *cluster.Frame, size int, at time.Duration) {
	n, cuts := c.from.net, c.cuts
	n.at(at, func() {
		ok := c.cuts == cuts && c.to.peers.takes(c.from)
		if n.trace != nil {
			n.tracef("%s → %s %s %s", c.from.id, c.to.id, (*frameName)(f), map[bool]string{true: "arrives", false: "lost"}[ok])
		}
		if c.cuts == cuts {
			c.flying -= size
		}
		if !ok {
			c.freed()
			return
		}
		c.held += size
		p := c.to.peers
		in := p.in[c.from.id]
		if in == nil {
			in = &inbox{}
			p.in[c.from.id] = in
		}
		in.queue = append(in.queue, arrival{c, f, size})
		if in.idle == nil {
			in.idle = make(chan struct{})
			go p.hand(in, c.from.id)
		}
	})
}

// hand calls handle until nothing of a sender is left.
func (p *peers) hand(in *inbox, from string) {
	n := p.host.net
	n.mu.Lock()
	defer n.mu.Unlock()
	for len(in.queue) > 0 && !p.host.dead && !p.closed {
		a := in.queue[0]
		in.queue = in.queue[1:]
		if handle := p.handle; handle != nil && p.takes(a.conn.from) {
			n.mu.Unlock()
			handle(from, a.frame)
			spoil(a.frame)
			n.mu.Lock()
		}
		a.conn.held -= a.held
		a.conn.freed()
	}
	close(in.idle)
	in.queue, in.idle = nil, nil
}

// spoilt is what frames read when they have been handled.
var spoilt = bytes.Repeat([]byte{0xA5}, cluster.MaxFrameBytes)

// spoil makes a frame useless to those that keep it after they have returned.
func spoil(f *cluster.Frame) {
	copy(f.Payload, spoilt)
	f.Payload = nil
}

// frameName prints a frame in traces.
type frameName cluster.Frame

func (f *frameName) String() string {
	return fmt.Sprintf("frame kind %d term %v version %v at %d, %d bytes", f.Kind, f.Term, f.Version, f.Offset, len(f.Payload))
}
