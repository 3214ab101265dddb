package peer

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/cluster/peer/wire"
)

const (
	dialTime = 5 * time.Second // for a connection, with its handshake and welcome
	welcome  = "pce1"          // what the accepting side writes once it has admitted the other
)

// The ways to a member.
const (
	unixWay = "unix"
	tcpWay  = "tcp+tls"
)

// keepAlive finds out within 20 s that the other side of a quiet connection is gone.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: 5 * time.Second, Count: 3}

// route is what is known of the way to a member. Peers.mu guards it.
type route struct {
	endpoint cluster.Endpoint
	link     *link         // nil: none
	way      string        // the newest link's; "": none yet
	pause    time.Duration // before the next dial, grown with each that fails
	dialAt   time.Time     // not sooner
}

// link is one connection to a member, from before it is dialled until it fails.
// It is never used again after that.
type link struct {
	to       string
	endpoint cluster.Endpoint
	dialAt   time.Time
	turn     chan struct{} // held by the Send that dials or writes
	conn     frameConn     // nil: not dialled; turn guards it, way and why
	way      string        // unixWay or tcpWay
	why      error         // not by a Unix socket

	failed context.Context // ends, with the cause, when the link fails
	fail   context.CancelCauseFunc
}

func newLink(to string, r *route) *link {
	l := &link{to: to, way: tcpWay, endpoint: r.endpoint, dialAt: r.dialAt, turn: make(chan struct{}, 1)}
	l.failed, l.fail = context.WithCancelCause(context.Background())
	return l
}

// open dials until the member welcomes this one. A member that has not admitted
// this one yet is tried again; one that cannot be dialled, or is another, is not.
func (l *link) open(ctx context.Context, p *Peers) error {
	ctx, cancel := context.WithDeadlineCause(ctx, later(time.Now(), l.dialAt).Add(dialTime),
		fmt.Errorf("no answer within %v", dialTime))
	defer cancel()
	defer context.AfterFunc(l.failed, cancel)()
	if err := pause(ctx, time.Until(l.dialAt)); err != nil {
		return l.reason(err)
	}
	var socket string
	if socket, l.why = near(l.endpoint.Local); l.why == nil {
		l.way = unixWay
	}
	var last error
	for wait := 5 * time.Millisecond; ; wait = min(2*wait, 250*time.Millisecond) {
		raw, err := l.dial(ctx, socket)
		if err != nil {
			if last != nil && ctx.Err() != nil {
				err = last
			}
			return l.reason(err)
		}
		conn, err := l.shake(ctx, raw, p)
		if err == nil {
			l.conn = conn
			return nil
		}
		raw.Close()
		last = err
		if errors.Is(err, errStranger) || pause(ctx, wait) != nil {
			return l.reason(err)
		}
	}
}

// dial connects. A socket that cannot be connected to leaves TCP; what follows
// does not: a member that fails to prove its identity there is not asked elsewhere.
func (l *link) dial(ctx context.Context, socket string) (net.Conn, error) {
	dialer := net.Dialer{KeepAliveConfig: keepAlive}
	if l.way == unixWay {
		raw, err := dialer.DialContext(ctx, "unix", socket)
		if err == nil {
			return raw, nil
		}
		l.way, l.why = tcpWay, fmt.Errorf("%w: %w", errFar, err)
	}
	return dialer.DialContext(ctx, "tcp", l.endpoint.Address)
}

// shake makes a connection of a dialled one, which is closed when the link fails.
func (l *link) shake(ctx context.Context, raw net.Conn, p *Peers) (conn frameConn, err error) {
	defer context.AfterFunc(ctx, func() { raw.Close() })()
	who := func(id string) (cluster.Endpoint, bool) { return l.endpoint, id == l.to }
	if local, ok := raw.(*net.UnixConn); ok {
		err = helloTo(local, p.id, p.cert, who)
		conn = &unixConn{UnixConn: local, stall: p.stall}
	} else {
		batch := &batchConn{Conn: raw, stall: p.stall}
		t := tls.Client(batch, tlsConfig(p.cert, who))
		if err = t.HandshakeContext(ctx); err == nil {
			conn = newTLSConn(t, batch)
		}
	}
	if err != nil {
		return nil, err
	}
	word := make([]byte, len(welcome))
	if _, err := io.ReadFull(conn, word); err != nil {
		return nil, fmt.Errorf("it does not admit this member: %w", err)
	}
	if string(word) != welcome {
		return nil, fmt.Errorf("%w: it says %q", errStranger, word)
	}
	context.AfterFunc(l.failed, func() { raw.Close() })
	return conn, nil
}

// reason is why the link failed if it did, or else err.
func (l *link) reason(err error) error {
	if l.failed.Err() != nil {
		return context.Cause(l.failed)
	}
	return err
}

// watch waits until the other side closes the connection.
func (l *link) watch() {
	n, err := l.conn.Read(make([]byte, 1))
	if n > 0 {
		err = errors.New("the receiver wrote to it")
	}
	l.fail(fmt.Errorf("connection lost, and frames with it maybe: %w", err))
}

// write writes a frame, and closes the connection if it cannot write all of it.
func (l *link) write(ctx context.Context, header *[wire.HeaderBytes]byte, f *cluster.Frame) error {
	stop := context.AfterFunc(ctx, func() {
		l.fail(fmt.Errorf("connection given up in the middle of a frame: %v", context.Cause(ctx)))
	})
	err := l.conn.write(header, f)
	if !stop() {
		return context.Cause(ctx)
	}
	if err != nil {
		l.fail(err)
		return context.Cause(l.failed)
	}
	return nil
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// pause waits, unless ctx ends before.
func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
