package peer

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"fmt"
	"io"
	"net"

	"github.com/pce-engine/pce/cluster"
)

// On a Unix socket both sides say hello, and prove with a signature that they
// have the key they name: the acceptor first, as in TLS.
//
//	dialler   hello
//	acceptor  hello, signature
//	dialler   signature
//
// A hello is the greeting, the length of the id, 2 bytes, a random nonce, the
// Ed25519 key and the id. Each signs the greeting, its role, and both hellos.
const (
	greeting   = "pce-peer/1 unix\n"
	asDialler  = "dialler\x00"
	asAcceptor = "acceptor\x00"

	nonceBytes = 32
	idBytes    = 1024 // at most
	fixedBytes = len(greeting) + 2 + nonceBytes + ed25519.PublicKeySize
)

// hello is the binary form of one.
type hello []byte

func newHello(id string, key ed25519.PublicKey) (hello, error) {
	h := append(make(hello, 0, fixedBytes+len(id)), greeting...)
	h = binary.LittleEndian.AppendUint16(h, uint16(len(id)))
	h = h[:len(h)+nonceBytes]
	if _, err := rand.Read(h[len(h)-nonceBytes:]); err != nil {
		return nil, err
	}
	return append(append(h, key...), id...), nil
}

func readHello(r io.Reader) (hello, error) {
	h := make(hello, fixedBytes, fixedBytes+idBytes)
	if _, err := io.ReadFull(r, h); err != nil {
		return nil, err
	}
	if string(h[:len(greeting)]) != greeting {
		return nil, fmt.Errorf("%w: it greets with %q, want %q", errStranger, h[:len(greeting)], greeting)
	}
	n := int(binary.LittleEndian.Uint16(h[len(greeting):]))
	if n == 0 || n > idBytes {
		return nil, fmt.Errorf("%w: an id of %d bytes, want 1 to %d", errStranger, n, idBytes)
	}
	h = h[:fixedBytes+n]
	_, err := io.ReadFull(r, h[fixedBytes:])
	return h, err
}

func (h hello) key() ed25519.PublicKey {
	return ed25519.PublicKey(h[fixedBytes-ed25519.PublicKeySize : fixedBytes])
}

// claim is what a hello says; a signature has to prove it.
func (h hello) claim() (claim, error) {
	key, err := x509.MarshalPKIXPublicKey(h.key())
	return claim{string(h[fixedBytes:]), fingerprintOf(key)}, err
}

// signed is what the one in a role signs.
func signed(role string, dialler, acceptor hello) []byte {
	b := append([]byte(greeting), role...)
	return append(append(b, dialler...), acceptor...) // hellos say how long they are
}

// readProof reads the signature of the other side.
func readProof(r io.Reader, other hello, text []byte) error {
	proof := make([]byte, ed25519.SignatureSize)
	if _, err := io.ReadFull(r, proof); err != nil {
		return err
	}
	if !ed25519.Verify(other.key(), text, proof) {
		return fmt.Errorf("%w: %.64q does not have the key it names", errStranger, other[fixedBytes:])
	}
	return nil
}

// me are the hello and the key of this side of a connection.
func me(id string, cert tls.Certificate) (hello, ed25519.PrivateKey, error) {
	key := cert.PrivateKey.(ed25519.PrivateKey)
	h, err := newHello(id, key.Public().(ed25519.PublicKey))
	return h, key, err
}

// helloTo is the dialler's side; who names the endpoint of the one it means.
func helloTo(conn *net.UnixConn, id string, cert tls.Certificate, who func(id string) (cluster.Endpoint, bool)) error {
	if err := sameUser(conn); err != nil {
		return err
	}
	mine, key, err := me(id, cert)
	if err != nil {
		return err
	}
	if _, err := conn.Write(mine); err != nil {
		return err
	}
	other, err := readHello(conn)
	if err != nil {
		return err
	}
	c, err := other.claim()
	if err != nil {
		return err
	}
	if err := c.check(who); err != nil {
		return err
	}
	if err := readProof(conn, other, signed(asAcceptor, mine, other)); err != nil {
		return err
	}
	_, err = conn.Write(ed25519.Sign(key, signed(asDialler, mine, other)))
	return err
}

// helloFrom is the acceptor's side. Whether the claim is that of a member is not
// looked at.
func helloFrom(conn *net.UnixConn, id string, cert tls.Certificate) (claim, error) {
	if err := sameUser(conn); err != nil {
		return claim{}, err
	}
	mine, key, err := me(id, cert)
	if err != nil {
		return claim{}, err
	}
	other, err := readHello(conn)
	if err != nil {
		return claim{}, err
	}
	proof := ed25519.Sign(key, signed(asAcceptor, other, mine))
	if _, err := conn.Write(append(mine, proof...)); err != nil {
		return claim{}, err
	}
	if err := readProof(conn, other, signed(asDialler, other, mine)); err != nil {
		return claim{}, err
	}
	return other.claim()
}
