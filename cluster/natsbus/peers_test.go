package natsbus

import (
	"encoding/binary"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/cluster/peer/wire"
	"github.com/pce-engine/pce/cluster/peertest"
)

// peersBroker starts a broker on a free port, and returns its address.
func peersBroker(t *testing.T, maxPayload int32) string {
	t.Helper()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true, MaxPayload: maxPayload})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(time.Minute) {
		t.Fatal("the broker does not start")
	}
	return s.ClientURL()
}

func peersConn(t *testing.T, url string) *nats.Conn {
	t.Helper()
	nc, err := nats.Connect(url, nats.ReconnectBufSize(-1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

func openPeers(t *testing.T, url string, ids ...string) []*Peers {
	t.Helper()
	var peers []*Peers
	for _, id := range ids {
		p, err := NewPeers(peersConn(t, url), id, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { p.Close() })
		peers = append(peers, p)
	}
	return peers
}

func admitPeers(peers ...*Peers) {
	members := map[string]cluster.Endpoint{}
	for _, p := range peers {
		members[p.id] = p.Endpoint()
	}
	for _, p := range peers {
		p.Admit(members)
	}
}

func TestPeersConformance(t *testing.T) {
	url := peersBroker(t, 0)
	peertest.Run(t, func(t *testing.T, ids ...string) []cluster.Peers {
		var peers []cluster.Peers
		for _, p := range openPeers(t, url, ids...) {
			peers = append(peers, p)
		}
		return peers
	})
}

// inOrder makes a peer check that frames come in order of their offsets, and
// returns a channel that is closed when so many have come.
func inOrder(t *testing.T, p *Peers, frames int64) <-chan struct{} {
	done := make(chan struct{})
	var next int64
	p.Handle(func(from string, f *cluster.Frame) {
		if f.Offset != next || f.Count != f.Offset*f.Offset || len(f.Payload) != sizeOf(f.Offset) {
			t.Errorf("frame %d of %d bytes came, want frame %d of %d", f.Offset, len(f.Payload), next, sizeOf(next))
		}
		if next++; next == frames {
			close(done)
		}
	})
	return done
}

func sizeOf(i int64) int { return int(i*7919) % 3000 }

func sendInOrder(t *testing.T, p *Peers, to string, frames int64) {
	t.Helper()
	for i := range frames {
		f := &cluster.Frame{Kind: cluster.ParamFrame, Offset: i, Count: i * i, Payload: make([]byte, sizeOf(i))}
		if err := p.Send(t.Context(), to, f); err != nil {
			t.Fatalf("Send of frame %d: %v", i, err)
		}
	}
}

// soon waits for c to be closed.
func soon(t *testing.T, what string, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(2 * time.Minute):
		t.Fatalf("not within two minutes: %s", what)
	}
}

// faulty loses messages, sends some twice and keeps some back for later.
type faulty struct {
	mu    sync.Mutex
	rng   *rand.Rand
	back  [][]byte
	lost  int
	kinds map[uint8]int // lost, of each kind
}

func (l *faulty) over(publish func(string, []byte) error) func(string, []byte) error {
	return func(subject string, b []byte) error {
		l.mu.Lock()
		defer l.mu.Unlock()
		switch x := l.rng.Float64(); {
		case x < 0.10:
			l.lost++
			l.kinds[b[5]]++
			return nil
		case x < 0.15:
			if err := publish(subject, b); err != nil {
				return err
			}
		case x < 0.20:
			l.back = append(l.back, append([]byte(nil), b...))
			return nil
		case x < 0.25 && len(l.back) > 0:
			late := l.back[0]
			l.back = l.back[1:]
			if err := publish(subject, late); err != nil {
				return err
			}
		}
		return publish(subject, b)
	}
}

// TestPeersLoss loses, doubles and reorders frames and answers.
func TestPeersLoss(t *testing.T) {
	const frames = 2000
	peers := openPeers(t, peersBroker(t, 0), "a", "b")
	loss := &faulty{rng: rand.New(rand.NewPCG(3, 4)), kinds: map[uint8]int{}}
	answers := &faulty{rng: rand.New(rand.NewPCG(5, 6)), kinds: loss.kinds}
	peers[0].publish = loss.over(peers[0].publish)
	peers[1].publish = answers.over(peers[1].publish)
	answers.kinds = map[uint8]int{}
	done := inOrder(t, peers[1], frames)
	admitPeers(peers...)
	sendInOrder(t, peers[0], "b", frames)
	soon(t, "all frames", done)
	loss.mu.Lock()
	defer loss.mu.Unlock()
	answers.mu.Lock()
	defer answers.mu.Unlock()
	if loss.kinds[frameParcel] < 100 || answers.lost < 1 {
		t.Errorf("lost %v and %v, too few for a test", loss.kinds, answers.kinds)
	}
}

// TestPeersDamage changes bytes: what is damaged is sent again.
func TestPeersDamage(t *testing.T) {
	const frames = 500
	peers := openPeers(t, peersBroker(t, 0), "a", "b")
	publish, rng := peers[0].publish, rand.New(rand.NewPCG(7, 8))
	peers[0].publish = func(subject string, b []byte) error {
		if rng.Float64() < 0.1 {
			b = append([]byte(nil), b...)
			b[rng.IntN(len(b))] ^= 1 << rng.IntN(8)
			b = b[:len(b)-rng.IntN(2)]
		}
		return publish(subject, b)
	}
	done := inOrder(t, peers[1], frames)
	admitPeers(peers...)
	sendInOrder(t, peers[0], "b", frames)
	soon(t, "all frames", done)
}

// TestPeersSlowReceiver has a handler that waits for much longer than a stall:
// the sender hears that it is there, and never has more than its credit on the way.
func TestPeersSlowReceiver(t *testing.T) {
	t.Parallel()
	const frames = 3 * windowBytes / cluster.MaxFrameBytes
	peers := openPeers(t, peersBroker(t, 0), "a", "b")
	a, b := peers[0], peers[1]
	a.stall = 4 * time.Second // much longer than a busy machine keeps an answer back
	sent := make([]int, frames)
	publish := a.publish
	var mu sync.Mutex
	a.publish = func(subject string, m []byte) error {
		if m[5] == frameParcel {
			mu.Lock()
			sent[binary.LittleEndian.Uint64(m[16:])-1]++
			mu.Unlock()
		}
		return publish(subject, m)
	}
	open, done := make(chan struct{}), make(chan struct{})
	var next int64
	b.Handle(func(_ string, f *cluster.Frame) {
		if f.Offset != next {
			t.Errorf("frame %d came, want %d", f.Offset, next)
		}
		<-open
		if next++; next == frames {
			close(done)
		}
	})
	admitPeers(peers...)
	all := make(chan struct{})
	go func() {
		defer close(all)
		for i := range int64(frames) {
			f := &cluster.Frame{Kind: cluster.FlowFrame, Offset: i, Payload: make([]byte, cluster.MaxFrameBytes)}
			if err := a.Send(t.Context(), "b", f); err != nil {
				t.Errorf("Send of frame %d: %v", i, err)
				return
			}
		}
	}()
	select {
	case <-all:
		t.Error("all frames were sent to a handler that waits")
	case <-time.After(a.stall + a.stall/4):
	}
	mu.Lock()
	for i, n := range sent {
		if credit := i*maxMessage < windowBytes; n > 0 && !credit || n > 5 {
			t.Errorf("frame %d was sent %d times to a handler that waits", i, n)
		}
	}
	mu.Unlock()
	close(open)
	soon(t, "all frames", done)
}

// TestPeersStall sends to a member that does not answer.
func TestPeersStall(t *testing.T) {
	t.Parallel()
	peers := openPeers(t, peersBroker(t, 0), "a", "b")
	a, b := peers[0], peers[1]
	a.stall = 100 * time.Millisecond
	b.Handle(func(string, *cluster.Frame) { t.Error("a frame came from one not admitted") })
	a.Admit(map[string]cluster.Endpoint{"b": b.Endpoint()})
	f := &cluster.Frame{Kind: cluster.FlowFrame, Payload: make([]byte, cluster.MaxFrameBytes)}
	begun := time.Now()
	var err error
	for err == nil && time.Since(begun) < 20*time.Second {
		err = a.Send(t.Context(), "b", f)
	}
	if !errors.Is(err, cluster.ErrUnreachable) {
		t.Errorf("Send to one who is silent: %v, want ErrUnreachable", err)
	}
	if took := time.Since(begun); took < a.stall {
		t.Errorf("given up after %v, want %v", took, a.stall)
	}
}

// TestPeersNewLife replaces a receiver by one of the same id that knows nothing:
// the sender learns that at once, and its next stream works.
func TestPeersNewLife(t *testing.T) {
	url := peersBroker(t, 0)
	peers := openPeers(t, url, "a", "b")
	a, b := peers[0], peers[1]
	done := inOrder(t, b, 3)
	var mute atomic.Bool
	publish := b.publish
	b.publish = func(subject string, m []byte) error {
		if mute.Load() {
			return nil
		}
		return publish(subject, m)
	}
	admitPeers(a, b)
	sendInOrder(t, a, "b", 3)
	soon(t, "frames of the first life", done)
	a.mu.Lock()
	first := a.outboxes["b"]
	a.mu.Unlock()
	for end := time.Now().Add(2 * time.Minute); ; <-time.After(time.Millisecond) {
		first.mu.Lock()
		acked := first.acked
		first.mu.Unlock()
		if acked == 3 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%d frames are acknowledged, want 3", acked)
		}
	}
	mute.Store(true) // it dies without a word
	b.Close()
	b = openPeers(t, url, "b")[0]
	again := inOrder(t, b, 3)
	b.Admit(map[string]cluster.Endpoint{"a": a.Endpoint()})
	if err := a.Send(t.Context(), "b", &cluster.Frame{Kind: cluster.FetchFrame}); err == nil {
		soon(t, "the end of the stream", first.failed.Done())
		if err := a.Send(t.Context(), "b", &cluster.Frame{Kind: cluster.FetchFrame}); !errors.Is(err, cluster.ErrUnreachable) {
			t.Errorf("Send after a lost frame: %v, want ErrUnreachable", err)
		}
	}
	sendInOrder(t, a, "b", 3)
	soon(t, "frames of the second life", again)
}

func TestPeersRefused(t *testing.T) {
	small := peersConn(t, peersBroker(t, cluster.MaxFrameBytes))
	if _, err := NewPeers(small, "a", nil); !errors.Is(err, cluster.ErrCluster) {
		t.Errorf("a broker with small messages: %v, want ErrCluster", err)
	}
	nc := peersConn(t, peersBroker(t, 0))
	for _, id := range []string{"", "a.b", "*", ">", "a b"} {
		if _, err := NewPeers(nc, id, nil); !errors.Is(err, cluster.ErrCluster) {
			t.Errorf("id %q: %v, want ErrCluster", id, err)
		}
	}
	peers := openPeers(t, nc.ConnectedUrl(), "a", "b")
	peers[0].Admit(map[string]cluster.Endpoint{"b": {Transport: Transport, Address: "other"}, "*": {Transport: Transport, Address: "*"}})
	for _, id := range []string{"b", "*"} {
		if err := peers[0].Send(t.Context(), id, &cluster.Frame{Kind: cluster.FetchFrame}); !errors.Is(err, cluster.ErrUnreachable) {
			t.Errorf("Send to %q: %v, want ErrUnreachable", id, err)
		}
	}
}

// FuzzEnvelope delivers any bytes from a member.
func FuzzEnvelope(f *testing.F) {
	f.Add(envelope{kind: frameParcel, epoch: 9, number: 1}.message(), true)
	f.Add(envelope{kind: ackParcel, epoch: 7, number: 1, received: 2}.message(), true)
	f.Add(envelope{kind: resetParcel, epoch: 7, number: 1}.message(), true)
	f.Fuzz(func(t *testing.T, b []byte, seal bool) {
		if seal && len(b) >= envelopeBytes {
			e := envelope{b[5], binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint64(b[16:]), binary.LittleEndian.Uint64(b[24:])}
			e.put(b)
		}
		p := &Peers{id: "b", handle: func(string, *cluster.Frame) {}, publish: func(string, []byte) error { return nil }, log: slog.New(slog.DiscardHandler)}
		p.members = map[string]cluster.Endpoint{"a": {}}
		p.inboxes = map[string]*inbox{"a": {peers: p, from: "a"}}
		o := newOutbox(7, "x", time.Second, p.publish)
		p.outboxes = map[string]*outbox{"a": o}
		var header [wire.HeaderBytes]byte
		for range 3 {
			if err := o.send(t.Context(), &header, nil); err != nil {
				t.Fatal(err)
			}
		}
		p.deliver(&nats.Msg{Subject: dataSubject("b", "a"), Data: b})
		p.running.Wait()
		if e, err := openEnvelope(b); err == nil && e.kind == ackParcel && e.epoch == 7 && max(e.number, e.received) <= 3 && o.acked != e.number {
			t.Errorf("%d frames are acknowledged, and %d were told", o.acked, e.number)
		}
		if n := int(o.number - o.acked); n != len(o.way) || o.acked > 3 {
			t.Errorf("%d frames on the way, %d acknowledged of %d", len(o.way), o.acked, o.number)
		}
	})
}
