//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pce-engine/pce/cluster/natsbus"
	"github.com/pce-engine/pce/dataset"
)

// TestSubmitPipes: a job whose model is a named pipe is refused, and no writer of it is waited for.
func TestSubmitPipes(t *testing.T) {
	dir := t.TempDir()
	pipe, rows := filepath.Join(dir, "model"), filepath.Join(dir, "a.csv")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skipf("SKIPPED: no pipes here: %v", err)
	}
	if err := os.WriteFile(rows, []byte("1\n0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, set := range [][]string{
		{"job.kind=loglik", "job.model=" + pipe, "job.data=" + rows},
		{"model.structure=file", "model.file=" + pipe, "data.train=" + rows},
	} {
		cfg, done := testConfig(t, set...), make(chan error, 1)
		go func() {
			_, err := testApp().newJob(t.Context(), "run-1", cfg)
			done <- err
		}()
		select {
		case err := <-done:
			if !errors.Is(err, dataset.ErrSetting) || !strings.Contains(err.Error(), "is not a regular file") {
				t.Errorf("%v: %v", set, err)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("%v: the writer of the pipe is waited for", set)
		}
	}
}

// TestSubmitPipedCluster submits to the cluster that a pipe names, which has its text once.
func TestSubmitPipedCluster(t *testing.T) {
	broker := startNATS(t, natsbus.BrokerOptions{Dir: t.TempDir()})
	dir := t.TempDir()
	pipe, rows := filepath.Join(dir, "url"), filepath.Join(dir, "a.csv")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skipf("SKIPPED: no pipes here: %v", err)
	}
	if err := os.WriteFile(rows, []byte("1\n0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	written := make(chan error, 1)
	go func() { written <- os.WriteFile(pipe, []byte(broker.URL()+"\n\n"), 0o600) }() // and no key
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var stderr bytes.Buffer
	code := Run(ctx, []string{"cluster", "submit", "--cluster", "@" + pipe, "--config", "preset:nltcs", "--set", "data.train=" + rows, "--set", "data.valid=", "--set", "data.test="}, nil, strings.NewReader(""), io.Discard, &stderr)
	select {
	case err := <-written:
		if err != nil || code != exitOK {
			t.Errorf("exit %d (%v): %s", code, err, &stderr)
		}
	case <-ctx.Done():
		t.Errorf("exit %d, and the pipe was not read: %s", code, &stderr)
	}
}
