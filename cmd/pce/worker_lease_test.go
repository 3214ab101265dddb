package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pce-engine/pce/cluster/natsbus"
)

// startNATS starts a broker that ends with the test.
func startNATS(t *testing.T, o natsbus.BrokerOptions) *natsbus.Broker {
	t.Helper()
	broker, err := natsbus.StartBroker(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := broker.Close(); err != nil {
			t.Error(err)
		}
	})
	return broker
}

// TestLeaseDenied starts a worker with another --lease than the broker has and a key that may not set it: it lives by the broker's, or
// its record would vanish before it was written the next time.
func TestLeaseDenied(t *testing.T) {
	dir := t.TempDir()
	seats, err := natsbus.NewSeats(filepath.Join(dir, "seats"), 1)
	if err != nil {
		t.Fatal(err)
	}
	broker := startNATS(t, natsbus.BrokerOptions{Dir: filepath.Join(dir, "broker"), Seats: seats})
	coordinator, worker := seats[0], seats[2]
	bus, err := natsbus.Connect(t.Context(), natsbus.Options{URLs: broker.URL(), Credentials: coordinator.File, Lease: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer bus.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	log, err := os.Create(filepath.Join(dir, "log")) // a connection may still write when the command has ended
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	args := []string{"worker", "--cluster", broker.URL(), "--credentials", worker.File, "--dir", filepath.Join(dir, "w"), "--device", "cpu", "--threads", "1", "--lease", "40s"}
	code := Run(ctx, args, nil, strings.NewReader(""), io.Discard, io.MultiWriter(log, onLine{"worker started", cancel}))
	if text := string(readFile(t, log.Name())); code != exitCheckpointed || !strings.Contains(text, `msg="worker started" worker=worker-000 lease=20s `) {
		t.Errorf("it ends with %d, and says %s", code, text)
	}
}

// TestLeaseShortened gives the broker of a worker a shorter lease, as a cluster does that is restarted with another --lease: the worker
// joins anew and lives by it, or it would be taken for silent.
func TestLeaseShortened(t *testing.T) {
	defer func(before time.Duration) { leaseInterval = before }(leaseInterval)
	leaseInterval = 10 * time.Millisecond
	broker := startNATS(t, natsbus.BrokerOptions{Dir: t.TempDir()})
	dir := t.TempDir()
	log, err := os.Create(filepath.Join(dir, "log")) // a connection may still write when the command has ended
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	shorten := func() {
		bus, err := natsbus.Connect(ctx, natsbus.Options{URLs: broker.URL(), Lease: 2 * time.Second})
		if err != nil {
			t.Error(err)
			return
		}
		bus.Close()
	}
	args := []string{"worker", "--cluster", broker.URL(), "--id", "w0", "--dir", filepath.Join(dir, "w"), "--device", "cpu", "--threads", "1"}
	code := Run(ctx, args, nil, strings.NewReader(""), io.Discard, io.MultiWriter(log, onLine{"lease=10s", shorten}, onLine{`msg="worker started" worker=w0 lease=2s`, cancel}))
	if text := string(readFile(t, log.Name())); code != exitCheckpointed || !strings.Contains(text, `msg="worker started" worker=w0 lease=2s `) {
		t.Errorf("it ends with %d, and says %s", code, text)
	}
}

// TestLeaseLeftOut starts a worker and a coordinator without --lease on a broker for which another has set one: it stays as it is.
func TestLeaseLeftOut(t *testing.T) {
	broker := startNATS(t, natsbus.BrokerOptions{Dir: t.TempDir()})
	leaseOf := func(o natsbus.Options) time.Duration {
		o.URLs = broker.URL()
		bus, err := natsbus.Connect(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		defer bus.Close()
		return bus.Lease()
	}
	const lease = 20 * time.Second
	leaseOf(natsbus.Options{Lease: lease})
	for _, tc := range []struct {
		args  []string
		ready string
	}{
		{[]string{"worker", "--id", "w0", "--device", "cpu", "--threads", "1"}, "worker started"},
		{[]string{"cluster", "up", "--workers", "0"}, "cluster ready"},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		dir, ready, code := t.TempDir(), make(chan struct{}), make(chan int, 1)
		log := onLine{tc.ready, func() { close(ready) }}
		go func() {
			code <- Run(ctx, append(tc.args, "--cluster", broker.URL(), "--dir", dir), nil, strings.NewReader(""), log, log)
		}()
		select {
		case <-ready:
			cancel()
			<-code
		case got := <-code:
			t.Errorf("%s ends with %d before it is ready", tc.args[0], got)
		}
		cancel()
		if got := leaseOf(natsbus.Options{}); got != lease {
			t.Errorf("after %s the lease is %v, want %v", tc.args[0], got, lease)
		}
	}
}
