//go:build unix

package parquet

import (
	"errors"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pce-engine/pce/dataset"
)

// TestPipe refuses a pipe without opening it.
func TestPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe.parquet")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skipf("SKIPPED: no pipes here: %v", err)
	}
	opened := make(chan error, 1)
	go func() {
		_, err := open(t.Context(), path, nil)
		opened <- err
	}()
	select {
	case err := <-opened:
		if !errors.Is(err, dataset.ErrFormat) || !strings.Contains(err.Error(), path+": not a regular file") {
			t.Errorf("error %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("waits for a writer of the pipe")
	}
}
