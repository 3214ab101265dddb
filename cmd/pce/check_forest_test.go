package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pce-engine/pce/forest"
	"github.com/pce-engine/pce/forest/format/xgboost"
	"github.com/pce-engine/pce/kernels/cpu/sliced"
	"github.com/pce-engine/pce/kernels/x86"
)

// TestCheckForest: every path of a forest equals the plain evaluator, expected scores that
// are a bit off are found, and what does not fit is refused in one line.
func TestCheckForest(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	model := filepath.Join(dir, "model")
	f := &forest.Forest{Target: "reg:squarederror", Features: 2, Outputs: 1, Base: []float64{0}, Trees: []forest.Tree{{Weight: 1,
		Nodes:  []forest.Node{{Test: forest.Less, Threshold: 2, MissingYes: true, Yes: 1, No: 2}, {Last: 1, ID: 1}, {First: 1, Last: 2, ID: 2}},
		Values: []forest.Value{{Value: 0.25}, {Value: -1.5}}}}}
	var b bytes.Buffer
	if err := xgboost.Write(&b, f); err != nil {
		t.Fatal(err)
	}
	file("model", b.String())
	rows := file("rows.csv", "1,0\n3,0\n,0\n")
	good := file("good.csv", "0.25\n-1.5\n0.25\n")
	var out, errs bytes.Buffer
	exit := Run(t.Context(), []string{"check", model, "--data", rows, "--set", "data.header=no", "--expected", good, "--json",
		"--schedule", "preset:sorted", "--schedule", file("sums.schedule", "vectorReduce tree 4\n")}, nil, nil, &out, &errs)
	var r forestCheck
	if err := json.Unmarshal(out.Bytes(), &r); err != nil || exit != exitOK || errs.Len() > 0 {
		t.Fatalf("exit %d, %v\n%s%s", exit, err, &out, &errs)
	}
	code := map[string]int{"avx512": 3, "avx2": 2, "": 1}[x86.Path()] // with its instructions, smaller ones, none
	if want := 1 + 2*len(sliced.All()) + 3*code; r.Rows != 3 || r.Trees != 1 || len(r.Paths) != want || !r.OK || r.Expected == nil || !r.Expected.OK {
		t.Errorf("check says %s, want %d paths", out.String(), want)
	}
	bad := file("bad.csv", "0.25\n-1.5000001\n0.25\n")
	for _, c := range []struct {
		want string
		code int
		args []string
	}{
		{"a path differs", 1, []string{"check", model, "--data", rows, "--set", "data.header=no", "--expected", bad}},
		{"has 2 lines for 3 rows", 3, []string{"check", model, "--data", rows, "--set", "data.header=no", "--expected", file("short.csv", "0\n0\n")}},
		{"line 1 has 2 numbers; want the 1 raw scores", 3, []string{"check", model, "--data", rows, "--set", "data.header=no", "--expected", file("two.csv", "0,1\n")}},
		{"\"x\" is not a number", 3, []string{"check", model, "--data", rows, "--set", "data.header=no", "--expected", file("word.csv", "x\n")}},
		{"are for circuits, leave them out", 2, []string{"check", model, "--data", rows, "--path", "code"}},
		{model + ": --schedule auto is for predict", 2, []string{"check", model, "--data", rows, "--schedule", "auto"}},
		{"no --data", 2, []string{"check", model}},
		{"--threads -1: want 0 to", 2, []string{"check", model, "--data", rows, "--threads", "-1"}},
		{"empty.csv has no rows", 2, []string{"check", model, "--data", file("empty.csv", "a,b\n")}},
		{"gpuDimension is for cards", 2, []string{"check", model, "--data", rows, "--schedule", "preset:paper-trees"}},
		{"represent sliced is compared without", 2, []string{"check", model, "--data", rows, "--schedule", file("sliced.schedule", "represent sliced\n")}},
		{"said already", 2, []string{"check", model, "--data", rows, "--schedule", file("twice.schedule", "represent array\nrepresent array")}},
	} {
		var out, errs bytes.Buffer
		if code := Run(t.Context(), c.args, nil, nil, &out, &errs); code != c.code || !strings.Contains(errs.String(), c.want) {
			t.Errorf("%v: exit %d, %s; want exit %d, %q", c.args, code, &errs, c.code, c.want)
		}
	}
}

// TestScoresInterrupted: of a pipe that a signal has ended, the half of a line that had come is not called damage of the file.
func TestScoresInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	f := &forest.Forest{Outputs: 2}
	for _, text := range []string{"0.5", "0.5,-"} {
		path := filepath.Join(t.TempDir(), "scores.csv")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := compareScores(ctx, path, f, []float64{0.5, 0.25}); !errors.Is(err, context.Canceled) || !strings.HasPrefix(err.Error(), path) {
			t.Errorf("%q: error %v, want that of the context, with the path", text, err)
		}
	}
}
