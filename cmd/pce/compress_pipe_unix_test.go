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

// TestCodecPipes: one signal ends compress and decompress of a pipe whose writer does not come, or writes no more.
func TestCodecPipes(t *testing.T) {
	t.Chdir(t.TempDir())
	const circuit = "circuit 1\nn0 = input x0 bernoulli 0.25\n"
	if err := os.WriteFile("m.pc", []byte(circuit), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"compress", "decompress"} {
		for name, written := range map[string]string{"none": "", "rows": "0\n1\n", "gzip": "\x1f\x8b\x08\x00"} {
			path := filepath.Join(t.TempDir(), "pipe")
			if err := syscall.Mkfifo(path, 0o600); err != nil {
				t.Skipf("SKIPPED: no pipes here: %v", err)
			}
			if written != "" {
				w, err := os.OpenFile(path, os.O_RDWR, 0) // which waits for no reader
				if err != nil {
					t.Fatal(err)
				}
				defer w.Close()
				if _, err := w.WriteString(written); err != nil {
					t.Fatal(err)
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond) // mostly enough for it to wait
			defer cancel()
			var out, errs bytes.Buffer
			code := make(chan int, 1)
			go func() {
				code <- Run(ctx, []string{command, "--model", "m.pc", path, "out"}, nil, strings.NewReader(""), &out, &errs)
			}()
			select {
			case got := <-code:
				if !strings.Contains(errs.String(), path+": ") || strings.Contains(errs.String(), "damaged") || got == exitData {
					t.Errorf("%s, %s: exit %d: %s", command, name, got, &errs)
				}
			case <-time.After(20 * time.Second):
				t.Fatalf("%s, %s: it waits", command, name)
			}
		}
	}
}
