package job

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/cluster/simnet"
	"github.com/pce-engine/pce/cluster/uploads"
	"github.com/pce-engine/pce/internal/periodic"
)

func digestOfText(content string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(content))) }

// upload notes contents for a run and uploads them.
func upload(t *testing.T, bus cluster.Bus, id string, contents ...string) {
	t.Helper()
	var digests []string
	for _, c := range contents {
		digests = append(digests, digestOfText(c))
	}
	if err := uploads.Note(t.Context(), bus, id, digests); err != nil {
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

// work has a taker do the jobs of the queue for an hour.
func work(t *testing.T, bus cluster.Bus) {
	t.Helper()
	tk := &Taker{
		Bus: bus, Log: slog.New(slog.DiscardHandler), Code: func(string, error) int { return 0 },
		Run: func(context.Context, string, []byte) error { return nil },
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	if unfinished, err := tk.Work(ctx); unfinished || err != nil {
		t.Errorf("work = %v, %v", unfinished, err)
	}
}

// wantEmptyQueue wants no job to come any more.
func wantEmptyQueue(t *testing.T, bus cluster.Bus) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	if d, err := bus.Jobs().Next(ctx); err == nil {
		t.Errorf("run %s is still in the queue", d.ID())
	}
}

// TestManyUploadsEnd ends a run with a thousand uploads over a slow line: removing them takes
// longer than the time that one request has.
func TestManyUploadsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := simnet.New(1, simnet.Faults{})
		bus := net.Host("c-up").Bus()
		var contents []string
		for i := range 1000 {
			contents = append(contents, fmt.Sprint("file ", i))
		}
		upload(t, bus, "r-1", contents...)
		if err := bus.Jobs().Submit(t.Context(), "r-1", []byte("job")); err != nil {
			t.Fatal(err)
		}
		net.SetFaults(simnet.Faults{MinDelay: 100 * time.Millisecond, MaxDelay: 100 * time.Millisecond})
		work(t, bus)
		net.SetFaults(simnet.Faults{})
		wantEmptyQueue(t, bus)
		if _, err := bus.Bucket(cluster.RunsBucket).Get(t.Context(), uploads.Prefix+"r-1"); !errors.Is(err, cluster.ErrNoRecord) {
			t.Errorf("the note stays: %v", err)
		}
		left := slices.DeleteFunc(contents, func(c string) bool { return !has(t, bus, c) })
		if len(left) > 0 {
			t.Errorf("%d contents are left, as %q", len(left), left[0])
		}
	})
}

// stuckBus removes no contents of some digests: a request takes until its time is over.
type stuckBus struct {
	cluster.Bus
	stuck map[string]bool
}

type stuckBlobs struct {
	cluster.Blobs
	stuck map[string]bool
}

func (b stuckBus) Blobs() cluster.Blobs { return stuckBlobs{b.Bus.Blobs(), b.stuck} }

func (b stuckBlobs) Delete(ctx context.Context, digest string) error {
	if b.stuck[digest] {
		<-ctx.Done()
		return ctx.Err()
	}
	return b.Blobs.Delete(ctx, digest)
}

// TestUploadsStay cannot remove what was uploaded for a run: its job leaves the queue
// nevertheless, and its note keeps what is left, which the next taker removes.
func TestUploadsStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus := simnet.New(1, simnet.Faults{}).Host("c-up").Bus()
		upload(t, bus, "r-1", "a", "b", "c")
		if err := bus.Jobs().Submit(t.Context(), "r-1", []byte("job")); err != nil {
			t.Fatal(err)
		}
		work(t, stuckBus{bus, map[string]bool{digestOfText("b"): true}})
		wantEmptyQueue(t, bus)
		rec, err := bus.Bucket(cluster.RunsBucket).Get(t.Context(), uploads.Prefix+"r-1")
		if want := fmt.Sprintf("[%q]", digestOfText("b")); err != nil || string(rec.Value) != want {
			t.Errorf("note %s, %v, want %s", rec.Value, err, want)
		}
		if has(t, bus, "a") || has(t, bus, "c") {
			t.Error("contents are left that could be removed")
		}
		upload(t, bus, "r-2", "d") // of a run that is being submitted
		upload(t, bus, ledPrefix+"r-1", "e")
		now := time.Now()
		upload(t, bus, NewID(now.Add(-submitTime-time.Second))+"-client", "g") // of one who died half way
		upload(t, bus, NewID(now.Add(time.Minute-submitTime))+"-client", "h")
		upload(t, bus, ledPrefix+LocalPrefix+"r-3", "f") // of a run that failed once and is being resumed
		if err := PutRun(t.Context(), bus, &Record{RunStatus: cluster.RunStatus{Run: LocalPrefix + "r-3", State: StateFailed}}); err != nil {
			t.Fatal(err)
		}
		work(t, bus)
		for content, want := range map[string]bool{"b": false, "d": true, "e": false, "f": true, "g": false, "h": true} {
			if has(t, bus, content) != want {
				t.Errorf("the next taker leaves %s: %v, want %v", content, !want, want)
			}
		}
	})
}

