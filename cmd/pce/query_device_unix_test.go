//go:build unix

package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestOutputDevices: a device or a pipe whose name has no ending gets what stdout gets.
func TestOutputDevices(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"m.pc": "circuit 1\nn0 = input x0 bernoulli 0.25\n", "rows.csv": "0\n1\n", "r/metrics.jsonl": `{"epoch":1,"step":4,"train_ll":-3}` + "\n",
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo("pipe", 0o600); err != nil {
		t.Skipf("SKIPPED: no pipes here: %v", err)
	}
	for want, args := range map[string][]string{
		"-0.28":  {"query", "loglik", "m.pc", "--data", "rows.csv"},
		"0\n":    {"query", "mpe", "m.pc", "--data", "rows.csv"},
		"<?xml ": {"plot", "r"},
	} {
		written := make(chan string, 1)
		go func() {
			if f, err := os.Open("pipe"); err == nil {
				text, _ := io.ReadAll(f)
				f.Close()
				written <- string(text)
			}
		}()
		if code, errs := runUntilEnd(t.Context(), t, append(args, "--out", "pipe")...); code != exitOK {
			t.Fatalf("%v: exit %d, %s", args, code, errs)
		}
		if got := <-written; !strings.HasPrefix(got, want) {
			t.Errorf("%v: %.40q, want %q first", args, got, want)
		}
	}
	for _, command := range []string{"plot", "report"} { // what else is printed would follow a picture or a page on /dev/stdout
		if got := plain(t, command, "r", "--out", "/dev/null"); got != "" {
			t.Errorf("%s prints %q beside what it writes to a device", command, got)
		}
	}
	if code, errs := runUntilEnd(t.Context(), t, "query", "loglik", "m.pc", "--data", "rows.csv", "--out", "/dev/null"); code != exitOK {
		t.Errorf("/dev/null: exit %d, %s", code, errs)
	}
}
