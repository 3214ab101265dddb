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

// TestFlagPipes: one signal ends a command that waits for the writer of a named pipe, which has a token, the address of a cluster, a
// certificate, a config, a schedule or a profile.
func TestFlagPipes(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skipf("SKIPPED: no pipes here: %v", err)
	}
	forest := filepath.Join(filepath.Dir(pipe), "forest.json")
	if err := os.WriteFile(forest, []byte(singleForest), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"serve", "--model", "m=none", "--addr", "127.0.0.1:0", "--token-file", pipe},
		{"serve", "--model", "m=none", "--addr", "127.0.0.1:0", "--tls-cert", pipe, "--tls-key", pipe},
		{"serve", "--model", "m=none", "--addr", "127.0.0.1:0", "--schedule", pipe},
		{"train", "--config", pipe},
		{"config", "validate", "--config", pipe},
		{"data", "stats", "builtin:random?rows=1&vars=1", "--config", pipe},
		{"predict", forest, "--data", "-", "--schedule", pipe},
		{"predict", forest, "--data", "-", "--schedule", "preset:padded", "--profile", pipe},
		{"check", forest, "--data", forest, "--schedule", pipe},
		{"cluster", "status", "--cluster", "@" + pipe},
		{"worker", "--cluster", "@" + pipe},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan int, 1)
		var out, errs bytes.Buffer
		go func() { done <- Run(ctx, args, nil, strings.NewReader(""), &out, &errs) }()
		cancel()
		select {
		case code := <-done:
			if code != exitInterrupted || !strings.HasSuffix(errs.String(), "interrupted\n") {
				t.Errorf("%v: exit %d: %s", args, code, &errs)
			}
		case <-time.After(20 * time.Second):
			t.Errorf("%v: the writer of the pipe is waited for", args)
		}
	}
}
