package serve

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// What slow clients may take beside the timeout of requests.
const (
	headerTime = 5 * time.Second  // for the header of a request
	answerTime = 30 * time.Second // for reading an answer
)

// maxHeader is how many bytes the header of a request may have.
const maxHeader = 32 << 10

// HTTPServer returns a server for a handler that speaks HTTP/1.1 and HTTP/2 on one
// port, the latter also without TLS, as gRPC wants it, and that does not wait for slow
// clients: timeout is how long the body of a request may take to come, and again how
// long the answer may take. A body that has not come by then ends its connection, or its
// stream of HTTP/2. Errors of connections are logged at the level of debugging, and not at all by a nil log.
func HTTPServer(h http.Handler, timeout time.Duration, log *slog.Logger) *http.Server {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &http.Server{
		Handler:           h,
		Protocols:         &protocols,
		ReadHeaderTimeout: headerTime,
		ReadTimeout:       headerTime + timeout,
		WriteTimeout:      headerTime + 2*timeout + answerTime,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    maxHeader,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams:          1024,
			MaxReceiveBufferPerConnection: 4 << 20,
			MaxReceiveBufferPerStream:     1 << 20,
			PingTimeout:                   15 * time.Second,
			SendPingTimeout:               time.Minute,
		},
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

// CheckAddress refuses an address beyond loopback without a token or TLS.
func CheckAddress(addr net.Addr, token, tls bool) error {
	if tcp, ok := addr.(*net.TCPAddr); ok && !tcp.IP.IsLoopback() && !token && !tls {
		return fmt.Errorf("%w: %s is not loopback, and there is neither a token nor TLS; give one of them, or listen on 127.0.0.1", ErrOptions, addr)
	}
	return nil
}

// LimitListener accepts at most n connections at a time from l; others wait in the
// system's queue.
func LimitListener(l net.Listener, n int) net.Listener {
	return &limitListener{Listener: l, slots: make(chan struct{}, n), closed: make(chan struct{})}
}

type limitListener struct {
	net.Listener
	slots  chan struct{}
	once   sync.Once
	closed chan struct{}
}

// Accept waits for a free slot, then for a connection.
func (l *limitListener) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	return &limitedConn{Conn: c, leave: func() { <-l.slots }}, nil
}

// Close ends Accept too where it waits for a slot.
func (l *limitListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

type limitedConn struct {
	net.Conn
	once  sync.Once
	leave func()
}

// Close gives the slot back.
func (c *limitedConn) Close() error {
	defer c.once.Do(c.leave)
	return c.Conn.Close()
}
