package natsbus

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/pce-engine/pce/cluster"
)

// TestNoStorage has the server stop storing, as it does when its disk is full: calls
// end with a reason, though their contexts do not, and a new connection does.
func TestNoStorage(t *testing.T) {
	broker := startBroker(t, BrokerOptions{})
	b := connect(t, Options{URLs: broker.URL()})
	b.patience, b.stubborn = 50*time.Millisecond, 100*time.Millisecond
	contents := []byte("contents")
	sum := sha256.Sum256(contents)
	digest := hex.EncodeToString(sum[:])
	store := *broker.server.JetStreamConfig()
	store.StoreDir = filepath.Dir(store.StoreDir) // the server adds the name below it again
	if err := broker.server.DisableJetStream(); err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	for name, call := range map[string]func() error{
		"put":    func() error { _, err := b.Bucket(cluster.RunsBucket).Put(ctx, "r", nil); return err },
		"list":   func() error { _, err := b.Bucket(cluster.RunsBucket).List(ctx); return err },
		"blob":   func() error { return b.Blobs().Put(ctx, digest, bytes.NewReader(contents), int64(len(contents))) },
		"submit": func() error { return b.Jobs().Submit(ctx, "r", nil) },
		"follow": func() error { return b.Events().Follow(ctx, "r", func([]byte) bool { return true }) },
	} {
		if err := call(); !errors.Is(err, ErrStorage) || !errors.Is(err, cluster.ErrUnreachable) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want one line that matches ErrStorage", name, err)
		}
	}
	if err := broker.Problem(); err == nil || !strings.Contains(err.Error(), "has stopped storing") {
		t.Errorf("the broker says %v", err)
	}
	if raceDetector {
		t.Skip("the rest makes the server store again, which it does without a lock while requests come in; run it without -race")
	}
	// What is published meanwhile waits, and is stored when the server stores again.
	if err := b.Events().Publish("r", []byte("late")); err != nil {
		t.Fatal(err)
	}
	if err := broker.server.EnableJetStream(&store); err != nil {
		t.Fatal(err)
	}
	came := ""
	err := b.Events().Follow(within(t, 2*time.Minute), "r", func(event []byte) bool { came = string(event); return false })
	if err != nil || came != "late" {
		t.Errorf("after the server stores again: event %q, %v", came, err)
	}
}

// TestProblem wants a broker to say that its directory is gone or cannot be written.
func TestProblem(t *testing.T) {
	dir := t.TempDir()
	broker := startBroker(t, BrokerOptions{Dir: dir})
	b := connect(t, Options{URLs: broker.URL()})
	if _, err := b.Bucket(cluster.RunsBucket).Put(t.Context(), "r", []byte("x")); err != nil {
		t.Fatal(err)
	}
	if err := broker.Problem(); err != nil {
		t.Errorf("a sound broker: %v", err)
	}
	broker.log.Errorf("Filestore [%s] Critical write error: %v", "PCE_BLOBS", syscall.ENOSPC) // the other streams go on
	for range 2 {
		if err := broker.Problem(); err == nil || !strings.Contains(err.Error(), "[PCE_BLOBS] Critical write error: no space left on device; make room and start pce cluster up again") {
			t.Errorf("after a failed write: %v", err)
		}
	}
	broker.log.broken.Store(nil)
	if left, err := filepath.Glob(filepath.Join(dir, "jetstream", ".probe*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "jetstream")); err != nil {
		t.Fatal(err)
	}
	if err := broker.Problem(); err == nil || !strings.Contains(err.Error(), "files are gone") {
		t.Errorf("without its files: %v", err)
	}
}

// TestNoRoom connects to a broker whose disk cannot have all streams, and wants an error of a full
// disk that says how much is wanted.
func TestNoRoom(t *testing.T) {
	broker, err := start(&server.Options{
		ServerName: "pce", Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), JetStreamMaxStore: 24 << 20, NoSigs: true, NoLog: true,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer broker.Close()
	b, err := Connect(within(t, time.Minute), Options{URLs: broker.URL()})
	if err == nil {
		b.Close()
	}
	if !errors.Is(err, syscall.ENOSPC) || !errors.Is(err, cluster.ErrCluster) || !strings.Contains(err.Error(), "342 MiB of free disk") {
		t.Errorf("%v, want ENOSPC and the room that is wanted", err)
	}
}

// TestConnectInterrupted interrupts a connection whose broker has not answered yet: that was not waited for, so the error does not say that
// the broker does not store.
func TestConnectInterrupted(t *testing.T) {
	proxy := newLossy(t, startBroker(t, BrokerOptions{}))
	proxy.deafenAt(apiPrefix)
	ctx, cancel := context.WithCancel(t.Context())
	defer time.AfterFunc(300*time.Millisecond, cancel).Stop()
	_, err := Connect(ctx, Options{URLs: proxy.listener.Addr().String()})
	if !errors.Is(err, cluster.ErrUnreachable) || !errors.Is(err, context.Canceled) || errors.Is(err, ErrStorage) {
		t.Errorf("%v, want that the context ended, and nothing of the broker's storage", err)
	}
}
