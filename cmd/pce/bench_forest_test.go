package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pce-engine/pce/forest"
	"github.com/pce-engine/pce/forest/format/xgboost"
	"github.com/pce-engine/pce/kernels/cpu/micro"
	"github.com/pce-engine/pce/kernels/x86"
)

// TestBenchForest: bench measures a forest by its own path and as code under a schedule, with as many rows as it says,
// and refuses flags of circuits.
func TestBenchForest(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	var b bytes.Buffer
	f := &forest.Forest{Target: "reg:squarederror", Features: 2, Outputs: 1, Base: []float64{0}, Trees: []forest.Tree{{Weight: 1,
		Nodes:  []forest.Node{{Test: forest.Less, Threshold: 2, MissingYes: true, Yes: 1, No: 2}, {Last: 1, ID: 1}, {First: 1, Last: 2, ID: 2}},
		Values: []forest.Value{{Value: 0.25}, {Value: -1.5}}}}}
	if err := xgboost.Write(&b, f); err != nil {
		t.Fatal(err)
	}
	model, rows := file("model", b.String()), file("rows.csv", "1,0\n3,0\n,0\n")
	args := []string{"bench", "--model", model, "--data", rows, "--set", "data.header=no", "--steps", "3", "--batch", "10", "--threads", "1"}
	for path, more := range map[string][]string{"sliced ": nil, "code ": {"--schedule", "preset:padded"}, "code ptx": {"--schedule", "preset:tahoe-direct", "--device", "emulator"}} {
		r := runJSON(t, append(args, more...)...)
		if want := map[bool]string{true: "emulator", false: "cpu"}[path == "code ptx"]; r["device"] != want {
			t.Errorf("%s: bench says device %v", path, r["device"])
		}
		threads := 1.0
		if path == "code ptx" { // the emulator has none of the CPU
			threads = 0
		}
		if kernel, _ := r["kernel_path"].(string); !strings.HasPrefix(kernel, path) || number(t, r, "rows_per_second") <= 0 || number(t, r, "samples") != 30 || number(t, r, "trees") != 1 || number(t, r, "threads") != threads {
			t.Errorf("%s: bench ends with %v", path, r)
		}
	}
	for text, want := range map[string]float64{"represent sliced": 2, "represent sparse": 1, "tile batch b0 b1 2\nparallel b1": 2} {
		r := runJSON(t, append(args, "--schedule", file("under.schedule", text), "--threads", "2")...)
		if number(t, r, "threads") != want {
			t.Errorf("%q: bench says %v threads compute, want %v", text, r["threads"], want)
		}
	}
	args[2], args[4] = file("double.txt", doubleForest), file("three.csv", "1,0,2\n,3,0\n")
	for _, more := range [][]string{nil, {"--schedule", "preset:padded"}, {"--schedule", "preset:tahoe-direct", "--device", "emulator", "--kernels"}} {
		wide := runJSON(t, append(args, more...)...)
		if wide["cells"] != "float64" || number(t, wide, "rows_per_second") <= 0 {
			t.Errorf("bench of a forest that compares float64, %v: %v", more, wide)
		}
	}
	args[2], args[4] = model, rows
	r := runJSON(t, append(args, "--schedule", "preset:tahoe-direct", "--device", "emulator", "--kernels")...)
	if r["cells"] != "float32" {
		t.Errorf("bench of a forest that compares float32: %v", r)
	}
	if share := number(t, r, "copy_share"); !(number(t, r, "kernel_seconds_per_1k_samples") > 0) || share < 0 || share >= 1 {
		t.Errorf("bench --kernels ends with %v", r)
	}
	for _, args := range [][]string{
		{"bench", "--model", model, "--data", rows, "--space", "log"}, {"bench", "--model", model, "--data", rows, "--path", "code"},
		{"check", model, "--data", rows, "--max-error", "1e-3"}, {"info", model, "--type", "f32"}, {"info", model, "--error", "relative"},
	} {
		var out, errs bytes.Buffer
		if code := Run(t.Context(), args, nil, nil, &out, &errs); code != exitUsage || !strings.Contains(errs.String(), "are for circuits") {
			t.Errorf("%v: exit %d, %s%s", args, code, &out, &errs)
		}
	}
	for want, args := range map[string][]string{
		"--data FILE":                            {"bench", "--model", model},
		"--device emulator without":              {"bench", "--model", model, "--data", rows, "--device", "emulator"},
		"are chosen for the CPU":                 {"bench", "--model", model, "--data", rows, "--device", "emulator", "--schedule", "auto"},
		"--kernels of a forest wants --schedule": {"bench", "--model", model, "--data", rows, "--kernels", "--time", "1h"}, // at once
		"has no rows":                            {"bench", "--model", model, "--data", file("empty.csv", "a,b\n")},
		"must not be negative":                   {"bench", "--model", model, "--data", rows, "--batch", "-1"},
		"want at most":                           {"bench", "--model", model, "--data", rows, "--batch", "1000000000"},
		"are for decision forests":               {"bench", "--config", "preset:hclt", "--schedule", "preset:padded"},
	} {
		var out, errs bytes.Buffer
		if code := Run(t.Context(), args, nil, nil, &out, &errs); code != exitUsage || !strings.Contains(errs.String(), want) {
			t.Errorf("%v: exit %d, %s; want %q", args, code, &errs, want)
		}
	}
}

