package peertest

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pce-engine/pce/cluster"
)

// flood is more than any transport may hold on the way.
const flood = 64 << 20 / cluster.MaxFrameBytes

// blockFrom makes the handler of frames from a sender wait until release is called.
func (n *network) blockFrom(sender string) (release func()) {
	open := make(chan struct{})
	n.mu.Lock()
	defer n.mu.Unlock()
	n.hold = func(_, from string, _ *cluster.Frame) {
		if from == sender {
			<-open
		}
	}
	release = sync.OnceFunc(func() { close(open) })
	n.t.Cleanup(release) // before the peers are closed
	return release
}

func waitsAlone(t *testing.T, open Open) {
	n := start(t, open, "a", "b", "c")
	release := n.blockFrom("a")
	n.admitAll()
	n.send("a", "c", numbered(1, 100))
	n.send("b", "c", numbered(2, 100))
	if got := n.await("c", 1); got[0].from != "b" {
		t.Errorf("a frame from %s came first, whose handler waits", got[0].from)
	}
	release()
	n.await("c", 2)
}

func backPressure(t *testing.T, open Open) {
	n := start(t, open, "a", "b")
	release := n.blockFrom("a")
	n.admitAll()
	sent := done(t, func() {
		for i := int64(0); i < flood && t.Context().Err() == nil; i++ {
			n.send("a", "b", numbered(i, cluster.MaxFrameBytes))
		}
	})
	silence(t, "64 MiB were sent to a handler that waits", sent)
	release()
	soon(t, "sending 64 MiB", sent)
	seen := map[int64]bool{}
	for _, a := range n.await("b", flood) {
		if i := a.frame.Offset; seen[i] || len(a.frame.Payload) != cluster.MaxFrameBytes {
			t.Fatalf("frame %d came twice, or with %d bytes", i, len(a.frame.Payload))
		}
		seen[a.frame.Offset] = true
	}
}

func contextEnds(t *testing.T, open Open) {
	n := start(t, open, "a", "b")
	release := n.blockFrom("a")
	n.admitAll()
	n.send("a", "b", numbered(0, 8)) // which is on its way whenever the others are cancelled
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(quiet, cancel)
	var err error
	soon(t, "a cancelled Send", done(t, func() {
		for i := int64(1); i < flood && err == nil; i++ {
			err = n.peers["a"].Send(ctx, "b", numbered(i, cluster.MaxFrameBytes))
		}
	}))
	refused(t, "cancelled Send", err)
	ended, stop := context.WithCancel(t.Context())
	stop()
	refused(t, "Send with a context that has ended", n.peers["a"].Send(ended, "b", numbered(flood, 8)))
	release()
	n.await("b", 1)
}

func strangers(t *testing.T, open Open) {
	n := start(t, open, "a", "b", "c")
	for _, id := range []string{"a", "b"} {
		n.peers[id].Admit(n.members("a", "b"))
	}
	n.peers["c"].Admit(n.members("a", "b", "c"))
	refused(t, "Send to one not admitted", n.peers["a"].Send(t.Context(), "c", numbered(0, 8)))
	refused(t, "Send to a stranger", n.peers["a"].Send(t.Context(), "stranger", numbered(0, 8)))
	if err := n.peers["c"].Send(timeout(t, 2*quiet), "b", numbered(1, 8)); err != nil {
		refused(t, "Send to one that has not admitted the sender", err)
	}
	n.send("a", "b", numbered(2, 8))
	if got := n.await("b", 1); got[0].from != "a" {
		t.Errorf("a frame came from %s, who is not a member", got[0].from)
	}
	// Once admitted it is heard.
	n.admitAll()
	n.send("c", "a", numbered(3, 8))
	if got := n.await("a", 1); got[0].from != "c" || got[0].frame.Offset != 3 {
		t.Errorf("frame %d from %s came, want 3 from c", got[0].frame.Offset, got[0].from)
	}
}

