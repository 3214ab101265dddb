package main

import (
	"bytes"
	"context"
	"encoding/json"
	"image"
	"image/png"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pce-engine/pce/configs"
	"github.com/pce-engine/pce/run"
)

// tiny are the arguments of a short run on small random images.
var tiny = []string{
	"--config", "preset:hclt", "--set", "name=tiny", "--set", "model.latents=3", "--threads", "1",
	"--set", "data.train=builtin:random?rows=200&vars=16&categories=4", "--set", "data.image=[4, 4]",
	"--set", "data.valid=builtin:random?rows=20&vars=16&categories=4&seed=2",
	"--set", "data.test=builtin:random?rows=20&vars=16&categories=4&seed=3",
	"--set", "train.epochs=3", "--set", "train.batch_size=50", "--set", "train.samples=9",
}

// runJSON runs a command that must succeed and returns the object that it
// ends with.
func runJSON(t *testing.T, args ...string) map[string]any {
	t.Helper()
	return runJSONLog(t, new(bytes.Buffer), args...)
}

// runJSONLog is runJSON, and writes what the command logs to errs.
func runJSONLog(t *testing.T, errs *bytes.Buffer, args ...string) map[string]any {
	t.Helper()
	var out bytes.Buffer
	if code := Run(t.Context(), append(args, "--json"), nil, nil, &out, errs); code != 0 {
		t.Fatalf("%v: exit %d: %s", args, code, errs)
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	object := map[string]any{}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &object); err != nil {
		t.Fatalf("%v: %v in %q", args, err, lines[len(lines)-1])
	}
	return object
}

// number returns a key that must be a finite number.
func number(t *testing.T, object map[string]any, key string) float64 {
	t.Helper()
	x, ok := object[key].(float64)
	if !ok {
		t.Errorf("key %q is %v, want a number", key, object[key])
	}
	return x
}

// TestTrainCommand trains, evaluates, queries and measures a model, and wants
// the documented keys and files.
func TestTrainCommand(t *testing.T) {
	t.Chdir(t.TempDir())
	end := runJSON(t, append([]string{"train", "--out", "run"}, tiny...)...)
	for _, key := range []string{
		"nodes", "edges", "parameters", "train_ll", "valid_ll", "test_ll", "test_bpd", "structure_seconds", "compile_seconds", "train_seconds", "samples_per_second", "steps", "best_epoch",
	} {
		number(t, end, key)
	}
	if end["device"] != "cpu" || end["out"] != "run" || end["precision_used"] == "" || number(t, end, "steps") != 12 {
		t.Errorf("train ends with %v", end)
	}
	if _, ok := end["test_perplexity"]; ok {
		t.Errorf("perplexity of rows that are no text: %v", end)
	}
	untested := runJSON(t, append(append([]string{"train", "--out", "untested"}, tiny...), "--set", "data.test=")...)
	if bpd, ok := untested["test_bpd"]; ok {
		t.Errorf("bits per dimension %v of rows that were not there", bpd)
	}
	var kept map[string]any
	if err := json.Unmarshal(readFile(t, "run", run.ResultFile), &kept); err != nil || !reflect.DeepEqual(kept, end) {
		t.Errorf("%s says %v, the command %v (%v)", run.ResultFile, kept, end, err)
	}
	metrics, err := os.ReadFile("run/metrics.jsonl")
	if err != nil || bytes.Count(metrics, []byte("\n")) != 3 {
		t.Errorf("metrics %q, %v; want 3 lines", metrics, err)
	}
	model := "run/model.safetensors"
	e := runJSON(t, "eval", "--model", model, "--data", "builtin:random?rows=20&vars=16&categories=4&seed=3")
	if got, want := number(t, e, "ll"), number(t, end, "test_ll"); got != want {
		t.Errorf("eval gives %v, train gave %v", got, want)
	}
	if want := -number(t, e, "ll") / math.Ln2 / 16; !(math.Abs(number(t, e, "bpd")-want) <= 1e-12) {
		t.Errorf("bpd %v, want %v", e["bpd"], want)
	}
	info := runJSON(t, "info", model)
	for _, key := range []string{"nodes", "edges", "parameters"} {
		if number(t, info, key) != number(t, end, key) {
			t.Errorf("info gives %v %s, train %v", info[key], key, end[key])
		}
	}
	planned := runJSON(t, append([]string{"info"}, tiny...)...)
	if planned["program_digest"] != info["program_digest"] || number(t, planned, "compile_seconds") <= 0 {
		t.Errorf("info of the config: %v", planned)
	}
	for _, key := range []string{"memory", "properties", "queries", "compile"} {
		if planned[key] == nil {
			t.Errorf("info lacks %q", key)
		}
	}
	b := runJSON(t, append([]string{"bench", "--steps", "2", "--batch", "60"}, tiny...)...)
	for _, key := range []string{"seconds_per_1k_samples", "samples", "gflops", "floor_seconds_per_1k", "fraction_of_floor", "recomputed_tiles"} {
		number(t, b, key)
	}
	if number(t, b, "samples") != 120 || b["device"] != "cpu" || b["kernel_path"] == "" || b["rows_per_second"] != nil {
		t.Errorf("bench ends with %v", b)
	}
	b = runJSON(t, "bench", "--steps", "1", "--model", model, "--data", "builtin:random?rows=20&vars=16&categories=4")
	if number(t, b, "rows_per_second") <= 0 {
		t.Errorf("bench of a model ends with %v", b)
	}
	if again := runJSON(t, "train", "--resume", "--out", "run"); again["test_ll"] != end["test_ll"] || again["steps"] != end["steps"] {
		t.Errorf("a finished run that is resumed ends with %v, want %v", again, end)
	}
}

