package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/pce-engine/pce/cluster/natsbus"
)

// TestLeaseLeftOut starts a worker and a coordinator without --lease on a broker for which another has set one: it stays as it is.
func TestLeaseLeftOut(t *testing.T) {
	broker, err := natsbus.StartBroker(natsbus.BrokerOptions{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := broker.Close(); err != nil {
			t.Error(err)
		}
	})
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
