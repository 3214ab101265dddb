package natsbus

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pce-engine/pce/cluster"
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

// TestLostWord has the answers to words of a taker lost, after which it does not ask again: the job is still its own, and can be
// worked on and given back. It is another's once that one has it.
func TestLostWord(t *testing.T) {
	t.Parallel()
	const lease = 20 * time.Second
	broker := startBroker(t, BrokerOptions{})
	proxy := newLossy(t, broker)
	other := connect(t, Options{URLs: broker.URL(), Lease: lease})
	b := connect(t, Options{URLs: proxy.listener.Addr().String(), Lease: lease})
	ctx := within(t, lease)
	if err := b.Jobs().Submit(ctx, "job", nil); err != nil {
		t.Fatal(err)
	}
	d, err := b.Jobs().Next(ctx)
	if err != nil {
		t.Fatal(err)
	}
	lose := func() {
		t.Helper()
		before, err := other.takes().Get(ctx, "job")
		if err != nil {
			t.Fatal(err)
		}
		call, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
		defer cancel()
		proxy.deafenAt(idHeader)
		if err := d.Working(call); !errors.Is(err, cluster.ErrUnreachable) {
			t.Fatalf("a word without an answer: %v", err)
		}
		if now, err := other.takes().Get(ctx, "job"); err != nil || now.Revision == before.Revision {
			t.Fatalf("the word was not heard: %v", err)
		}
		proxy.cut()
	}
	lose()
	if err := d.Working(ctx); err != nil {
		t.Errorf("working behind a word whose answer was lost: %v", err)
	}
	lose()
	if err := d.Release(ctx); err != nil {
		t.Errorf("release behind a word whose answer was lost: %v", err)
	}
	next, err := other.Jobs().Next(ctx)
	if err != nil || next.ID() != "job" {
		t.Fatalf("next job: %v, %v; want the one that was given back", next, err)
	}
	for what, do := range map[string]func(context.Context) error{"working": d.Working, "release": d.Release} {
		if err := do(ctx); !errors.Is(err, cluster.ErrConflict) {
			t.Errorf("%s, while another has the job: %v", what, err)
		}
	}
}

// TestWordBehindDone has a taker say that it works on a job when its record has vanished, as after a time without the broker, and another
// taker has done the job: it is not this taker's, and no record of it stays.
func TestWordBehindDone(t *testing.T) {
	t.Parallel()
	const lease = 20 * time.Second
	broker := startBroker(t, BrokerOptions{})
	b := connect(t, Options{URLs: broker.URL(), Lease: lease})
	ctx := within(t, lease)
	if err := b.Jobs().Submit(ctx, "job", nil); err != nil {
		t.Fatal(err)
	}
	d, err := b.Jobs().Next(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.takes().Delete(ctx, "job", 0); err != nil {
		t.Fatal(err)
	}
	if err := d.Working(ctx); err != nil {
		t.Errorf("working on a job that no other has taken: %v", err)
	}
	if err := b.takes().Delete(ctx, "job", 0); err != nil {
		t.Fatal(err)
	}
	other := *d.(*delivery)
	if err := other.remove(ctx); err != nil {
		t.Fatal(err)
	}
	late := func() { // a word that has written the record, whose answer was lost
		if _, err := b.takes().Create(ctx, "job", other.taker); err != nil {
			t.Fatal(err)
		}
	}
	for what, before := range map[string]func(){"the first word": func() {}, "a word behind a lost one": late} {
		before()
		if err := d.Working(ctx); !errors.Is(err, cluster.ErrConflict) {
			t.Errorf("%s on a job that another has done: %v, want ErrConflict", what, err)
		}
		if r, err := b.takes().Get(ctx, "job"); !errors.Is(err, cluster.ErrNoRecord) {
			t.Errorf("%s: the record of a taker is there: %+v, %v", what, r, err)
		}
	}
}
