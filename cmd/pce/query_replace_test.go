package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestNothingReadIsReplaced: no command replaces a file that it reads, with --force either, whether the file is named or
// found in a folder or by a pattern; a file beside them that is not read is replaced.
func TestNothingReadIsReplaced(t *testing.T) {
	t.Chdir(t.TempDir())
	files := map[string]string{
		"c.txt":              "circuit 2\na = input[2] x0 bernoulli 0.3 / 0.9\nb = input[2] x1 bernoulli 0.2 / 0.1\np = product a b\ns = sum p : 0.4 0.6\n",
		"tree.json":          `{"version":[1,7,4],"learner":{"learner_model_param":{"base_score":"0.5","num_class":"0","num_feature":"2"},"objective":{"name":"binary:logistic"},"gradient_booster":{"name":"gbtree","model":{"tree_info":[0],"trees":[{"tree_param":{"num_nodes":"3"},"left_children":[1,-1,-1],"right_children":[2,-1,-1],"split_indices":[0,0,0],"split_conditions":[0.5,-2,3],"default_left":[1,0,0]}]}}}}`,
		"rtl/report.json":    "circuit 2\na = input[1] x0 bernoulli 0.25\nb = input[1] x1 bernoulli 0.5\np = product a b\n",
		"rows/a.csv":         "0,1\n1,0\n",
		"rows/b.csv":         "1,1\n0,1\n",
		"rows/deep/c.csv":    "1,0\n1,1\n",
		"rows/note":          "not read",
		"data.yaml":          "data:\n  header: no\n",
		"run/samples.txt":    "the cat sat on the mat.\n",
		"old/metrics.jsonl":  "{\"epoch\":1,\"step\":1,\"train_ll\":-1}\n",
		"old/config.yaml":    "name: old\n",
		"program/twice.txt":  "param N : N >= 1;\nsize N = 1;\ninput float x[N];\narray float twice[N];\noutput twice;\ntwice[i] = 2*x[i] : { [i] : 0 <= i < N };\n",
		"program/x.txt":      "1\n",
		"program/plain.red":  "param N : N >= 1;\nsize N = 1;\ninput float x[N];\narray float twice[N];\noutput twice;\ntwice[i] = 2*x[i] : { [i] : 0 <= i < N };\n",
		"program/linked.red": "param N : N >= 1;\nsize N = 1;\ninput float x[N];\narray float y[N];\noutput y;\ny[i] = 2*x[i] : { [i] : 0 <= i < N };\n",
	}
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("x.txt", "program/y.txt"); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"predict", "tree.json", "--data", "rows", "--out", "rows/b.csv", "--force"},
		{"predict", "tree.json", "--data", "rows/*.csv", "--out", "rows/b.csv", "--force"},
		{"predict", "tree.json", "--data", "rows/**/*.csv", "--out", "rows/deep/c.csv", "--force"},
		{"predict", "tree.json", "--data", "rows/a.csv", "--config", "data.yaml", "--out", "data.yaml", "--force"},
		{"forest", "circuit", "tree.json", "--data", "rows/?.csv", "--out", "rows/a.csv", "--force"},
		{"query", "loglik", "c.txt", "--data", "rows", "--out", "./rows/deep/c.csv", "--force"},
		{"query", "mpe", "c.txt", "--data", "rows/*.csv", "--out", "rows/a.csv", "--force"},
		{"query", "sample", "c.txt", "--given", "rows", "--out", "rows/a.csv", "--force"},
		{"report", "old", "--out", "old/metrics.jsonl", "--force"},
		{"train", "--config", "preset:hmm-text", "--set", "data.train=run/*.txt", "--set", "data.valid=", "--set", "data.test=", "--out", "run"},
		{"reduce", "run", "program/twice.txt", "--out", "program"},
		{"compile", "rtl/report.json", "--target", "rtl", "-o", "rtl"},
		{"reduce", "run", "program/linked.red", "--data", "program", "--out", "program"},
	} {
		refused(t, exitUsage, " is read, and would be replaced; name another file for the output", args...)
	}
	for name, text := range files {
		if got := string(readFile(t, name)); got != text {
			t.Errorf("%s has become %q", name, got)
		}
	}
	for _, args := range [][]string{
		{"predict", "tree.json", "--data", "rows", "--out", "rows/note", "--force"},
		{"reduce", "run", "program/plain.red", "--data", "program", "--out", "elsewhere"},
	} {
		if code, _, errs := do(t, "", args...); code != exitOK {
			t.Errorf("%q: exit %d, %s", args, code, errs)
		}
	}
}
