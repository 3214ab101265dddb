package natsbus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/cluster/peer/wire"
)

// Transport is the name of this transport in a cluster.Endpoint.
const Transport = "nats"

const (
	peerStall  = 15 * time.Second // without an answer, after which a peer is unreachable
	flushTime  = 5 * time.Second
	pastEpochs = 16 // streams of a sender that are known to be over
)

// Peers is a cluster.Peers over subjects of the broker. The broker loses messages
// and cuts off who is slow, so receivers answer each frame once it is handled,
// senders have a bounded number of bytes on the way, and send again what is not
// answered. Frames of one sender arrive in order, and once: to each life of a
// receiver, which may be sent what the one before it had taken and not answered.
//
// A peer that is there, but whose handler waits, holds Send up until its context
// ends. When frames are lost for good after Send has returned, the next Send to
// that member, unless Admit comes first, returns the error.
type Peers struct {
	id      string
	log     *slog.Logger
	stall   time.Duration
	publish func(subject string, message []byte) error
	sub     *nats.Subscription
	handle  func(from string, f *cluster.Frame)
	running sync.WaitGroup // goroutines, and calls of deliver

	mu       sync.Mutex // guards the rest
	closed   bool
	members  map[string]cluster.Endpoint
	outboxes map[string]*outbox
	inboxes  map[string]*inbox // of all senders ever, so that none is heard twice
}

var _ cluster.Peers = (*Peers)(nil)

// NewPeers subscribes to what is sent to id. The connection stays the caller's.
func NewPeers(nc *nats.Conn, id string, log *slog.Logger) (*Peers, error) {
	if limit := nc.MaxPayload(); limit < maxMessage {
		return nil, fmt.Errorf("%w: the broker takes messages of %d bytes, frames need %d: raise its max_payload",
			cluster.ErrCluster, limit, maxMessage)
	}
	if err := checkToken("member", id); err != nil {
		return nil, err
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	p := &Peers{
		id: id, log: log, stall: peerStall, publish: nc.Publish,
		handle:  func(string, *cluster.Frame) {},
		members: map[string]cluster.Endpoint{}, outboxes: map[string]*outbox{}, inboxes: map[string]*inbox{},
	}
	var err error
	if p.sub, err = nc.Subscribe(dataPrefix+memberTokens(id)+".*.*.*", p.deliver); err != nil {
		return nil, fmt.Errorf("%w: peer %s: cannot subscribe: %w", cluster.ErrUnreachable, id, err)
	}
	if err := nc.FlushTimeout(flushTime); err != nil { // from here on nothing is missed
		_ = p.sub.Unsubscribe()
		return nil, fmt.Errorf("%w: peer %s: the broker does not answer: %w", cluster.ErrUnreachable, id, err)
	}
	return p, nil
}

// Endpoint says how others reach this one.
func (p *Peers) Endpoint() cluster.Endpoint {
	return cluster.Endpoint{Transport: Transport, Address: p.id}
}

// Handle sets what is called with each frame; call it before the first Admit.
// Without it frames are dropped.
func (p *Peers) Handle(handle func(from string, f *cluster.Frame)) { p.handle = handle }

// Admit replaces the members. Streams of those that stay are kept, unless they
// have failed. A handler that is running for one that goes is not waited for.
func (p *Peers) Admit(members map[string]cluster.Endpoint) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	known := map[string]cluster.Endpoint{}
	for id, e := range members {
		if e.Transport == Transport && e.Address == id && checkToken("member", id) == nil {
			known[id] = e
		}
	}
	for id := range p.members {
		if _, ok := known[id]; !ok {
			p.drop(id)
		}
	}
	for id, o := range p.outboxes {
		if o.failed.Err() != nil {
			delete(p.outboxes, id)
		}
	}
	p.members = known
	for id := range known {
		if p.inboxes[id] == nil {
			p.inboxes[id] = &inbox{peers: p, from: id, subject: dataSubject(id, p.id)}
		}
	}
}

// drop ends both streams with a member, which is told. Peers.mu is held.
func (p *Peers) drop(id string) {
	if o := p.outboxes[id]; o != nil {
		o.fail(errors.New("no longer an admitted member"))
		delete(p.outboxes, id)
	}
	if in := p.inboxes[id]; in != nil {
		if epoch := in.forget(); epoch != 0 {
			_ = p.publish(in.subject, reset(epoch, 1)) // or else it hears no answers
		}
	}
}

// Send publishes a frame when the receiver has handled enough of those before.
// Sends to one member take turns.
func (p *Peers) Send(ctx context.Context, to string, f *cluster.Frame) error {
	var header [wire.HeaderBytes]byte
	if err := wire.PutHeader(header[:], f); err != nil {
		return fmt.Errorf("peer: to %s: %w", to, err)
	}
	o, err := p.outboxTo(to)
	if err == nil {
		if err = o.send(ctx, &header, f.Payload); err != nil && o.failed.Err() != nil {
			p.mu.Lock()
			if p.outboxes[to] == o {
				delete(p.outboxes, to)
			}
			p.mu.Unlock()
		}
	}
	if err != nil {
		return fmt.Errorf("%w: peer %s: %w", cluster.ErrUnreachable, to, err)
	}
	return nil
}

