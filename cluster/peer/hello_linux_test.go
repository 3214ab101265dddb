package peer

import (
	"context"
	"crypto/ed25519"
	"errors"
	"net"
	"os"
	"testing"
	"time"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/cluster/peer/wire"
)

// trap is the address of a TCP listener that nobody may dial.
func trap(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	t.Cleanup(func() { l.Close(); <-over })
	go func() {
		defer close(over)
		if conn, err := l.Accept(); err == nil {
			conn.Close()
			t.Error("TCP was tried")
		}
	}()
	return l.Addr().String()
}

// TestUnixWrongReceiver dials sockets of others than the endpoint says: that is
// an error, and TCP is not tried.
func TestUnixWrongReceiver(t *testing.T) {
	dir := t.TempDir()
	a, b := listen(t, Options{ID: "a", Local: dir}), listen(t, Options{ID: "b", Local: dir})
	b.Handle(func(string, *cluster.Frame) { t.Error("a frame came") })
	b.Admit(map[string]cluster.Endpoint{"a": a.Endpoint()})
	right, wrong := b.Endpoint(), b.Endpoint()
	right.Address = trap(t)
	wrong.Address, wrong.Fingerprint = right.Address, a.Endpoint().Fingerprint
	for id, e := range map[string]cluster.Endpoint{"b": wrong, "c": right} {
		a.Admit(map[string]cluster.Endpoint{id: e})
		err := a.Send(t.Context(), id, &cluster.Frame{Kind: cluster.FetchFrame})
		if !errors.Is(err, cluster.ErrUnreachable) || !errors.Is(err, errStranger) {
			t.Errorf("Send to %s: %v, want ErrUnreachable for a stranger", id, err)
		}
		if len(a.Ways()) != 0 {
			t.Errorf("ways are %v, want none", a.Ways())
		}
	}
}

// forged serves one connection to a socket as do says, and returns an endpoint
// of b with that socket.
func forged(t *testing.T, b caller, do func(conn *net.UnixConn)) cluster.Endpoint {
	l, at, err := listenLocal(t.TempDir(), "b", b.fingerprint)
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	t.Cleanup(func() { closeLocal(l); <-over })
	go func() {
		defer close(over)
		for {
			conn, err := l.AcceptUnix()
			if err != nil {
				return
			}
			do(conn)
			conn.Close()
		}
	}()
	e := b.endpoint(trap(t))
	e.Local = at.String()
	return e
}

// TestUnixProof dials members who name the right key and do not prove it, or say
// what is no hello.
func TestUnixProof(t *testing.T) {
	a, b, other := listen(t, Options{ID: "a"}), newCaller(t, "b"), newCaller(t, "b")
	for name, answer := range map[string]func(theirs hello) []byte{
		"another key":  func(theirs hello) []byte { return answerOf(t, b, other, theirs, asAcceptor) },
		"another role": func(theirs hello) []byte { return answerOf(t, b, b, theirs, asDialler) },
		"old nonce": func(theirs hello) []byte {
			theirs[len(greeting)+2]++
			return answerOf(t, b, b, theirs, asAcceptor)
		},
		"greeting": func(theirs hello) []byte {
			mine, _, err := me("b", b.cert)
			if err != nil {
				t.Error(err)
			}
			mine[0]++
			return append(mine, proofBy(b, signed(asAcceptor, theirs, mine))...)
		},
		"no id": func(hello) []byte { return append([]byte(greeting), make([]byte, fixedBytes)...) },
		"long id": func(hello) []byte {
			return append(append([]byte(greeting), 0xff, 0xff), make([]byte, fixedBytes+0xffff)...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := forged(t, b, func(conn *net.UnixConn) {
				if theirs, err := readHello(conn); err == nil {
					conn.Write(append(answer(theirs), welcome...))
					conn.Read(make([]byte, 1))
				}
			})
			a.Admit(map[string]cluster.Endpoint{"b": e})
			err := a.Send(t.Context(), "b", &cluster.Frame{Kind: cluster.FetchFrame})
			if !errors.Is(err, cluster.ErrUnreachable) || !errors.Is(err, errStranger) {
				t.Errorf("Send: %v, want ErrUnreachable for a stranger", err)
			}
		})
	}
}

// answerOf is a hello with the key of one and a signature in a role with that of
// another.
func answerOf(t *testing.T, c, signer caller, theirs hello, role string) []byte {
	mine, _, err := me("b", c.cert)
	if err != nil {
		t.Error(err)
	}
	return append(mine, proofBy(signer, signed(role, theirs, mine))...)
}

// proofBy is a signature with the key of a caller.
func proofBy(c caller, text []byte) []byte {
	return ed25519.Sign(c.cert.PrivateKey.(ed25519.PrivateKey), text)
}

