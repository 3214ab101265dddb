package peer

import (
	"crypto/tls"
	"net"
	"sync"
	"time"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/cluster/peer/wire"
)

// writeBytes is how much is gathered for one write to the kernel.
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

// frameConn is an outgoing connection after its handshake.
type frameConn struct {
	tls   *tls.Conn
	batch *batchConn
}

func newFrameConn(t *tls.Conn, b *batchConn) *frameConn {
	b.held = make([]byte, 0, writeBytes)
	b.hold = true
	return &frameConn{t, b}
}

// write writes a frame whose header has been made. One goroutine at a time.
func (c *frameConn) write(header *[wire.HeaderBytes]byte, f *cluster.Frame) error {
	if _, err := c.tls.Write(header[:]); err != nil {
		return err
	}
	if len(f.Payload) > 0 {
		if _, err := c.tls.Write(f.Payload); err != nil {
			return err
		}
	}
	return c.batch.flush()
}
