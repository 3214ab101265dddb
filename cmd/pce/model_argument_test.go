package main

import (
	"strings"
	"testing"

	"github.com/pce-engine/pce/run"
)

// TestModelArgument gives the model with and without its flag to commands of both kinds.
func TestModelArgument(t *testing.T) {
	t.Chdir(t.TempDir())
	runJSON(t, append([]string{"train", "--out", "run"}, tiny...)...)
	const model, rows = "run/" + run.ModelFile, "builtin:random?rows=3&vars=16&categories=4"
	for _, args := range [][]string{
		{"eval", "--data", rows}, {"query", "loglik", "--data", rows}, {"query", "sample"}, {"query", "mpe", "--data", rows}, {"query", "entropy"}, {"info"},
	} {
		with, without := plain(t, append(args, "--model", model)...), plain(t, append(args, model)...)
		if args[0] == "info" { // what compiling took differs
			with, without = firstLine(with), firstLine(without)
		}
		if with != without || with == "" {
			t.Errorf("%q: %q with --model, %q without", args, with, without)
		}
		refused(t, exitUsage, "give one", append(args, model, "--model", model)...)
		refused(t, exitUsage, "run 'pce ", append(args, model, model)...)
	}
	refused(t, exitUsage, "no --model", "eval", "--data", rows)
	refused(t, exitUsage, "unknown", "train", "x", "y")
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