// TestConfigOfRun wants the config in a run's directory to give the same run.
func TestConfigOfRun(t *testing.T) {
	t.Chdir(t.TempDir())
	first := runJSON(t, append([]string{"train", "--out", "a"}, tiny...)...)
	second := runJSON(t, "train", "--config", "a/config.yaml", "--out", "b")
	if first["test_ll"] != second["test_ll"] {
		t.Errorf("test_ll %v, then %v", first["test_ll"], second["test_ll"])
	}
	a, errA := os.ReadFile("a/model.safetensors")
	b, errB := os.ReadFile("b/model.safetensors")
	if errA != nil || errB != nil || !bytes.Equal(a, b) {
		t.Errorf("the models differ (%v, %v)", errA, errB)
	}
}

// TestLoglikFile compares the file that query loglik writes with eval.
func TestLoglikFile(t *testing.T) {
	t.Chdir(t.TempDir())
	runJSON(t, append([]string{"train", "--out", "run"}, tiny...)...)
	data := "builtin:random?rows=20&vars=16&categories=4&seed=3"
	var out, errs bytes.Buffer
	if code := Run(t.Context(), []string{"query", "loglik", "--model", "run/model.safetensors", "--data", data, "--out", "ll.csv"}, nil, nil, &out, &errs); code != 0 {
		t.Fatalf("exit %d: %s", code, &errs)
	}
	text, err := os.ReadFile("ll.csv")
	if err != nil {
		t.Fatal(err)
	}
	sum, rows := 0.0, 0
	for line := range strings.Lines(string(text)) {
		x, err := strconv.ParseFloat(strings.TrimSuffix(line, "\n"), 64)
		if err != nil {
			t.Fatal(err)
		}
		sum, rows = sum+x, rows+1
	}
	e := runJSON(t, "eval", "--model", "run/model.safetensors", "--data", data)
	if rows != 20 || sum/20 != number(t, e, "ll") || out.Len() > 0 {
		t.Errorf("%d rows of mean %v, want 20 of mean %v; stdout %q", rows, sum/20, e["ll"], &out)
	}
	for name, magic := range map[string]string{"s.png": "\x89PNG", "s.npy": "\x93NUMPY", "s.csv": ""} {
		args := []string{"query", "sample", "--model", "run/model.safetensors", "-n", "5", "--seed", "1", "--out", name}
		if code := Run(t.Context(), args, nil, nil, &out, &errs); code != 0 {
			t.Fatalf("%v: exit %d: %s", args, code, &errs)
		}
		if b, err := os.ReadFile(name); err != nil || !strings.HasPrefix(string(b), magic) {
			t.Errorf("%s: %v, %.10q", name, err, b)
		}
	}
}

