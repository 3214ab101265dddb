package natsbus

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/pce-engine/pce/cluster"
)

// BrokerOptions say where the embedded broker listens and keeps its files.
type BrokerOptions struct {
	Dir        string // made with mode 0700
	Host       string // "": 127.0.0.1
	Port       int    // 0: any free one
	SyncAlways bool   // a write is on disk before it is confirmed
	Cert, Key  string // PEM files; "": no TLS
	Seats      []Seat // who may connect; none: everybody on this machine
	Logger     *slog.Logger
}

// Broker is a NATS server in this process.
type Broker struct {
	server *server.Server
	store  string // directory of its files
	given  *server.Options
	log    *serverLog
}

// StartBroker returns when the broker takes connections. What was in Dir is
// there again.
func StartBroker(opts BrokerOptions) (*Broker, error) {
	if opts.Host == "" {
		opts.Host = "127.0.0.1"
	}
	if !IsLoopback(opts.Host) && (opts.Cert == "" || len(opts.Seats) == 0) {
		return nil, fmt.Errorf("%w: a broker at %s can be reached from other machines: give it a certificate and credentials, or host 127.0.0.1",
			cluster.ErrCluster, opts.Host)
	}
	if opts.Port < 0 || opts.Port > 65535 {
		return nil, fmt.Errorf("%w: broker port %d: 0 to 65535 are ports", cluster.ErrCluster, opts.Port)
	}
	store := filepath.Join(opts.Dir, "jetstream")
	if err := privateDir(opts.Dir); err != nil {
		return nil, err
	}
	if err := privateDir(store); err != nil {
		return nil, err
	}
	settings := &server.Options{
		ServerName:             "pce",
		Host:                   opts.Host,
		Port:                   opts.Port,
		JetStream:              true,
		StoreDir:               store,
		SyncAlways:             opts.SyncAlways,
		NoSigs:                 true,
		NoLog:                  true,
		DisableJetStreamBanner: true,
	}
	if opts.Port == 0 {
		settings.Port = server.RANDOM_PORT
	}
	for _, s := range opts.Seats {
		settings.Nkeys = append(settings.Nkeys, s.user())
	}
	if opts.Cert != "" || opts.Key != "" {
		pair, err := tls.LoadX509KeyPair(opts.Cert, opts.Key)
		if err != nil {
			return nil, fmt.Errorf("%w of the broker, %s and %s: %w", ErrFile, opts.Cert, opts.Key, err)
		}
		settings.TLS = true
		settings.TLSTimeout = 5
		settings.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}}
	}
	return start(settings, opts.Logger)
}

func start(settings *server.Options, log *slog.Logger) (*Broker, error) {
	s, err := server.NewServer(settings)
	if err != nil {
		return nil, fmt.Errorf("%w: broker: %w", cluster.ErrCluster, err)
	}
	b := &Broker{server: s, store: settings.StoreDir, given: settings.Clone(), log: newServerLog(log)}
	s.SetLoggerV2(b.log, false, false, false)
	started := make(chan struct{})
	go func() {
		defer close(started)
		s.Start()
	}()
	for !s.ReadyForConnections(20 * time.Millisecond) {
		select {
		case why := <-b.log.fatal:
			<-started
			s.Shutdown()
			return nil, fmt.Errorf("%w: broker at %s: %s", cluster.ErrCluster,
				net.JoinHostPort(settings.Host, strconv.Itoa(settings.Port)), why)
		default:
		}
	}
	return b, nil
}

// privateDir makes a directory that no other user may read.
func privateDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("%w: %w", cluster.ErrCluster, err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("%w: %w", cluster.ErrCluster, err)
	}
	if !info.IsDir() {
		return fmt.Errorf("%w: %s is not a directory", cluster.ErrCluster, dir)
	}
	if info.Mode().Perm()&0o077 != 0 {
		if err := os.Chmod(dir, 0o700); err != nil {
			return fmt.Errorf("%w: %w", cluster.ErrCluster, err)
		}
	}
	return nil
}

// URL is where clients connect.
func (b *Broker) URL() string {
	return b.server.ClientURL()
}

