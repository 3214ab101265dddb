package peer

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/cluster/peer/wire"
)

// handshakes is how many unknown connections are looked at at a time; more wait.
const handshakes = 64

// arrival is an incoming connection of an admitted member.
type arrival struct {
	raw  net.Conn
	bare bool          // payloads are not in checksums
	gone atomic.Bool   // no more frames are taken
	done chan struct{} // closed when its last frame has been handled
}

func (a *arrival) close() {
	a.gone.Store(true)
	a.raw.Close()
}

// accept serves the connections of a listener until that is closed.
func (p *Peers) accept(listener net.Listener) {
	slots := make(chan struct{}, handshakes)
	for {
		slots <- struct{}{}
		raw, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // out of file descriptors, say: that passes
			p.log.Warn("cannot accept a peer", "err", err)
			<-slots
			if pause(p.closing, 100*time.Millisecond) != nil {
				return
			}
			continue
		}
		p.running.Add(1)
		go func() {
			defer p.running.Done()
			defer context.AfterFunc(p.closing, func() { raw.Close() })()
			defer raw.Close()
			conn, who, err := p.greet(raw)
			<-slots
			if err != nil {
				p.log.Info("peer refused", "address", raw.RemoteAddr(), "err", err)
				return
			}
			p.serve(raw, conn, who)
		}()
	}
}

// greet finds out who dialled, and returns the connection to talk over.
func (p *Peers) greet(raw net.Conn) (io.ReadWriter, claim, error) {
	ctx, cancel := context.WithTimeout(p.closing, dialTime)
	defer cancel()
	if local, ok := raw.(*net.UnixConn); ok {
		defer context.AfterFunc(ctx, func() { raw.Close() })()
		who, err := helloFrom(local, p.id, p.cert)
		return local, who, err
	}
	conn := tls.Server(raw, tlsConfig(p.cert, p.admitted))
	if err := conn.HandshakeContext(ctx); err != nil {
		return nil, claim{}, err
	}
	who, err := claimOf(conn.ConnectionState())
	return conn, who, err
}

// serve takes frames of a member until its connection ends. A connection
// replaces an older one of the same sender, and waits for the end of that.
func (p *Peers) serve(raw net.Conn, conn io.ReadWriter, who claim) {
	from := who.id
	_, local := raw.(*net.UnixConn)
	a := &arrival{raw: raw, bare: local, done: make(chan struct{})}
	defer close(a.done)
	before, err := p.arrive(who, a)
	if err != nil {
		p.log.Info("peer refused", "peer", from, "err", err)
		return
	}
	defer p.depart(from, a)
	raw.SetWriteDeadline(time.Now().Add(dialTime))
	if _, err := conn.Write([]byte(welcome)); err != nil {
		return
	}
	if before != nil {
		before.close()
		<-before.done
	}
	err = a.read(conn, func(f *cluster.Frame) { p.handle(from, f) })
	switch {
	case a.gone.Load() || p.closing.Err() != nil:
	case errors.Is(err, wire.ErrFrame):
		p.log.Warn("connection closed: a peer sent what is not a frame", "peer", from, "err", err)
	default:
		p.log.LogAttrs(context.Background(), slog.LevelDebug, "connection ended", slog.String("peer", from), slog.Any("err", err))
	}
}

// readBytes is how much is read from the kernel at once, so that small frames do
// not take two calls each. What is larger is read to where it belongs.
const readBytes = 64 << 10

// read calls take with each frame until the connection ends, or sends what is none.
func (a *arrival) read(conn io.Reader, take func(*cluster.Frame)) error {
	in := bufio.NewReaderSize(conn, readBytes)
	header := make([]byte, wire.HeaderBytes)
	payload := make([]byte, cluster.MaxFrameBytes)
	for {
		if _, err := io.ReadFull(in, header); err != nil {
			return err
		}
		var f cluster.Frame
		n, err := wire.Header(header, &f)
		if err != nil {
			return err
		}
		if a.bare {
			if err := wire.CheckBare(header); err != nil {
				return err
			}
		}
		f.Payload = payload[:n:n]
		if _, err := io.ReadFull(in, f.Payload); err != nil {
			return err
		}
		if !a.bare {
			if err := wire.Check(header, f.Payload); err != nil {
				return err
			}
		}
		if a.gone.Load() {
			return net.ErrClosed
		}
		take(&f)
	}
}
