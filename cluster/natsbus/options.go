package natsbus

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/pce-engine/pce/cluster"
)

// DefaultLease is how long a record of a member or of the lead lives unless it
// is written again.
const DefaultLease = 10 * time.Second

// Options say which broker to connect to, and as whom.
type Options struct {
	URLs        string        // of the servers, with commas; without passwords
	Credentials string        // file with an nkey seed, or with a JWT and its seed; "": none
	CA          string        // PEM file of those who sign servers' certificates; "": the system's
	ClientCert  string        // PEM files, for servers that ask for a certificate
	ClientKey   string        //
	Name        string        // of the connection, in the server's monitoring
	Lease       time.Duration // of members and the lead; 0: what the broker has, or DefaultLease
	Replicas    int           // of streams that are made; 0: 1
	// Restarted says that the broker has just been started: its memory of who was handed
	// which job is older than that and is cleared, so that jobs which were given back
	// are handed out at once. A job that is being worked on keeps its worker, which its record names.
	Restarted bool
	Logger    *slog.Logger // nil: none
}

// Errors that callers may test for with errors.Is; both match cluster.ErrCluster. What they name
// is wrong here, whatever the broker does.
var (
	ErrURL  = fmt.Errorf("%w: broker URL", cluster.ErrCluster)
	ErrFile = fmt.Errorf("%w: key or certificate", cluster.ErrCluster)
)

// servers checks the addresses of the brokers.
func (o Options) servers() ([]string, error) {
	var list []string
	for _, s := range strings.Split(o.URLs, ",") {
		s = strings.TrimSpace(s)
		if s == "" {
			continue
		}
		if !strings.Contains(s, "://") {
			s = "nats://" + s
		}
		u, err := url.Parse(s)
		switch {
		case err != nil || u.Host == "":
			// The text may hold a password, so it is not repeated.
			return nil, fmt.Errorf("%w cannot be read: write nats://HOST:PORT", ErrURL)
		case u.User != nil:
			return nil, fmt.Errorf("%w for %s holds a password: put credentials into a file", ErrURL, u.Host)
		case u.Scheme != "nats" && u.Scheme != "tls":
			return nil, fmt.Errorf("%w %s: the scheme must be nats or tls", ErrURL, s)
		}
		list = append(list, s)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%w is missing: write nats://HOST:PORT", ErrURL)
	}
	return list, nil
}

// identity reads the credentials. The public key is "" without any.
func (o Options) identity() (publicKey string, opts []nats.Option, err error) {
	if o.Credentials == "" {
		return "", nil, nil
	}
	data, err := readSmall(o.Credentials)
	if err != nil {
		return "", nil, fmt.Errorf("%w: %w", ErrFile, err)
	}
	defer clear(data)
	pair, err := nkeys.ParseDecoratedNKey(data)
	if err != nil {
		return "", nil, fmt.Errorf("%w %s: no nkey seed and no JWT credentials in it; give the NAME.nk of a member", ErrFile, o.Credentials)
	}
	defer pair.Wipe()
	publicKey, err = pair.PublicKey()
	if err != nil || !nkeys.IsValidPublicUserKey(publicKey) {
		return "", nil, fmt.Errorf("%w %s: not the key of a user; give the NAME.nk of a member", ErrFile, o.Credentials)
	}
	if bytes.Contains(data, []byte("BEGIN NATS USER JWT")) {
		return publicKey, []nats.Option{nats.UserCredentials(o.Credentials)}, nil
	}
	file := o.Credentials
	return publicKey, []nats.Option{nats.Nkey(publicKey, func(nonce []byte) ([]byte, error) { return sign(file, nonce) })}, nil
}

// sign reads the seed each time, so that it does not stay in memory.
func sign(file string, nonce []byte) ([]byte, error) {
	data, err := readSmall(file)
	if err != nil {
		return nil, err
	}
	defer clear(data)
	pair, err := nkeys.ParseDecoratedNKey(data)
	if err != nil {
		return nil, fmt.Errorf("%s: no nkey seed", file)
	}
	defer pair.Wipe()
	return pair.Sign(nonce)
}

// maxSmall bounds key and certificate files.
const maxSmall = 1 << 20

func readSmall(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxSmall {
		return nil, fmt.Errorf("%s: not a small regular file", path)
	}
	return os.ReadFile(path)
}

// security returns nil if the options say nothing about TLS.
func (o Options) security() (*tls.Config, error) {
	if o.CA == "" && o.ClientCert == "" && o.ClientKey == "" {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if o.CA != "" {
		pem, err := readSmall(o.CA)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrFile, err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%w %s: no certificate in PEM; give the file of those who sign the broker's", ErrFile, o.CA)
		}
	}
	if o.ClientCert != "" || o.ClientKey != "" {
		pair, err := tls.LoadX509KeyPair(o.ClientCert, o.ClientKey)
		if err != nil {
			return nil, fmt.Errorf("%w: client %s and %s: %w", ErrFile, o.ClientCert, o.ClientKey, err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// IsLoopback reports whether only this machine can reach the host.
func IsLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// refused reports whether the server does not want these credentials.
func refused(err error) bool {
	return errors.Is(err, nats.ErrAuthorization) || errors.Is(err, nats.ErrAuthExpired) ||
		errors.Is(err, nats.ErrAuthRevoked) || errors.Is(err, nats.ErrAccountAuthExpired)
}
