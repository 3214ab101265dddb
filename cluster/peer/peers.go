package peer

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/cluster/peer/wire"
)

var (
	errClosed  = errors.New("closed")
	errMember  = errors.New("not an admitted member with a tcp endpoint")
	errDropped = errors.New("no longer an admitted member")
)

// Peers is a cluster.Peers over TCP and TLS 1.3, and Unix sockets.
type Peers struct {
	id       string
	endpoint cluster.Endpoint
	cert     tls.Certificate
	stall    time.Duration
	log      *slog.Logger
	listener net.Listener
	local    *net.UnixListener // nil: none
	handle   func(from string, f *cluster.Frame)

	closing context.Context // ends with Close
	close   context.CancelFunc
	running sync.WaitGroup // goroutines

	mu       sync.Mutex // guards the rest
	routes   map[string]*route
	arrivals map[string]*arrival // newest of each sender
}

var _ cluster.Peers = (*Peers)(nil)

// Listen makes a key and starts to listen. No frame is taken or sent before Admit.
func Listen(o Options) (*Peers, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	cert, fingerprint, err := newCertificate(o.ID)
	if err != nil {
		return nil, fmt.Errorf("%w: peer: making a key: %w", cluster.ErrCluster, err)
	}
	config := net.ListenConfig{KeepAliveConfig: keepAlive}
	listener, err := config.Listen(context.Background(), "tcp", o.Address)
	if err != nil {
		return nil, fmt.Errorf("%w: peer: cannot listen on %q: %w", cluster.ErrCluster, o.Address, err)
	}
	address, err := o.advertised(listener.Addr().(*net.TCPAddr))
	if err != nil {
		listener.Close()
		return nil, err
	}
	p := &Peers{
		id: o.ID, cert: cert, stall: o.Stall, log: o.Logger,
		endpoint: cluster.Endpoint{Transport: Transport, Address: address, Fingerprint: fingerprint},
		listener: listener,
		handle:   func(string, *cluster.Frame) {},
		routes:   map[string]*route{},
		arrivals: map[string]*arrival{},
	}
	p.closing, p.close = context.WithCancel(context.Background())
	if o.Local != "" {
		local, at, err := listenLocal(o.Local, o.ID, fingerprint)
		if err != nil {
			p.log.Warn("no Unix socket for members on this host: they use TCP", "dir", o.Local, "err", err)
		} else {
			p.local, p.endpoint.Local = local, at.String()
			p.running.Go(func() { p.accept(local) })
		}
	}
	p.running.Go(func() { p.accept(listener) })
	return p, nil
}

// Endpoint says how others reach this one.
func (p *Peers) Endpoint() cluster.Endpoint { return p.endpoint }

// Handle sets what is called with each frame; call it before the first Admit.
// Without it frames are dropped.
func (p *Peers) Handle(handle func(from string, f *cluster.Frame)) { p.handle = handle }

// Admit replaces the members. Connections of those that stay are kept, unless
// they have failed. A handler that is running for one that goes is not waited for.
func (p *Peers) Admit(members map[string]cluster.Endpoint) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, r := range p.routes {
		now, ok := members[id]
		if ok && now == r.endpoint {
			if r.link != nil && r.link.failed.Err() != nil {
				r.link = nil
			}
			continue
		}
		if r.link != nil {
			r.link.fail(errDropped)
		}
		delete(p.routes, id)
		if a := p.arrivals[id]; a != nil && (!ok || now.Fingerprint != r.endpoint.Fingerprint || now.Transport != Transport) {
			a.close()
		}
	}
	if p.closing.Err() != nil {
		return
	}
	for id, endpoint := range members {
		if p.routes[id] == nil {
			p.routes[id] = &route{endpoint: endpoint}
		}
	}
}

// Send writes a frame to the connection to a member, which it dials if there is
// none. Sends to one member take turns.
func (p *Peers) Send(ctx context.Context, to string, f *cluster.Frame) error {
	var header [wire.HeaderBytes]byte
	if err := wire.PutBareHeader(header[:], f); err != nil {
		return fmt.Errorf("peer: to %s: %w", to, err)
	}
	if err := p.send(ctx, to, &header, f); err != nil {
		return fmt.Errorf("%w: peer %s: %w", cluster.ErrUnreachable, to, err)
	}
	return nil
}