func admitAgain(t *testing.T, open Open) {
	n := start(t, open, "a", "b")
	n.admitAll()
	n.send("a", "b", numbered(1, 8))
	n.await("b", 1)
	n.peers["b"].Admit(n.members("b"))
	refused(t, "Send to a member that went", n.peers["b"].Send(t.Context(), "a", numbered(0, 8)))
	if err := n.peers["a"].Send(timeout(t, quiet), "b", numbered(2, 8)); err != nil {
		refused(t, "Send to one that dropped the sender", err)
	}
	// Both start afresh; the frame in between may be lost, and none comes twice.
	n.peers["a"].Admit(n.members("a"))
	n.admitAll()
	n.send("a", "b", numbered(3, 8))
	seen := map[int64]int{}
	for count := 2; seen[3] == 0; count++ {
		clear(seen)
		for _, a := range n.await("b", count) {
			seen[a.frame.Offset]++
		}
	}
	if seen[1] != 1 || seen[2] > 1 || seen[3] != 1 {
		t.Errorf("frames 1 to 3 came %d, %d and %d times, want once, or never for 2", seen[1], seen[2], seen[3])
	}
}

// admitKeeps admits all the time while frames go to members that stay.
func admitKeeps(t *testing.T, open Open) {
	const frames = 200
	n := start(t, open, "a", "b", "c")
	n.admitAll()
	var over atomic.Bool
	admitted := done(t, func() {
		for i := 0; !over.Load() && t.Context().Err() == nil; i++ {
			ids := []string{"a", "b", "c"}[:2+i%2]
			n.peers["a"].Admit(n.members(ids...))
			n.peers["b"].Admit(n.members(ids...))
			time.Sleep(time.Millisecond) // as terms do, only faster
		}
	})
	for i := range int64(frames) {
		n.send("a", "b", numbered(i, 1000))
	}
	over.Store(true)
	<-admitted
	if got := n.await("b", frames); len(got) != frames {
		t.Errorf("%d frames came, want %d", len(got), frames)
	}
}

// closeSender closes a peer in the middle of its sends.
func closeSender(t *testing.T, open Open) {
	n := start(t, open, "a", "b")
	n.admitAll()
	var all sync.WaitGroup
	for s := range int64(3) {
		all.Go(func() {
			for i := int64(0); ; i++ {
				if err := n.peers["a"].Send(t.Context(), "b", numbered(s<<32+i, 50_000)); err != nil {
					refused(t, "Send of a closed peer", err)
					return
				}
			}
		})
	}
	n.await("b", 10)
	soon(t, "Close", done(t, func() {
		if err := n.peers["a"].Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}))
	soon(t, "Send while its peer is closed", done(t, all.Wait))
	refused(t, "Send after Close", n.peers["a"].Send(t.Context(), "b", numbered(0, 8)))
	if err := n.peers["a"].Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	seen := map[int64]bool{}
	for _, a := range n.arrived["b"] {
		if i := a.frame.Offset; seen[i] || !same(&a.frame, numbered(i, 50_000)) {
			t.Fatalf("frame %x came twice, or broken", i)
		}
		seen[a.frame.Offset] = true
	}
}

// closeReceiver closes a peer that frames come to: none comes after that.
func closeReceiver(t *testing.T, open Open) {
	n := start(t, open, "a", "b")
	n.admitAll()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	sent := done(t, func() {
		for i := int64(0); ; i++ {
			if err := n.peers["a"].Send(ctx, "b", numbered(i, 50_000)); err != nil {
				refused(t, "Send to a closed peer", err)
				return
			}
		}
	})
	n.await("b", 10)
	var closed atomic.Bool
	n.mu.Lock()
	n.hold = func(string, string, *cluster.Frame) {
		if closed.Load() {
			t.Error("a frame was handled after Close")
		}
	}
	n.mu.Unlock()
	soon(t, "Close", done(t, func() { n.peers["b"].Close(); closed.Store(true) }))
	time.AfterFunc(quiet, cancel)
	soon(t, "Send to a closed peer", sent)
}
