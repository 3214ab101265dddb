//go:build unix

package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestTextPipes: one signal ends check of expected numbers, and reduce of a program or an input, which come from a pipe whose writer
// does not come, or writes no more.
func TestTextPipes(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"m.pc": "circuit 1\nn0 = input x0 bernoulli 0.25\n", "rows.csv": "0\n1\n",
		"p.red": "param N : N >= 1;\nsize N = 2;\ninput float A[N];\narray float B[N];\noutput B;\nB[i] = 2*A[i] : { [i] : 0 <= i < N };\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for written, text := range map[string]string{"none": "", "a line": "0\n", "half a line": "0\n-", "gzip": "\x1f\x8b\x08\x00"} {
		path := pipe(t, "A.txt", text)
		for _, args := range [][]string{
			{"check", "m.pc", "--data", "rows.csv", "--expected", path},
			{"reduce", "show", path},
			{"reduce", "simplify", path},
			{"reduce", "run", path},
			{"reduce", "run", "p.red", "--data", filepath.Dir(path)},
		} {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			time.AfterFunc(100*time.Millisecond, cancel) // mostly enough for it to wait
			if got, errs := runUntilEnd(ctx, t, args...); got != exitInterrupted || !strings.HasSuffix(errs, ": interrupted\n") {
				t.Errorf("%v, %s: exit %d: %s", args, written, got, errs)
			}
		}
	}
}

// pipe makes a named pipe that holds a text, and has a writer until the test ends if there is some.
func pipe(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skipf("SKIPPED: no pipes here: %v", err)
	}
	if text == "" {
		return path
	}
	w, err := os.OpenFile(path, os.O_RDWR, 0) // which waits for no reader
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	if _, err := w.WriteString(text); err != nil {
		t.Fatal(err)
	}
	return path
}

// runUntilEnd returns the exit code of a command and what it said, and fails if it has not ended after twenty seconds.
func runUntilEnd(ctx context.Context, t *testing.T, args ...string) (code int, errs string) {
	t.Helper()
	var out, said bytes.Buffer
	exit := make(chan int, 1)
	go func() { exit <- Run(ctx, args, nil, strings.NewReader(""), &out, &said) }()
	select {
	case code := <-exit:
		return code, said.String()
	case <-time.After(20 * time.Second):
		t.Fatalf("%v waits", args)
		return 0, ""
	}
}
