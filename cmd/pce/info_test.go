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
