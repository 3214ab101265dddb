package main

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pce-engine/pce"
	"github.com/pce-engine/pce/compile/forest/tune"
	"github.com/pce-engine/pce/forest"
	"github.com/pce-engine/pce/forest/format/xgboost"
	"github.com/pce-engine/pce/serve"
)

// TestForestTuneFirstRows: tune reads no more rows than it measures, as there may be no end of them, and says so.
func TestForestTuneFirstRows(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{"model.json": singleForest, "rows.csv": "humidity,wind\n" + strings.Repeat("0,3\n", maxTuneRows+1000) + "what is not a number\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out, errs bytes.Buffer
	args := []string{"forest", "tune", "model.json", "--data", "rows.csv", "--batch", "4", "--represent", "sliced", "--threads", "1", "--dry-run", "--json"}
	if code := Run(t.Context(), args, nil, nil, &out, &errs); code != 0 || !strings.Contains(errs.String(), "note: of rows.csv the first 65536 rows are measured") {
		t.Fatalf("exit %d, %s", code, &errs)
	}
	if !strings.Contains(out.String(), `"rows":65536,`) {
		t.Errorf("%.300s", &out)
	}
}

// TestForestTune: tune keeps its choice, which predict and bench take with --schedule auto and say so; what is damaged is
// passed over with a line and written anew; without a choice the cost model's is taken, and said.
func TestForestTune(t *testing.T) {
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
	env := []string{"XDG_CACHE_HOME=" + filepath.Join(dir, "cache"), "HOME=" + filepath.Join(dir, "home")}
	call := func(want int, args ...string) (out, errs string) {
		t.Helper()
		var o, e bytes.Buffer
		if code := Run(t.Context(), args, env, nil, &o, &e); code != want {
			t.Fatalf("%v: exit %d, %s", args, code, &e)
		}
		return o.String(), e.String()
	}
	data := []string{"--data", rows, "--set", "data.header=no"}
	predict := append([]string{"predict", "--model", model, "--schedule", "auto", "--threads", "1"}, data...)
	tune := slices.Clip(append([]string{"forest", "tune", model, "--batch", "64", "--threads", "1"}, data...))
	const scores = "0.25\n-1.5\n0.25\n"

	out, errs := call(0, predict...)
	if out != scores || !strings.Contains(errs, "the cost model says \"exact; represent") {
		t.Errorf("without a choice: %q, %q", out, errs)
	}
	if out, _ = call(0, append(tune, "--dry-run")...); strings.Contains(out, "kept") {
		t.Errorf("a dry run keeps: %s", out)
	}
	out, errs = call(0, append(tune, "--represent", "sparse")...)
	if _, after, ok := strings.Cut(out, "\n\n"); !ok || !strings.HasPrefix(after, "exact\nrepresent sparse\n") || !strings.Contains(out, "kept       ") || errs != "" {
		t.Errorf("tune ends with %q, %q", out, errs)
	}
	kept, err := filepath.Glob(filepath.Join(dir, "*", "pce", "schedules", "*.json"))
	if more, _ := filepath.Glob(filepath.Join(dir, "home", "*", "*", "pce", "schedules", "*.json")); err != nil || len(kept)+len(more) != 1 {
		t.Fatalf("kept are %v and %v, %v", kept, more, err)
	} else if len(more) == 1 { // a Mac's folder for caches
		kept = more
	}
	out, errs = call(0, predict...)
	if out != scores || !strings.Contains(errs, "represent sparse") || !strings.Contains(errs, "for calls of 64 rows on 1 thread ") || strings.Count(errs, "\n") != 1 {
		t.Errorf("with a choice: %q, %q", out, errs)
	}
	out, errs = call(0, append([]string{"bench", "--model", model, "--schedule", "auto", "--steps", "2", "--batch", "64", "--json"}, data...)...)
	if !strings.Contains(out, `"kernel_path":"code`) || !strings.Contains(errs, "represent sparse") {
		t.Errorf("bench: %q, %q", out, errs)
	}
	if out, _ = call(0, "compile", model, "--emit", "mir", "--schedule", "auto"); !strings.Contains(out, "sparse") {
		t.Errorf("compile: %q", out)
	}

	whole, err := os.ReadFile(kept[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(kept[0], whole[:len(whole)-9], 0o644); err != nil {
		t.Fatal(err)
	}
	out, errs = call(0, predict...)
	if out != scores || !strings.Contains(errs, "passed over") || !strings.Contains(errs, kept[0]) || !strings.Contains(errs, "the cost model says") {
		t.Errorf("a damaged file: %q, %q", out, errs)
	}
	out, errs = call(0, append(tune, "--exhaustive", "--represent", "array", "--other", "generic", "--json")...)
	if !strings.Contains(errs, "written anew") {
		t.Errorf("tune says %q of a damaged file", errs)
	}
	var r struct {
		Schedules []struct {
			Params  map[string]any `json:"params"`
			Seconds float64        `json:"seconds"`
		} `json:"schedules"`
		Complete      bool    `json:"complete"`
		Distance      float64 `json:"distance"`
		RowsPerSecond float64 `json:"rows_per_second"`
		Other         []struct {
			Path string   `json:"kernel_path"`
			Loss *float64 `json:"loss"`
		} `json:"other"`
	}
	if err := json.Unmarshal([]byte(out), &r); err != nil || !r.Complete || len(r.Schedules) == 0 || r.Distance < 0 || r.RowsPerSecond <= 0 || len(r.Other) != 1 || r.Other[0].Path != "generic" || r.Other[0].Loss == nil {
		t.Fatalf("%v: %.400s", err, out)
	}
	for _, s := range r.Schedules {
		if s.Seconds <= 0 || s.Params["represent"] != "array" {
			t.Errorf("%+v", s)
		}
	}
	if _, errs = call(0, predict...); !strings.Contains(errs, "represent array") {
		t.Errorf("written anew: %q", errs)
	}

	for _, schedule := range []string{"auto", "preset:padded"} {
		var notes bytes.Buffer
		served := serveFlags{models: []string{"m=" + model}, bodyMiB: 1, conns: 1, run: deviceFlags{device: "cpu", threads: 1}, schedule: scheduleFlags{file: schedule}}
		served.options.Parallel, served.options.MaxBatchRows, served.options.Timeout = 1, 1024, time.Minute
		if err := served.complete(t.Context(), &app{env: env, stderr: &notes}, slog.New(slog.DiscardHandler)); err != nil {
			t.Fatal(err)
		}
		m, err := served.options.Loader.Open(t.Context(), model)
		if err != nil {
			t.Fatal(err)
		}
		s := m.(*servedForest)
		out := [][]float64{make([]float64, 2), make([]float64, 2), make([]float64, 2), nil}
		if err := s.Run(t.Context(), &serve.Work{Query: queryPredict, Numbers: []float64{1, 0, 3, 0}, Outputs: out[:len(s.gives)]}); err != nil {
			t.Fatal(err)
		}
		if want := []float64{0.25, -1.5}; !slices.Equal(out[0], want) || !slices.Equal(out[1], want) || !slices.Equal(out[2], []float64{1, 2}) || !strings.HasPrefix(s.ForestPath(), "code ") || strings.Contains(notes.String(), "represent array") != (schedule == "auto") {
			t.Errorf("%s: served by %s with %v; %s", schedule, s.ForestPath(), out, &notes)
		}
		m.Close()
	}

	// A choice that cannot be kept is printed all the same, and nothing says that it is kept.
	if err := os.Remove(kept[0]); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(kept[0], 0o755); err != nil {
		t.Fatal(err)
	}
	out, errs = call(exitData, tune...)
	if !strings.Contains(out, "\n\nexact\n") || strings.Contains(out, "kept ") || !strings.Contains(errs, "is a directory") {
		t.Errorf("a folder in the place of the choice: %q, %q", out, errs)
	}

	env = nil
	if _, errs = call(exitUsage, tune...); !strings.Contains(errs, "XDG_CACHE_HOME") {
		t.Errorf("without a folder: %q", errs)
	}
	if out, errs = call(0, predict...); out != scores || !strings.Contains(errs, "no folder") {
		t.Errorf("without a folder: %q, %q", out, errs)
	}
	call(0, append(tune, "--cache", filepath.Join(dir, "mine"))...)
	b.Reset()
	f.Trees, f.Linear = nil, &forest.Linear{Weights: []float64{1, 2}, Bias: []float64{0}}
	if err := xgboost.Write(&b, f); err != nil {
		t.Fatal(err)
	}
	linear := file("linear", b.String())
	for want, args := range map[string][]string{
		linear + ": --schedule auto: ": append([]string{"predict", linear, "--schedule", "auto"}, data...),
		"no --data":                    {"forest", "tune", model},
		"representation":               append(tune, "--represent", "dense", "--dry-run"),
		"--batch -1; want":             append(tune, "--batch", "-1", "--dry-run"),
		"--batch 0; want":              append(tune, "--batch", "0", "--dry-run"),
		"a budget of":                  append(tune, "--budget", "-1s", "--dry-run"),
		`"mmx": this mach`:             append(tune, "--other", "generic,mmx", "--dry-run"),
		`"avx512vbmi": th`:             append(tune, "--other", "generic,avx512vbmi", "--dry-run"), // as sliced loops are named, and no kernels
		"no folder for":                append(tune, "--cache", filepath.Join(rows, "mine")),
		"has no rows":                  {"forest", "tune", model, "--data", file("empty.csv", "a,b\n")},
		"none.csv has no rows":         {"predict", model, "--data", file("none.csv", "a,b\n")},
		"is for predict,":              append([]string{"check", model, "--schedule", "auto"}, data...),
	} {
		if _, errs := call(exitUsage, args...); !strings.Contains(errs, want) {
			t.Errorf("%v: %s; want %q", args, errs, want)
		}
	}
}

// TestForestTuneKeepsFastest: what an exhaustive search found to be faster than the search's choice is printed and kept, with its speed.
func TestForestTuneKeepsFastest(t *testing.T) {
	var out bytes.Buffer
	a := &app{stdout: &out, stderr: &out}
	r := &forestTuning{Threads: 1, Tuning: &pce.Tuning{Path: "generic", Batch: 64, Result: tune.Result{
		Points:   []tune.Point{{Schedule: "represent sliced\n", Seconds: 4}, {Schedule: "exact\nrepresent array\n", Seconds: 1}},
		Complete: true, Choice: 0, Best: 1, Timed: 1, Legal: 2, Distance: 3, Finals: []tune.Final{{Point: 1}, {Point: 0}},
	}}}
	fo := &forest.Forest{Features: 1, Outputs: 1}
	dir := t.TempDir()
	if _, err := a.keep(dir, fo, r); err != nil {
		t.Fatal(err)
	}
	k, wrong := tune.Load(dir, fo.Digest(), "generic", 64)
	if k == nil || k.Schedule != "exact\nrepresent array\n" {
		t.Errorf("kept is %+v, %v", k, wrong)
	}
	if err := a.printTuning(r); err != nil || !strings.HasSuffix(out.String(), "\n\nexact\nrepresent array\n") || !strings.Contains(out.String(), "the search's takes 300.0 % longer than the choice") {
		t.Errorf("printed is %q, %v", &out, err)
	}
	if !strings.Contains(out.String(), "exhaustive all tried, 2 of them legal and timed; the search's takes 300.0 %") {
		t.Errorf("printed is %q", &out)
	}
	out.Reset()
	r.Complete, r.Points = false, append(r.Points, tune.Point{Error: "no code"}, tune.Point{})
	if err := a.printTuning(r); err != nil || !strings.Contains(out.String(), "exhaustive 3 of 4 tried when the budget ended, 2 of them legal and timed; ") {
		t.Errorf("printed of a search that was cut short is %q, %v", &out, err)
	}
}
