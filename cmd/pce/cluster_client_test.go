package main

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pce-engine/pce/cluster/natsbus"
)

// TestWatchClients puts the key of a client where a running cluster finds it, first cut short as by a copy that is not done: it is
// refused once, and taken when it is whole. A file that is replaced by that of another key is taken, too.
func TestWatchClients(t *testing.T) {
	dir, other := filepath.Join(t.TempDir(), "seats"), t.TempDir()
	have, err := natsbus.NewSeats(dir, 1)
	if err != nil {
		t.Fatal(err)
	}
	var keys [2][]byte
	for i := range keys {
		file, err := natsbus.NewClient(filepath.Join(other, string(rune('a'+i))), "alice")
		if err != nil {
			t.Fatal(err)
		}
		if keys[i], err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		var admitted []string // public keys of alice
		stop := watchClients(t.Context(), dir, 1, have, func(seats []natsbus.Seat) error {
			for _, s := range seats {
				if s.Name == "alice" {
					admitted = append(admitted, s.Key)
				}
			}
			return nil
		}, slog.New(slog.NewTextHandler(&log, nil)))
		for i, step := range []struct {
			text []byte
			want int
		}{{keys[0][:9], 0}, {keys[0], 1}, {keys[0], 1}, {keys[1], 2}} {
			if i != 2 {
				file := filepath.Join(dir, "alice.nk")
				if err := os.WriteFile(file, step.text, 0o600); err != nil {
					t.Fatal(err)
				}
				at := time.Unix(int64(1e9+i), 0) // the clock of the file system may stand still
				if err := os.Chtimes(file, at, at); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(3500 * time.Millisecond)
			synctest.Wait()
			if len(admitted) != step.want {
				t.Fatalf("step %d: admitted %d times, want %d; the log says\n%s", i, len(admitted), step.want, &log)
			}
		}
		stop()
		if admitted[0] == admitted[1] {
			t.Error("the second key is not that of its file")
		}
		if n := strings.Count(log.String(), "has not taken it"); n != 1 {
			t.Errorf("refused %d times, want once:\n%s", n, &log)
		}
	})
}

// TestWatchClientsBesideABadKey removes the key of a client while that of another cannot be read: the broker keeps the first
// one out all the same, and lets a third one in.
func TestWatchClientsBesideABadKey(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "seats")
	for _, name := range []string{"alice", "bob", "carol"} {
		if _, err := natsbus.NewClient(dir, name); err != nil {
			t.Fatal(err)
		}
	}
	carol, err := os.ReadFile(filepath.Join(dir, "carol.nk"))
	if err == nil {
		err = os.Remove(filepath.Join(dir, "carol.nk"))
	}
	if err != nil {
		t.Fatal(err)
	}
	have, err := natsbus.NewSeats(dir, 1)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		var admitted []string
		stop := watchClients(t.Context(), dir, 1, have, func(seats []natsbus.Seat) error {
			admitted = nil
			for _, s := range seats {
				admitted = append(admitted, s.Name)
			}
			return nil
		}, slog.New(slog.DiscardHandler))
		defer stop()
		if err := errors.Join(
			os.Chmod(filepath.Join(dir, "bob.nk"), 0o644),
			os.Remove(filepath.Join(dir, "alice.nk")),
			os.WriteFile(filepath.Join(dir, "carol.nk"), carol, 0o600)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3500 * time.Millisecond)
		synctest.Wait()
		if want := []string{"coordinator", "client", "worker-000", "carol"}; !slices.Equal(admitted, want) {
			t.Errorf("admitted %v, want %v", admitted, want)
		}
	})
}

// TestWatchClientsFromStart makes the key of a client after the broker was started and before the keys are watched, as while the rest of
// the cluster starts: it is taken. Where all keys are those of the broker there is nothing to take.
func TestWatchClientsFromStart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "seats")
	before, err := natsbus.NewSeats(dir, 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := natsbus.NewClient(dir, "alice"); err != nil {
		t.Fatal(err)
	}
	after, err := natsbus.NewSeats(dir, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		have []natsbus.Seat
		want int
	}{{before, 1}, {after, 0}} {
		synctest.Test(t, func(t *testing.T) {
			admitted := 0
			stop := watchClients(t.Context(), dir, 1, tc.have, func(seats []natsbus.Seat) error {
				if len(seats) == len(after) {
					admitted++
				}
				return nil
			}, slog.New(slog.DiscardHandler))
			time.Sleep(3500 * time.Millisecond)
			stop()
			if admitted != tc.want {
				t.Errorf("with %d seats: admitted %d times, want %d", len(tc.have), admitted, tc.want)
			}
		})
	}
}
