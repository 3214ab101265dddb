//go:build unix

package main

import (
	"errors"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pce-engine/pce/circuit/format"
)

// TestServePipe: a pipe in the place of a model file is refused at once, and not opened, which would wait for a writer.
func TestServePipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "model.json")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skipf("SKIPPED: no pipes here: %v", err)
	}
	planned := make(chan error, 1)
	go func() {
		_, err := new(modelLoader).Plan(t.Context(), path)
		planned <- err
	}()
	select {
	case err := <-planned:
		if !errors.Is(err, format.ErrModel) || !strings.Contains(err.Error(), path+": not a regular file") {
			t.Errorf("error %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("Plan blocked on opening the pipe")
	}
}
