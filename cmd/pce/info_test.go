package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pce-engine/pce/circuit"
)

// TestInfoJSON: a circuit with each kind of leaf is described as JSON on every path that it has.
// Values of densities have no least or largest one, and JSON no infinite numbers.
func TestInfoJSON(t *testing.T) {
	leaves := map[string]string{
		"bernoulli":            "bernoulli 0.25",
		"binomial":             "binomial trials=3 0.5",
		"categorical":          "categorical categories=3 0.2 0.3 0.5",
		"discretised-logistic": "discretised-logistic codes=4 min_scale=0.01 1 0.5",
		"gaussian":             "gaussian min_sigma=0.01 0 1",
		"histogram":            "histogram edges=0,2,5 0.5 0.5",
		"indicator":            "indicator codes=5 value=4",
		"log-normal":           "log-normal 0 1",
		"poisson":              "poisson 2",
		"real-histogram":       "real-histogram breaks=0,2,5 floor=2.220446049250313e-16 0.2 0.2",
	}
	for _, family := range circuit.LeafTypes() {
		if leaves[family] == "" {
			t.Errorf("no circuit with a %s leaf", family)
		}
	}
	for family, leaf := range leaves {
		in := filepath.Join(t.TempDir(), "net.txt")
		text := "circuit 2\na = input x0 " + leaf + "\nb = input x1 bernoulli 0.25\np = product a b\n"
		if err := os.WriteFile(in, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		paths := [][]string{{"--path", "tensor"}, {"--path", "code"}, {"--path", "code", "--type", "f32", "--space", "log"}, {"--path", "code", "--type", "f32", "--space", "scaled"}}
		if family == "log-normal" || family == "poisson" { // which code does not have
			paths = paths[:1]
		}
		for _, path := range append(paths, nil) {
			out := converse(slices.Concat([]string{"info", in, "--json"}, path), nil, "")
			var info struct {
				Leaves map[string]int `json:"leaves"`
				Path   string         `json:"path"`
			}
			if err := json.Unmarshal([]byte(out), &info); err != nil || info.Leaves[family] == 0 || len(path) > 0 && info.Path != path[1] {
				t.Errorf("%s %s: %v in %s", family, strings.Join(path, " "), err, out)
			}
		}
	}
}

// TestInfoOfTraining wants a config to be described as train runs it, which is by tensors also where queries are answered by code.
func TestInfoOfTraining(t *testing.T) {
	dir := t.TempDir()
	model, rows := filepath.Join(dir, "net.spn"), filepath.Join(dir, "rows.csv")
	for path, text := range map[string]string{model: "Root SumNode(0.5*A, 0.5*B){\n\tA Histogram(size|[0., 1., 3.];[0.5, 0.25])\n\tB Histogram(size|[0., 2., 3.];[0.25, 0.5])\n\t}\n# size\n", rows: "size\n0\n1\n2\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	config := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(config, []byte("model: {structure: file, file: "+model+"}\ndata: {train: "+rows+"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if path := runJSON(t, "info", model)["path"]; path != "code" {
		t.Errorf("queries take the path %v, want code", path)
	}
	info := runJSON(t, "info", "--config", config)
	if memory := info["memory"].(map[string]any); info["path"] != "tensor" || memory["flows"] == 0. {
		t.Errorf("training takes the path %v and memory %v; want tensors and flows", info["path"], memory)
	}
	if code, _, stderr := do(t, "", "info", "--config", config, "--type", "f32"); code != exitUsage || !strings.Contains(stderr, "info --config describes training") {
		t.Errorf("numbers of code for training: exit %d, %s", code, stderr)
	}
}

// TestInfoEscapes: what a file says of its producer reaches a terminal as text, and JSON as it is.
func TestInfoEscapes(t *testing.T) {
	for version, want := range map[string]string{
		"v4":                "lightgbm v4\n",
		"v4\x1b[31m":        `"lightgbm v4\x1b[31m"` + "\n",
		"v4\xff":            `"lightgbm v4\xff"` + "\n",
		"v4\u202e4v":        `"lightgbm v4\u202e4v"` + "\n",
		`v4 "Grüße" of \o/`: `lightgbm v4 "Grüße" of \o/` + "\n",
	} {
		in := filepath.Join(t.TempDir(), "forest.txt")
		text := "tree\nversion=" + version + "\nnum_class=1\nnum_tree_per_iteration=1\nmax_feature_idx=0\nobjective=regression\n\nTree=0\nnum_leaves=1\nnum_cat=0\nleaf_value=1\n\nend of trees\n"
		if err := os.WriteFile(in, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if out := converse([]string{"info", in}, nil, ""); !strings.Contains(out, "kind         decision forest of "+want) {
			t.Errorf("%q: %q, want %q in it", version, out, want)
		}
		var info struct {
			Source string `json:"source"`
		}
		out := converse([]string{"info", in, "--json"}, nil, "")
		if err := json.Unmarshal([]byte(out), &info); err != nil || info.Source != strings.ToValidUTF8("lightgbm "+version, "\ufffd") {
			t.Errorf("%q: %v, source %q", version, err, info.Source)
		}
	}
}

// TestInfoForestFlags: flags of circuits are refused for a forest, of which they change nothing.
func TestInfoForestFlags(t *testing.T) {
	forest := filepath.Join(t.TempDir(), "forest.json")
	if err := os.WriteFile(forest, []byte(singleForest), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, flag := range []string{"--device=card", "--threads=1", "--set=compile.block_size=4"} {
		name, _, _ := strings.Cut(flag, "=")
		refused(t, exitUsage, name+" is for circuits", "info", forest, flag)
	}
}

// TestStatsEscapes: the names of columns reach a terminal as text.
func TestStatsEscapes(t *testing.T) {
	in := filepath.Join(t.TempDir(), "rows.csv")
	if err := os.WriteFile(in, []byte("a\x1b[31m,b\n1,2\n3,4\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if out := converse([]string{"data", "stats", in}, nil, ""); !strings.Contains(out, "\n"+`"a\x1b[31m"`+" ") || !strings.Contains(out, "\nb  ") {
		t.Errorf("%q", out)
	}
}
