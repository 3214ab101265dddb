//go:build unix

package main

import (
	"context"
	"os"
	"strings"
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
			path := pipe(t, "pipe", written)
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond) // mostly enough for it to wait
			defer cancel()
			got, errs := runUntilEnd(ctx, t, command, "--model", "m.pc", path, "out")
			if !strings.Contains(errs, path+": ") || strings.Contains(errs, "damaged") || got == exitData {
				t.Errorf("%s, %s: exit %d: %s", command, name, got, errs)
			}
		}
	}
}
