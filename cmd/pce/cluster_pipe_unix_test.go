//go:build unix

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

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