func (p *Peers) send(ctx context.Context, to string, header *[wire.HeaderBytes]byte, f *cluster.Frame) error {
	l, err := p.linkTo(to)
	if err != nil {
		return err
	}
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if l.failed.Err() != nil { // since the last Send: frames may be lost
		p.forget(l, false)
		return context.Cause(l.failed)
	}
	if l.conn == nil {
		if err := p.open(ctx, l); err != nil {
			l.fail(err)
			p.forget(l, true)
			return err
		}
	}
	if err := l.write(ctx, header, f); err != nil {
		p.forget(l, false)
		return err
	}
	return nil
}

// linkTo returns the link to a member, or a new one.
func (p *Peers) linkTo(to string) (*link, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closing.Err() != nil {
		return nil, errClosed
	}
	r := p.routes[to]
	if r == nil || r.endpoint.Transport != Transport {
		return nil, errMember
	}
	if r.link == nil {
		r.link = newLink(to, r)
	}
	return r.link, nil
}

// open dials, and watches the connection from then on.
func (p *Peers) open(ctx context.Context, l *link) error {
	if err := l.open(ctx, p); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closing.Err() != nil || l.failed.Err() != nil {
		l.fail(errClosed)
		return context.Cause(l.failed)
	}
	if r := p.routes[l.to]; r != nil && r.link == l {
		r.pause, r.dialAt = 0, time.Time{}
		if r.way != l.way {
			r.way = l.way
			attrs := []slog.Attr{slog.String("peer", l.to), slog.String("way", l.way)}
			if l.why != nil {
				attrs = append(attrs, slog.Any("why", l.why))
			}
			p.log.LogAttrs(context.Background(), slog.LevelInfo, "peer connected", attrs...)
		}
	}
	p.running.Go(l.watch)
	return nil
}

// Ways says how frames go to each admitted member that this one has connected to:
// "unix" or "tcp+tls".
func (p *Peers) Ways() map[string]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	ways := map[string]string{}
	for id, r := range p.routes {
		if r.way != "" {
			ways[id] = r.way
		}
	}
	return ways
}

// forget makes the next Send dial anew, after a pause if this one could not dial.
func (p *Peers) forget(l *link, undialled bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.routes[l.to]
	if r == nil || r.link != l {
		return
	}
	r.link = nil
	if undialled {
		r.pause = min(max(2*r.pause, 20*time.Millisecond), time.Second)
		r.dialAt = time.Now().Add(r.pause)
	}
}

// admitted returns the endpoint of a member.
func (p *Peers) admitted(id string) (cluster.Endpoint, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.member(id)
}

// member is admitted for those who hold mu.
func (p *Peers) member(id string) (cluster.Endpoint, bool) {
	r := p.routes[id]
	if r == nil {
		return cluster.Endpoint{}, false
	}
	return r.endpoint, true
}

// arrive makes a the connection of its sender, if that is a member still, and
// returns the one before.
func (p *Peers) arrive(who claim, a *arrival) (before *arrival, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closing.Err() != nil {
		return nil, errClosed
	}
	if err := who.check(p.member); err != nil {
		return nil, err
	}
	before = p.arrivals[who.id]
	p.arrivals[who.id] = a
	return before, nil
}

func (p *Peers) depart(from string, a *arrival) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.arrivals[from] == a {
		delete(p.arrivals, from)
	}
}

// Close ends all connections and waits until no handler runs; do not call it
// from one. Sends return errors.
func (p *Peers) Close() error {
	p.mu.Lock()
	p.close()
	for _, r := range p.routes {
		if r.link != nil {
			r.link.fail(errClosed)
		}
	}
	for _, a := range p.arrivals {
		a.close()
	}
	p.mu.Unlock()
	err := p.listener.Close()
	if p.local != nil {
		closeLocal(p.local)
	}
	p.running.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
