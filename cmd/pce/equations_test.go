package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestEquationsConfigs builds the shipped circuits of equations over rows of 32 columns. That of
// hmm.yaml has the sizes of structure hmm.
func TestEquationsConfigs(t *testing.T) {
	t.Chdir(filepath.Join("..", ".."))
	for name, want := range map[string][2]float64{"hmm": {4033, 131008}, "hsmm": {1521, 25360}} {
		args := []string{"info", "--config", "configs/equations/" + name + ".yaml"}
		for _, split := range []string{"train", "valid", "test"} {
			args = append(args, "--set", "data."+split+"=builtin:random?rows=9&vars=32&categories=5")
		}
		info := runJSON(t, args...)
		if info["nodes"] != want[0] || info["edges"] != want[1] {
			t.Errorf("%s.yaml: %v nodes and %v edges, want %v", name, info["nodes"], info["edges"], want)
		}
	}
}

// TestEquationsResume resumes a run of equations: with another comment it continues, with another
// circuit or without the file it is refused. The model is whole without the file.
func TestEquationsResume(t *testing.T) {
	source, err := os.ReadFile(filepath.Join("..", "..", "configs", "equations", "hmm.red"))
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("a.red", string(source))
	write("rows.csv", "0,1,2\n1,1,2\n2,?,0\n0,0,1\n")
	write("run.yaml", `model: {structure: equations, equations: a.red, latents: 2}
data: {train: rows.csv, header: no}
train: {epochs: 2, batch_size: 4, samples: 0}
device: cpu
`)
	if end := runJSON(t, "train", "--config", "run.yaml", "--out", "run"); end["epochs"] != 2.0 {
		t.Fatalf("trained: %v", end)
	}
	write("a.red", "# Another comment.\n"+string(source))
	if end := runJSON(t, "train", "--resume", "--out", "run", "--set", "train.epochs=3"); end["epochs"] != 3.0 {
		t.Errorf("resumed: %v", end)
	}
	resume := func(want string) {
		t.Helper()
		var out, errs bytes.Buffer
		code := Run(t.Context(), []string{"train", "--resume", "--out", "run", "--set", "train.epochs=4"}, nil, nil, &out, &errs)
		if code != exitData || !strings.Contains(errs.String(), want) {
			t.Errorf("exit %d: %s\nwant %s", code, &errs, want)
		}
	}
	other := strings.Replace(string(source), "e[s,x[t]]*next[t,s]", "next[t,s]*e[s,x[t]]", 1)
	if other == string(source) {
		t.Fatal("hmm.red has other words than this test")
	}
	write("a.red", other)
	resume("the run has changed")
	if err := os.Remove("a.red"); err != nil {
		t.Fatal(err)
	}
	resume("a.red: no such file or directory; training reads the equations when it starts and when it is resumed")
	var out, errs bytes.Buffer
	if code := Run(t.Context(), []string{"query", "sample", "--model", filepath.Join("run", "model.safetensors"), "-n", "2"}, nil, nil, &out, &errs); code != exitOK || strings.Count(out.String(), "\n") != 2 {
		t.Errorf("exit %d: %s%s", code, &out, &errs)
	}
}
