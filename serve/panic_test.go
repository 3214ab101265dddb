package serve

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
)

// TestLoadPanics: a model whose opening panics is not loaded, and gives its memory back. The version before it is served.
func TestLoadPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		faulty := false
		l := &fakeLoader{bytes: 1}
		l.make = func(string) *fakeModel {
			if faulty {
				panic("a fault of the reader")
			}
			return &fakeModel{schema: fakeSchema(), bytes: 1, device: "cpu"}
		}
		var text strings.Builder
		s := testServer(t, l, Options{MaxQueueDelay: -1, Log: slog.New(slog.NewTextHandler(&text, nil))}, "m")
		faulty = true
		renew(t, s, "m", "new")
		if err := s.models.load(t.Context(), "m"); !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "a fault of the reader") {
			t.Errorf("error %v", err)
		}
		if _, err := s.send(t.Context(), rowsRequest(1, 0)); err != nil || s.models.memory != 1 {
			t.Errorf("the version before: %v, with %d bytes of models", err, s.models.memory)
		}
		faulty = false
		if err := s.models.load(t.Context(), "m"); err != nil {
			t.Error(err)
		}
		s.Close()
		if !strings.Contains(text.String(), "stack=") {
			t.Errorf("the log: %s", &text)
		}
	})
}
