package chaos

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/pce-engine/pce/cluster/natsbus"
)

// brokerPort is the port of the broker on its host.
const brokerPort = 4222

// brokerArgs are the arguments of the broker, whose files are in a directory.
func brokerArgs(dir string) []string { return []string{address("broker"), dir} }

// beBroker is the broker until SIGTERM.
func beBroker(args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("broker: want ADDRESS DIR, have %q", args)
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	dir := args[1]
	seats, err := natsbus.NewSeats(filepath.Join(dir, "seats"), workers)
	if err != nil {
		return err
	}
	b, err := natsbus.StartBroker(natsbus.BrokerOptions{
		Dir: filepath.Join(dir, "broker"), Host: args[0], Port: brokerPort, SyncAlways: true,
		Cert: filepath.Join(dir, "tls.crt"), Key: filepath.Join(dir, "tls.key"), Seats: seats,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	if err != nil {
		return err
	}
	fmt.Println("broker ready")
	<-stop
	return b.Close()
}

// writeKeys makes what the broker needs before it starts: everybody's keys, and a
// certificate signed by a CA that is there for it alone.
func writeKeys(t *testing.T, dir string) {
	t.Helper()
	if _, err := natsbus.NewSeats(filepath.Join(dir, "seats"), workers); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "chaos"}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "broker"}, NotBefore: ca.NotBefore, NotAfter: ca.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses: []net.IP{net.ParseIP(address("broker"))},
	}
	caKey, leafKey := newKey(t), newKey(t)
	writeCertificate(t, filepath.Join(dir, "ca.crt"), ca, ca, caKey, caKey)
	writeCertificate(t, filepath.Join(dir, "tls.crt"), leaf, ca, leafKey, caKey)
	private, err := x509.MarshalPKCS8PrivateKey(leafKey)
	if err != nil {
		t.Fatal(err)
	}
	writePEM(t, filepath.Join(dir, "tls.key"), "PRIVATE KEY", private)
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func writeCertificate(t *testing.T, file string, c, parent *x509.Certificate, key, by *ecdsa.PrivateKey) {
	t.Helper()
	text, err := x509.CreateCertificate(rand.Reader, c, parent, key.Public(), by)
	if err != nil {
		t.Fatal(err)
	}
	writePEM(t, file, "CERTIFICATE", text)
}

func writePEM(t *testing.T, file, kind string, text []byte) {
	t.Helper()
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: text}), 0o600); err != nil {
		t.Fatal(err)
	}
}
