package simnet

import (
	"hash/fnv"
	"math/rand/v2"
	"time"
)

// Broker is the name of the broker in Cut and the like.
const Broker = "broker"

// Faults say how bad the network is. Zeros are a perfect one that takes no time.
// Probabilities are those of one way over one link: what goes from host to host
// through the broker takes two.
type Faults struct {
	// Drop is the probability that a message, a request, a reply or an event is
	// lost.
	Drop float64
	// Duplicate is the probability that a message arrives twice.
	Duplicate float64
	// MinDelay and MaxDelay bound how long a way takes.
	MinDelay, MaxDelay time.Duration
	// Late is the probability that a way takes up to LateBy more. Messages
	// overtake each other; requests, replies, events, and frames unless Overtake
	// says otherwise, wait behind those before them.
	Late   float64
	LateBy time.Duration
	// Break is the probability that the connection between two peers breaks at a
	// frame: this one and all that are under way are lost, later ones flow.
	Break float64
	// Overtake is the probability that a frame does not wait for those before it,
	// as when a transport divides frames among several connections.
	Overtake float64
	// DuplicateFrame is the probability that a frame arrives a second time, which
	// no sound transport does.
	DuplicateFrame float64
}

// SetFaults changes how bad the network is from now on.
func (n *Network) SetFaults(f Faults) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.faults = f
	n.tracef("faults %+v", f)
}

// traffic is what a link carries. Each kind draws random numbers by itself.
type traffic byte

const (
	messages traffic = 'm'
	requests traffic = 'r' // replies and events too
	frames   traffic = 'f'
)

type linkKey struct {
	from, to string
	traffic  traffic
}

// link is one direction between two hosts.
type link struct {
	rng  *rand.Rand
	last time.Duration // when the latest in order arrives
}

func (n *Network) link(from, to string, t traffic) *link {
	key := linkKey{from, to, t}
	l := n.links[key]
	if l == nil {
		name := fnv.New64a()
		name.Write([]byte(from + "\x00" + to + "\x00" + string(rune(t))))
		l = &link{rng: rand.New(rand.NewPCG(n.seed, name.Sum64()))}
		n.links[key] = l
	}
	return l
}

// chance draws whether something of a probability happens.
func (l *link) chance(p float64) bool { return l.rng.Float64() < p }

// delay draws how long a way takes.
func (l *link) delay(f Faults) time.Duration {
	d := f.MinDelay
	if f.MaxDelay > f.MinDelay {
		d += time.Duration(l.rng.Int64N(int64(f.MaxDelay - f.MinDelay)))
	}
	if l.chance(f.Late) && f.LateBy > 0 {
		d += time.Duration(l.rng.Int64N(int64(f.LateBy)))
	}
	return max(0, d)
}

// carry takes something between a host and the broker: arrive runs with the lock
// held, once for each time that it arrives. A crash of the host loses it.
func (n *Network) carry(h *Host, from, to string, t traffic, what string, arrive func()) {
	l := n.link(from, to, t)
	lost, copies := l.chance(n.faults.Drop), 1
	if t == messages && l.chance(n.faults.Duplicate) {
		copies = 2
	}
	if lost || h.dead || !n.broker.running || !n.linked(from, to) {
		if n.trace != nil {
			n.tracef("%s → %s %s lost at once", from, to, what)
		}
		return
	}
	life := n.broker.life
	for range copies {
		at := n.now() + l.delay(n.faults)
		if t != messages {
			at = max(at, l.last)
			l.last = at
		}
		n.at(at, func() {
			ok := !h.dead && n.broker.running && n.broker.life == life && n.linked(from, to)
			if n.trace != nil {
				n.tracef("%s → %s %s %s", from, to, what, map[bool]string{true: "arrives", false: "lost"}[ok])
			}
			if ok {
				arrive()
			}
		})
	}
}

// linked reports whether a direction between two hosts is up.
func (n *Network) linked(from, to string) bool {
	return from == to || !n.isolated[from] && !n.isolated[to] && !n.cuts[[2]string{from, to}]
}

// Cut takes the link between two hosts down, in both directions; what is under
// way is lost.
func (n *Network) Cut(a, b string) {
	n.relink("cut "+a+" "+b, func() { n.cuts[[2]string{a, b}], n.cuts[[2]string{b, a}] = true, true })
}

// CutOneWay takes one direction between two hosts down. Peers need both.
func (n *Network) CutOneWay(from, to string) {
	n.relink("cut one way "+from+" "+to, func() { n.cuts[[2]string{from, to}] = true })
}

// Heal undoes Cut and CutOneWay.
func (n *Network) Heal(a, b string) {
	n.relink("heal "+a+" "+b, func() {
		delete(n.cuts, [2]string{a, b})
		delete(n.cuts, [2]string{b, a})
	})
}

// Isolate takes all links of a host down.
func (n *Network) Isolate(id string) {
	n.relink("isolate "+id, func() { n.isolated[id] = true })
}

// Rejoin undoes Isolate; what Cut took down stays down.
func (n *Network) Rejoin(id string) {
	n.relink("rejoin "+id, func() { delete(n.isolated, id) })
}

// HealAll takes all links up.
func (n *Network) HealAll() {
	n.relink("heal all", func() { clear(n.cuts); clear(n.isolated) })
}

// relink changes which links are up, and cuts the connections of those that are
// not.
func (n *Network) relink(what string, change func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.tracef("%s", what)
	change()
	for _, c := range n.conns {
		if !c.linked() {
			c.cut()
		}
	}
	n.notify()
}
