package uploads

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
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
		if has(t, bus, "shared") || has(t, bus, "own") {
			t.Errorf("shared %v, own %v; want none", has(t, bus, "shared"), has(t, bus, "own"))
		}
	})
}
