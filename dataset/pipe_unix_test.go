//go:build unix

package dataset

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestPipes refuses a pipe, without opening it, where a file is read twice, and reads it under
// a schema, which takes one reading.
func TestPipes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe.csv")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skipf("SKIPPED: no pipes here: %v", err)
	}
	opened := make(chan error, 2)
	go func() {
		for _, opts := range []Options{{}, {Text: Text{Unit: Word}}} {
			_, err := Open(t.Context(), path, opts)
			opened <- err
		}
	}()
	for range 2 {
		select {
		case err := <-opened:
			if !errors.Is(err, ErrSetting) || !strings.Contains(err.Error(), path+": a pipe or a device is read once") {
				t.Errorf("error %v", err)
			}
		case <-time.After(20 * time.Second):
			t.Fatal("waits for a writer of the pipe")
		}
	}
	go os.WriteFile(path, []byte("0,1\n1,0\n"), 0o600)
	src, err := Open(t.Context(), path, Options{Schema: &Schema{Columns: []Column{{Categories: 2}, {Categories: 2}}}})
	if err != nil || src.Rows() != 2 {
		t.Errorf("under a schema: %v", err)
	}
}
