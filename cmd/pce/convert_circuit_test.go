package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pce-engine/pce/circuit/format"
)

// TestConvertReadsAgain: a file that a reader would refuse is refused before it is there.
func TestConvertReadsAgain(t *testing.T) {
	circuitWriters[".cut"] = func(w io.Writer, _ *format.Model) ([]string, error) {
		_, err := io.WriteString(w, "jpc 2\nL 0 0 1\n")
		return nil, err
	}
	defer delete(circuitWriters, ".cut")
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in.spn"), filepath.Join(dir, "out.cut")
	if err := os.WriteFile(in, []byte("L Bernoulli(V0|p=0.5)\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	got := converse([]string{"convert", in, out}, nil, "")
	if !strings.Contains(got, "cannot be read again") || !strings.HasSuffix(got, "\nexit 3\n") || strings.Count(got, "\n") != 2 {
		t.Errorf("%s", got)
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("the file is there")
	}
}
