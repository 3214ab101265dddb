package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
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

// TestRTLCells wants hardware to be refused where leaves read other numbers than the cells are, and the texts of categories in the report.
func TestRTLCells(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	rows := write("rows.csv", "size,pet\n1.5,cat\n2.25,dog\n8.5,dog\n4.75,cat\n")
	train := func(name, set string) string {
		args := []string{"train", "--config", "preset:hclt", "--set", "data.train=" + rows, "--set", "data.valid=", "--set", "data.test=", "--set", "model.latents=2",
			"--set", "train.epochs=1", "--set", "train.samples=0", "--set", set, "--out", filepath.Join(dir, name)}
		if code, _, stderr := do(t, "", args...); code != exitOK {
			t.Fatal(stderr)
		}
		return filepath.Join(dir, name, "model.safetensors")
	}
	for name, tc := range map[string]struct{ set, want string }{
		"distances": {"model.leaf.type=auto", "the leaves of \"size\" read distances from 3.5 in units of"},
		"bins":      {"data.columns=[{name: size, leaf: {type: histogram, bins: 2}}]", "\"size\" is a histogram over values that were binned in training"},
	} {
		model := train(name, tc.set)
		for _, args := range [][]string{{"compile", model, "-o", filepath.Join(dir, "out")}, {"check", model, "--data", rows}} {
			code, _, stderr := do(t, "", append(args, "--target", "rtl", "--input-bits", "4")...)
			if code != exitData || !strings.HasPrefix(stderr, model+": rtl: no datapath for the circuit: "+tc.want) || strings.Count(stderr, "\n") != 1 {
				t.Errorf("%s of %s: exit %d, %s", args[0], name, code, stderr)
			}
		}
	}
	model := train("labels", "data.columns=[{name: size, type: skip}]")
	code, out, stderr := do(t, "", "compile", model, "--target", "rtl", "--json", "-o", filepath.Join(dir, "out"))
	if code != exitOK {
		t.Fatal(stderr)
	}
	var r rtl.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil || len(r.Columns) != 1 || !slices.Equal(r.Columns[0].Labels, []string{"cat", "dog"}) {
		t.Errorf("columns %+v, error %v; want one with the labels cat and dog", r.Columns, err)
	}
}
