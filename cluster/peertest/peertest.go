// Package peertest checks implementations of cluster.Peers.
//
// # Shapes and units
//
// Frames have 0 to cluster.MaxFrameBytes bytes.
//
// # Errors
//
// What is wrong fails the test.
//
// # Goroutines
//
// Run uses as many as it needs, and waits for them.
//
// # Source
//
// The checks are the comments of cluster.Peers, one by one.
package peertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/pce-engine/pce/cluster"
)

// patience is for what must happen; what must not is given less.
const patience = 20 * time.Second

// Open returns peers of one network, one for each id, that have admitted no member.
// Run closes them.
type Open func(t *testing.T, ids ...string) []cluster.Peers

// Run checks all that cluster.Peers promises.
func Run(t *testing.T, open Open) {
	for _, c := range []struct {
		name string
		test func(*testing.T, Open)
	}{
		{"kinds and sizes", kinds},
		{"too long", tooLong},
		{"all to all", allToAll},
		{"one sender waits alone", waitsAlone},
		{"back pressure", backPressure},
		{"context", contextEnds},
		{"strangers", strangers},
		{"admit again", admitAgain},
		{"admit keeps", admitKeeps},
		{"close the sender", closeSender},
		{"close the receiver", closeReceiver},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, open) })
	}
}

// network is open peers and what has come to each.
type network struct {
	t     *testing.T
	peers map[string]cluster.Peers

	mu      sync.Mutex
	news    *sync.Cond
	arrived map[string][]arrival // receiver → in order
	hold    func(to, from string, f *cluster.Frame)
}

type arrival struct {
	from  string
	frame cluster.Frame
}

func start(t *testing.T, open Open, ids ...string) *network {
	n := &network{t: t, peers: map[string]cluster.Peers{}, arrived: map[string][]arrival{}}
	n.news = sync.NewCond(&n.mu)
	for i, p := range open(t, ids...) {
		n.peers[ids[i]] = p
		t.Cleanup(func() { p.Close() })
		if e := p.Endpoint(); e.Transport == "" || e.Address == "" {
			t.Errorf("Endpoint of %s = %+v, want a transport and an address", ids[i], e)
		}
		var busy sync.Map
		p.Handle(func(from string, f *cluster.Frame) {
			if _, again := busy.LoadOrStore(from, true); again {
				t.Errorf("two calls at a time for frames from %s to %s", from, ids[i])
			}
			defer busy.Delete(from)
			n.mu.Lock()
			hold := n.hold
			n.mu.Unlock()
			if hold != nil {
				hold(ids[i], from, f)
			}
			copied := *f
			copied.Payload = bytes.Clone(f.Payload)
			n.mu.Lock()
			defer n.mu.Unlock()
			n.arrived[ids[i]] = append(n.arrived[ids[i]], arrival{from, copied})
			n.news.Broadcast()
		})
	}
	return n
}

// members are the endpoints of ids.
func (n *network) members(ids ...string) map[string]cluster.Endpoint {
	m := map[string]cluster.Endpoint{}
	for _, id := range ids {
		m[id] = n.peers[id].Endpoint()
	}
	return m
}

// admitAll makes everyone a member with everyone.
func (n *network) admitAll() {
	all := map[string]cluster.Endpoint{}
	for id, p := range n.peers {
		all[id] = p.Endpoint()
	}
	for _, p := range n.peers {
		p.Admit(maps.Clone(all))
	}
}

// await waits until count frames have come to a peer, and returns them.
func (n *network) await(to string, count int) []arrival {
	n.t.Helper()
	late := false
	timer := time.AfterFunc(patience, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		late = true
		n.news.Broadcast()
	})
	defer timer.Stop()
	n.mu.Lock()
	defer n.mu.Unlock()
	for len(n.arrived[to]) < count && !late {
		n.news.Wait()
	}
	if len(n.arrived[to]) < count {
		n.t.Fatalf("%d frames came to %s in %v, want %d", len(n.arrived[to]), to, patience, count)
	}
	return n.arrived[to]
}

// send sends a frame, which must work.
func (n *network) send(from, to string, f *cluster.Frame) {
	n.t.Helper()
	err := n.peers[from].Send(n.t.Context(), to, f)
	if err != nil && n.t.Context().Err() == nil { // or else the test is over
		n.t.Errorf("Send from %s to %s: %v", from, to, err)
	}
}

// noise is random bytes, for payloads that begin at different places of it.
var noise = sync.OnceValue(func() []byte {
	b := make([]byte, cluster.MaxFrameBytes+4096+1)
	rng := rand.New(rand.NewPCG(1, 7))
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
})

