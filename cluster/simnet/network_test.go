package simnet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pce-engine/pce/cluster"
)

// within runs f in virtual time with a network.
func within(t *testing.T, seed uint64, f Faults, do func(t *testing.T, n *Network)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n := New(seed, f)
		if testing.Verbose() {
			n.SetTrace(func(event string) { t.Log(event) })
		}
		do(t, n)
	})
}

// heard are messages that have come.
type heard struct {
	mu   sync.Mutex
	list []string
	at   []time.Time
}

func (h *heard) hear(m []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.list = append(h.list, string(m))
	h.at = append(h.at, time.Now())
}

func (h *heard) all() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.list)
}

func listen(t *testing.T, b cluster.Bus, address string, handle func([]byte)) func() {
	t.Helper()
	stop, err := b.Listen(address, handle)
	if err != nil {
		t.Fatal(err)
	}
	return stop
}

func send(t *testing.T, b cluster.Bus, to, m string) {
	t.Helper()
	if err := b.Send(to, []byte(m)); err != nil {
		t.Fatal(err)
	}
}

func TestFaults(t *testing.T) {
	const sent = 2000
	for _, tc := range []struct {
		name     string
		faults   Faults
		min, max int // messages that come
		from, to time.Duration
		ordered  bool
	}{
		{"perfect", Faults{}, sent, sent, 0, 0, true},
		{"all lost", Faults{Drop: 1}, 0, 0, 0, 0, true},
		// Two ways of ½ each: 500 of 2000, with a deviation of 19.
		{"half lost", Faults{Drop: 0.5}, 400, 600, 0, 0, true},
		// Each way doubles: 4 of each.
		{"all doubled", Faults{Duplicate: 1}, 4 * sent, 4 * sent, 0, 0, true},
		{"same delay", Faults{MinDelay: time.Second, MaxDelay: time.Second}, sent, sent, 2 * time.Second, 2 * time.Second, true},
		{"delays", Faults{MinDelay: time.Second, MaxDelay: 2 * time.Second}, sent, sent, 2 * time.Second, 4 * time.Second, false},
		{"late", Faults{Late: 0.1, LateBy: time.Minute}, sent, sent, 0, 2 * time.Minute, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := New(7, tc.faults)
				var h heard
				listen(t, n.Host("b").Bus(), "inbox", h.hear)
				start := time.Now()
				for i := range sent {
					send(t, n.Host("a").Bus(), "inbox", fmt.Sprintf("%05d", i))
				}
				time.Sleep(10 * time.Minute)
				synctest.Wait()
				if got := len(h.list); got < tc.min || got > tc.max {
					t.Errorf("%d messages came, want %d to %d", got, tc.min, tc.max)
				}
				if got := slices.IsSorted(h.list); got != tc.ordered {
					t.Errorf("in order: %v, want %v", got, tc.ordered)
				}
				for _, at := range h.at {
					if took := at.Sub(start); took < tc.from || took > tc.to {
						t.Fatalf("a message took %v, want %v to %v", took, tc.from, tc.to)
					}
				}
			})
		})
	}
}

func TestSetFaults(t *testing.T) {
	within(t, 1, Faults{Drop: 1}, func(t *testing.T, n *Network) {
		var h heard
		listen(t, n.Host("b").Bus(), "b", h.hear)
		send(t, n.Host("a").Bus(), "b", "lost")
		n.SetFaults(Faults{})
		send(t, n.Host("a").Bus(), "b", "kept")
		synctest.Wait()
		if got := h.all(); !slices.Equal(got, []string{"kept"}) {
			t.Errorf("heard %q", got)
		}
	})
}

func TestListenOneAtATime(t *testing.T) {
	within(t, 1, Faults{}, func(t *testing.T, n *Network) {
		a := n.Host("a").Bus()
		in, most, calls := 0, 0, 0
		stop := listen(t, a, "x", func(m []byte) {
			in++
			most = max(most, in)
			calls++
			m[0] = '!' // belongs to this call alone
			time.Sleep(time.Second)
			in--
		})
		var other heard
		listen(t, a, "x", func(m []byte) {
			time.Sleep(1500 * time.Millisecond)
			other.hear(m)
		})
		for range 5 {
			send(t, n.Host("b").Bus(), "x", "m")
		}
		time.Sleep(2500 * time.Millisecond)
		stop()
		time.Sleep(time.Minute)
		synctest.Wait()
		if most != 1 || calls != 3 {
			t.Errorf("%d calls, %d at once; want 3, 1 at once", calls, most)
		}
		if got := other.all(); !slices.Equal(got, []string{"m", "m", "m", "m", "m"}) {
			t.Errorf("the other listener heard %q", got)
		}
		if err := a.Send("x", make([]byte, a.MaxPayload()+1)); err == nil {
			t.Error("a message above MaxPayload was taken")
		}
	})
}

