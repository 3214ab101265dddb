//go:build unix

package main

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"
)

// TestResizePipes: one signal ends prune, grow and forest circuit, which write a model to a named pipe that is not read.
func TestResizePipes(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"m.pc": "circuit 1\nn0 = input x0 bernoulli 0.25\n", "rows.csv": "0\n1\n", "forest.json": singleForest, "numbers.csv": "humidity,wind\n0,3\n1,7\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	path := pipe(t, "out", "")
	for _, args := range [][]string{
		{"prune", "m.pc", "--data", "rows.csv", "--out", path},
		{"grow", "m.pc", "--out", path},
		{"forest", "circuit", "forest.json", "--data", "numbers.csv", "--out", path},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		time.AfterFunc(100*time.Millisecond, cancel) // mostly enough for it to wait
		if got, errs := runUntilEnd(ctx, t, args...); got != exitInterrupted || !strings.HasSuffix(errs, "interrupted\n") {
			t.Errorf("%v: exit %d: %s", args, got, errs)
		}
	}
}
