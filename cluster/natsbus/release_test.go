package natsbus

import (
	"testing"
	"time"
)

// TestReleasedOverRestart gives a job back and stops the broker: after its start the
// job is handed out at once, and one that another works on is not.
func TestReleasedOverRestart(t *testing.T) {
	dir := t.TempDir()
	const lease = 20 * time.Second // what the broker remembers of deliveries lasts three
	broker := startBroker(t, BrokerOptions{Dir: dir})
	b := connect(t, Options{URLs: broker.URL(), Lease: lease})
	ctx := within(t, lease)
	for _, id := range []string{"kept", "back"} {
		if err := b.Jobs().Submit(ctx, id, []byte(id)); err != nil {
			t.Fatal(err)
		}
		d, err := b.Jobs().Next(ctx)
		if err != nil || d.ID() != id {
			t.Fatalf("next job: %v, %v", d, err)
		}
		if id == "back" {
			if err := d.Release(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if err := broker.Close(); err != nil {
		t.Fatal(err)
	}
	broker = startBroker(t, BrokerOptions{Dir: dir})
	b = connect(t, Options{URLs: broker.URL(), Lease: lease, Restarted: true})
	d, err := b.Jobs().Next(ctx)
	if err != nil || d.ID() != "back" {
		t.Fatalf("next job after the restart: %v, %v; want the one that was given back", d, err)
	}
	if err := d.Done(ctx); err != nil {
		t.Error(err)
	}
}