// Port is the port that the broker listens at.
func (b *Broker) Port() int {
	if a, ok := b.server.Addr().(*net.TCPAddr); ok {
		return a.Port
	}
	return 0
}

// Admit changes who may connect. Connections of those who stay are kept.
func (b *Broker) Admit(seats []Seat) error {
	next := b.given.Clone()
	next.Port = b.Port()
	next.Nkeys = nil
	for _, s := range seats {
		next.Nkeys = append(next.Nkeys, s.user())
	}
	if err := b.server.ReloadOptions(next); err != nil {
		return fmt.Errorf("%w: broker: %w", cluster.ErrCluster, err)
	}
	return nil
}

// Problem says why the broker cannot keep what it is given, or nil if it can. The
// server continues with what it has in memory and in open files when its directory is
// removed, and notices a full disk only when it writes.
func (b *Broker) Problem() error {
	if !b.server.JetStreamEnabled() {
		return errors.New("the broker has stopped storing, as it does after its disk was full; make room and start pce cluster up again")
	}
	if _, err := os.Stat(filepath.Join(b.store, "jetstream")); err != nil {
		return fmt.Errorf("the broker's files are gone: %w; what it has is lost when it ends: stop pce cluster up and start it on another --dir", err)
	}
	if why := b.log.broken.Load(); why != nil {
		return fmt.Errorf("the broker has stopped storing: %s; make room and start pce cluster up again: its runs continue", *why)
	}
	f, err := os.Create(filepath.Join(b.store, ".probe"))
	if err != nil {
		return fmt.Errorf("the broker's directory takes no files: %w; make room", err)
	}
	defer os.Remove(f.Name())
	_, err = f.Write(make([]byte, probeBytes))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("the broker's disk takes nothing: %w; make room", err)
	}
	return nil
}

// probeBytes is what must find room on the broker's disk: more than a record, so that
// it is said before the server fails.
const probeBytes = 1 << 20

// Close stops the broker when everything is on disk.
func (b *Broker) Close() error {
	b.server.Shutdown()
	b.server.WaitForShutdown()
	return nil
}

// serverLog takes the server's log: what goes wrong as warnings, the rest for
// debugging.
type serverLog struct {
	log   *slog.Logger
	once  sync.Once
	fatal chan string // why the server could not start

	// broken is the first failed write that the server says is critical: the stream takes nothing
	// more until the server starts again, while others, such as those of small records, do.
	broken atomic.Pointer[string]
}

// criticalWrite is in what the server logs when a stream stops storing.
const criticalWrite = "Critical write error"

// handshakeError is in what the server logs of a connection that ends before both sides have agreed on keys.
const handshakeError = "TLS handshake error"

func newServerLog(log *slog.Logger) *serverLog {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &serverLog{log: log.With("part", "broker"), fatal: make(chan string, 1)}
}

func line(format string, v []any) string {
	return strings.Join(strings.Fields(fmt.Sprintf(format, v...)), " ")
}

func (l *serverLog) Noticef(format string, v ...any) { l.log.Debug(line(format, v)) }
func (l *serverLog) Debugf(format string, v ...any)  { l.log.Debug(line(format, v)) }
func (l *serverLog) Tracef(format string, v ...any)  { l.log.Debug(line(format, v)) }
func (l *serverLog) Warnf(format string, v ...any)   { l.log.Warn(line(format, v)) }
func (l *serverLog) Errorf(format string, v ...any) {
	text := line(format, v)
	if strings.Contains(text, criticalWrite) {
		l.broken.CompareAndSwap(nil, &text)
	}
	if strings.Contains(text, handshakeError) && (strings.HasSuffix(text, io.EOF.Error()) || strings.HasSuffix(text, syscall.ECONNRESET.Error())) {
		l.log.Debug(text) // who looks whether the port is open, as probes of Kubernetes do each ten seconds
		return
	}
	l.log.Warn(text)
}
func (l *serverLog) Fatalf(format string, v ...any) {
	l.once.Do(func() { l.fatal <- line(format, v) })
}
