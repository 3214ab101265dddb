package main

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestForestCircuit makes a circuit of a forest of two features and asks it: the class of a row whose first feature is missing is that of the
// rows with the same second one, where the forest takes a default; and refusals.
func TestForestCircuit(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	forest := write("forest.json", `{"version":[1,7,4],"learner":{"feature_names":["a","b"],"learner_model_param":{"base_score":"0.5","num_class":"0","num_feature":"2"},
"objective":{"name":"binary:logistic"},"gradient_booster":{"name":"gbtree","model":{"tree_info":[0,0],"trees":[{"tree_param":{"num_nodes":"3"},
"left_children":[1,-1,-1],"right_children":[2,-1,-1],"split_indices":[0,0,0],"split_conditions":[0.5,-2,3],"default_left":[1,0,0]},{"tree_param":{"num_nodes":"3"},
"left_children":[1,-1,-1],"right_children":[2,-1,-1],"split_indices":[1,0,0],"split_conditions":[0.5,-0.1,0.1],"default_left":[1,0,0]}]}}}}`)
	var rows strings.Builder
	rows.WriteString("b,a\n")
	for i := range 400 { // a and b agree but in one row of 20
		x := i * 7 % 3 / 2
		rows.WriteString(strconv.Itoa(x^i%20/19) + "," + strconv.Itoa(x) + "\n")
	}
	data, out := write("rows.csv", rows.String()), filepath.Join(dir, "out.safetensors")
	if code, _, stderr := do(t, "", "forest", "circuit", forest, "--data", data, "--out", out, "--smoothing", "0.001"); code != exitOK {
		t.Fatal(stderr)
	}
	asked := write("asked.csv", "a,b,class\n,1,\n,0,\n1,,\n")
	code, got, stderr := do(t, "", "query", "classify", "--model", out, "--data", asked, "--class", "class")
	if code != exitOK {
		t.Fatal(stderr)
	}
	for i, line := range strings.Fields(got) {
		class, p, _ := strings.Cut(line, ",")
		if x, err := strconv.ParseFloat(p, 64); err != nil || class != []string{"1", "0", "1"}[i] || !(x > 0.8) {
			t.Errorf("row %d: class %s with %s", i+1, class, p)
		}
	}
	// The default of a missing cell is what a forest does: it says 0 for the first row.
	if _, got, _ := do(t, "", "predict", "--model", forest, "--data", write("plain.csv", "a,b\n,1\n"), "--class"); !strings.HasPrefix(got, "0\n") {
		t.Errorf("the forest says %q", got)
	}
	code, got, stderr = do(t, "", "query", "loglik", "--model", out, "--data", write("none.csv", "a,b,class\n?,?,?\n7,1,1\n"))
	lls := strings.Fields(got)
	if code != exitOK || len(lls) != 2 {
		t.Fatalf("%s%s", got, stderr)
	}
	nothing, err := strconv.ParseFloat(lls[0], 64)
	beyond, beyondErr := strconv.ParseFloat(lls[1], 64)
	if err != nil || beyondErr != nil || !(math.Abs(nothing) < 1e-5) || !(beyond < -5 && beyond > -100) {
		t.Errorf("log-likelihoods %q, want 0 without evidence and a small one beyond the rows' range", lls)
	}
	for _, tc := range []struct {
		code int
		want string
		args []string
	}{
		{exitUsage, "no --data", []string{"--out", out}},
		{exitUsage, "no --out", []string{"--data", data}},
		{exitUsage, "exists", []string{"--data", data, "--out", out}},
		{exitUsage, "has no rows", []string{"--data", write("empty.csv", "a,b\n"), "--out", out, "--force"}},
		{exitUsage, "--smoothing -1: want a number above 0", []string{"--data", data, "--out", out, "--force", "--smoothing", "-1"}},
		{exitUsage, "at most 3.4e38", []string{"--data", data, "--out", out, "--force", "--smoothing", "1e39"}},
		{exitData, "row 1, \"a\": +Inf; want a number that float32 holds", []string{"--data", write("large.csv", "a,b\n1e39,2\n"), "--out", out, "--force"}},
	} {
		refused(t, tc.code, tc.want, append([]string{"forest", "circuit", forest}, tc.args...)...)
	}
}

// TestForestCircuitMarks: the circuit keeps the marks of missing cells that its rows have, as those do that are trained.
func TestForestCircuitMarks(t *testing.T) {
	t.Chdir(t.TempDir())
	for path, text := range map[string]string{
		"forest.json": singleForest,
		"rows.csv":    "humidity,wind\n" + strings.Repeat("0,3\n1,-999999\n-999999,7\n", 20),
		"asked.csv":   "humidity,wind\n1,-999999\n1,\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if code, _, stderr := do(t, "", "forest", "circuit", "forest.json", "--data", "rows.csv", "--set", `data.missing=["-999999"]`, "--out", "out.safetensors"); code != exitOK {
		t.Fatal(stderr)
	}
	code, out, stderr := do(t, "", "query", "loglik", "--model", "out.safetensors", "--data", "asked.csv")
	if lls := strings.Fields(out); code != exitOK || len(lls) != 2 || lls[0] != lls[1] {
		t.Errorf("a marked and an empty cell have the log-likelihoods %q, %s", lls, stderr)
	}
}

// TestForestCircuitNames: a forest is refused whose names a model file cannot have.
func TestForestCircuitNames(t *testing.T) {
	t.Chdir(t.TempDir())
	for path, text := range map[string]string{
		"forest.txt": "tree\nversion=v4\nnum_class=1\nnum_tree_per_iteration=1\nmax_feature_idx=1\nobjective=regression\nfeature_names=a \xf6\n\nTree=0\nnum_leaves=2\nnum_cat=0\n" +
			"split_feature=1\nthreshold=1\ndecision_type=2\nleft_child=-1\nright_child=-2\nleaf_value=1 2\n\nend of trees\n",
		"rows.csv": "a,\xf6\n1,2\n0,1\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	refused(t, exitUsage, `"\xf6" of column 2 is not UTF-8`, "forest", "circuit", "forest.txt", "--data", "rows.csv", "--out", "out.safetensors")
}

// TestForestWide: a small file may claim more features than rows have, of which none is made before it is refused. One without features is not
// taken for a linear model.
func TestForestWide(t *testing.T) {
	t.Chdir(t.TempDir())
	for path, text := range map[string]string{
		"wide.txt": "tree\nversion=v4\nnum_class=1\nnum_tree_per_iteration=1\nmax_feature_idx=16777215\nobjective=regression\n\nTree=0\nnum_leaves=1\nnum_cat=0\nleaf_value=1\n\nend of trees\n",
		"none.json": `{"version":[1,7,4],"learner":{"learner_model_param":{"base_score":"0.5","num_class":"0","num_feature":"0"},"objective":{"name":"reg:squarederror"},
"gradient_booster":{"name":"gbtree","model":{"tree_info":[0],"trees":[{"left_children":[-1],"right_children":[-1],"split_indices":[0],"split_conditions":[1],"default_left":[0]}]}}}}`,
		"rows.csv": "1,2\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"forest", "profile"}, {"forest", "circuit", "--out", "out.safetensors"}, {"forest", "tune", "--dry-run"}, {"check"}} {
		for path, features := range map[string]string{"wide.txt": "16777216", "none.json": "0"} {
			refused(t, exitData, path+": forest: bad forest: "+features+" features; rows have 1 to 1048576", append(args, path, "--data", "rows.csv")...)
		}
	}
}
