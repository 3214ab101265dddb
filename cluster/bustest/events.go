package bustest

import (
	"context"
	"testing"
)

// eventsCheck: who follows gets what was kept, then what comes.
func eventsCheck(t *testing.T, b Bench) {
	ctx := b.limited(t)
	x, y := b.Open(t).Events(), b.Open(t).Events()
	const before, after = 10, 10
	publish := func(i int) {
		t.Helper()
		fatal(t, "publish", x.Publish("bt-run", []byte(name("e", i))))
		fatal(t, "publish", x.Publish("bt-other", []byte("other")))
	}
	for i := range before {
		publish(i)
	}
	// The first to follow waits until all are stored, the second starts then.
	for round := range 2 {
		reached := make(chan struct{})
		ended := make(chan error, 1)
		next := 0
		total := before + after*round
		go func() {
			ended <- y.Follow(ctx, "bt-run", func(event []byte) bool {
				if got, want := string(event), name("e", next); got != want {
					t.Errorf("event %q, want %q", got, want)
				}
				if next++; next == total {
					close(reached)
				}
				return next < total+after
			})
		}()
		<-reached
		for i := range after {
			publish(total + i)
		}
		fatal(t, "follow", <-ended)
	}

	// Who reads gets what is there, and does not wait for more.
	for _, most := range []int{before + 2*after, 3} {
		got := 0
		fatal(t, "read", y.Read(ctx, "bt-run", func(event []byte) bool {
			if have, want := string(event), name("e", got); have != want {
				t.Errorf("event %q, want %q", have, want)
			}
			got++
			return got < most
		}))
		if got != most {
			t.Errorf("read %d events, want %d", got, most)
		}
	}
	fatal(t, "read", y.Read(ctx, "bt-silent", func([]byte) bool {
		t.Error("an event of a run that has none")
		return false
	}))

	silent, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = y.Follow(silent, "bt-silent", func([]byte) bool {
			t.Error("an event of a run that has none")
			return false
		})
	}()
	b.Sleep(b.Lease / 4)
	stop()
	<-ended
}
