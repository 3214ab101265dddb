package bustest

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pce-engine/pce/cluster"
)

// inbox collects messages, and sees whether two come at a time.
type inbox struct {
	mu       sync.Mutex
	got      [][]byte
	inside   atomic.Int32
	together atomic.Bool
}

func (i *inbox) handle(m []byte) {
	if i.inside.Add(1) > 1 {
		i.together.Store(true)
	}
	defer i.inside.Add(-1)
	i.mu.Lock()
	defer i.mu.Unlock()
	i.got = append(i.got, bytes.Clone(m))
}

func (i *inbox) has(m []byte) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, g := range i.got {
		if bytes.Equal(g, m) {
			return true
		}
	}
	return false
}

func (i *inbox) len() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return len(i.got)
}

// deliver sends until the message is there: one may get lost.
func deliver(t *testing.T, b Bench, from cluster.Bus, to string, box *inbox, m []byte) {
	t.Helper()
	b.eventually(t, "message to "+to, func() bool {
		if box.has(m) {
			return true
		}
		fatal(t, "send", from.Send(to, m))
		return false
	})
}

func messages(t *testing.T, b Bench) {
	x, y := b.Open(t), b.Open(t)
	var one, two, other inbox
	stop, err := x.Listen("c-bt-one", one.handle)
	fatal(t, "listen", err)
	defer stop()
	stopTwo, err := y.Listen("c-bt-one", two.handle)
	fatal(t, "listen", err)
	defer stopTwo()
	stopOther, err := y.Listen("c-bt-one-more", other.handle)
	fatal(t, "listen", err)
	defer stopOther()

	for i := range 8 {
		deliver(t, b, y, "c-bt-one", &one, []byte(name("m", i)))
		deliver(t, b, x, "c-bt-one", &two, []byte(name("n", i)))
	}
	deliver(t, b, y, "c-bt-one", &one, nil)
	if one.together.Load() || two.together.Load() {
		t.Error("messages of an address are handled two at a time")
	}
	if n := other.len(); n != 0 {
		t.Errorf("%d messages came to another address", n)
	}
	fatal(t, "send without a listener", x.Send("c-bt-none", []byte("x")))

	stop()
	stop() // harmless
	before := one.len()
	deliver(t, b, x, "c-bt-one", &two, []byte("last"))
	if one.len() != before {
		t.Error("a message came after the end of listening")
	}
}

func messageSize(t *testing.T, b Bench) {
	x := b.Open(t)
	n := x.MaxPayload()
	if n < 64<<10 {
		t.Fatalf("messages of %d bytes at most: too few", n)
	}
	var box inbox
	stop, err := x.Listen("c-bt-size", box.handle)
	fatal(t, "listen", err)
	defer stop()
	deliver(t, b, x, "c-bt-size", &box, bytes.Repeat([]byte{7}, n))
	err = x.Send("c-bt-size", make([]byte, n+1))
	matches(t, "message that is too long", err, cluster.ErrCluster)
	matches(t, "job that is too long", x.Jobs().Submit(t.Context(), "bt-size", make([]byte, n+1)), cluster.ErrCluster)
	matches(t, "event that is too long", x.Events().Publish("bt-size", make([]byte, n+1)), cluster.ErrCluster)
	_, err = x.Bucket(cluster.RunsBucket).Put(t.Context(), "bt-size", make([]byte, n+1))
	matches(t, "record that is too long", err, cluster.ErrCluster)
	// Of the longest messages the broker may count more than their bytes; what it does not take is refused as those above.
	for _, short := range []int{0, 20, 100} {
		if _, err := x.Bucket(cluster.RunsBucket).Put(t.Context(), "bt-most", make([]byte, n-short)); err != nil {
			matches(t, "longest record", err, cluster.ErrCluster)
		}
	}
	fatal(t, "delete the longest record", x.Bucket(cluster.RunsBucket).Delete(t.Context(), "bt-most", 0))
	deliver(t, b, x, "c-bt-size", &box, []byte("still alive"))
}

// badNames are neither addresses nor keys.
var badNames = []string{"", ".", "a.b", "a b", "a*", ">", "a/b", "ä", "a\nb"}

func addresses(t *testing.T, b Bench) {
	x := b.Open(t)
	for _, to := range []string{"c", "c-", "c--x", "c-_", "-c-bt", "C-9"} {
		var box inbox
		stop, err := x.Listen(to, box.handle)
		fatal(t, "listen at "+to, err)
		deliver(t, b, x, to, &box, []byte("at "+to))
		stop()
	}
}

func endedContext(t *testing.T, b Bench) {
	x := b.Open(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := x.Bucket(cluster.RunsBucket).Get(ctx, "bt-ended")
	matches(t, "get", err, cluster.ErrUnreachable)
	_, err = x.Bucket(cluster.RunsBucket).Put(ctx, "bt-ended", nil)
	matches(t, "put", err, cluster.ErrUnreachable)
	matches(t, "submit", x.Jobs().Submit(ctx, "bt-ended", nil), cluster.ErrUnreachable)
	_, err = x.Jobs().Next(ctx)
	oneLine(t, "next", err)
	matches(t, "blob", x.Blobs().Put(ctx, digest(nil), strings.NewReader(""), 0), cluster.ErrUnreachable)
	if _, err := x.Bucket("nonsense").Get(t.Context(), "k"); err == nil {
		t.Error("there is a bucket nonsense")
	}
}
