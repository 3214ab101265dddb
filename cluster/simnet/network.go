package simnet

import (
	"container/heap"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/pce-engine/pce/cluster"
)

// Network is a broker, hosts, and the links between them.
type Network struct {
	mu     sync.Mutex // guards everything below, also of hosts; never held over a wait
	seed   uint64
	faults Faults
	trace  func(event string)

	start    time.Time
	ways     agenda
	sequence uint64
	timer    *time.Timer   // of the first of ways
	next     time.Duration // when it fires; below 0: never

	hosts    map[string]*Host // the newest life of each
	lives    int
	links    map[linkKey]*link
	cuts     map[[2]string]bool // from, to
	isolated map[string]bool
	conns    []*conn
	changed  chan struct{} // closed and made anew when links, lives or admissions change
	broker   broker
}

// New makes a network with a running broker and no hosts.
func New(seed uint64, f Faults) *Network {
	return &Network{
		seed: seed, faults: f,
		start:    time.Now(),
		next:     -1,
		hosts:    map[string]*Host{},
		links:    map[linkKey]*link{},
		cuts:     map[[2]string]bool{},
		isolated: map[string]bool{},
		changed:  make(chan struct{}),
		broker:   newBroker(),
	}
}

// SetTrace has f called with a line for all that happens. It must not call the
// network.
func (n *Network) SetTrace(f func(event string)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.trace = f
}

// tracef is for the holder of the lock.
func (n *Network) tracef(format string, args ...any) {
	if n.trace != nil {
		n.trace(fmt.Sprintf("%12v ", n.now()) + fmt.Sprintf(format, args...))
	}
}

// Host is one life of a process on a machine of its own.
type Host struct {
	net   *Network
	id    string
	life  int
	dead  bool
	died  chan struct{}
	peers *peers
}

// Host returns the living host of an id; if there is none, a new life of it.
func (n *Network) Host(id string) *Host {
	n.mu.Lock()
	defer n.mu.Unlock()
	if h := n.hosts[id]; h != nil && !h.dead {
		return h
	}
	n.lives++
	h := &Host{net: n, id: id, life: n.lives, died: make(chan struct{})}
	address := fmt.Sprintf("%s/%d", id, h.life)
	print := sha256.Sum256([]byte(address))
	h.peers = &peers{
		host:     h,
		endpoint: cluster.Endpoint{Transport: "memory", Address: address, Fingerprint: hex.EncodeToString(print[:])},
		in:       map[string]*inbox{},
	}
	n.hosts[id] = h
	n.tracef("%s starts", address)
	return h
}

// ID is the name of the host on the network.
func (h *Host) ID() string { return h.id }

// Bus is the host's way to the broker.
func (h *Host) Bus() cluster.Bus { return bus{h} }

// Peers is the host's way to other hosts, the same in each call.
func (h *Host) Peers() cluster.Peers { return h.peers }

// Crashed is closed when this life of the host ends.
func (h *Host) Crashed() <-chan struct{} { return h.died }

// Crash ends the life of a host as a power cut does: calls that wait fail, what
// is under way from or to it is lost, and its Bus and Peers are dead for ever.
// What the broker already has of it still arrives.
func (n *Network) Crash(id string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	h := n.hosts[id]
	if h == nil || h.dead {
		return
	}
	n.tracef("%s crashes", h.peers.endpoint.Address)
	h.dead = true
	close(h.died)
	n.broker.forget(h)
	kept := n.conns[:0]
	for _, c := range n.conns {
		if c.from == h || c.to == h {
			c.cut()
		} else {
			kept = append(kept, c)
		}
	}
	clear(n.conns[len(kept):])
	n.conns = kept
	n.notify()
}

// notify wakes those that wait for a change of links, lives or admissions.
func (n *Network) notify() {
	close(n.changed)
	n.changed = make(chan struct{})
}

// now is the time since the network was made.
func (n *Network) now() time.Duration { return time.Since(n.start) }

// way is something that happens at a time. Equal times go in order.
type way struct {
	at       time.Duration
	sequence uint64
	arrive   func() // with the lock held
}

// at has arrive called at a time, with the lock held.
func (n *Network) at(t time.Duration, arrive func()) {
	n.sequence++
	heap.Push(&n.ways, way{t, n.sequence, arrive})
	n.arm()
}

// arm sets the timer to the first way.
func (n *Network) arm() {
	if len(n.ways) == 0 {
		n.next = -1
		return
	}
	first := n.ways[0].at
	if n.next >= 0 && n.next <= first {
		return
	}
	n.next = first
	wait := max(0, first-n.now())
	if n.timer == nil {
		n.timer = time.AfterFunc(wait, n.fire)
	} else {
		n.timer.Reset(wait)
	}
}

// fire lets everything arrive that is due.
func (n *Network) fire() {
	growStack()
	n.mu.Lock()
	defer n.mu.Unlock()
	for now := n.now(); len(n.ways) > 0 && n.ways[0].at <= now; {
		heap.Pop(&n.ways).(way).arrive()
	}
	n.next = -1
	n.arm()
}

// growStack makes room on the stack of a new goroutine while it is empty. Handlers
// decode JSON, deep in calls, where moving a stack cost as much as decoding.
//
//go:noinline
func growStack() {
	var room [8 << 10]byte
	runtime.KeepAlive(&room)
}

// agenda is a heap of ways, the next one first.
type agenda []way

func (a agenda) Len() int { return len(a) }
func (a agenda) Less(i, j int) bool {
	return a[i].at < a[j].at || a[i].at == a[j].at && a[i].sequence < a[j].sequence
}
func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(w any)   { *a = append(*a, w.(way)) }
func (a *agenda) Pop() any {
	last := len(*a) - 1
	w := (*a)[last]
	(*a)[last] = way{}
	*a = (*a)[:last]
	return w
}
