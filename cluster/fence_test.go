package cluster

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestFence wants the highest fence to outlive the process, and lower ones to be
// refused.
func TestFence(t *testing.T) {
	dir := t.TempDir()
	f, err := openFence(dir)
	if err != nil {
		t.Fatal(err)
	}
	pass := func(f *fenceFile, fence uint64, want bool) {
		t.Helper()
		if ok, err := f.pass(fence); ok != want || err != nil {
			t.Errorf("fence %d: %t, %v; want %t", fence, ok, err, want)
		}
	}
	pass(f, 0, false)
	pass(f, 5, true)
	pass(f, 5, true)
	pass(f, 4, false)
	again, err := openFence(dir)
	if err != nil || again.value() != 5 {
		t.Fatalf("after a restart %v, %v", again, err)
	}
	pass(again, 4, false)
	pass(again, 6, true)
	if err := os.WriteFile(filepath.Join(dir, "fence"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openFence(dir); !errors.Is(err, ErrCluster) {
		t.Errorf("a damaged fence: %v", err)
	}
}
