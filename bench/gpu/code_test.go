package main

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// codePCE is a pce that times code: kernels at twice the speed of a call.
const codePCE = `echo "$*" >>"$(dirname "$0")/args"
echo '{"seconds_per_1k_samples": 2e-6, "kernel_seconds_per_1k_samples": 1e-6, "copy_share": 0.5, "batch": 4096, "samples": 8192, "recomputed_tiles": 2048}'
`

// TestCode runs the set with all inputs: every part once, each command with what its kind
// of model needs, and both tables.
func TestCode(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a program for each of 61 measurements; run without -short")
	}
	b := newBed(t, codePCE, goodSuite, "")
	dir := t.TempDir()
	for _, name := range []string{"b.schedule", "a.schedule", "xgb-higgs/model.json.gz", "xgb-airline/other.json.gz"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.run("-sets", "code", "-networks", dir, "-forests", dir, "-schedules", dir); err != nil {
		t.Fatal(err)
	}
	records := b.records(t)
	if want := 4*2*2 + 2*3*3 + 9*3; len(records) != want {
		t.Errorf("%d records, want %d", len(records), want)
	}
	for _, name := range []string{
		"speaker_FADG0 noisy f32 batch 4096", "NIPS40 f64 batch 65536", "xgb-higgs b batch 1048576", "xgb-higgs tahoe-direct batch 512", "xgb-airline a batch 512", "1024-trees-of-depth-8 a batch 262144",
	} {
		if r := find(t, records, name); len(r.Steps) != 1 || r.Budget < 8 || r.Budget > 15 {
			t.Errorf("record %+v", r)
		}
	}
	args, err := os.ReadFile(filepath.Join(b.dir, "args"))
	if err != nil {
		t.Fatal(err)
	}
	for _, words := range []string{
		"bench --model " + dir + "/speaker_FADG0.bin --data ", "speaker_FADG0 noisy.csv --batch 65536 --device cuda:7 --kernels --json --time 1s --path code --type f32",
		"bench --model " + dir + "/xgb-higgs/model.json.gz --data " + dir + "/xgb-higgs/input.csv.gz --batch 512 --device cuda:7 --kernels --json --time 1s --schedule " + dir + "/a.schedule",
		"/16-trees-of-depth-2.json --data ",
	} {
		if !strings.Contains(string(args), words) {
			t.Errorf("no command with %q", words)
		}
	}
	var table strings.Builder
	if err := printTables(&table, b.out); err != nil {
		t.Fatal(err)
	}
	for _, row := range []string{
		"Networks as code, rows per microsecond", "| speaker_FADG0 noisy (!) | f64 | 4096 | 500 | 1000 | 50 % | 25 % |",
		"Forests, million rows per second", "| xgb-airline (!) | b | 4096 | 500 | 1000 | 50 % |",
	} {
		if !strings.Contains(table.String(), row+"\n") && !strings.Contains(table.String(), row+":\n") {
			t.Errorf("no line %q in\n%s", row, table.String())
		}
	}
	if strings.Contains(table.String(), "| NIPS40 f32 batch") {
		t.Error("code is among the training steps")
	}
}

// TestOnly runs the parts whose names match, for as long as it is told, and refuses an expression that is none
// or that no part matches.
func TestOnly(t *testing.T) {
	b := newBed(t, codePCE, goodSuite, "")
	if err := b.run("-call", "2", "-only", "^ratspn-(64|128)$", "-measuring", "750ms"); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range b.records(t) {
		names = append(names, r.Part)
	}
	if want := []string{"ratspn-64", "ratspn-128"}; !slices.Equal(names, want) {
		t.Errorf("parts %q, want %q", names, want)
	}
	if args, err := os.ReadFile(filepath.Join(b.dir, "args")); err != nil || strings.Count(string(args), "--time 750ms") != 2 {
		t.Errorf("commands %s, error %v", args, err)
	}
	for expression, want := range map[string]string{"(": "-only", "no such part": "no part is named"} {
		if err := b.run("-call", "2", "-only", expression); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("-only %q: %v, want %q", expression, err, want)
		}
	}
}

