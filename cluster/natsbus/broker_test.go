package natsbus

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/pce-engine/pce/cluster"
)

// certificate writes a certificate for loopback and its key.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	pair, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "broker"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &pair.PublicKey, pair)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(pair)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for file, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "EC PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

func TestTLS(t *testing.T) {
	t.Parallel()
	cert, key := certificate(t)
	seats := newSeats(t, t.TempDir(), 0)
	broker := startBroker(t, BrokerOptions{Host: "0.0.0.0", Cert: cert, Key: key, Seats: seats})
	url := fmt.Sprintf("tls://127.0.0.1:%d", broker.Port())
	b := connect(t, Options{URLs: url, CA: cert, Credentials: seats[0].File})
	if _, err := b.Conn().TLSConnectionState(); err != nil {
		t.Error(err)
	}
	_, err := Connect(within(t, 10*time.Second), Options{URLs: url, Credentials: seats[0].File})
	wantError(t, err, cluster.ErrCluster, "certificate")
}

// TestProbesQuietly: a broker with TLS does not warn of a connection that looks whether its port is open, and does of one that refuses
// its certificate.
func TestProbesQuietly(t *testing.T) {
	t.Parallel()
	cert, key := certificate(t)
	var log lockedBuffer
	broker := startBroker(t, BrokerOptions{Cert: cert, Key: key, Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	probe := func(do func(c net.Conn)) {
		t.Helper()
		before := strings.Count(log.String(), handshakeError)
		c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", broker.Port()))
		if err != nil {
			t.Fatal(err)
		}
		do(c)
		c.Close()
		for ctx := within(t, 10*time.Second); strings.Count(log.String(), handshakeError) == before; runtime.Gosched() {
			if ctx.Err() != nil {
				t.Fatalf("the broker does not notice the connection:\n%s", log.String())
			}
		}
	}
	probe(func(net.Conn) {})
	if text := log.String(); strings.Contains(text, "level=WARN") {
		t.Errorf("the broker warns:\n%s", text)
	}
	probe(func(c net.Conn) {
		if _, err := bufio.NewReader(c).ReadString('\n'); err != nil { // what the broker is
			t.Error(err)
		}
		if err := tls.Client(c, &tls.Config{ServerName: "127.0.0.1"}).HandshakeContext(t.Context()); err == nil {
			t.Error("a certificate that no known authority has signed is accepted")
		}
	})
	if text := log.String(); !strings.Contains(text, "level=WARN") {
		t.Errorf("the broker does not warn:\n%s", text)
	}
}

func TestBrokerOptions(t *testing.T) {
	t.Parallel()
	cert, key := certificate(t)
	seats := newSeats(t, t.TempDir(), 0)
	running := startBroker(t, BrokerOptions{})
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for what, o := range map[string]BrokerOptions{
		"open to all":         {Host: "0.0.0.0"},
		"without TLS":         {Host: "0.0.0.0", Seats: seats},
		"without credentials": {Host: "0.0.0.0", Cert: cert, Key: key},
		"by name":             {Host: "example.org"},
		"no port":             {Port: -1},
		"port in use":         {Port: running.Port()},
		"no certificate":      {Cert: file, Key: file},
		"a file":              {Dir: file},
	} {
		if o.Dir == "" {
			o.Dir = filepath.Join(t.TempDir(), "dir")
		}
		b, err := StartBroker(o)
		if err == nil {
			_ = b.Close()
			t.Errorf("%s: a broker runs", what)
			continue
		}
		wantError(t, err, cluster.ErrCluster)
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	for version, good := range map[string]bool{
		"2.11.0": true, "2.15.2": true, "3.0.0-beta": true, "2.11.0-RC.1": true,
		"2.10.29": false, "1.99.0": false, "": false, "2.11": false, "x.y.z": false,
	} {
		err := checkVersion(version)
		if good != (err == nil) {
			t.Errorf("%q: %v", version, err)
		}
		if !good {
			wantError(t, err, cluster.ErrCluster, "2.11")
		}
	}
}
