package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/cluster/job"
)

// TestStorageWatch breaks a broker's storage: who waits for a run or for workers ends
// with the reason within half a minute, the status has it, and the log says it once.
func TestStorageWatch(t *testing.T) {
	inBubble(t, func(t *testing.T, bus cluster.Bus) {
		if problem, known := askStorage(t.Context(), bus); known || problem != "" {
			t.Errorf("where none watches: %q, %v", problem, known)
		}
		var broken atomic.Bool
		var log bytes.Buffer
		stop, err := watchStorage(t.Context(), bus, func() error {
			if broken.Load() {
				return &os.PathError{Op: "write", Path: "x\ny", Err: syscall.ENOSPC}
			}
			return nil
		}, slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		advance(t, bus, "r-1", 1)
		waiting := map[string]func() error{
			"logs": func() error {
				_, err := (&follower{bus: bus, run: "r-1", w: new(bytes.Buffer), notes: io.Discard}).print(t.Context())
				return err
			},
			"workers": func() error {
				return (&job.Lead{Bus: bus, Workers: 1, Log: slog.New(slog.DiscardHandler), Watch: endWithStorage}).Gather(t.Context())
			},
		}
		ended := make(chan error, len(waiting))
		for name, wait := range waiting {
			go func() {
				err := wait()
				if !errors.Is(err, cluster.ErrUnreachable) || !strings.Contains(err.Error(), "no space left") || strings.Contains(err.Error(), "\n") {
					t.Errorf("%s ends with %v", name, err)
				}
				ended <- err
			}()
		}
		<-time.After(time.Hour)
		if len(ended) > 0 {
			t.Error("ended while the storage was sound")
		}
		broken.Store(true)
		began := time.Now()
		for range waiting {
			<-ended
		}
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("it took %v", took)
		}
		s, err := readStatus(t.Context(), bus)
		if err != nil || !strings.Contains(s.Storage, "no space left") || !strings.Contains(s.table(), "the broker does not store: write x y: no space left") {
			t.Errorf("status %+v, %v", s, err)
		}
		broken.Store(false)
		<-time.After(time.Minute)
		if s, err := readStatus(t.Context(), bus); err != nil || s.Storage != "" {
			t.Errorf("status with room again: %+v, %v", s, err)
		}
		stop()
		if strings.Count(log.String(), "level=ERROR") != 1 || strings.Count(log.String(), "sound again") != 1 {
			t.Errorf("the log says\n%s", &log)
		}
	})
}

// TestUpStorage removes the files of a broker under a client that waits.
func TestUpStorage(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for some seconds")
	}
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "cluster")
	up := startUp(t, dir, "--workers", "0")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ended := make(chan int, 1)
	var out, errs bytes.Buffer
	go func() {
		ended <- Run(ctx, append([]string{"cluster", "submit", "--cluster", "@" + up.urlFile, "--wait"}, clusterTiny(1)...), nil, nil, &out, &errs)
	}()
	eventually(t, "the job", func() bool { return len(up.status().Jobs) == 1 })
	if err := os.RemoveAll(filepath.Join(dir, "broker")); err != nil {
		t.Fatal(err)
	}
	if code := <-ended; code != exitCluster || !strings.Contains(errs.String(), "files are gone") {
		t.Errorf("submit --wait: exit %d: %s", code, &errs)
	}
	if s := up.status(); !strings.Contains(s.Storage, "files are gone") {
		t.Errorf("status %+v", s)
	}
}