// TestLedUploadsEnd ends a run in two attempts: all that its leads have uploaded is removed, by the second one or, where that knows
// nothing of the first or the run is cancelled or given up before it, by the taker. What another run needs stays.
func TestLedUploadsEnd(t *testing.T) {
	for name, tc := range map[string]struct {
		cancelled, over bool // else the second attempt is set back, too
	}{"done": {false, true}, "given up": {false, false}, "cancelled": {true, false}} {
		dir := t.TempDir()
		shared := func(content string) string {
			path := filepath.Join(dir, content)
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			return path
		}
		synctest.Test(t, func(t *testing.T) {
			bus := simnet.New(1, simnet.Faults{}).Host("c-up").Bus()
			upload(t, bus, "r-2", "rows of two runs")
			attempt := func(over bool, contents ...string) {
				l := &Lead{Bus: bus, ID: "r-1", Log: slog.New(slog.DiscardHandler)}
				for _, c := range contents {
					if _, err := l.ShareFile(t.Context(), shared(c)); err != nil {
						t.Fatal(err)
					}
				}
				spec, err := l.publish(t.Context(), [32]byte{}, contents, nil)
				if err != nil {
					t.Fatal(err)
				}
				if err := l.Close(t.Context(), over); err != nil {
					t.Fatal(err)
				}
				var body runBody
				if err := json.Unmarshal(spec.Body, &body); err != nil {
					t.Fatal(err)
				}
				if err := bus.Blobs().Get(t.Context(), body.Description.Digest, io.Discard); (err == nil) == over {
					t.Errorf("%s: the description after an attempt that is over %v: %v", name, over, err)
				}
			}
			attempt(false, "model", "rows of two runs")
			if !has(t, bus, "model") {
				t.Errorf("%s: the model is removed though the run continues", name)
			}
			if !tc.cancelled {
				attempt(tc.over, "profile")
			}
			if tc.over && has(t, bus, "model") {
				t.Errorf("%s: the model of an earlier attempt is left", name)
			}
			if err := PutRun(t.Context(), bus, &Record{RunStatus: cluster.RunStatus{Run: "r-1", State: StateInterrupted}}); err != nil {
				t.Fatal(err)
			}
			if err := bus.Jobs().Submit(t.Context(), "r-1", []byte("job")); err != nil {
				t.Fatal(err)
			}
			if tc.cancelled {
				if atOnce, err := RequestCancel(t.Context(), bus, "r-1", 130); !atOnce || err != nil {
					t.Fatalf("cancel: %v, %v", atOnce, err)
				}
			}
			work(t, bus)
			wantEmptyQueue(t, bus)
			for _, content := range []string{"model", "profile"} {
				if has(t, bus, content) {
					t.Errorf("%s: the %s is left", name, content)
				}
			}
			if !has(t, bus, "rows of two runs") {
				t.Errorf("%s: what another run needs is removed", name)
			}
			if left, err := uploads.Noted(t.Context(), bus, ledPrefix+"r-1"); len(left) > 0 || err != nil {
				t.Errorf("%s: the note stays, with %v, %v", name, left, err)
			}
		})
	}
}

// TestUploadsOfLeft cancels a run that pce train --cluster has left: what its lead had uploaded goes, and what the taker of a run of the
// queue removes stays until then.
func TestUploadsOfLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus := simnet.New(1, simnet.Faults{}).Host("c-up").Bus()
		for _, run := range [][2]string{{"r-2", "queued"}, {LocalPrefix + "r-1", "left"}} {
			id := run[0]
			upload(t, bus, ledPrefix+id, run[1], "shared")
			if err := PutRun(t.Context(), bus, &Record{RunStatus: cluster.RunStatus{Run: id, State: StateInterrupted}}); err != nil {
				t.Fatal(err)
			}
			if atOnce, err := RequestCancel(t.Context(), bus, id, 130); !atOnce || err != nil {
				t.Errorf("%s: cancelled %v, %v", id, atOnce, err)
			}
		}
		if has(t, bus, "left") || !has(t, bus, "queued") || !has(t, bus, "shared") {
			t.Errorf("left %v, queued %v, shared %v; want the last two", has(t, bus, "left"), has(t, bus, "queued"), has(t, bus, "shared"))
		}
	})
}

// TestUploadsOfCancelled cancels a run that pce train --cluster has left, of whose uploads the broker does not let go: cancelled once more, it
// leaves none, and a process that waits to continue it is asked to end.
func TestUploadsOfCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus, id := simnet.New(1, simnet.Faults{}).Host("c-up").Bus(), LocalPrefix+"r-1"
		upload(t, bus, ledPrefix+id, "left")
		if err := PutRun(t.Context(), bus, &Record{RunStatus: cluster.RunStatus{Run: id, State: StateInterrupted}}); err != nil {
			t.Fatal(err)
		}
		if atOnce, err := RequestCancel(t.Context(), stuckBus{bus, map[string]bool{digestOfText("left"): true}}, id, 130); !atOnce || err == nil {
			t.Errorf("cancelled %v, %v; want word of the uploads that stay", atOnce, err)
		}
		if err := ForgetCancel(t.Context(), bus, id); err != nil { // as a process does that continues it
			t.Fatal(err)
		}
		watched, stop := WatchCancel(t.Context(), bus, id)
		defer stop()
		if atOnce, err := RequestCancel(t.Context(), bus, id, 130); !atOnce || err != nil || has(t, bus, "left") {
			t.Errorf("once more: cancelled %v, %v, uploads there %v", atOnce, err, has(t, bus, "left"))
		}
		<-time.After(2 * cancelInterval)
		if !errors.Is(context.Cause(watched), ErrCancelled) {
			t.Errorf("the process that waits is asked %v, want to end", context.Cause(watched))
		}
	})
}

