//go:build unix

package main

import (
	"bytes"
	"context"
	"fmt"
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

// TestConfigPipe: a config that comes from a pipe, which has it once, says how all rows of a command are read.
func TestConfigPipe(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"m.pc": "circuit 1\nn0 = input x0 bernoulli 0.25\n", "a.csv": "1\n", "b.csv": "1\n", "c.yaml": "data: {missing: ['1']}\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo("pipe", 0o600); err != nil {
		t.Skipf("SKIPPED: no pipes here: %v", err)
	}
	go func() {
		if f, err := os.OpenFile("pipe", os.O_WRONLY, 0); err == nil {
			f.WriteString("data: {missing: ['1']}\n")
			f.Close()
		}
	}()
	args := []string{"eval", "m.pc", "--json", "--data", "a.csv", "--data", "builtin:random?rows=2&vars=1&categories=2", "--data", "b.csv", "--config"}
	want := runJSON(t, append(args, "c.yaml")...)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var out, errs bytes.Buffer
	if code := Run(ctx, append(args, "pipe"), nil, nil, &out, &errs); code != exitOK || !strings.Contains(out.String(), fmt.Sprint(`"ll":`, want["ll"])) {
		t.Errorf("exit %d, %s%s; want %v nats", code, &out, &errs, want["ll"])
	}
}

// TestComparePipe: rows that come from a pipe, which has them once, are refused where two models read them, and not waited for.
func TestComparePipe(t *testing.T) {
	code, errs := runUntilEnd(t.Context(), t, "runs", "compare", "a", "b", "--data", pipe(t, "pipe.csv", ""))
	if code != exitUsage || !strings.Contains(errs, "a pipe has them once; write them to a file") {
		t.Errorf("exit %d, %s", code, errs)
	}
}
