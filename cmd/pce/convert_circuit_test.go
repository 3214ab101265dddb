package main

import (
	"io"
	"os"
	"path/filepath"
	"strconv"
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

// TestConvertColumns: what a copy does not keep of the columns is said, such as marks of missing cells, and names are kept where some
// columns have none.
func TestConvertColumns(t *testing.T) {
	dir := t.TempDir()
	in := filepath.Join(dir, "in.circuit")
	schema := `{"columns":[{"kind":"discrete","categories":2},{"name":"pet","kind":"discrete","categories":2}],"missing":["-9","."]}`
	text := "circuit 2\nmeta \"schema\" " + strconv.Quote(schema) + "\na = input x0 bernoulli 0.25\nb = input x1 bernoulli 0.5\np = product a b\n"
	if err := os.WriteFile(in, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	for ending, want := range map[string]string{
		"spn": "that 1 of the variables have no name, in place of which it has V and their number", "bin": "the names of the variables", "jpc": "the names of the variables",
	} {
		out := filepath.Join(dir, "out."+ending)
		got := converse([]string{"convert", in, out}, nil, "")
		if !strings.Contains(got, want) || !strings.Contains(got, `that "-9" marks missing cells, that "." marks missing cells`) || strings.Count(got, "\n") != 1 {
			t.Errorf("%s: %s", ending, got)
		}
	}
	copied, err := os.ReadFile(filepath.Join(dir, "out.spn"))
	if err != nil || !strings.HasSuffix(string(copied), "\n# V0;pet\n") {
		t.Errorf("%v: %s", err, copied)
	}
}
