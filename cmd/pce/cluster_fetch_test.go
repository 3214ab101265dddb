package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/cluster/job"
)

// endRun writes the record of a run in a state.
func endRun(t *testing.T, bus cluster.Bus, id, state string) {
	t.Helper()
	if err := job.PutRun(t.Context(), bus, &job.Record{RunStatus: cluster.RunStatus{Run: id, State: state, Out: "/there"}}); err != nil {
		t.Fatal(err)
	}
}

// partingBus sends no word that files have come.
type partingBus struct{ cluster.Bus }

func (b partingBus) Send(to string, message []byte) error {
	if bytes.Contains(message, []byte(`"done":true`)) {
		return cluster.ErrUnreachable
	}
	return b.Bus.Send(to, message)
}

// TestFetchParting loses the broker when all files of a run have come: the command succeeds, as they are there.
func TestFetchParting(t *testing.T) {
	inBubble(t, func(t *testing.T, bus cluster.Bus) {
		dir, out := t.TempDir(), t.TempDir()
		if err := os.MkdirAll(filepath.Join(dir, "runs", "r-1"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "runs", "r-1", "out.csv"), []byte("1\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		endRun(t, bus, "r-1", job.StateDone)
		stop, err := serveFiles(t.Context(), bus, "c-up", dir, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
		if got, err := fetch(t.Context(), partingBus{bus}, "r-1", out); err != nil || len(got.Files) != 1 {
			t.Errorf("fetched %+v, %v; want one file", got, err)
		}
	})
}

// TestFetch gets the files of runs by way of the broker, which forgets them then.
func TestFetch(t *testing.T) {
	inBubble(t, func(t *testing.T, bus cluster.Bus) {
		dir := t.TempDir()
		files := map[string]string{"model.safetensors": strings.Repeat("model", 300000), "metrics.jsonl": "{}\n", "empty": "", "same": "{}\n"}
		write := func(run, name, text string) {
			path := filepath.Join(dir, "runs", run, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		for _, run := range []string{"r-1", "r-2", "r-3"} {
			for name, text := range files {
				write(run, name, text)
			}
			write(run, "checkpoints/1", "large")
			write(run, ".lock", "held")
		}
		endRun(t, bus, "r-1", job.StateDone)
		endRun(t, bus, "r-2", job.StateFailed)
		endRun(t, bus, "r-3", job.StateRunning)
		endRun(t, bus, "r-4", job.StateDone) // led by a coordinator that is away
		endRun(t, bus, job.LocalPrefix+"5", job.StateDone)
		for run, state := range map[string]string{"r-6": job.StateCancelled, "r-7": job.StateFailed} { // before they began
			if err := job.PutRun(t.Context(), bus, &job.Record{RunStatus: cluster.RunStatus{Run: run, State: state}}); err != nil {
				t.Fatal(err)
			}
		}
		stop, err := serveFiles(t.Context(), bus, "c-up", dir, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
		out := t.TempDir()
		for range 2 { // the second time all are there
			for _, run := range []string{"r-1", "r-2"} {
				to := filepath.Join(out, run)
				got, err := fetch(t.Context(), bus, run, to)
				if err != nil || len(got.Files) != len(files) {
					t.Fatalf("fetch %s = %+v, %v", run, got, err)
				}
				for name, text := range files {
					if have, err := os.ReadFile(filepath.Join(to, name)); err != nil || string(have) != text {
						t.Errorf("%s of %s has %d bytes, %v; want %d", name, run, len(have), err, len(text))
					}
				}
				if left, err := os.ReadDir(to); err != nil || len(left) != len(files)+1 { // and the lock
					t.Errorf("%s has %v, %v", to, left, err)
				}
			}
		}
		if err := os.WriteFile(filepath.Join(out, "r-1", "metrics.jsonl"), []byte("mine"), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(filepath.Join(out, "r-1", "empty")); err != nil {
			t.Fatal(err)
		}
		for _, tc := range []struct {
			run, to, want string
			class         error
		}{
			{"r-1", filepath.Join(out, "r-1"), "metrics.jsonl exists and is not that of the run", errUsage},
			{"r-3", filepath.Join(out, "r-3"), "run r-3 is running", errUsage},
			{"r-4", filepath.Join(out, "r-4"), "no coordinator that has the files", cluster.ErrCluster},
			{job.LocalPrefix + "5", filepath.Join(out, "5"), "writes to /there on its own machine", errUsage},
			{"r-6", filepath.Join(out, "r-6"), "run r-6 is cancelled and has no files", errUsage},
			{"r-7", filepath.Join(out, "r-7"), "run r-7 is failed and has no files", errUsage},
			{"r-9", filepath.Join(out, "r-9"), "no run r-9", job.ErrNoRun},
		} {
			if _, err := fetch(t.Context(), bus, tc.run, tc.to); !errors.Is(err, tc.class) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("fetch %s: %v, want %q", tc.run, err, tc.want)
			}
		}
		if _, err := os.Stat(filepath.Join(out, "r-1", "empty")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("a directory with another file of that name gets some files of the run: %v", err)
		}
		for _, run := range []string{"r-6", "r-7"} {
			if _, err := os.Stat(filepath.Join(out, run)); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("fetch %s leaves a directory: %v", run, err)
			}
		}
		// A request that is not in the owner's record is not answered.
		if err := sendRequest(bus, filesRequest{Run: "r-2", Ask: "forged"}); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Minute)
		if rec, err := bus.Bucket(cluster.RunsBucket).Get(t.Context(), job.FilesPrefix+"r-2"); err == nil && strings.Contains(string(rec.Value), "forged") {
			t.Errorf("a forged request is answered with %s", rec.Value)
		}
		// The refused one did not say that the files have come: time drops them.
		<-time.After(2 * filesKept)
		records, err := bus.Bucket(cluster.RunsBucket).List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range records {
			if job.IsSideRecord(r.Key) {
				t.Errorf("record %s is left", r.Key)
			}
		}
		digest := fmt.Sprintf("%x", sha256.Sum256([]byte(files["model.safetensors"])))
		if err := bus.Blobs().Get(t.Context(), digest, new(bytes.Buffer)); !errors.Is(err, cluster.ErrNoRecord) {
			t.Errorf("the broker still has the model: %v", err)
		}
	})
}

// TestFetchNames refuses names that lead out of the directory.
func TestFetchNames(t *testing.T) {
	for _, name := range []string{"../x", "a/b", "", ".", "..", "/etc/passwd", ".lock"} {
		r := job.FileRef{Name: name, Digest: strings.Repeat("0", 64)}
		if path, _, err := placeFile(t.Context(), &r, t.TempDir()); err == nil {
			t.Errorf("%q goes to %s", name, path)
		}
	}
}

// slowLine takes a time for each content that goes to the broker, or comes from it.
type slowLine struct {
	cluster.Bus
	put, get time.Duration
}

type slowContents struct {
	cluster.Blobs
	put, get time.Duration
}

func (b slowLine) Blobs() cluster.Blobs { return slowContents{b.Bus.Blobs(), b.put, b.get} }

func (b slowContents) Put(ctx context.Context, digest string, r io.Reader, size int64) error {
	<-time.After(b.put)
	return b.Blobs.Put(ctx, digest, r, size)
}

func (b slowContents) Get(ctx context.Context, digest string, w io.Writer) error {
	<-time.After(b.get)
	return b.Blobs.Get(ctx, digest, w)
}

// TestFetchSlowly gets the files of two runs at a time over slow lines: preparing those of one takes longer than a client waits for a
// word about the other, and they come for longer than the broker keeps what is not fetched. It forgets them then.
func TestFetchSlowly(t *testing.T) {
	inBubble(t, func(t *testing.T, bus cluster.Bus) {
		dir, out := t.TempDir(), t.TempDir()
		for _, run := range []string{"r-1", "r-2"} {
			if err := os.MkdirAll(filepath.Join(dir, "runs", run), 0o755); err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"model", "metrics", "answers"} {
				if err := os.WriteFile(filepath.Join(dir, "runs", run, name), []byte(run+name), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			endRun(t, bus, run, job.StateDone)
		}
		stop, err := serveFiles(t.Context(), slowLine{bus, time.Minute, 0}, "c-up", dir, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
		ended := make(chan error, 2)
		for _, run := range []string{"r-1", "r-2"} {
			go func() {
				got, err := fetch(t.Context(), slowLine{bus, 0, 2 * filesKept / 3}, run, filepath.Join(out, run))
				if err == nil && len(got.Files) != 3 {
					err = fmt.Errorf("%d files", len(got.Files))
				}
				ended <- err
			}()
			<-time.After(10 * time.Second)
		}
		for range 2 {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		<-time.After(2 * time.Minute)
		records, err := bus.Bucket(cluster.RunsBucket).List(t.Context())
		if err != nil || len(records) != 2 {
			t.Errorf("%d records are left, %v; want those of the runs", len(records), err)
		}
	})
}

// TestFetchMany gets the files of more runs at a time than are uploaded at a time, each of which takes longer than a client waits for a word.
func TestFetchMany(t *testing.T) {
	inBubble(t, func(t *testing.T, bus cluster.Bus) {
		dir, out := t.TempDir(), t.TempDir()
		const n = 2*maxGiving + 1
		for i := range n {
			run := fmt.Sprint("r-", i)
			if err := os.MkdirAll(filepath.Join(dir, "runs", run), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "runs", run, "model"), []byte(run), 0o644); err != nil {
				t.Fatal(err)
			}
			endRun(t, bus, run, job.StateDone)
		}
		stop, err := serveFiles(t.Context(), slowLine{bus, 2 * fetchPatience, 0}, "c-up", dir, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
		ended, begin := make(chan error, n), time.Now()
		for i := range n {
			go func() {
				_, err := fetch(t.Context(), bus, fmt.Sprint("r-", i), filepath.Join(out, fmt.Sprint(i)))
				ended <- err
			}()
		}
		for range n {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		if took := time.Since(begin); took < 3*2*fetchPatience {
			t.Errorf("all have come after %v: more than %d were uploaded at a time", took, maxGiving)
		}
	})
}

// TestFetchTogether has two clients ask for the files of one run at the same time: with one record for the answers to both, each has to
// find its own there, and to wait while the files are prepared for the other, which may take longer than it waits for a word.
func TestFetchTogether(t *testing.T) {
	for _, put := range []time.Duration{0, time.Minute} {
		inBubble(t, func(t *testing.T, bus cluster.Bus) {
			dir, out := t.TempDir(), t.TempDir()
			if err := os.MkdirAll(filepath.Join(dir, "runs", "r-1"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "runs", "r-1", "model"), []byte("model"), 0o644); err != nil {
				t.Fatal(err)
			}
			endRun(t, bus, "r-1", job.StateDone)
			stop, err := serveFiles(t.Context(), slowLine{bus, put, 0}, "c-up", dir, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			defer stop()
			ended := make(chan error, 2)
			for _, to := range []string{"first", "second"} {
				go func() {
					_, err := fetch(t.Context(), bus, "r-1", filepath.Join(out, to))
					ended <- err
				}()
				<-time.After(fetchInterval / 2)
			}
			for range 2 {
				if err := <-ended; err != nil {
					t.Errorf("with uploads of %v: %v", put, err)
				}
			}
		})
	}
}

// TestFetchTakenOver gets the files of a run that another coordinator has taken over from the one that has it now: the first one, which
// is there, too, has no results of it. When that one starts it leaves what the other gives alone.
func TestFetchTakenOver(t *testing.T) {
	inBubble(t, func(t *testing.T, bus cluster.Bus) {
		id, out := "r-1", t.TempDir()
		if err := job.PutRun(t.Context(), bus, &job.Record{RunStatus: cluster.RunStatus{Run: id, State: job.StateDone, Out: "/there", Lead: "c-second"}}); err != nil {
			t.Fatal(err)
		}
		for _, lead := range []string{"c-second", "c-first"} {
			dir := t.TempDir()
			if err := os.MkdirAll(filepath.Join(dir, "runs", id), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "runs", id, "of-"+lead), []byte(lead), 0o644); err != nil {
				t.Fatal(err)
			}
			if lead == "c-first" {
				if _, err := bus.Bucket(cluster.RunsBucket).Put(t.Context(), job.FilesPrefix+id, []byte(`{"ask":"another's","ready":true}`)); err != nil {
					t.Fatal(err)
				}
			}
			stop, err := serveFiles(t.Context(), bus, lead, dir, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			defer stop()
			<-time.After(time.Minute) // it has removed what an earlier life left
		}
		if _, err := bus.Bucket(cluster.RunsBucket).Get(t.Context(), job.FilesPrefix+id); err != nil {
			t.Errorf("what the second coordinator gives is gone when the first one starts: %v", err)
		}
		for range 4 {
			got, err := fetch(t.Context(), bus, id, out)
			if err != nil || len(got.Files) != 1 || got.Files[0].Name != "of-c-second" {
				t.Errorf("fetch gives %+v, %v; want the file of the second coordinator", got, err)
			}
		}
	})
}

// flakyBus gives a record every second time that it is asked for.
type flakyBus struct {
	cluster.Bus
	key   string
	asked *atomic.Int64
}

type flakyBucket struct {
	cluster.Bucket
	bus flakyBus
}

func (b flakyBus) Bucket(name string) cluster.Bucket { return flakyBucket{b.Bus.Bucket(name), b} }

func (b flakyBucket) Get(ctx context.Context, key string) (cluster.Record, error) {
	if key == b.bus.key {
		if b.bus.asked.Add(1)%2 == 1 {
			return cluster.Record{}, cluster.ErrUnreachable
		}
	}
	return b.Bucket.Get(ctx, key)
}

// TestFetchTakenOverUnread fetches a run that another coordinator has taken over from the one that is there, which does not always get to
// read who led the run last: it gives nothing.
func TestFetchTakenOverUnread(t *testing.T) {
	inBubble(t, func(t *testing.T, bus cluster.Bus) {
		id, dir := "r-1", t.TempDir()
		var asked atomic.Int64
		if err := job.PutRun(t.Context(), bus, &job.Record{RunStatus: cluster.RunStatus{Run: id, State: job.StateDone, Out: "/there", Lead: "c-second"}}); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join(dir, "runs", id), 0o755); err != nil {
			t.Fatal(err)
		}
		stop, err := serveFiles(t.Context(), flakyBus{bus, id, &asked}, "c-first", dir, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
		if got, err := fetch(t.Context(), bus, id, t.TempDir()); err == nil || !strings.Contains(err.Error(), "no coordinator that has the files") || asked.Load() < 2 {
			t.Errorf("fetch gives %+v, %v, with %d looks at the record", got, err, asked.Load())
		}
	})
}
