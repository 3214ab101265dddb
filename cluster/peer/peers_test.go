package peer

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/cluster/peer/wire"
)

// logged is a log that tests read.
type logged struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *logged) lines() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Split(strings.TrimSpace(l.buf.String()), "\n")
}

func listen(t *testing.T, o Options) *Peers {
	t.Helper()
	p, err := Listen(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// within waits until ok returns true.
func within(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); <-time.After(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within 10 s: %s", what)
		}
	}
}

// bothWays runs a test without Unix sockets, and with them in a directory.
func bothWays(t *testing.T, test func(t *testing.T, local string)) {
	t.Run("tcp", func(t *testing.T) { test(t, "") })
	if runtime.GOOS == "linux" {
		t.Run("unix", func(t *testing.T) { test(t, t.TempDir()) })
	}
}

// collect makes a peer hand its frames to a channel.
func collect(p *Peers) <-chan cluster.Frame {
	c := make(chan cluster.Frame, 100)
	p.Handle(func(_ string, f *cluster.Frame) { c <- *f })
	return c
}

// caller is a member that does what no Peers does.
type caller struct {
	cert        tls.Certificate
	fingerprint string
}

func newCaller(t *testing.T, id string) caller {
	cert, fingerprint, err := newCertificate(id)
	if err != nil {
		t.Fatal(err)
	}
	return caller{cert, fingerprint}
}

func (c caller) endpoint(address string) cluster.Endpoint {
	return cluster.Endpoint{Transport: Transport, Address: address, Fingerprint: c.fingerprint}
}

// dial returns a connection after its welcome.
func (c caller) dial(p *Peers) (*tls.Conn, error) {
	config := tlsConfig(c.cert, func(string) (cluster.Endpoint, bool) { return p.Endpoint(), true })
	conn, err := tls.Dial("tcp", p.Endpoint().Address, config)
	if err != nil {
		return nil, err
	}
	conn.SetDeadline(time.Now().Add(time.Minute))
	_, err = io.ReadFull(conn, make([]byte, len(welcome)))
	return conn, err
}

func TestBadFramesCloseTheConnection(t *testing.T) {
	good := func(t *testing.T) []byte {
		b := make([]byte, wire.HeaderBytes)
		f := &cluster.Frame{Kind: cluster.FlowFrame, Payload: []byte("payload!")}
		if err := wire.PutHeader(b, f); err != nil {
			t.Fatal(err)
		}
		return append(b, f.Payload...)
	}
	for name, edit := range map[string]func(b []byte){
		"magic":    func(b []byte) { b[0]++ },
		"format":   func(b []byte) { b[4]++ },
		"kind":     func(b []byte) { b[5] = 77 },
		"length":   func(b []byte) { b[23] = 0xff },
		"checksum": func(b []byte) { b[60]++ },
		"payload":  func(b []byte) { b[len(b)-1]++ },
	} {
		t.Run(name, func(t *testing.T) {
			var log logged
			p := listen(t, Options{ID: "b", Logger: slog.New(slog.NewTextHandler(&log, nil))})
			frames := collect(p)
			a := newCaller(t, "a")
			p.Admit(map[string]cluster.Endpoint{"a": a.endpoint("")})
			conn, err := a.dial(p)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			bad := good(t)
			edit(bad)
			conn.Write(good(t))
			<-frames
			conn.Write(append(bad, good(t)...))
			if _, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Read = %v, want a closed connection", err)
			}
			within(t, "a line in the log", func() bool { return log.lines()[0] != "" })
			p.Close()
			if lines := log.lines(); len(lines) != 1 || !strings.Contains(lines[0], "not a frame") {
				t.Errorf("log is %q, want one line", lines)
			}
			if len(frames) != 0 {
				t.Error("a frame was taken from behind a bad one")
			}
		})
	}
}

