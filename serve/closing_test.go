package serve

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// stubborn is a model whose batches do not end with their clients, and that takes its time to close.
type stubborn struct {
	*fakeModel
	ran, end, closes, close chan struct{}
}

func (m *stubborn) Run(ctx context.Context, w *Work) error {
	m.ran <- struct{}{}
	<-m.end
	return m.fakeModel.Run(ctx, w)
}

func (m *stubborn) Close() error {
	m.closes <- struct{}{}
	<-m.close
	return m.fakeModel.Close()
}

// stubbornLoader opens the model "slow" as a stubborn one.
type stubbornLoader struct {
	fakeLoader
	stubborn
}

func (l *stubbornLoader) Open(ctx context.Context, path string) (Model, error) {
	m, err := l.fakeLoader.Open(ctx, path)
	if err != nil || filepath.Base(path) != "slow" {
		return m, err
	}
	l.stubborn.fakeModel = m.(*fakeModel)
	return &l.stubborn, nil
}

func newStubborn() *stubbornLoader {
	return &stubbornLoader{fakeLoader{bytes: 1}, stubborn{ran: make(chan struct{}), end: make(chan struct{}), closes: make(chan struct{}), close: make(chan struct{})}}
}

// TestClosesUnlocked: a version that a batch was the last to hold, as its client left and the model was unloaded, is closed
// while the server opens other models of the device: it has no lock that they want.
func TestClosesUnlocked(t *testing.T) {
	l := newStubborn()
	o := Options{Loader: l, MaxQueueDelay: -1, ReloadEvery: -1, ModelControl: true}
	for _, name := range []string{"slow", "other"} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		o.Models = append(o.Models, Source{name, path})
	}
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error)
	go func() {
		req := rowsRequest(1, 0)
		req.Model = "slow"
		_, err := s.send(ctx, req)
		gone <- err
	}()
	<-l.ran
	if err := s.models.unload("slow"); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	close(l.end)
	<-l.closes
	loaded := make(chan error, 1)
	go func() { loaded <- s.models.load(context.Background(), "other") }()
	select {
	case err := <-loaded:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("another model waits for one that is being closed")
	}
	close(l.close)
	s.Close()
	if n := l.stubborn.closed.Load(); n != 1 {
		t.Errorf("the model was closed %d times", n)
	}
}

// TestClosedWhileLoading: a model that is ready only when the server is about to end has not failed. The log had an error, which
// operators look for, and the metrics counted one.
func TestClosedWhileLoading(t *testing.T) {
	var s *Server
	var log bytes.Buffer
	l := &fakeLoader{bytes: 1, make: func(string) *fakeModel {
		if s != nil {
			s.Drain()
		}
		return &fakeModel{schema: fakeSchema(), bytes: 1, device: "cpu"}
	}}
	s = testServer(t, l, Options{ReloadEvery: -1, Log: slog.New(slog.NewTextHandler(&log, nil))}, "m")
	if err := s.models.load(t.Context(), "m"); !errors.Is(err, ErrUnavailable) {
		t.Errorf("a model is loaded by a server that ends: %v", err)
	}
	s.Close()
	if models := l.models(); len(models) != 2 || models[1].closed.Load() != 1 {
		t.Errorf("%d models were opened, or the last one was not closed once", len(models))
	}
	if text := s.metrics.Text(nil); !strings.Contains(text, `pce_model_load_failures_total{model="m"} 0`) {
		t.Errorf("a failure is counted:\n%s", text)
	}
	if strings.Contains(log.String(), "ERROR") {
		t.Errorf("an error is logged:\n%s", &log)
	}
}
