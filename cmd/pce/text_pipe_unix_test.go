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
		path := filepath.Join(t.TempDir(), "A.txt")
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Skipf("SKIPPED: no pipes here: %v", err)
		}
		if text != "" {
			w, err := os.OpenFile(path, os.O_RDWR, 0) // which waits for no reader
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			if _, err := w.WriteString(text); err != nil {
				t.Fatal(err)
			}
		}
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
			var out, errs bytes.Buffer
			code := make(chan int, 1)
			go func() { code <- Run(ctx, args, nil, nil, &out, &errs) }()
			select {
			case got := <-code:
				if got != exitInterrupted || !strings.HasSuffix(errs.String(), ": interrupted\n") {
					t.Errorf("%v, %s: exit %d: %s", args, written, got, &errs)
				}
			case <-time.After(20 * time.Second):
				t.Fatalf("%v, %s: it waits", args, written)
			}
		}
	}
}
