//go:build unix

package main

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestUnread: a run is interrupted when what reads its log has ended, and not by a connection whose other end has gone, as that to a
// worker which died.
func TestUnread(t *testing.T) {
	t.Cleanup(func() { signal.Reset(syscall.SIGPIPE) })
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	a := &app{stderr: w}
	ctx, stop := a.unread(t.Context())
	defer stop()
	ends, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(ends[0])
	syscall.Close(ends[1])
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE)
	defer signal.Stop(broken)
	for range 1000 {
		if _, err := syscall.Write(ends[0], []byte{1}); err != syscall.EPIPE {
			t.Fatal(err)
		}
		<-broken
	}
	if ctx.Err() != nil {
		t.Error("a connection that has broken interrupts a run")
	}
	r.Close()
	if err := a.tell("a line"); !errors.Is(err, syscall.EPIPE) || ctx.Err() == nil {
		t.Errorf("a log without a reader: %v, and the run ends with %v", err, ctx.Err())
	}
}

// TestHangup: a terminal that closes, a Ctrl-C that also ends the reader of the log, and a reader that ends of its own accord leave a
// checkpoint and exit code 75.
func TestHangup(t *testing.T) {
	if signal.Ignored(syscall.SIGHUP) {
		t.Skip("SKIPPED: hangups are ignored here")
	}
	for _, s := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT, 0} { // 0: none, and the log has another line
		dir := t.TempDir()
		args := append([]string{"train", "--out", filepath.Join(dir, "run")}, tiny...)
		// One epoch of many steps, so that the log has no line until the signal.
		epochs, rows := "1", "400000"
		if s == 0 {
			epochs, rows = "1000000", "100"
		}
		args = append(args, "--set", "train.epochs="+epochs, "--set", "train.batch_size=1", "--set", "data.train=builtin:random?rows="+rows+"&vars=16&categories=4",
			"--set", "data.image=[]", "--set", "train.samples=0")
		cmd := exec.Command(os.Args[0], args...)
		cmd.Env = append(os.Environ(), roleVariable+"=pce")
		log, err := cmd.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines, said := bufio.NewScanner(log), ""
		for !strings.Contains(said, "msg=training") && lines.Scan() {
			said += lines.Text() + "\n"
		}
		log.Close()
		if s != 0 {
			if err := cmd.Process.Signal(s); err != nil {
				t.Error(err)
			}
		}
		err = cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); code != exitCheckpointed {
			t.Errorf("%v: %v, want exit code %d: %s", s, err, exitCheckpointed, said)
		}
		if kept, err := filepath.Glob(filepath.Join(dir, "run", "checkpoints", "*")); err != nil || len(kept) == 0 {
			t.Errorf("%v: no checkpoint, error %v", s, err)
		}
	}
}
