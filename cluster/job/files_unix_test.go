//go:build unix

package job

import (
	"errors"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pce-engine/pce/cluster/simnet"
	"github.com/pce-engine/pce/dataset"
)

// TestPipes: a named pipe in the place of a file is refused, and no writer of it is waited for.
func TestPipes(t *testing.T) {
	root := t.TempDir()
	path := filepath.Join(root, "model")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	files, err := NewFiles(t.TempDir(), []string{root})
	if err != nil {
		t.Fatal(err)
	}
	r := FileRef{Path: path, Name: "model", Digest: strings.Repeat("0a", 32)}
	for name, tc := range map[string]struct {
		open  func() error
		class error
	}{
		"by who submits a job": {func() error {
			_, err := new(Job).AddFile(t.Context(), path)
			return err
		}, dataset.ErrSetting},
		"by a member": {func() error {
			_, err := files.Open(t.Context(), r, simnet.New(1, simnet.Faults{}).Host("c").Bus().Blobs())
			return err
		}, dataset.ErrFormat},
	} {
		done := make(chan error, 1)
		go func() { done <- tc.open() }()
		select {
		case err := <-done:
			if !errors.Is(err, tc.class) || !strings.Contains(err.Error(), path+" is not a regular file") {
				t.Errorf("%s: %v", name, err)
			}
		case <-time.After(10 * time.Second):
			t.Errorf("%s: its writer is waited for", name)
		}
	}
}
