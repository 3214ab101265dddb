//go:build unix

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pce-engine/pce/circuit/format"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/run"
)

// TestModelPipes: a model file that is a pipe is read where it is opened once. What tells forests from circuits first, and opens the
// file later, refuses it and waits for no writer.
func TestModelPipes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "model.pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skipf("SKIPPED: no pipes here: %v", err)
	}
	write := func(text string) {
		go func() {
			if f, err := os.OpenFile(path, os.O_WRONLY, 0); err == nil {
				f.WriteString(text)
				f.Close()
			}
		}()
	}
	const circuit = "circuit 1\nn0 = input x0 bernoulli 0.25\n"
	for _, c := range []struct {
		name, text, want string
		open             func() error
	}{
		{"a command that opens the file later", "", "not a regular file", func() error {
			_, err := run.TellForest(path)
			return err
		}},
		{"a server, which reads its models more than once", "", path + ": not a regular file", func() error {
			_, err := new(modelLoader).Plan(t.Context(), path)
			return err
		}},
		{"a circuit that is opened once", circuit, "", func() error {
			b, _, err := run.OpenAny(path, compile.Options{})
			if err == nil {
				err = b.Close()
			}
			return err
		}},
		{"a forest where circuits are read too", `{"learner": {}}`, "not a regular file", func() error {
			_, _, err := run.OpenAny(path, compile.Options{})
			return err
		}},
		{"a circuit where forests are read", circuit, "no known forest", func() error {
			_, err := run.OpenForest(path)
			return err
		}},
	} {
		if c.text != "" {
			write(c.text)
		}
		opened := make(chan error, 1)
		go func() { opened <- c.open() }()
		select {
		case err := <-opened:
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: error %v, want %q", c.name, err, c.want)
			}
			if strings.Contains(c.want, "regular") && !errors.Is(err, format.ErrModel) {
				t.Errorf("%s: %v is not a bad model", c.name, err)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("%s: waited for a writer", c.name)
		}
	}
}
