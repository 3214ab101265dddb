package job

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/pce-engine/pce/cluster/simnet"
	"github.com/pce-engine/pce/dataset"
)

// TestFiles copies from the broker once, notices damage, and forgets what no
// run needs.
func TestFiles(t *testing.T) {
	bus := simnet.New(1, simnet.Faults{}).Host("c").Bus()
	dir := t.TempDir()
	source := filepath.Join(t.TempDir(), "a.csv")
	if err := os.WriteFile(source, []byte("1,2\n3,4\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	r, err := FileAt(source)
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewFiles(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Open(t.Context(), r, bus.Blobs()); !errors.Is(err, dataset.ErrSetting) {
		t.Errorf("a file that is nowhere: %v", err)
	}
	if err := r.Upload(t.Context(), bus.Blobs(), source); err != nil {
		t.Fatal(err)
	}
	path, err := s.Open(t.Context(), r, bus.Blobs())
	if err != nil || filepath.Ext(path) != ".csv" || string(readFile(t, path)) != "1,2\n3,4\n" {
		t.Fatalf("copy %s, %v", path, err)
	}
	if err := os.WriteFile(path, []byte("1,2\n3,5\n"), 0o644); err != nil { // as many bytes
		t.Fatal(err)
	}
	if path, err = s.Open(t.Context(), r, bus.Blobs()); err != nil || string(readFile(t, path)) != "1,2\n3,4\n" {
		t.Errorf("a damaged copy is taken (%v)", err)
	}
	if err := bus.Blobs().Delete(t.Context(), r.Digest); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Open(t.Context(), r, bus.Blobs()); err != nil {
		t.Errorf("a copy that is there is fetched: %v", err)
	}
	if err := s.Prune(map[string]bool{r.Digest: true}); err != nil {
		t.Fatal(err)
	}
	readFile(t, path)
	if err := s.Prune(nil); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("a copy that nobody needs is kept")
	}
}