func TestStrangersAreRefused(t *testing.T) {
	p := listen(t, Options{ID: "b"})
	p.Handle(func(from string, _ *cluster.Frame) { t.Errorf("a frame from %s", from) })
	a, other := newCaller(t, "a"), newCaller(t, "a")
	nats := newCaller(t, "nats")
	p.Admit(map[string]cluster.Endpoint{
		"a":    a.endpoint(""),
		"none": {Transport: Transport},
		"nats": {Transport: "nats", Fingerprint: nats.fingerprint},
	})
	for name, c := range map[string]caller{
		"another key": other, "another id": newCaller(t, "z"), "no fingerprint": newCaller(t, "none"), "another transport": nats,
	} {
		if conn, err := c.dial(p); err == nil {
			conn.Close()
			t.Errorf("%s: welcomed", name)
		}
	}
	for name, edit := range map[string]func(*tls.Config){
		"no certificate": func(c *tls.Config) { c.Certificates = nil },
		"TLS 1.2":        func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS12, tls.VersionTLS12 },
		"other protocol": func(c *tls.Config) { c.NextProtos = []string{"pce-peer/99"} },
		"no protocol":    func(c *tls.Config) { c.NextProtos = nil },
	} {
		config := tlsConfig(a.cert, nil)
		config.VerifyConnection = nil
		edit(config)
		conn, err := tls.Dial("tcp", p.Endpoint().Address, config)
		if err == nil {
			_, err = io.ReadFull(conn, make([]byte, len(welcome)))
			conn.Close()
		}
		if err == nil {
			t.Errorf("%s: welcomed", name)
		}
	}
	if conn, err := a.dial(p); err != nil {
		t.Errorf("the member itself: %v", err)
	} else {
		conn.Close()
	}
}

// TestWrongReceiver dials one who has another key than that of the endpoint.
func TestWrongReceiver(t *testing.T) {
	a, b := listen(t, Options{ID: "a"}), listen(t, Options{ID: "b"})
	b.Handle(func(string, *cluster.Frame) { t.Error("a frame came") })
	b.Admit(map[string]cluster.Endpoint{"a": a.Endpoint()})
	wrong := b.Endpoint()
	wrong.Fingerprint = a.Endpoint().Fingerprint
	for id, e := range map[string]cluster.Endpoint{"b": wrong, "c": b.Endpoint()} {
		a.Admit(map[string]cluster.Endpoint{id: e})
		err := a.Send(t.Context(), id, &cluster.Frame{Kind: cluster.FetchFrame})
		if !errors.Is(err, cluster.ErrUnreachable) || !errors.Is(err, errStranger) {
			t.Errorf("Send to %s: %v, want ErrUnreachable for a stranger", id, err)
		}
	}
}

// TestStall sends to a member that is there and takes nothing.
func TestStall(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	a, b := listen(t, Options{ID: "a", Stall: 200 * time.Millisecond}), newCaller(t, "b")
	served := make(chan *tls.Conn, 1)
	go func() {
		raw, err := listener.Accept()
		if err != nil {
			return
		}
		conn := tls.Server(raw, tlsConfig(b.cert, func(string) (cluster.Endpoint, bool) { return a.Endpoint(), true }))
		conn.Write([]byte(welcome))
		served <- conn
	}()
	a.Admit(map[string]cluster.Endpoint{"b": b.endpoint(listener.Addr().String())})
	f := &cluster.Frame{Kind: cluster.FlowFrame, Payload: make([]byte, cluster.MaxFrameBytes)}
	begun := time.Now()
	for err = nil; err == nil && time.Since(begun) < 20*time.Second; {
		err = a.Send(t.Context(), "b", f)
	}
	if !errors.Is(err, cluster.ErrUnreachable) {
		t.Errorf("Send to one who takes nothing: %v, want ErrUnreachable", err)
	}
	(<-served).Close()
}

// TestRedial breaks a connection: the next Send says so, and one after it works.
func TestRedial(t *testing.T) { bothWays(t, testRedial) }