// TestBenchForestFirstRows: bench reads no more rows than it measures, as there may be no end of them, and says that it measured the first ones.
func TestBenchForestFirstRows(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("rows.csv", []byte("humidity,wind\n"+strings.Repeat("0,3\n", 20000)+"what is not a number\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	a, r := &app{stderr: &errs}, &forestBench{Batch: 4}
	fo := &forest.Forest{Features: 2, Outputs: 1, Names: []string{"humidity", "wind"}, Input: forest.Float32}
	err := benchRows(t.Context(), a, &benchFlags{data: "rows.csv", steps: 1}, &scheduleFlags{}, fo, r, 2001, func(rows, out []float32) error { return nil })
	if err != nil || r.Samples != 4 || !strings.Contains(errs.String(), "note: of rows.csv the first 1000 rows are measured") {
		t.Errorf("%d samples, %v, %s", r.Samples, err, &errs)
	}
}

// TestProfileOnce: a command that opens a forest under a schedule, and compiles it for its kernels after that, reads the profile once, as a
// pipe has it.
func TestProfileOnce(t *testing.T) {
	t.Chdir(t.TempDir())
	write := func(name, text string) {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("model.json", singleForest)
	write("rows.csv", "humidity,wind\n0,3\n1,7\n")
	write("profile.json", plain(t, "forest", "profile", "model.json", "--data", "rows.csv"))
	a, f := &app{stderr: t.Output()}, scheduleFlags{file: "preset:padded", profile: "profile.json"}
	m, err := f.open(a, "model.json", deviceFlags{device: "cpu"}, 8)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if err := os.Remove("profile.json"); err != nil {
		t.Fatal(err)
	}
	if _, _, hits, err := f.read(a, "model.json", 1, 8); err != nil || len(hits) != len(m.Forest().Trees) {
		t.Errorf("the visits of %d trees, %v; want %d", len(hits), err, len(m.Forest().Trees))
	}
}

// TestInterpretedKernels: that a forest's walks have no machine code under a schedule is said, with what gives them some.
func TestInterpretedKernels(t *testing.T) {
	set, err := micro.Select()
	if err != nil {
		t.Fatal(err)
	}
	if set.Name == "generic" || x86.Path() == "" {
		t.Skip("SKIPPED: this machine has no machine code")
	}
	t.Chdir(t.TempDir())
	f := &forest.Forest{Target: "reg:squarederror", Features: 1, Outputs: 1, Base: []float64{0}}
	for i := range 5000 {
		tree := forest.Tree{Weight: 1, Values: []forest.Value{{Value: 1}}}
		depth := int32(1 + 11*(i%2)) // so that sortTrees has a kernel which adds the leaves
		for k := range depth {
			tree.Nodes = append(tree.Nodes, forest.Node{Test: forest.Less, Threshold: float64(k), Yes: 2*k + 1, No: 2*k + 2, ID: 2 * k}, forest.Node{Last: 1, ID: 2*k + 1})
		}
		tree.Nodes = append(tree.Nodes, forest.Node{ID: 2 * depth})
		f.Trees = append(f.Trees, tree)
	}
	var model bytes.Buffer
	if err := xgboost.Write(&model, f); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"model.json": model.String(), "rows.csv": "0.5\n", "all.schedule": "represent sparse\nsortTrees\n",
		"tiles.schedule": "represent sparse\nsortTrees\ntile tree t0 t1 100\nreorder t0 batch t1\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for schedule, want := range map[string]bool{"all.schedule": true, "tiles.schedule": false} {
		var out, errs bytes.Buffer
		code := Run(t.Context(), []string{"predict", "--model", "model.json", "--data", "rows.csv", "--set", "data.header=no", "--schedule", schedule}, nil, nil, &out, &errs)
		if code != 0 || strings.Contains(errs.String(), "are interpreted; tile the loop over trees") != want {
			t.Errorf("%s: exit %d, %q", schedule, code, &errs)
		}
	}
	var mixed int // paths that are interpreted in part
	for _, p := range runJSON(t, "check", "model.json", "--data", "rows.csv", "--set", "data.header=no", "--schedule", "all.schedule")["paths"].([]any) {
		if path := p.(map[string]any); path["schedule"] == "all.schedule" && strings.HasPrefix(path["kernel_path"].(string), interpreter+", ") {
			mixed++
		}
	}
	if mixed == 0 {
		t.Error("check compares no kernels with machine code under all.schedule")
	}
}
