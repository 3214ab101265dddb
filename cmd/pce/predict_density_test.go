package main

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestPredictDensity expects scores on the command line: those of a row whose missing cell a
// circuit of two columns that agree tells, and refusals.
func TestPredictDensity(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	var rows strings.Builder
	rows.WriteString("b,a\n")
	for i := range 400 {
		a := i * 7 % 3 / 2
		rows.WriteString(strconv.Itoa(a) + "," + strconv.Itoa(a) + "\n")
	}
	train := write("train.csv", rows.String())
	run := filepath.Join(dir, "run")
	if code, _, stderr := do(t, "", "train", "--config", "preset:hclt", "--set", "model.latents=2", "--set", "data.train="+train, "--set", "data.valid=", "--set", "data.test=",
		"--set", "train.epochs=30", "--set", "train.pseudocount=0.001", "--out", run); code != 0 {
		t.Fatal(stderr)
	}
	model := filepath.Join(run, "model.safetensors")
	forest := write("forest.json", `{"version":[1,7,4],"learner":{"feature_names":["a","b"],"learner_model_param":{"base_score":"0.5","num_class":"0","num_feature":"2"},
"objective":{"name":"binary:logistic"},"gradient_booster":{"name":"gbtree","model":{"tree_info":[0],"trees":[{"tree_param":{"num_nodes":"3"},
"left_children":[1,-1,-1],"right_children":[2,-1,-1],"split_indices":[0,0,0],"split_conditions":[0.5,-2,3],"default_left":[1,0,0]}]}}}}`)
	data := write("rows.csv", "a,b\n1,0\n,1\n,0\n,\n")
	code, out, stderr := do(t, "", "predict", "--model", forest, "--data", data, "--margin", "--density", model)
	if code != 0 || !strings.Contains(stderr, "6 boxes in the first 4 rows") {
		t.Fatalf("exit %d, %s", code, stderr)
	}
	lines := strings.Fields(out)
	want := []float64{3, 3, -2, -2 + 5*133.0/400}
	if len(lines) != len(want) || lines[0] != "3" {
		t.Fatalf("printed %q", out)
	}
	for i, line := range lines {
		got, err := strconv.ParseFloat(line, 64)
		if err != nil || math.Abs(got-want[i]) > 0.05 {
			t.Errorf("row %d: %s, want about %v", i+1, line, want[i])
		}
	}
	other := write("other.csv", "a,b\n,2\n")
	for _, tc := range []struct {
		code int
		want string
		args []string
	}{
		{exitUsage, "add --margin", []string{"--data", data, "--density", model}},
		{exitUsage, "without code and on the CPU", []string{"--data", data, "--margin", "--density", model, "--schedule", "preset:padded"}},
		{exitUsage, "without code and on the CPU", []string{"--data", data, "--margin", "--density", model, "--device", "emulator"}},
		{exitUsage, "is a decision forest", []string{"--data", data, "--margin", "--density", forest}},
		{exitData, "no such file", []string{"--data", data, "--margin", "--density", filepath.Join(dir, "none")}},
		{exitData, "2, which is not a category", []string{"--data", other, "--margin", "--density", model}},
	} {
		refused(t, tc.code, tc.want, append([]string{"predict", "--model", forest}, tc.args...)...)
	}
}

// TestPredictDensityMarks: cells that the density takes for missing are missing, as where it is asked itself.
func TestPredictDensityMarks(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"train.csv":   "humidity,wind\n" + strings.Repeat("0,3\n1,7\n-9,3\n", 50),
		"forest.json": singleForest,
		"rows.csv":    "humidity,wind\n-9,7\n,7\n1,-9\n1,\n1,none\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if code, _, stderr := do(t, "", "train", "--config", "preset:hclt", "--set", "model.latents=2", "--set", "data.train=train.csv", "--set", "data.valid=", "--set", "data.test=",
		"--set", `data.missing=["-9"]`, "--set", "train.epochs=20", "--out", "run"); code != 0 {
		t.Fatal(stderr)
	}
	code, out, stderr := do(t, "", "predict", "--model", "forest.json", "--data", "rows.csv", "--margin", "--density", "run/model.safetensors", "--set", "data.missing=[none]")
	if lines := strings.Fields(out); code != 0 || len(lines) != 5 || lines[0] != lines[1] || lines[2] != lines[3] || lines[2] != lines[4] {
		t.Errorf("marked and empty cells have the scores %q, %s", lines, stderr)
	}
}

// TestPredictDensityRoundsOnce: a number of more digits than float64 has goes the way to the leaf that it goes without
// --density, as a cell, beside a missing one, and as a category of a missing cell.
func TestPredictDensityRoundsOnce(t *testing.T) {
	t.Chdir(t.TempDir())
	const above = "1.0000000596046447753906251" // half-way between two float32 numbers as float64, and above that as text
	for name, text := range map[string]string{
		"train.csv": "a,b\n" + strings.Repeat(above+",0\n"+above+",1\n", 50),
		"rows.csv":  "a,b\n" + above + ",1\n" + above + ",\n,1\n",
		"forest.json": `{"version":[1,7,4],"learner":{"feature_names":["a","b"],"learner_model_param":{"base_score":"0.5","num_class":"0","num_feature":"2"},
"objective":{"name":"reg:squarederror"},"gradient_booster":{"name":"gbtree","model":{"tree_info":[0,0],"trees":[{"tree_param":{"num_nodes":"3"},
"left_children":[1,-1,-1],"right_children":[2,-1,-1],"split_indices":[0,0,0],"split_conditions":[1.00000011920928955078125,1,2],"default_left":[1,0,0]},{"tree_param":{"num_nodes":"3"},
"left_children":[1,-1,-1],"right_children":[2,-1,-1],"split_indices":[1,0,0],"split_conditions":[0.5,0,0],"default_left":[1,0,0]}]}}}}`,
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if code, _, stderr := do(t, "", "train", "--config", "preset:hclt", "--set", "model.latents=2", "--set", "data.train=train.csv", "--set", "data.valid=", "--set", "data.test=",
		"--set", "data.columns=[{name: a, type: label}]", "--set", "train.epochs=1", "--out", "run"); code != 0 {
		t.Fatal(stderr)
	}
	for want, args := range map[string][]string{
		"2.5\n2.5\n1.5\n": nil, // a missing cell goes to its default
		"2.5\n2.5\n2.5\n": {"--density", "run/model.safetensors"},
	} {
		code, out, stderr := do(t, "", append([]string{"predict", "--model", "forest.json", "--data", "rows.csv", "--margin"}, args...)...)
		if code != 0 || out != want {
			t.Errorf("%q: exit %d, %q, want %q: %s", args, code, out, want, stderr)
		}
	}
}