// TestUnixStrangers dials with keys that are not admitted. Another user cannot
// be had in a test.
func TestUnixStrangers(t *testing.T) {
	p := listen(t, Options{ID: "b", Local: t.TempDir()})
	p.Handle(func(from string, _ *cluster.Frame) { t.Errorf("a frame from %s", from) })
	a, nats := newCaller(t, "a"), newCaller(t, "nats")
	p.Admit(map[string]cluster.Endpoint{
		"a":    a.endpoint(""),
		"none": {Transport: Transport},
		"nats": {Transport: "nats", Fingerprint: nats.fingerprint},
	})
	dial := func(id string, c, signer caller) error {
		conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: socketOf(t, p).path, Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(time.Minute))
		mine, _, err := me(id, c.cert)
		if err != nil {
			t.Fatal(err)
		}
		conn.Write(mine)
		theirs, err := readHello(conn)
		if err != nil {
			t.Fatal(err)
		}
		if err := readProof(conn, theirs, signed(asAcceptor, mine, theirs)); err != nil {
			t.Fatal(err)
		}
		conn.Write(proofBy(signer, signed(asDialler, mine, theirs)))
		n, err := conn.Read(make([]byte, len(welcome)))
		if err == nil && n != len(welcome) {
			t.Fatalf("welcomed with %d bytes", n)
		}
		return err
	}
	other := newCaller(t, "a")
	for name, err := range map[string]error{
		"another key":       dial("a", other, other),
		"a key not its own": dial("a", a, other),
		"another id":        dial("z", a, a),
		"no fingerprint":    dial("none", a, a),
		"another transport": dial("nats", nats, nats),
	} {
		if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: %v, want a closed connection", name, err)
		}
	}
	if err := dial("a", a, a); err != nil {
		t.Errorf("the member itself: %v", err)
	}
}

// TestUnixBadFrames sends headers that are none: the connection is closed.
func TestUnixBadFrames(t *testing.T) {
	for name, at := range map[string]int{"magic": 0, "kind": 5, "length": 23, "offset": 40, "checksum": 60} {
		t.Run(name, func(t *testing.T) {
			p, a := listen(t, Options{ID: "b", Local: t.TempDir()}), newCaller(t, "a")
			frames := collect(p)
			p.Admit(map[string]cluster.Endpoint{"a": a.endpoint("")})
			conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: socketOf(t, p).path, Net: "unix"})
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			conn.SetDeadline(time.Now().Add(time.Minute))
			if err := helloTo(conn, "a", a.cert, func(string) (cluster.Endpoint, bool) { return p.Endpoint(), true }); err != nil {
				t.Fatal(err)
			}
			conn.Read(make([]byte, len(welcome)))
			good := make([]byte, wire.HeaderBytes)
			if err := wire.PutBareHeader(good, &cluster.Frame{Kind: cluster.FetchFrame}); err != nil {
				t.Fatal(err)
			}
			conn.Write(good)
			<-frames
			bad := append([]byte(nil), good...)
			bad[at] ^= 0x40
			conn.Write(append(bad, good...))
			if _, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("Read = %v, want a closed connection", err)
			}
			if len(frames) != 0 {
				t.Error("a frame was taken from behind a bad one")
			}
		})
	}
}

// TestUnixSilence meets others who connect and say nothing: a Send ends with its
// context, Close does not wait for them, and one who takes no frames is given up.
func TestUnixSilence(t *testing.T) {
	a, b := listen(t, Options{ID: "a", Local: t.TempDir(), Stall: 200 * time.Millisecond}), newCaller(t, "b")
	mute, full := make(chan struct{}), make(chan struct{})
	a.Admit(map[string]cluster.Endpoint{"b": forged(t, b, func(*net.UnixConn) { <-mute })})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := a.Send(ctx, "b", &cluster.Frame{Kind: cluster.FetchFrame}); !errors.Is(err, cluster.ErrUnreachable) {
		t.Errorf("Send to one who says nothing: %v, want ErrUnreachable", err)
	}
	close(mute)

	a.Admit(map[string]cluster.Endpoint{"b": forged(t, b, func(conn *net.UnixConn) {
		if _, err := helloFrom(conn, "b", b.cert); err != nil {
			t.Error(err)
		}
		conn.Write([]byte(welcome))
		<-full
	})})
	f := &cluster.Frame{Kind: cluster.FlowFrame, Payload: make([]byte, cluster.MaxFrameBytes)}
	var err error
	for begun := time.Now(); err == nil && time.Since(begun) < 20*time.Second; {
		err = a.Send(t.Context(), "b", f)
	}
	if !errors.Is(err, cluster.ErrUnreachable) || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("Send to one who takes nothing: %v, want ErrUnreachable after the stall", err)
	}
	close(full)

	conn, err := net.Dial("unix", socketOf(t, a).path)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	begun := time.Now()
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	if took := time.Since(begun); took >= dialTime { // which is what the caller's silence would take
		t.Errorf("Close took %v", took)
	}
}