// TestCodeAlone runs a rehearsal without folders of models: the smallest made-up forest under the
// first schedule that is here, on a device that does not time kernels.
func TestCodeAlone(t *testing.T) {
	b := newBed(t, goodPCE, goodSuite, "")
	if err := b.run("-sets", "code", "-rehearse", "-schedules", "schedules"); err != nil {
		t.Fatal(err)
	}
	records := b.records(t)
	if len(records) != 3 {
		t.Errorf("%d records", len(records))
	}
	find(t, records, "16-trees-of-depth-2 rows batch 262144")
	var table strings.Builder
	if err := printTables(&table, b.out); err != nil {
		t.Fatal(err)
	}
	if text := table.String(); strings.Contains(text, "Networks as code") || !strings.Contains(text, "| 16-trees-of-depth-2 (!) | rows | 0 | 0.001 | | |\n") {
		t.Errorf("tables\n%s", text)
	}
	if err := b.run("-sets", "code", "-schedules", t.TempDir()); err == nil || !strings.Contains(err.Error(), "no file *.schedule") {
		t.Errorf("a folder without schedules: %v", err)
	}
}

// TestMadeRows wants rows of the same numbers each time, with the share of missing cells
// and the distribution that are asked for.
func TestMadeRows(t *testing.T) {
	dir := t.TempDir()
	for _, n := range networks {
		first, second := filepath.Join(dir, "first"), filepath.Join(dir, "second")
		for _, path := range []string{first, second} {
			if err := n.rows.write(path, 2000); err != nil {
				t.Fatal(err)
			}
		}
		data, err := os.ReadFile(first)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := os.ReadFile(second); err != nil || !bytes.Equal(data, again) {
			t.Errorf("%s: other rows the second time, error %v", n.name, err)
		}
		cells, missing, zeros, squares := 0, 0, 0, 0.0
		lines := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
		for _, line := range lines {
			row := strings.Split(line, ",")
			if len(row) != n.rows.columns {
				t.Fatalf("%s: row %q", n.name, line)
			}
			for _, cell := range row {
				cells++
				if cell == "" {
					missing++
					continue
				}
				x, err := strconv.ParseFloat(cell, 64)
				if err != nil {
					t.Fatal(err)
				}
				if n.file == "speaker_FADG0.bin" {
					squares += x * x
				} else if x < 0 || x > 12 || x != math.Trunc(x) {
					t.Errorf("%s: count %v", n.name, x)
				} else if x == 0 {
					zeros++
				}
			}
		}
		share := func(what string, got, want float64) {
			if math.Abs(got-want) > 0.03*max(1, want) {
				t.Errorf("%s: %s are %v, want about %v", n.name, what, got, want)
			}
		}
		share("missing cells", float64(missing)/float64(cells), n.rows.missing)
		if n.file == "speaker_FADG0.bin" {
			share("squares", squares/float64(cells-missing), 9)
		} else {
			share("zeros", float64(zeros)/float64(cells), 0.8)
		}
		if len(lines) != 2000 {
			t.Errorf("%s: %d rows", n.name, len(lines))
		}
	}
}

// TestWriteForest reads a made-up forest back: complete trees that differ, the same ones
// each time.
func TestWriteForest(t *testing.T) {
	dir := t.TempDir()
	first, second := filepath.Join(dir, "first"), filepath.Join(dir, "second")
	for _, path := range []string{first, second} {
		if err := writeForest(path, 3, 5, sweepFeatures); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(first)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := os.ReadFile(second); err != nil || !bytes.Equal(data, again) {
		t.Errorf("another forest the second time, error %v", err)
	}
	if !bytes.HasPrefix(data, []byte(`{"learner":`)) { // by which pce tells the format
		t.Errorf("begins with %q", data[:20])
	}
	var model struct {
		Learner struct {
			Booster struct {
				Model struct {
					Outputs []int      `json:"tree_info"`
					Trees   []madeTree `json:"trees"`
				} `json:"model"`
			} `json:"gradient_booster"`
		} `json:"learner"`
	}
	if err := json.Unmarshal(data, &model); err != nil {
		t.Fatal(err)
	}
	trees := model.Learner.Booster.Model.Trees
	if len(trees) != 5 || len(model.Learner.Booster.Model.Outputs) != 5 {
		t.Fatalf("%d trees", len(trees))
	}
	if slices.Equal(trees[0].Condition, trees[1].Condition) {
		t.Error("two trees are the same")
	}
	for _, tree := range trees {
		var leaves int
		var walk func(node, depth int)
		walk = func(node, depth int) {
			if tree.Left[node] < 0 {
				if leaves++; depth != 3 || tree.Right[node] >= 0 {
					t.Errorf("leaf %d at depth %d", node, depth)
				}
				return
			}
			if f := tree.Feature[node]; f < 0 || f >= sweepFeatures {
				t.Errorf("feature %d", f)
			}
			walk(tree.Left[node], depth+1)
			walk(tree.Right[node], depth+1)
		}
		walk(0, 0)
		if leaves != 8 || len(tree.DefaultLeft) != 15 {
			t.Errorf("%d leaves of %d nodes", leaves, len(tree.DefaultLeft))
		}
	}
}
