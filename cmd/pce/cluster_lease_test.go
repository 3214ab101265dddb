package main

import (
	"context"
	"testing"
	"time"

	"github.com/pce-engine/pce/cluster/natsbus"
)

// TestShortLease works on a job longer than the shortest lease lasts: another coordinator of the broker does not get it.
func TestShortLease(t *testing.T) {
	broker, err := natsbus.StartBroker(natsbus.BrokerOptions{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	var buses [2]*natsbus.Bus
	t.Cleanup(func() {
		for _, b := range buses {
			if b != nil {
				b.Close()
			}
		}
		broker.Close()
	})
	for i := range buses {
		if buses[i], err = natsbus.Connect(t.Context(), natsbus.Options{URLs: broker.URL(), Lease: time.Second}); err != nil {
			t.Fatal(err)
		}
	}
	begun, done := make(chan struct{}), make(chan struct{})
	tk := quietTaker(buses[0], func(ctx context.Context, _ string, _ []byte) error {
		close(begun)
		<-ctx.Done()
		return ctx.Err()
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer close(done)
		if _, err := tk.Work(ctx); err != nil {
			t.Error(err)
		}
	}()
	queued(t, buses[0], "r-1")
	<-begun
	short, stop := context.WithTimeout(t.Context(), 6*time.Second) // twice what the queue waits for a taker that has died
	if d, err := buses[1].Jobs().Next(short); err == nil {
		t.Errorf("run %s is handed out while it is worked on, attempt %d", d.ID(), d.Attempt())
	}
	stop()
	cancel()
	<-done
}