func TestLinks(t *testing.T) {
	within(t, 1, Faults{MinDelay: time.Millisecond}, func(t *testing.T, n *Network) {
		a, b := n.Host("a").Bus(), n.Host("b").Bus()
		var h heard
		listen(t, b, "b", h.hear)
		try := func(what string, want bool) {
			t.Helper()
			before := len(h.all())
			send(t, a, "b", what)
			time.Sleep(time.Second)
			if got := len(h.all()) > before; got != want {
				t.Errorf("%s: came %v, want %v", what, got, want)
			}
		}
		try("whole", true)
		n.Cut("a", Broker)
		try("sender cut", false)
		n.Heal("a", Broker)
		try("healed", true)
		n.CutOneWay("b", Broker)
		try("from the receiver cut", true)
		n.CutOneWay(Broker, "b")
		try("to the receiver cut", false)
		n.HealAll()
		try("all healed", true)
		n.Isolate("b")
		try("isolated", false)
		n.Rejoin("b")
		try("joined again", true)
		n.StopBroker()
		try("no broker", false)
		n.StartBroker()
		try("a broker again", true)

		// The link has to be there at the beginning, too.
		n.Cut("a", Broker)
		early := len(h.all())
		send(t, a, "b", "too early")
		n.HealAll()
		time.Sleep(time.Second)
		if len(h.all()) != early {
			t.Error("a message waited for the link")
		}

		// What is under way is lost, even if the link is up again in time.
		before := len(h.all())
		send(t, a, "b", "under way")
		n.StopBroker()
		n.StartBroker()
		time.Sleep(time.Second)
		if len(h.all()) != before {
			t.Error("a message survived the broker")
		}
	})
}

func TestCrash(t *testing.T) {
	within(t, 1, Faults{MinDelay: time.Millisecond}, func(t *testing.T, n *Network) {
		old := n.Host("a")
		if n.Host("a") != old {
			t.Fatal("a living host has two lives")
		}
		var before, after, slow heard
		listen(t, old.Bus(), "a", before.hear)
		listen(t, old.Bus(), "slow", func(m []byte) {
			slow.hear(m)
			time.Sleep(10 * time.Second)
		})
		send(t, n.Host("b").Bus(), "slow", "handled")
		send(t, n.Host("b").Bus(), "slow", "queued")
		time.Sleep(time.Second)
		failed := make(chan error)
		go func() {
			_, err := old.Bus().Jobs().Next(t.Context())
			failed <- err
		}()
		go func() {
			failed <- old.Bus().Events().Follow(t.Context(), "run", func([]byte) bool { return true })
		}()
		send(t, old.Bus(), "b", "under way")
		var b heard
		listen(t, n.Host("b").Bus(), "b", b.hear)
		synctest.Wait()
		n.Crash("a")
		for range 2 {
			if err := <-failed; !errors.Is(err, cluster.ErrUnreachable) {
				t.Errorf("a waiting call of a crashed host: %v", err)
			}
		}
		select {
		case <-old.Crashed():
		default:
			t.Error("Crashed is open")
		}
		young := n.Host("a")
		if young == old || young.Peers().Endpoint() == old.Peers().Endpoint() {
			t.Fatal("the new life is the old one")
		}
		listen(t, young.Bus(), "a", after.hear)
		send(t, n.Host("b").Bus(), "a", "m")
		if err := old.Bus().Send("b", nil); !errors.Is(err, cluster.ErrUnreachable) {
			t.Errorf("Send of a dead life: %v", err)
		}
		if _, err := old.Bus().Listen("b", func([]byte) {}); !errors.Is(err, cluster.ErrUnreachable) {
			t.Errorf("Listen of a dead life: %v", err)
		}
		// A loop over this must not stop the time.
		start := time.Now()
		if _, err := old.Bus().Bucket(cluster.RunsBucket).List(t.Context()); !errors.Is(err, cluster.ErrUnreachable) || time.Since(start) == 0 {
			t.Errorf("List of a dead life: %v after %v", err, time.Since(start))
		}
		time.Sleep(time.Second)
		time.Sleep(time.Minute)
		if got := slow.all(); !slices.Equal(got, []string{"handled"}) {
			t.Errorf("the dead life handled %q", got)
		}
		if got := before.all(); len(got) != 0 {
			t.Errorf("the dead life heard %q", got)
		}
		if got := after.all(); !slices.Equal(got, []string{"m"}) {
			t.Errorf("the new life heard %q", got)
		}
		if got := b.all(); len(got) != 0 {
			t.Errorf("from the dead life came %q", got)
		}
	})
}

// TestSeed lets a schedule run again.
func TestSeed(t *testing.T) {
	run := func(seed uint64) string {
		var events strings.Builder
		synctest.Test(t, func(t *testing.T) {
			n := New(seed, Faults{Drop: 0.2, Duplicate: 0.2, MinDelay: time.Millisecond, MaxDelay: time.Second, Late: 0.1, LateBy: time.Minute})
			n.SetTrace(func(event string) { events.WriteString(event + "\n") })
			a, b := n.Host("a").Bus(), n.Host("b").Bus()
			listen(t, a, "a", func([]byte) {})
			for i := range 30 {
				if _, err := a.Bucket(cluster.RunsBucket).Put(context.Background(), "k", []byte{byte(i)}); err != nil {
					t.Error(err)
				}
				send(t, b, "a", fmt.Sprint(i))
			}
			time.Sleep(time.Hour)
			synctest.Wait()
		})
		return events.String()
	}
	if a, b := run(5), run(5); a != b || len(a) < 1000 {
		t.Errorf("a seed gave two schedules:\n%s\n%s", a, b)
	}
	if run(5) == run(6) {
		t.Error("two seeds gave one schedule")
	}
}
