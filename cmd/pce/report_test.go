package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/run"
)

// TestReport reports a run with a picture of samples, without it, one of columns, and
// one that was stopped.
func TestReport(t *testing.T) {
	if testing.Short() {
		t.Skip("a run and its pictures; without -short")
	}
	t.Chdir(t.TempDir())
	runJSON(t, "train", "--config", "preset:hclt", "--set", "train.epochs=2", "--set", "train.steps=3", "--set", "model.latents=2", "--set", "data.test=", "--out", "images", "--threads", "1")
	mixedModel(t)
	report := func(args ...string) (string, []string) {
		t.Helper()
		var out, errs bytes.Buffer
		if code := Run(t.Context(), append([]string{"report", "--json"}, args...), nil, nil, &out, &errs); code != 0 {
			t.Fatalf("report %v: exit %d: %s", args, code, &errs)
		}
		var r reported
		if err := json.Unmarshal(out.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(r.Report)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Split(strings.TrimSuffix(errs.String(), "\n"), "\n"); errs.Len() > 0 && !slices.Equal(got, r.Missing) {
			t.Errorf("stderr has %q, --json %q", got, r.Missing)
		}
		return string(text), r.Missing
	}
	wants := func(text string, words ...string) {
		t.Helper()
		for _, w := range words {
			if !strings.Contains(text, w) {
				t.Errorf("the report lacks %q", w)
			}
		}
	}

	text, missing := report("images")
	wants(text, "<h1>images</h1>", "data:image/png;base64,", "categorical leaves", "rows per second", "latents: 2", "Trained by pce ", "<h3>Layers", "<h3>Memory")
	if len(missing) > 0 {
		t.Errorf("missing: %q", missing)
	}
	if err := os.Remove(filepath.Join("images", run.SamplesFile)); err != nil {
		t.Fatal(err)
	}
	again, missing := report("images") // replaces the first
	wants(again, "data:image/png;base64,")
	if again == text || len(missing) > 0 {
		t.Errorf("missing: %q; equal: %t", missing, again == text)
	}

	text, missing = report("run", "--out", "mixed.html")
	wants(text, `<th scope="col">level</th>`, `<th scope="col">score</th>`)
	low, high := strings.Count(text, "<td>low</td>"), strings.Count(text, "<td>high</td>")
	if low+high == 0 || strings.Contains(text, "<img") || len(missing) > 0 {
		t.Errorf("%d and %d samples of level; missing %q", low, high, missing)
	}
	if got := converse([]string{"report", "run", "--out", "mixed.html"}, nil, ""); !strings.Contains(got, "mixed.html exists; name another file, or replace it with --force") {
		t.Errorf("a second report says %s", got)
	}

	// A run that was killed while it wrote.
	model, err := os.ReadFile(filepath.Join("run", run.ModelFile))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join("run", run.ModelFile), model[:len(model)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	os.Remove(filepath.Join("run", run.ResultFile))
	text, missing = report("run")
	wants(text, "This report is incomplete.", "<svg")
	if len(missing) < 2 {
		t.Errorf("missing: %q", missing)
	}
	if temps, _ := filepath.Glob("run/.report*"); len(temps) > 0 {
		t.Errorf("left over: %q", temps)
	}
	if got := converse([]string{"report", "nowhere"}, nil, ""); !strings.Contains(got, "exit 2") || !strings.Contains(got, "nowhere has no model.safetensors") {
		t.Errorf("no run: %s", got)
	}
}

// TestReportRefuses: flags that cannot work are refused, and not told as parts that a run lacks.
func TestReportRefuses(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile(run.ConfigFile, []byte("name: a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		code int
		want string
		args []string
	}{
		{exitUsage, "--threads -1: want 0 to", []string{"--threads", "-1"}},
		{exitMachine, `no device "card"`, []string{"--device", "card"}},
		{exitUsage, "--json and --out - both write to stdout", []string{"--json", "--out", "-"}},
	} {
		refused(t, tc.code, tc.want, append([]string{"report", "."}, tc.args...)...)
	}
	if _, err := os.Stat(reportFile); err == nil {
		t.Error("a report was written")
	}
}

// TestReportOfBreaks: the report of a network whose queries take code has the layers that it was trained with.
func TestReportOfBreaks(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"sun.spn": `SumNode_0 SumNode(0.6*Sun_1, 0.4*Sun_2){
    Sun_1 Histogram(sun|[0., 2., 6., 14.];[0.3, 0.09, 0.005])
    Sun_2 Histogram(sun|[0., 2., 6., 14.];[0.05, 0.1, 0.0625])
}
# sun
`,
		"sun.csv":  "sun\n0.5\n9\n3\n",
		"sun.yaml": "model: {structure: file, file: sun.spn}\ndata: {train: sun.csv}\ntrain: {epochs: 1}\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	runJSON(t, "train", "--config", "sun.yaml", "--out", "run")
	if got := converse([]string{"report", "run"}, nil, ""); !strings.HasPrefix(got, filepath.Join("run", reportFile)) {
		t.Fatal(got)
	}
	text, err := os.ReadFile(filepath.Join("run", reportFile))
	if err != nil {
		t.Fatal(err)
	}
	_, layers, _ := strings.Cut(string(text), "<h3>Layers")
	if !strings.Contains(layers, "<tr><td>1</td>") || strings.Contains(layers, "Blocks of 0 units") {
		t.Errorf("the layers are %.900s", layers)
	}
}

// TestReportMemory: a report has the memory of queries that pce info says, which adds up.
func TestReportMemory(t *testing.T) {
	t.Chdir(t.TempDir())
	mixedModel(t)
	memory := runJSON(t, "info", filepath.Join("run", run.ModelFile), "--threads", "1")["memory"].(map[string]any)
	if got := converse([]string{"report", "run", "--threads", "1"}, nil, ""); !strings.HasPrefix(got, filepath.Join("run", reportFile)) {
		t.Fatal(got)
	}
	text, err := os.ReadFile(filepath.Join("run", reportFile))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(strings.ReplaceAll(string(text), "\u202f", ""), "<h3>Memory")
	sum := 0.0
	for _, part := range []string{"parameters", "values", "flows", "scratch", "program", "runtime", "total"} {
		n := number(t, memory, part)
		if want := fmt.Sprintf(`<td class="text">%s</td><td>%.0f</td>`, part, n); !strings.Contains(table, want) {
			t.Errorf("the report lacks %s", want)
		}
		if sum += n; part == "total" && sum != 2*n {
			t.Errorf("the parts add up to %.0f, the total is %.0f", sum-n, n)
		}
	}
}

// TestReportWideImages: of a model of images of one line that a report draws itself there is a picture with dots of fewer pixels, and of
// wider ones a table.
func TestReportWideImages(t *testing.T) {
	for width, want := range map[int]string{5000: "data:image/png", 17000: "16976 further columns are left out"} {
		g := &circuit.Graph{NumVars: width}
		s := &dataset.Schema{Columns: make([]dataset.Column, width), Image: [3]int{1, width, 1}}
		all := make([]circuit.NodeID, width)
		for v := range all {
			all[v], s.Columns[v] = circuit.NodeID(v), dataset.Column{Categories: 2}
			g.Nodes = append(g.Nodes, circuit.Node{Kind: circuit.Input, Units: 1, Var: v, Leaf: circuit.Bernoulli{}})
		}
		g.Nodes = append(g.Nodes, circuit.Node{Kind: circuit.Product, Units: 1, Children: all})
		dir := t.TempDir()
		half := func(_ circuit.NodeID, dst []float64) error {
			dst[0], dst[1] = 0.5, 0.5
			return nil
		}
		if err := run.WriteCircuit(filepath.Join(dir, run.ModelFile), g, s, half); err != nil {
			t.Fatal(err)
		}
		plain(t, "report", dir)
		if text := string(readFile(t, dir, reportFile)); !strings.Contains(text, want) {
			t.Errorf("images of %d dots: no %q", width, want)
		}
	}
}
