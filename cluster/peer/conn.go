package peer

import (
	"crypto/tls"
	"io"
	"net"
	"sync"
	"time"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/cluster/peer/wire"
)

// writeBytes is how much goes into one write to the kernel.
const writeBytes = 128 << 10

// batchConn gathers the records that TLS writes one at a time, and gives each
// write to the kernel a deadline. It is below TLS.
type batchConn struct {
	net.Conn
	stall time.Duration

	mu   sync.Mutex // guards the rest: both sides of a TLS connection may write
	held []byte     // not written yet
	hold bool       // until flush
}

func (c *batchConn) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.hold {
		return len(b), c.write(b)
	}
	if len(c.held)+len(b) > cap(c.held) {
		if err := c.write(c.held); err != nil {
			return 0, err
		}
		c.held = c.held[:0]
	}
	c.held = append(c.held, b...)
	return len(b), nil
}

// write counts on b being small enough that a write of it without an end for
// the time of a stall is one without progress.
func (c *batchConn) write(b []byte) error {
	if err := c.SetWriteDeadline(time.Now().Add(c.stall)); err != nil {
		return err
	}
	_, err := c.Conn.Write(b)
	return err
}

func (c *batchConn) flush() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.write(c.held)
	c.held = c.held[:0]
	return err
}

// frameConn is an outgoing connection after its handshake. Nothing is read from
// it; to try is to wait for its end.
type frameConn interface {
	io.Reader
	// write writes a frame with its header, of wire.PutBareHeader. One goroutine
	// at a time.
	write(header *[wire.HeaderBytes]byte, f *cluster.Frame) error
}

// tlsConn is a frameConn over TCP.
type tlsConn struct {
	*tls.Conn
	batch *batchConn
}

func newTLSConn(t *tls.Conn, b *batchConn) *tlsConn {
	b.held = make([]byte, 0, writeBytes)
	b.hold = true
	return &tlsConn{t, b}
}

func (c *tlsConn) write(header *[wire.HeaderBytes]byte, f *cluster.Frame) error {
	wire.Seal(header[:], f.Payload)
	if _, err := c.Write(header[:]); err != nil {
		return err
	}
	if len(f.Payload) > 0 {
		if _, err := c.Write(f.Payload); err != nil {
			return err
		}
	}
	return c.batch.flush()
}

// unixConn is a frameConn over a Unix socket: the kernel copies the payload from
// the caller's buffer to the receiver's.
type unixConn struct {
	*net.UnixConn
	stall  time.Duration
	pieces [2][]byte
}

func (c *unixConn) write(header *[wire.HeaderBytes]byte, f *cluster.Frame) error {
	head, rest := header[:], f.Payload
	for len(head)+len(rest) > 0 {
		n := min(len(rest), writeBytes)
		if err := c.SetWriteDeadline(time.Now().Add(c.stall)); err != nil {
			return err
		}
		c.pieces = [2][]byte{head, rest[:n]}
		both := net.Buffers(c.pieces[:])
		if _, err := both.WriteTo(c.UnixConn); err != nil {
			return err
		}
		head, rest = nil, rest[n:]
	}
	return nil
}
