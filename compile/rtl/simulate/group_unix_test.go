//go:build unix

package simulate

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestCommandGroup: what a command has started ends with it. A child holds the only writing end of a pipe, which ends when it is gone.
func TestCommandGroup(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("SKIPPED: no sh here")
	}
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skipf("SKIPPED: no pipes here: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := Command(ctx, []string{"sh", "-c", `(exec 3>"$1"; sleep 60) & wait`, "sh", path})
		ended <- err
	}()
	r, err := os.Open(path) // waits for the child
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if err := r.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the child works on: %v", err)
	}
}

// TestTemporaries: what a simulator leaves in the folder for temporary files, as a compiler does that is killed, is in the folder of the
// design, which is removed with it.
func TestTemporaries(t *testing.T) {
	bin, others := t.TempDir(), t.TempDir()
	for _, name := range []string{Verilator, Icarus} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n: > \"$TMPDIR/left\"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv("TMPDIR", others)
	for _, name := range []string{Verilator, Icarus} {
		dir := filepath.Join(others, name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if _, err := Build(t.Context(), name, dir, bench, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(dir, "left")); err != nil {
			t.Errorf("%s has its temporary files elsewhere: %v", name, err)
		}
	}
}
