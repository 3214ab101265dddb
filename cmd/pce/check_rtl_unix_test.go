//go:build unix

package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestRTLHangup: a terminal that closes while hardware is simulated ends the simulator with what that has started, and leaves no files.
// A child of the simulator holds the only writing end of a pipe, which ends when it is gone.
func TestRTLHangup(t *testing.T) {
	if signal.Ignored(syscall.SIGHUP) {
		t.Skip("SKIPPED: hangups are ignored here")
	}
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skipf("SKIPPED: no pipes here: %v", err)
	}
	for name, text := range map[string]string{
		"m.pc": "circuit 1\nn0 = input x0 bernoulli 0.25\n", "rows.csv": "0\n1\n",
		"verilator": "#!/bin/sh\n(exec 3>'" + pipe + "'; sleep 60) & wait\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(os.Args[0], "check", "m.pc", "--data", "rows.csv", "--target", "rtl", "--simulator", "verilator")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), roleVariable+"=pce", "TMPDIR="+dir, "PATH="+dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r, err := os.Open(pipe) // waits for the child
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	err = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != exitInterrupted {
		t.Errorf("%v, want exit code %d: %s", err, exitInterrupted, &said)
	}
	if err := r.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the child works on: %v", err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "pce-rtl-*")); err != nil || len(left) > 0 {
		t.Errorf("%v is left, error %v", left, err)
	}
}