func testRedial(t *testing.T, local string) {
	var log logged
	a := listen(t, Options{ID: "a", Local: local, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	b := listen(t, Options{ID: "b", Local: local})
	frames := collect(b)
	members := map[string]cluster.Endpoint{"a": a.Endpoint(), "b": b.Endpoint()}
	a.Admit(members)
	b.Admit(members)
	f := &cluster.Frame{Kind: cluster.FetchFrame}
	failed := func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return a.routes["b"].link.failed.Err() != nil
	}
	breakIt := func() {
		if err := a.Send(t.Context(), "b", f); err != nil {
			t.Fatal(err)
		}
		<-frames
		b.mu.Lock()
		b.arrivals["a"].raw.Close()
		b.mu.Unlock()
		within(t, "the sender sees the end of the connection", failed)
	}
	breakIt()
	if err := a.Send(t.Context(), "b", f); !errors.Is(err, cluster.ErrUnreachable) {
		t.Errorf("Send after a break: %v, want ErrUnreachable", err)
	}
	breakIt()
	a.Admit(members) // a new term: what was lost does not matter
	if err := a.Send(t.Context(), "b", f); err != nil {
		t.Errorf("Send after a break and Admit: %v", err)
	}
	<-frames
	if lines := log.lines(); len(lines) != 1 || !strings.Contains(lines[0], "way="+a.Ways()["b"]) {
		t.Errorf("log is %q, want one line with the way, which is %q", lines, a.Ways()["b"])
	}
	// One who is not there is not dialled in a busy loop.
	b.Close()
	within(t, "the sender sees the end of the connection", failed)
	a.Admit(members)
	begun := time.Now()
	for range 4 {
		if err := a.Send(t.Context(), "b", f); !errors.Is(err, cluster.ErrUnreachable) {
			t.Errorf("Send to one who is gone: %v, want ErrUnreachable", err)
		}
	}
	if took := time.Since(begun); took < 100*time.Millisecond { // 20 + 40 + 80
		t.Errorf("4 dials took %v, want pauses between them", took)
	}
}

// TestAdmittedLater sends before the receiver has admitted the sender.
func TestAdmittedLater(t *testing.T) { bothWays(t, testAdmittedLater) }

func testAdmittedLater(t *testing.T, local string) {
	a, b := listen(t, Options{ID: "a", Local: local}), listen(t, Options{ID: "b", Local: local})
	frames := collect(b)
	members := map[string]cluster.Endpoint{"a": a.Endpoint(), "b": b.Endpoint()}
	a.Admit(members)
	time.AfterFunc(50*time.Millisecond, func() { b.Admit(members) })
	if err := a.Send(t.Context(), "b", &cluster.Frame{Kind: cluster.FetchFrame, Offset: 5}); err != nil {
		t.Fatal(err)
	}
	if f := <-frames; f.Offset != 5 {
		t.Errorf("frame %d came, want 5", f.Offset)
	}
}

// TestSilentDialler connects and says nothing: the connection is closed in time.
func TestSilentDialler(t *testing.T) {
	if testing.Short() {
		t.Skip("takes as long as a handshake may; run without -short")
	}
	bothWays(t, func(t *testing.T, local string) {
		t.Parallel()
		p := listen(t, Options{ID: "a", Local: local})
		at := p.listener.Addr()
		if p.local != nil {
			at = p.local.Addr()
		}
		conn, err := net.Dial(at.Network(), at.String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(4 * dialTime))
		if _, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("Read = %v, want a closed connection", err)
		}
	})
}

func TestAdvertise(t *testing.T) {
	listens := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 99}
	for _, c := range []struct {
		listens   net.IP
		advertise string
		want      string // "": an error
	}{
		{net.IPv4(127, 0, 0, 1), "", "127.0.0.1:99"},
		{net.IPv4zero, "", ""},
		{net.IPv6unspecified, "", ""},
		{net.IPv4zero, "host", "host:99"},
		{net.IPv4zero, "host:7", "host:7"},
		{net.IPv4zero, "10.0.0.1", "10.0.0.1:99"},
		{net.IPv4zero, "fe80::1", "[fe80::1]:99"},
		{net.IPv4zero, "[fe80::1]:7", "[fe80::1]:7"},
		{net.IPv4zero, "[fe80::1]", "[fe80::1]:99"},
		{net.IPv4zero, "a:b:c", ""},
	} {
		listens.IP = c.listens
		o := Options{Advertise: c.advertise}
		got, err := o.advertised(listens)
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("advertise %q on %v = %q, %v, want %q", c.advertise, c.listens, got, err, c.want)
		}
	}
	if _, err := Listen(Options{Address: "127.0.0.1:0"}); err == nil {
		t.Error("no id was taken")
	}
	if _, err := Listen(Options{ID: "a", Address: "nonsense"}); !errors.Is(err, cluster.ErrCluster) {
		t.Errorf("bad address: %v, want ErrCluster", err)
	}
}
