package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTextFolder wants a job over a folder to have the files that the command of its name reads there: for a circuit of text those
// of every name, also where training continues from such a circuit.
func TestTextFolder(t *testing.T) {
	data := t.TempDir()
	for _, name := range []string{"a.txt", "b.md", "c"} {
		if err := os.WriteFile(filepath.Join(data, name), []byte(strings.Repeat(name+" text ", 40)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	model := trained(t, "data.train="+filepath.Join(data, "a.txt"), "data.text.length=8", "model.structure=hmm")
	lines := func(paths ...string) int {
		args := []string{"query", "loglik", "--model", model, "--device", "cpu"}
		for _, path := range paths {
			args = append(args, "--data", path)
		}
		var out, errs strings.Builder
		if code := Run(t.Context(), args, nil, nil, &out, &errs); code != 0 {
			t.Fatalf("%v: %s", args, errs.String())
		}
		return strings.Count(out.String(), "\n")
	}
	for _, set := range [][]string{
		{"job.kind=loglik", "job.model=" + model, "job.data=" + data},
		{"model.structure=file", "model.file=" + model, "data.train=" + data},
	} {
		j, err := testApp().newJob(t.Context(), "run-1", testConfig(t, set...))
		if err != nil {
			t.Fatal(err)
		}
		var paths []string
		for _, f := range j.Files {
			if f.Path != model {
				paths = append(paths, f.Path)
			}
		}
		if len(paths) != 3 || lines(paths...) != lines(data) {
			t.Errorf("%v: the job has the files %v", set, paths)
		}
	}
}
