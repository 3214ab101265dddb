package peer

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"time"

	"github.com/pce-engine/pce/cluster"
)

// protocol is agreed on in the handshake: other programs and versions fail there.
const protocol = "pce-peer/1"

// errStranger means that the other side is not who it should be.
var errStranger = errors.New("not an admitted member")

// newCertificate makes a key, and a certificate with it that claims an id.
func newCertificate(id string) (cert tls.Certificate, fingerprint string, err error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return cert, "", err
	}
	// The dates are not looked at: a certificate is good while its key is admitted.
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: id},
		NotBefore:    time.Now().Add(-24 * time.Hour),
		NotAfter:     time.Now().AddDate(10, 0, 0),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		return cert, "", err
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return cert, "", err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private, Leaf: leaf}, fingerprintOf(leaf.RawSubjectPublicKeyInfo), nil
}

// fingerprintOf is the SHA-256 of a public key in its form of RFC 8410.
func fingerprintOf(key []byte) string {
	digest := sha256.Sum256(key)
	return hex.EncodeToString(digest[:])
}

// claim is who the other side of a connection says it is, with a key that it has
// proved to have.
type claim struct{ id, fingerprint string }

// check lets an admitted member pass that has the key of the id it claims; who
// names the endpoint of an admitted id.
func (c claim) check(who func(id string) (cluster.Endpoint, bool)) error {
	endpoint, ok := who(c.id)
	if !ok {
		return fmt.Errorf("%w: %.64q", errStranger, c.id)
	}
	if endpoint.Transport != Transport || endpoint.Fingerprint != c.fingerprint {
		return fmt.Errorf("%w: the key of %.64q is %s, want %s", errStranger, c.id, c.fingerprint, endpoint.Fingerprint)
	}
	return nil
}

// tlsConfig is that of both sides of a connection over TCP.
func tlsConfig(cert tls.Certificate, who func(id string) (cluster.Endpoint, bool)) *tls.Config {
	return &tls.Config{
		Certificates: []tls.Certificate{cert},
		MinVersion:   tls.VersionTLS13,
		NextProtos:   []string{protocol},
		ClientAuth:   tls.RequireAnyClientCert,
		// No authority signs: VerifyConnection compares keys instead, and the
		// handshake proves that the other side has the key.
		InsecureSkipVerify: true,
		VerifyConnection: func(s tls.ConnectionState) error {
			c, err := claimOf(s)
			if err != nil {
				return err
			}
			return c.check(who)
		},
		SessionTicketsDisabled:      true,
		DynamicRecordSizingDisabled: true, // records of 16 KiB from the first on
	}
}

// claimOf is the claim of the other side of a handshake.
func claimOf(s tls.ConnectionState) (claim, error) {
	if s.Version != tls.VersionTLS13 || s.NegotiatedProtocol != protocol || len(s.PeerCertificates) == 0 {
		return claim{}, fmt.Errorf("%w: TLS version %04x, protocol %q, %d certificates",
			errStranger, s.Version, s.NegotiatedProtocol, len(s.PeerCertificates))
	}
	cert := s.PeerCertificates[0]
	if cert.PublicKeyAlgorithm != x509.Ed25519 {
		return claim{}, fmt.Errorf("%w: a key of kind %v, want Ed25519", errStranger, cert.PublicKeyAlgorithm)
	}
	return claim{cert.Subject.CommonName, fingerprintOf(cert.RawSubjectPublicKeyInfo)}, nil
}
