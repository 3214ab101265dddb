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

// TestRTLRows wants of a row that hardware does not take one line with its file, its number there and the column.
func TestRTLRows(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("iverilog", "#!/bin/sh\n", 0o700) // is looked for, and not run
	t.Setenv("PATH", dir)
	model := write("model.spn", "Root Histogram(size|[0., 1., 2.];[0.25,0.75])\n# size\n", 0o600)
	rows := write("rows.csv", "size\n1\n0\n", 0o600)
	for text, want := range map[string]string{
		"size\n0\n?\n": ": row 2: rtl: bad row: \"size\" is missing; compile with --marginals\n",
		"size\n9\n0\n": ": row 1: rtl: bad row: \"size\": 9 lies outside of all bins, from 0 to below 2, and their codes fill 1 bits; give input-bits, which give codes to all integers\n",
	} {
		bad := write("bad.csv", text, 0o600)
		var out, errs bytes.Buffer
		code := Run(t.Context(), []string{"check", model, "--data", rows, "--data", bad, "--target", "rtl", "--simulator", "iverilog"}, nil, nil, &out, &errs)
		if code != exitData || errs.String() != bad+want {
			t.Errorf("exit %d: %s, want %s", code, errs.String(), bad+want)
		}
	}
}
