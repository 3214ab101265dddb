package pce_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestSaveCancelled writes nothing under a context that has ended.
func TestSaveCancelled(t *testing.T) {
	m := openText(t, "circuit 1\na = input x0 bernoulli 0.25\n")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	path := filepath.Join(t.TempDir(), "m.safetensors")
	if err := m.Save(ctx, path); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want context.Canceled", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file is there: %v", err)
	}
}