// numbered is a frame that is known again by its number and contents.
func numbered(i int64, size int) *cluster.Frame {
	return &cluster.Frame{Kind: cluster.FlowFrame, Offset: i, Payload: bytes.Clone(noise()[i%4096:][:size])}
}

// same reports whether two frames are equal.
func same(a, b *cluster.Frame) bool {
	return a.Kind == b.Kind && a.Term == b.Term && a.Version == b.Version && a.Offset == b.Offset &&
		a.Count == b.Count && bytes.Equal(a.Payload, b.Payload)
}

// refused checks the error of a Send that cannot work.
func refused(t *testing.T, what string, err error) {
	t.Helper()
	if !errors.Is(err, cluster.ErrUnreachable) {
		t.Errorf("%s: %v, want ErrUnreachable", what, err)
	}
}

func kinds(t *testing.T, open Open) {
	n := start(t, open, "a", "b")
	n.admitAll()
	var want []cluster.Frame
	for kind := cluster.FlowFrame; kind <= cluster.ErrorFrame; kind++ {
		for _, size := range []int{0, 1, 7, 4096, 16384, cluster.MaxFrameBytes - 1, cluster.MaxFrameBytes} {
			f := numbered(int64(len(want)), size)
			f.Kind = kind
			f.Term = cluster.Term{Fence: math.MaxUint64 - uint64(size), Generation: math.MaxUint32}
			f.Version = cluster.Version{Lineage: math.MaxUint64, Moves: math.MaxInt64}
			f.Count = math.MaxInt64 - int64(size)
			want = append(want, *f)
			scratch := *f
			scratch.Payload = bytes.Clone(f.Payload)
			n.send("a", "b", &scratch)
			for i := range scratch.Payload { // it is ours again
				scratch.Payload[i] = 0xee
			}
		}
	}
	got := n.await("b", len(want))
	seen := map[int64]bool{}
	for _, a := range got {
		i := a.frame.Offset
		if a.from != "a" || i < 0 || i >= int64(len(want)) || seen[i] || !same(&a.frame, &want[i]) {
			t.Fatalf("frame %d from %s of kind %d with %d bytes is another, or came twice", i, a.from, a.frame.Kind, len(a.frame.Payload))
		}
		seen[i] = true
	}
}

func tooLong(t *testing.T, open Open) {
	n := start(t, open, "a", "b")
	n.admitAll()
	if err := n.peers["a"].Send(t.Context(), "b", numbered(0, cluster.MaxFrameBytes+1)); err == nil {
		t.Error("a frame above MaxFrameBytes was taken")
	}
	n.send("a", "b", numbered(1, 8))
	if got := n.await("b", 1); got[0].frame.Offset != 1 {
		t.Errorf("frame %d came, want 1", got[0].frame.Offset)
	}
}

func allToAll(t *testing.T, open Open) {
	const senders, frames = 3, 20 // of each pair
	ids := []string{"a", "b", "c", "d"}
	n := start(t, open, ids...)
	n.admitAll()
	size := func(i int64) int { return int(i*i*7919) % (cluster.MaxFrameBytes + 1) }
	var all sync.WaitGroup
	for _, from := range ids {
		for _, to := range ids {
			for s := range senders {
				if from == to {
					continue
				}
				all.Go(func() {
					for i := range int64(frames) {
						i += int64(s) * frames
						n.send(from, to, numbered(i, size(i)))
					}
				})
			}
		}
	}
	all.Wait()
	for _, to := range ids {
		seen := map[string]bool{}
		for _, a := range n.await(to, 3*senders*frames) {
			key := fmt.Sprint(a.from, a.frame.Offset)
			if seen[key] || !same(&a.frame, numbered(a.frame.Offset, size(a.frame.Offset))) {
				t.Fatalf("frame %d from %s to %s came twice, or changed", a.frame.Offset, a.from, to)
			}
			seen[key] = true
		}
	}
}

// quiet is how long a test watches that nothing happens. It may miss a fault on a
// slow machine, and never sees one that is not there.
const quiet = 150 * time.Millisecond

func silence(t *testing.T, what string, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
		t.Error(what)
	case <-time.After(quiet):
	}
}

// done calls f in a goroutine and closes the channel when it returns. The test
// does not end before; Sends of f must do so with the context of the test.
func done(t *testing.T, f func()) <-chan struct{} {
	c := make(chan struct{})
	t.Cleanup(func() { <-c })
	go func() {
		defer close(c)
		f()
	}()
	return c
}

func soon(t *testing.T, what string, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		t.Fatalf("%s took more than %v", what, patience)
	}
}

// timeout is a context for a Send that ends in one way or another.
func timeout(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}