// TestSampleMany wants rows of different read-ahead blocks to differ.
func TestSampleMany(t *testing.T) {
	t.Chdir(t.TempDir())
	runJSON(t, append([]string{"train", "--out", "run"}, tiny...)...)
	var out, errs bytes.Buffer
	n := readRows + 4
	if code := Run(t.Context(), []string{"query", "sample", "--model", "run/model.safetensors", "-n", strconv.Itoa(n)}, nil, nil, &out, &errs); code != 0 {
		t.Fatalf("exit %d: %s", code, &errs)
	}
	lines := strings.Split(out.String(), "\n")
	if len(lines) != n+1 || slices.Equal(lines[:4], lines[readRows:n]) {
		t.Errorf("%d lines; the first four are %q, those of the next block %q", len(lines)-1, lines[:4], lines[readRows:n])
	}
}

// TestSeeds wants the starting parameters to follow the run's seed unless they
// have their own.
func TestSeeds(t *testing.T) {
	cfg := configs.Default()
	cfg.Seed = 7
	if s := structureOf(cfg); s.Seed != 7 || s.Init != 7 {
		t.Errorf("seeds %d and %d, want 7", s.Seed, s.Init)
	}
	cfg.Model.Init.Seed = 9
	if s := structureOf(cfg); s.Seed != 7 || s.Init != 9 {
		t.Errorf("seeds %d and %d, want 7 and 9", s.Seed, s.Init)
	}
}

// cancelling cancels a context when an epoch is logged.
type cancelling struct {
	io.Writer
	cancel func()
}

func (c cancelling) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("epoch done")) {
		c.cancel()
	}
	return c.Writer.Write(p)
}

// TestInterrupt interrupts a run after its first epoch, wants exit code 75, and
// the model of an unbroken run once it is resumed.
func TestInterrupt(t *testing.T) {
	t.Chdir(t.TempDir())
	runJSON(t, append([]string{"train", "--out", "whole"}, tiny...)...)
	ctx, cancel := context.WithCancel(t.Context())
	var out, errs bytes.Buffer
	code := Run(ctx, append([]string{"train", "--out", "broken"}, tiny...), nil, nil, &out, cancelling{&errs, cancel})
	if code != exitCheckpointed || out.Len() > 0 {
		t.Fatalf("exit %d, want %d; stdout %q, stderr %s", code, exitCheckpointed, &out, &errs)
	}
	runJSON(t, "train", "--resume", "--out", "broken")
	for _, name := range []string{"model.safetensors", "samples.png"} {
		a, errA := os.ReadFile(filepath.Join("whole", name))
		b, errB := os.ReadFile(filepath.Join("broken", name))
		if errA != nil || errB != nil || !bytes.Equal(a, b) {
			t.Errorf("%s differs (%v, %v)", name, errA, errB)
		}
	}
	cancel()
	errs.Reset()
	code = Run(ctx, append([]string{"train", "--out", "never"}, tiny...), nil, nil, &out, &errs)
	if again := "--set train.samples=9 --resume\n"; code != exitCheckpointed || !strings.HasSuffix(errs.String(), again) { // there is no config yet
		t.Errorf("interrupted at once: exit %d, want %d, and a command that ends with %q: %s", code, exitCheckpointed, again, &errs)
	}
}

