package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/pce-engine/pce/kernels/x86"
)

// TestImpossibleRows wants a line of JSON for each module where the rows have an impossible one, whose log-likelihood JSON does not have.
func TestImpossibleRows(t *testing.T) {
	dir := t.TempDir()
	model, rows := filepath.Join(dir, "net.spn"), filepath.Join(dir, "rows.u8")
	text := "P ProductNode(A, B){\n    A Bernoulli(a|p=0.0)\n    B Bernoulli(b|p=0.5)\n}\n# a;b\n"
	for path, s := range map[string]string{model: text, rows: "\x01\x00\x00\x00"} {
		if err := os.WriteFile(path, []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	err := run([]string{"-model", model, "-rows", rows, "-calls", "1"}, &out)
	if errors.Is(err, x86.ErrUnsupported) {
		t.Skipf("SKIPPED: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.Split(bytes.TrimSpace(out.Bytes()), []byte("\n"))
	for _, text := range lines {
		var l line
		if err := json.Unmarshal(text, &l); err != nil || l.Mean != nil || l.Rows != 2 {
			t.Errorf("%s: %v", text, err)
		}
	}
	if len(lines) < 8 { // six modules, and the library
		t.Errorf("%d lines", len(lines))
	}
}
