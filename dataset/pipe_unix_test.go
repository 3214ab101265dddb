//go:build unix

package dataset

import (
	"context"
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

// TestPipeEnds: opening and reading a pipe whose writer does not come, or writes no more, end with the context and its error.
func TestPipeEnds(t *testing.T) {
	schema := &Schema{Columns: []Column{{Categories: 2}, {Categories: 2}}}
	for name, read := range map[string]func(ctx context.Context, path string) error{
		"table": func(ctx context.Context, path string) error {
			_, err := Open(ctx, path, Options{Schema: schema})
			return err
		},
		"numbers": func(ctx context.Context, path string) error {
			r, err := OpenNumbers(path, 2, nil, ToFloat32, Options{})
			if err == nil {
				_, err = r.Read(ctx, make([]float64, 8))
			}
			return err
		},
	} {
		for _, written := range []string{"none", "", "0,1\n1,0\n"} {
			path := filepath.Join(t.TempDir(), "pipe.csv")
			if err := syscall.Mkfifo(path, 0o600); err != nil {
				t.Skipf("SKIPPED: no pipes here: %v", err)
			}
			if written != "none" {
				w, err := os.OpenFile(path, os.O_RDWR, 0) // which waits for no reader
				if err != nil {
					t.Fatal(err)
				}
				defer w.Close()
				if _, err := w.WriteString(written); err != nil {
					t.Fatal(err)
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond) // mostly enough for it to wait
			defer cancel()
			ended := make(chan error, 1)
			go func() { ended <- read(ctx, path) }()
			select {
			case err := <-ended:
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%s, with %q written: %v", name, written, err)
				}
			case <-time.After(20 * time.Second):
				t.Fatalf("%s, with %q written: it waits", name, written)
			}
		}
	}
}