// TestText wants the perplexity of text, and samples that people can read: those of the run
// are the ones that query sample draws with its seed, and the first three are printed.
func TestText(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("t.txt", []byte(strings.Repeat("the cat sat on the mat. ", 40)), 0o644); err != nil {
		t.Fatal(err)
	}
	end := runJSON(t, "train", "--config", "preset:hmm-text", "--set", "data.train=t.txt", "--set", "data.valid=t.txt", "--set", "data.test=t.txt",
		"--set", "model.latents=4", "--set", "train.epochs=2", "--out", "run")
	if got, want := number(t, end, "test_perplexity"), math.Exp(-number(t, end, "test_ll")/32); !(math.Abs(got-want) <= 1e-12*want) {
		t.Errorf("perplexity %v, want %v", got, want)
	}
	sample := func(args ...string) string {
		var out, errs bytes.Buffer
		if code := Run(t.Context(), append([]string{"query", "sample", "--model", "run/model.safetensors"}, args...), nil, nil, &out, &errs); code != exitOK {
			t.Fatalf("exit %d: %s", code, &errs)
		}
		return out.String()
	}
	if got, want := string(readFile(t, "run", run.TextSamplesFile)), sample("-n", "64", "--seed", "42"); got != want {
		t.Errorf("the run's samples are %q, want %q", got, want)
	}
	var out, errs bytes.Buffer
	if code := Run(t.Context(), []string{"train", "--resume", "--out", "run"}, nil, nil, &out, &errs); code != exitOK {
		t.Fatalf("exit %d: %s", code, &errs)
	}
	shown := "samples     run/samples.txt\n"
	for line := range strings.Lines(sample("-n", "3", "--seed", "42")) {
		shown += "sample      " + line
	}
	if !strings.Contains(out.String(), shown+"what to do next") {
		t.Errorf("training ends with %q, want %q in it", &out, shown)
	}
	text := sample("-n", "3")
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for _, line := range lines {
		if len(lines) != 3 || len(line) != 32 || strings.Trim(line, " .acehmnost") != "" {
			t.Errorf("text is drawn as %q", text)
		}
	}
	cells := sample("-n", "1", "--out", "-")
	if strings.Count(cells, ",") != 31 {
		t.Errorf("cells are drawn as %q", cells)
	}
	if err := os.WriteFile("cells.csv", []byte(cells), 0o644); err != nil {
		t.Fatal(err)
	}
	if got, want := sample("--given", "cells.csv"), lines[0]+"\n"; got != want {
		t.Errorf("a row without missing cells is completed as %q, want %q", got, want)
	}
}

// TestPictures wants a line of a picture for each row that is completed, and dots of 4
// pixels.
func TestPictures(t *testing.T) {
	t.Chdir(t.TempDir())
	runJSON(t, append([]string{"train", "--out", "run"}, tiny...)...)
	rows := strings.Repeat("1,0,,,3,,,,,,,,,,,2\n", 3)
	if err := os.WriteFile("given.csv", []byte(rows), 0o644); err != nil {
		t.Fatal(err)
	}
	const cell = 4*4 + 2
	for _, tc := range []struct {
		args []string
		size image.Point
	}{
		{nil, image.Pt(8+3*cell+14+3*cell+8, 8+3*cell-2+8)}, // samples.png, of 9 rows drawn and 9 real
		{[]string{"sample", "-n", "5"}, image.Pt(2+3*cell, 2+2*cell)},
		{[]string{"sample", "-n", "5", "--given", "given.csv"}, image.Pt(2+6*cell, 2+3*cell)},
		{[]string{"mpe", "--data", "given.csv"}, image.Pt(2+2*cell, 2+3*cell)},
	} {
		name := filepath.Join("run", run.SamplesFile)
		if tc.args != nil {
			name = "out.png"
			var out, errs bytes.Buffer
			args := append([]string{"query"}, tc.args...)
			if code := Run(t.Context(), append(args, "--model", "run/model.safetensors", "--out", name, "--force"), nil, nil, &out, &errs); code != exitOK {
				t.Fatalf("exit %d: %s", code, &errs)
			}
		}
		config, err := png.DecodeConfig(bytes.NewReader(readFile(t, name)))
		if err != nil || config.Width != tc.size.X || config.Height != tc.size.Y {
			t.Errorf("%q: %d x %d pixels, want %v (%v)", tc.args, config.Width, config.Height, tc.size, err)
		}
	}
}
