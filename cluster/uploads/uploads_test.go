package uploads

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/cluster/simnet"
)

func digestOfText(content string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(content))) }

// upload notes contents for a run and uploads them.
func upload(t *testing.T, bus cluster.Bus, id string, contents ...string) {
	t.Helper()
	var digests []string
	for _, c := range contents {
		digests = append(digests, digestOfText(c))
	}
	if err := Note(t.Context(), bus, id, digests); err != nil {
		t.Fatal(err)
	}
	for i, c := range contents {
		if err := bus.Blobs().Put(t.Context(), digests[i], strings.NewReader(c), int64(len(c))); err != nil {
			t.Fatal(err)
		}
	}
}

// has reports whether the broker has contents.
func has(t *testing.T, bus cluster.Bus, content string) bool {
	t.Helper()
	err := bus.Blobs().Get(t.Context(), digestOfText(content), io.Discard)
	if err != nil && !errors.Is(err, cluster.ErrNoRecord) {
		t.Fatal(err)
	}
	return err == nil
}

// slowBus takes five seconds until it begins to remove contents.
type slowBus struct{ cluster.Bus }

type slowBlobs struct{ cluster.Blobs }

func (b slowBus) Blobs() cluster.Blobs { return slowBlobs{b.Bus.Blobs()} }

func (b slowBlobs) Delete(ctx context.Context, digest string) error {
	time.Sleep(5 * time.Second)
	return b.Blobs.Delete(ctx, digest)
}

// notes counts the notes that the broker has.
func notes(t *testing.T, bus cluster.Bus) int {
	t.Helper()
	list, err := bus.Bucket(cluster.RunsBucket).List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// stuckBus removes no contents whose digest is that of stuck.
type stuckBus struct {
	cluster.Bus
	stuck string
}

type stuckBlobs struct {
	cluster.Blobs
	stuck string
}

func (b stuckBus) Blobs() cluster.Blobs { return stuckBlobs{b.Bus.Blobs(), b.stuck} }

func (b stuckBlobs) Delete(ctx context.Context, digest string) error {
	if digest == digestOfText(b.stuck) {
		return cluster.ErrUnreachable
	}
	return b.Blobs.Delete(ctx, digest)
}

// TestRemovalFails removes uploads of which the broker does not let one go, and one has gone already: the
// note has what is left, and the next removal ends with neither contents nor note.
func TestRemovalFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := simnet.New(1, simnet.Faults{})
		bus := net.Host("c-up").Bus()
		upload(t, bus, "r-1", "a", "b", "c")
		if err := bus.Blobs().Delete(t.Context(), digestOfText("a")); err != nil {
			t.Fatal(err)
		}
		if err := Drop(t.Context(), stuckBus{bus, "b"}, "r-1"); !errors.Is(err, cluster.ErrUnreachable) {
			t.Errorf("removed with the error %v, want ErrUnreachable", err)
		}
		if left, err := Noted(t.Context(), bus, "r-1"); err != nil || !slices.Contains(left, digestOfText("b")) || slices.Contains(left, digestOfText("a")) {
			t.Errorf("the note has %v (%v), want what is left", left, err)
		}
		if err := Drop(t.Context(), bus, "r-1"); err != nil || has(t, bus, "b") || has(t, bus, "c") || notes(t, bus) != 0 {
			t.Errorf("removed with the error %v: b %v, c %v, %d notes; want none", err, has(t, bus, "b"), has(t, bus, "c"), notes(t, bus))
		}
	})
}

// TestUploadDuringRemoval uploads contents for a run while those of another one, which are the
// same, are being removed.
func TestUploadDuringRemoval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := simnet.New(1, simnet.Faults{})
		coordinator, client := net.Host("c-up").Bus(), net.Host("c-client").Bus()
		upload(t, coordinator, "r-1", "shared", "own")
		dropped := make(chan error, 2)
		for _, id := range []string{"r-1", "r-0"} {
			go func() { dropped <- Drop(t.Context(), slowBus{coordinator}, id) }()
		}
		time.Sleep(time.Second)
		upload(t, client, "r-2", "shared")
		for range 2 {
			if err := <-dropped; err != nil {
				t.Error(err)
			}
		}
		if !has(t, client, "shared") || has(t, client, "own") {
			t.Errorf("shared %v, own %v; want what the other run needs", has(t, client, "shared"), has(t, client, "own"))
		}
		if n := notes(t, client); n != 1 {
			t.Errorf("%d notes, want that of the other run", n)
		}
		if list, err := client.Bucket(cluster.LeadBucket).List(t.Context()); err != nil || len(list) != 0 {
			t.Errorf("%d records of removals stay (%v)", len(list), err)
		}
	})
}

// TestRemovalsTakeTurns removes the uploads of two runs at a time, one of them by a process that
// died: nothing is left.
func TestRemovalsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := simnet.New(1, simnet.Faults{})
		bus := net.Host("c-up").Bus()
		upload(t, bus, "r-1", "shared", "own")
		upload(t, bus, "r-2", "shared")
		if _, err := bus.Bucket(cluster.LeadBucket).Put(t.Context(), removalKey, []byte(`{"id":"dead"}`)); err != nil {
			t.Fatal(err)
		}
		dropped := make(chan error, 2)
		for _, id := range []string{"r-1", "r-2"} {
			go func() { dropped <- Drop(t.Context(), slowBus{bus}, id) }()
		}
		for range 2 {
			if err := <-dropped; err != nil {
				t.Error(err)
			}
		}
		if has(t, bus, "shared") || has(t, bus, "own") || notes(t, bus) != 0 {
			t.Errorf("shared %v, own %v, %d notes; want none", has(t, bus, "shared"), has(t, bus, "own"), notes(t, bus))
		}
	})
}

// lateBus answers to updates of the lead bucket half a second after they were carried out.
type lateBus struct{ cluster.Bus }

type lateBucket struct{ cluster.Bucket }

func (b lateBus) Bucket(name string) cluster.Bucket { return lateBucket{b.Bus.Bucket(name)} }

func (b lateBucket) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	next, err := b.Bucket.Update(ctx, key, value, revision)
	select {
	case <-time.After(500 * time.Millisecond):
		return next, err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// TestRemovalReleased removes uploads over a slow line: the right to do so is given back at the end, although the last update of its record
// was not waited for, and the next who needs contents does not wait for its lease.
func TestRemovalReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := simnet.New(1, simnet.Faults{})
		bus := net.Host("c-up").Bus()
		upload(t, bus, "r-1", "a")
		if err := Drop(t.Context(), lateBus{slowBus{bus}}, "r-1"); err != nil {
			t.Error(err)
		}
		if list, err := bus.Bucket(cluster.LeadBucket).List(t.Context()); err != nil || len(list) != 0 {
			t.Errorf("%d records of removals stay (%v)", len(list), err)
		}
	})
}
