package run

import (
	"errors"
	"testing"
)

// TestOptions opens places with numbers on both sides of each bound.
func TestOptions(t *testing.T) {
	for _, tc := range []struct {
		name string
		opts Options
		ok   bool
	}{
		{"defaults", Options{}, true},
		{"fewest rows", Options{Rows: 1}, true},
		{"negative rows", Options{Rows: -1}, false},
		{"most rows", Options{Rows: 2048}, true},
		{"one row more", Options{Rows: 2049}, false},
		{"one thread", Options{Threads: 1}, true},
		{"negative threads", Options{Threads: -1}, false},
		{"most threads", Options{Threads: MaxThreads}, true},
		{"one thread more", Options{Threads: MaxThreads + 1}, false},
		{"most engines", Options{Engines: 1024}, true},
		{"one engine more", Options{Engines: 1025}, false},
		{"negative engines", Options{Engines: -1}, false},
		{"least memory", Options{MaxMemory: 1}, true},
		{"negative memory", Options{MaxMemory: -1}, false},
	} {
		tc.opts.Device = "cpu"
		if _, err := tc.opts.withDefaults().place(); (err == nil) != tc.ok || err != nil && !errors.Is(err, ErrOptions) {
			t.Errorf("%s: %v, want ok: %v", tc.name, err, tc.ok)
		}
	}
}
