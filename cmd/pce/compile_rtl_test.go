package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/pce-engine/pce/compile/rtl"
)

// TestRTLColumns wants the columns of report.json to have the names of the model's, as they are, and
// those without a name to have none.
func TestRTLColumns(t *testing.T) {
	dir := t.TempDir()
	for model, want := range map[string][]string{
		"Root ProductNode(A, B){\n\tA Histogram(size in \"cm\"|[0., 1., 2.];[0.5,0.5])\n\tB Histogram(y|[0., 1., 2.];[0.5,0.5])\n\t}\n# size in \"cm\";y\n": {`size in "cm"`, "y"},
		"circuit 2\na = input[1] x0 bernoulli 0.25\nb = input[1] x1 bernoulli 0.5\np = product a b\n":                                                       {"", ""},
	} {
		path := filepath.Join(dir, "model.spn")
		if err := os.WriteFile(path, []byte(model), 0o600); err != nil {
			t.Fatal(err)
		}
		var out, errs bytes.Buffer
		if code := Run(t.Context(), []string{"compile", path, "--target", "rtl", "--json", "-o", filepath.Join(dir, "out")}, nil, nil, &out, &errs); code != exitOK {
			t.Fatalf("exit %d: %s", code, errs.String())
		}
		var r rtl.Report
		if err := json.Unmarshal(out.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		for v, name := range want {
			if r.Columns[v].Name != name {
				t.Errorf("column %d is named %q, want %q", v+1, r.Columns[v].Name, name)
			}
		}
	}
}