// TestUploadsAfterCancel cancels a run while a process that continues it uploads what it waits with: what comes after the note was removed goes,
// too, when that process ends.
func TestUploadsAfterCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus, id := simnet.New(1, simnet.Faults{}).Host("c-up").Bus(), LocalPrefix+"r-1"
		if err := PutRun(t.Context(), bus, &Record{RunStatus: cluster.RunStatus{Run: id, State: StateInterrupted}}); err != nil {
			t.Fatal(err)
		}
		l := &Lead{Bus: bus, ID: id, Log: slog.New(slog.DiscardHandler)}
		if err := l.note(t.Context(), digestOfText("rows")); err != nil {
			t.Fatal(err)
		}
		if atOnce, err := RequestCancel(t.Context(), bus, id, 130); !atOnce || err != nil {
			t.Errorf("cancelled %v, %v", atOnce, err)
		}
		if err := bus.Blobs().Put(t.Context(), digestOfText("rows"), strings.NewReader("rows"), 4); err != nil {
			t.Fatal(err)
		}
		if err := l.Close(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		if left, err := uploads.Noted(t.Context(), bus, ledPrefix+id); has(t, bus, "rows") || len(left) > 0 || err != nil {
			t.Errorf("rows there %v, noted %v, %v; want none", has(t, bus, "rows"), left, err)
		}
	})
}

// TestUploadsOfKilled cancels a run of pce train --cluster whose process was killed, which its record does not say: what it had uploaded goes
// unless a process leads it, which renews its lead. That of a process that was killed ends with its lease, and that is waited for.
func TestUploadsOfKilled(t *testing.T) {
	for _, tc := range []struct {
		led     string // the run that the lead is of; "": none has it
		renewed bool
		want    bool
	}{{"", false, true}, {"r-2", true, true}, {LocalPrefix + "r-1", true, false}, {LocalPrefix + "r-1", false, true}} {
		led, want := tc.led, tc.want
		synctest.Test(t, func(t *testing.T) {
			bus, id := simnet.New(1, simnet.Faults{}).Host("c-up").Bus(), LocalPrefix+"r-1"
			upload(t, bus, ledPrefix+id, "left")
			if err := PutRun(t.Context(), bus, &Record{RunStatus: cluster.RunStatus{Run: id, State: StateRunning}}); err != nil {
				t.Fatal(err)
			}
			if led != "" {
				holder, err := json.Marshal(cluster.Holder{ID: "c-1", Run: led})
				if err != nil {
					t.Fatal(err)
				}
				renew := func(ctx context.Context) {
					if _, err := bus.Bucket(cluster.LeadBucket).Put(ctx, cluster.LeadKey, holder); err != nil && ctx.Err() == nil {
						t.Error(err)
					}
				}
				if renew(t.Context()); tc.renewed {
					defer periodic.Start(t.Context(), cluster.DefaultLease/4, renew)()
				}
			}
			if atOnce, err := RequestCancel(t.Context(), bus, id, 130); atOnce != want || err != nil || has(t, bus, "left") == want {
				t.Errorf("led %q, renewed %v: cancelled %v, %v, uploads there %v; want %v", led, tc.renewed, atOnce, err, has(t, bus, "left"), want)
			}
		})
	}
}

// TestUploadsOfFailed cancels runs of pce train --cluster that have failed: what one has left goes, and one that has left nothing is over.
func TestUploadsOfFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus, id := simnet.New(1, simnet.Faults{}).Host("c-up").Bus(), LocalPrefix+"r-1"
		if err := PutRun(t.Context(), bus, &Record{RunStatus: cluster.RunStatus{Run: id, State: StateFailed, Error: "the lead was lost"}}); err != nil {
			t.Fatal(err)
		}
		if _, err := RequestCancel(t.Context(), bus, id, 130); !errors.Is(err, ErrNoRun) {
			t.Errorf("one that has left nothing: %v, want that it has failed already", err)
		}
		upload(t, bus, ledPrefix+id, "left")
		if atOnce, err := RequestCancel(t.Context(), bus, id, 130); !atOnce || err != nil || has(t, bus, "left") {
			t.Errorf("cancelled %v, %v, uploads there %v; want none", atOnce, err, has(t, bus, "left"))
		}
		if r, _, err := GetRun(t.Context(), bus, id); err != nil || r.State != StateCancelled || r.Code != 130 || r.Error != "" {
			t.Errorf("record %+v, %v; want that it was cancelled, and no other end", r, err)
		}
	})
}
