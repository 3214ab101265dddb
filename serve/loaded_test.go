package serve

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLoadedAtOnce: the numbers of a server have a new version from when requests get it, though the one before takes its time to close.
func TestLoadedAtOnce(t *testing.T) {
	l := newStubborn()
	close(l.end)
	path := filepath.Join(t.TempDir(), "slow")
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	s, err := New(Options{Loader: l, MaxQueueDelay: -1, ReloadEvery: -1, Models: []Source{{"slow", path}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	loaded := make(chan error)
	go func() { loaded <- s.models.load(context.Background(), "slow") }()
	<-l.closes
	if text := s.metrics.Text(nil); !strings.Contains(text, `pce_model_info{model="slow",version="2"} 1`+"\n") || s.served("slow") != "READY 2" {
		t.Errorf("%s is served, and the numbers are %s", s.served("slow"), text)
	}
	close(l.close)
	if err := <-loaded; err != nil {
		t.Error(err)
	}
	go func() { <-l.closes }()
	s.Close()
}
