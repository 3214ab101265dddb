package natsbus

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/cluster/bustest"
)

const testLease = 750 * time.Millisecond

func startBroker(t *testing.T, opts BrokerOptions) *Broker {
	t.Helper()
	if opts.Dir == "" {
		opts.Dir = t.TempDir()
	}
	b, err := StartBroker(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b
}

func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func connect(t *testing.T, opts Options) *Bus {
	t.Helper()
	if opts.Lease == 0 {
		opts.Lease = testLease
	}
	b, err := Connect(within(t, time.Minute), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b
}

func wantError(t *testing.T, err error, class error, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	if !errors.Is(err, class) {
		t.Errorf("error %q does not match %q", err, class)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error %q lacks %q", err, w)
		}
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("error of several lines: %q", err)
	}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	for _, c := range bustest.Checks {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			broker := startBroker(t, BrokerOptions{SyncAlways: true})
			c.Run(t, bustest.Bench{
				Open: func(t *testing.T) cluster.Bus {
					return connect(t, Options{URLs: broker.URL()})
				},
				Lease: testLease,
				Sleep: time.Sleep,
			})
		})
	}
}
