package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pce-engine/pce/run"
)

// TestComplete asks for completions as shells do.
func TestComplete(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, path := range []string{"runs/a/metrics.jsonl", "runs/a/model.safetensors", "runs/b*/result.json", "runs/c/other", "d/model.safetensors"} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		args []string
		want []string // all that is offered; nil: want to have has
		has  []string
	}{
		{args: []string{"train", "--config", "preset:hc"}, want: []string{"preset:hclt-mnist", "preset:hclt"}},
		{args: []string{"train", "--config", "zzz"}},
		{args: []string{"train", "--set", "train.ep"}, want: []string{"train.epochs="}},
		{args: []string{"train", "--set", "model.structure=h"}, want: []string{"model.structure=hclt", "model.structure=hmm"}},
		{args: []string{"train", "--set", "train.epochs=1"}},
		{args: []string{"train", "--set", ""}, has: []string{"train.epochs=", "data.train=", "model.leaf.type="}},
		{args: []string{"train", "--device", "c"}, has: []string{"cpu"}},
		{args: []string{"train", "--out", ""}, want: []string{"runs/a", "runs/b*"}},
		{args: []string{"train", "--out", "runs/b"}, want: []string{"runs/b*"}},
		{args: []string{"train", "--out", "runs/b*"}, want: []string{"runs/b*"}},
		{args: []string{"report", "runs/"}, want: []string{"runs/a", "runs/b*"}},
		{args: []string{"report", "runs/a", ""}},
		{args: []string{"eval", "--model", "ru"}, want: []string{"runs/a/" + run.ModelFile}},
		{args: []string{"query", "loglik", "--model", "runs/a/" + run.ModelFile, "--da"}, want: []string{"--data"}},
	} {
		var out, errs bytes.Buffer
		if code := Run(t.Context(), append([]string{"__complete"}, tc.args...), nil, strings.NewReader(""), &out, &errs); code != exitOK {
			t.Errorf("%q: exit %d: %s", tc.args, code, &errs)
		}
		var got []string
		for line := range strings.Lines(out.String()) {
			word, _, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
			if !strings.HasPrefix(word, ":") {
				got = append(got, word)
			}
		}
		if tc.has == nil && !slices.Equal(got, tc.want) {
			t.Errorf("%q: %q, want %q", tc.args, got, tc.want)
		}
		for _, want := range tc.has {
			if !slices.Contains(got, want) {
				t.Errorf("%q: no %q in %q", tc.args, want, got)
			}
		}
	}
}

// TestCompletionsOnlyAsked wants commands that complete nothing to leave nothing in the package cobra,
// whose table of flags keeps the commands of every call of Run.
func TestCompletionsOnlyAsked(t *testing.T) {
	for asked, args := range map[bool][]string{false: {"train", "--set", ""}, true: {"__completeNoDesc", "train", "--set", ""}} {
		train, _, err := (&app{args: args}).root().Find([]string{"train"})
		if err != nil {
			t.Fatal(err)
		}
		if _, kept := train.GetFlagCompletionFunc("set"); kept != asked {
			t.Errorf("%q: --set has a completion: %v, want %v", args, kept, asked)
		}
	}
}