// outboxTo returns the stream to a member, or a new one.
func (p *Peers) outboxTo(to string) (*outbox, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errors.New("closed")
	}
	if _, ok := p.members[to]; !ok {
		return nil, errors.New("not an admitted member with a nats endpoint")
	}
	o := p.outboxes[to]
	if o == nil {
		o = newOutbox(rand.Uint64()|1, dataSubject(to, p.id), p.stall, p.publish)
		p.outboxes[to] = o
		p.running.Go(o.run)
	}
	return o, nil
}

// deliver takes any message. Calls come one at a time.
func (p *Peers) deliver(m *nats.Msg) {
	from := senderOf(m.Subject)
	p.mu.Lock()
	_, member := p.members[from]
	in, out := p.inboxes[from], p.outboxes[from]
	if p.closed || !member {
		p.mu.Unlock()
		return
	}
	p.running.Add(1)
	p.mu.Unlock()
	defer p.running.Done()
	e, err := openEnvelope(m.Data)
	switch {
	case err != nil:
	case e.kind == frameParcel:
		err = in.take(e, m.Data[envelopeBytes:])
	case e.kind == probeParcel:
		in.answer(e)
	case out != nil:
		out.hear(e)
	}
	if err != nil {
		p.log.Warn("a peer sent what is not a frame", "peer", from, "err", err)
	}
}

// Close ends all streams, tells their senders, and waits until no handler runs;
// do not call it from one. Sends return errors.
func (p *Peers) Close() error {
	p.mu.Lock()
	if !p.closed {
		for id := range p.members {
			p.drop(id)
		}
		p.closed = true
		if err := p.sub.Unsubscribe(); err != nil {
			p.log.Debug("cannot unsubscribe", "err", err)
		}
	}
	p.mu.Unlock()
	p.running.Wait()
	return nil
}

// inbox is a stream of frames from one sender.
type inbox struct {
	peers   *Peers
	from    string
	subject string // of answers

	mu       sync.Mutex // guards the rest
	epoch    uint64     // 0: none
	past     []uint64   // epochs that are over
	received uint64     // in order
	handled  uint64
	queue    []queued // handled+1 to received, less the one in the handler
	bytes    int      // of queue
	working  bool
}

type queued struct {
	frame cluster.Frame
	size  int
}

// forget ends the stream, and returns its epoch.
func (in *inbox) forget() uint64 {
	in.mu.Lock()
	defer in.mu.Unlock()
	epoch := in.epoch
	in.restart(0)
	return epoch
}

func (in *inbox) restart(epoch uint64) {
	if in.epoch != 0 {
		in.past = append(in.past, in.epoch)
		in.past = in.past[max(0, len(in.past)-pastEpochs):]
	}
	in.epoch, in.received, in.handled, in.queue, in.bytes = epoch, 0, 0, nil, 0
}

// take queues a frame if it is the next one, and else answers at once.
func (in *inbox) take(e envelope, b []byte) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if e.epoch != in.epoch {
		if e.number != 1 || e.epoch == 0 || slices.Contains(in.past, e.epoch) {
			in.say(reset(e.epoch, e.number))
			return nil
		}
		in.restart(e.epoch)
	}
	if e.number <= in.received {
		in.acknowledge(ackParcel)
		return nil
	}
	if e.number > in.received+1 || in.bytes > windowBytes || len(in.queue) > windowFrames { // lost ones before it, or one who has no credit
		in.acknowledge(gapParcel)
		return nil
	}
	var f cluster.Frame
	n, err := wire.Header(b, &f)
	if err != nil {
		return err
	}
	f.Payload = b[wire.HeaderBytes:]
	if len(f.Payload) != n {
		return fmt.Errorf("%w: %d bytes of payload, its header says %d", wire.ErrFrame, len(f.Payload), n)
	}
	if err := wire.Check(b[:wire.HeaderBytes], f.Payload); err != nil {
		return err
	}
	in.received++
	in.queue = append(in.queue, queued{f, len(b)})
	in.bytes += len(b)
	if !in.working {
		in.working = true
		in.peers.running.Go(in.work)
	}
	return nil
}

// answer answers a probe.
func (in *inbox) answer(e envelope) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if e.epoch != in.epoch {
		in.say(reset(e.epoch, e.number))
		return
	}
	in.acknowledge(ackParcel)
}

func (in *inbox) acknowledge(kind uint8) {
	in.say(envelope{kind: kind, epoch: in.epoch, number: in.handled, received: in.received}.message())
}

// say publishes an answer. A lost one is asked for again.
func (in *inbox) say(message []byte) { _ = in.peers.publish(in.subject, message) }

// work handles what is queued, and acknowledges when nothing is left, or much
// has been handled.
func (in *inbox) work() {
	in.mu.Lock()
	defer in.mu.Unlock()
	owed := 0 // bytes
	for len(in.queue) > 0 {
		next, epoch := in.queue[0], in.epoch
		in.queue[0] = queued{}
		in.queue = in.queue[1:]
		in.bytes -= next.size
		in.mu.Unlock()
		in.peers.handle(in.from, &next.frame)
		in.mu.Lock()
		if epoch != in.epoch {
			owed = 0
			continue
		}
		in.handled++
		owed += next.size
		if len(in.queue) == 0 || owed >= windowBytes/4 {
			in.acknowledge(ackParcel)
			owed = 0
		}
	}
	in.working = false
}
