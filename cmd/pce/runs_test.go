package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/pce-engine/pce/em"
	"github.com/pce-engine/pce/run"
)

// plain runs a command that must succeed, and returns what it prints.
func plain(t *testing.T, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	if code := Run(t.Context(), args, nil, strings.NewReader(""), &out, &errs); code != exitOK {
		t.Fatalf("%q: exit %d: %s", args, code, &errs)
	}
	return out.String()
}

// refused runs a command that must end with a code, and wants a text in its error.
func refused(t *testing.T, code int, want string, args ...string) {
	t.Helper()
	var out, errs bytes.Buffer
	if got := Run(t.Context(), args, nil, strings.NewReader(""), &out, &errs); got != code || !strings.Contains(errs.String(), want) {
		t.Errorf("%q: exit %d, want %d: %s, want %q", args, got, code, &errs, want)
	}
}

// TestCompareNLTCS compares two short runs on nltcs, and computes the difference of their
// rows again from what query loglik writes.
func TestCompareNLTCS(t *testing.T) {
	set := []string{"--config", "preset:nltcs", "--set", "train.epochs=1", "--threads", "1"}
	for _, split := range []string{"train", "valid", "test"} {
		set = append(set, "--set", "data."+split+"="+densityFile(t, "nltcs/nltcs."+split+".data.gz"))
	}
	t.Chdir(t.TempDir())
	comparesLike(t, set, "model.latents=2", "model.latents=6")
}

// TestCompare is TestCompareNLTCS on data that is always there, and what is refused.
func TestCompare(t *testing.T) {
	t.Chdir(t.TempDir())
	comparesLike(t, tiny, "seed=1", "model.latents=5")
	same := runJSON(t, "runs", "compare", "a", "a")
	if number(t, same, "difference") != 0 || number(t, same, "standard_error") != 0 || number(t, same, "a_better") != 0 {
		t.Errorf("a run differs from itself: %v", same)
	}
	if text := plain(t, "runs", "compare", "a", "b"); !strings.Contains(text, "A - B       ") || !strings.Contains(text, ", standard error ") || long.MatchString(text) {
		t.Errorf("compared as %s", text)
	}
	one := runJSON(t, "runs", "compare", "a", "b", "--data", "builtin:random?rows=1&vars=16&categories=4")
	if one["standard_error"] != nil || number(t, one, "rows") != 1 {
		t.Errorf("one row has a standard error: %v", one)
	}
	runJSON(t, append(append([]string{"train", "--out", "other"}, tiny...), "--set", "data.test=builtin:random?rows=9&vars=16&categories=4")...)
	refused(t, exitUsage, "give --data for both", "runs", "compare", "a", "other")
	runJSON(t, append(append([]string{"train", "--out", "untested"}, tiny...), "--set", "data.test=")...)
	refused(t, exitUsage, "has no test rows; give --data", "runs", "compare", "a", "untested")
	refused(t, exitUsage, "config.yaml", "runs", "compare", "a", "nowhere")
	refused(t, exitUsage, "standard input has them once", "runs", "compare", "a", "b", "--data", "-")
}

// TestCompareOtherVariables refuses models whose log-likelihoods are of other variables, and compares
// columns in another order.
func TestCompareOtherVariables(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"a.csv": "x,y\n0,1.5\n1,2.5\n2,0.5\n", "moved.csv": "y,x\n1.5,0\n2.5,1\n0.5,2\n", "named.csv": "x,z\n0,1.5\n1,2.5\n2,0.5\n",
		"more.csv": "x,y,z\n0,1.5,0\n1,2.5,1\n2,0.5,1\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	train := func(out, data string, more ...string) {
		t.Helper()
		runJSON(t, append([]string{"train", "--out", out, "--config", "preset:hclt", "--set", "data.train=" + data, "--set", "data.valid=", "--set", "data.test=", "--set", "train.patience=0", "--set", "model.latents=2", "--set", "train.epochs=1"}, more...)...)
	}
	train("a", "a.csv")
	train("moved", "moved.csv")
	train("counts", "a.csv", "--set", "data.columns=[{name: x, leaf: {type: poisson}}]")
	train("named", "named.csv")
	train("more", "more.csv")
	train("real", "a.csv", "--set", "data.columns=[{name: x, type: continuous}]")
	train("none", "a.csv", "--set", "data.columns=[{name: y, type: skip}]")
	for _, b := range []string{"moved", "counts"} {
		if got := runJSON(t, "runs", "compare", "a", b, "--data", "a.csv"); number(t, got, "rows") != 3 {
			t.Errorf("%s: %v", b, got)
		}
	}
	for b, why := range map[string]string{
		"named": `the second has no "y"`, "more": "they have 2 and 3 columns", "none": "they have 2 and 1 columns",
		"real": `"x" has probabilities in one and densities in the other`,
	} {
		refused(t, exitUsage, why, "runs", "compare", "a", b, "--data", "a.csv")
	}
	if err := os.WriteFile("t.txt", []byte(strings.Repeat("a few words, ", 30)), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, tokens := range map[string]string{"text": "0", "like": "200", "few": "4"} {
		train(name, "t.txt", "--set", "data.text.length=4", "--set", "data.text.vocabulary="+tokens)
	}
	refused(t, exitUsage, "their vocabularies are different", "runs", "compare", "text", "few", "--data", "t.txt")
	if got := runJSON(t, "runs", "compare", "text", "like", "--data", "t.txt"); number(t, got, "rows") != 97 {
		t.Errorf("models of one vocabulary: %v", got)
	}
}

// TestCompareMissing refuses runs whose log-likelihoods are of other cells, as one of them was trained with a mark of missing cells
// that the rows have.
func TestCompareMissing(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("a.csv", []byte("x,y\n0.5,1\n-9,2\n1.5,-9\n2,0\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, marks := range map[string]string{"a": "[]", "b": `["-9"]`, "c": `["-8"]`} {
		runJSON(t, "train", "--out", name, "--config", "preset:hclt", "--set", "data.train=a.csv", "--set", "data.valid=", "--set", "data.test=", "--set", "train.patience=0",
			"--set", "model.latents=2", "--set", "train.epochs=1", "--set", "model.leaf.type=gaussian", "--set", "data.missing="+marks)
	}
	refused(t, exitUsage, "of the cells a reads 0 as missing and b 2", "runs", "compare", "a", "b", "--data", "a.csv")
	if err := os.WriteFile("as-many.csv", []byte("x,y\n0.5,1\n-9,2\n1.5,-8\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	refused(t, exitUsage, "of the cells b reads 1 as missing and c 1 others", "runs", "compare", "b", "c", "--data", "as-many.csv")
	if got := runJSON(t, "runs", "compare", "a", "c", "--data", "a.csv"); number(t, got, "rows") != 4 {
		t.Errorf("marks that the rows do not have: %v", got)
	}
}

// TestCompareUnread refuses runs where the circuit of one alone has leaves of a column, so that the log-likelihoods of the other lack its
// cells, and compares runs of circuits that both lack them.
func TestCompareUnread(t *testing.T) {
	t.Chdir(t.TempDir())
	for path, text := range map[string]string{
		"rows.csv":  "a,b\n0,1.5\n1,2.5\n1,0.5\n",
		"both.txt":  "circuit 2\na = input x0 bernoulli\nb = input x1 gaussian min_sigma=0.01\np = product a b\n",
		"one.txt":   "circuit 2\na = input x0 bernoulli\nroot a\n",
		"named.txt": "A Bernoulli(a|p=0.5)\n# a;b\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"both", "one", "named"} {
		runJSON(t, "train", "--out", name, "--config", "preset:hclt", "--set", "model.structure=file", "--set", "model.file="+name+".txt", "--set", "data.train=rows.csv",
			"--set", "data.valid=", "--set", "data.test=", "--set", "data.image=[]", "--set", "train.epochs=1", "--set", "train.samples=0")
	}
	for _, dirs := range [][]string{{"both", "one"}, {"one", "both"}} {
		refused(t, exitUsage, "one of them alone has leaves of column 2", "runs", "compare", dirs[0], dirs[1], "--data", "rows.csv")
	}
	if got := runJSON(t, "runs", "compare", "one", "one", "--data", "rows.csv"); number(t, got, "rows") != 3 || number(t, got, "difference") != 0 {
		t.Errorf("circuits that both lack a column: %v", got)
	}
	for _, dirs := range [][]string{{"named", "one"}, {"one", "named"}} { // of which one has no names
		if got := runJSON(t, "runs", "compare", dirs[0], dirs[1], "--data", "rows.csv"); number(t, got, "rows") != 3 {
			t.Errorf("circuits that both lack a column, with and without names: %v", got)
		}
	}
}

// TestPathsTogether reads all paths of a command as one: data.text.max_bytes is a bound on all of them, as it is where a run is
// tested, and one of them may have no rows.
func TestPathsTogether(t *testing.T) {
	t.Chdir(t.TempDir())
	for path, text := range map[string]string{
		"a.txt": strings.Repeat("abcab", 40), "b.txt": strings.Repeat("aabbc", 40),
		"head.csv": "x,y\n", "rows.csv": "x,y\n0,1\n1,0\n2,1\n", "net.txt": "circuit 2\na = input x0 categorical categories=3 0.2 0.3 0.5\nb = input x1 bernoulli 0.5\np = product a b\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	set := []string{"--config", "preset:hmm-text", "--set", "model.latents=2", "--set", "data.train=a.txt", "--set", "data.valid=", "--set", "data.test=[a.txt, b.txt]",
		"--set", "data.text={length: 5, max_bytes: 240}", "--set", "train.epochs=1"}
	end := runJSON(t, append([]string{"train", "--out", "a"}, set...)...)
	runJSON(t, append([]string{"train", "--out", "b", "--set", "seed=7"}, set...)...)
	compared := runJSON(t, "runs", "compare", "a", "b")
	if rows := number(t, compared, "rows"); rows != 48 || !(math.Abs(number(t, compared, "a_ll")-number(t, end, "test_ll")) < 1e-6) {
		t.Errorf("compared %v rows of log-likelihood %v, trained with 48 test rows of %v", rows, compared["a_ll"], end["test_ll"])
	}
	for _, args := range [][]string{
		{"eval", "--model", "a/model.safetensors"}, {"check", "a/model.safetensors"},
	} {
		if got := runJSON(t, append(args, "--config", "a/config.yaml", "--data", "a.txt", "--data", "b.txt")...); number(t, got, "rows") != 48 {
			t.Errorf("%s of two files: %v", args[0], got)
		}
	}
	for _, args := range [][]string{{"eval", "--model", "net.txt"}, {"check", "net.txt"}, {"prune", "--model", "net.txt", "--out", "out.safetensors"}} {
		if got := runJSON(t, append(args, "--data", "head.csv", "--data", "rows.csv")...); number(t, got, "rows") != 3 {
			t.Errorf("%s of a file without rows and another: %v", args[0], got)
		}
	}
	got := runJSON(t, "eval", "--model", "net.txt", "--data", "rows.csv", "--data", "builtin:random?rows=2&vars=2&categories=2", "--data", "head.csv", "--data", "rows.csv")
	if number(t, got, "rows") != 8 {
		t.Errorf("files beside a builtin source: %v", got)
	}
	refused(t, exitData, "head.csv: has no rows", "eval", "--model", "net.txt", "--data", "head.csv")
}

// comparesLike trains runs a and b with a setting that differs, and holds runs compare to
// the log-likelihoods of rows.
func comparesLike(t *testing.T, set []string, a, b string) {
	t.Helper()
	var ll [2][]float64
	ends := map[string]map[string]any{}
	for i, name := range []string{"a", "b"} {
		ends[name] = runJSON(t, append(append([]string{"train", "--out", name}, set...), "--set", []string{a, b}[i])...)
		var test string
		for _, s := range set {
			if path, ok := strings.CutPrefix(s, "data.test="); ok {
				test = path
			}
		}
		for line := range strings.Lines(plain(t, "query", "loglik", "--model", filepath.Join(name, run.ModelFile), "--data", test)) {
			x, err := strconv.ParseFloat(strings.TrimSpace(line), 64)
			if err != nil {
				t.Fatal(err)
			}
			ll[i] = append(ll[i], x)
		}
	}
	n, sum, squares, better := float64(len(ll[0])), 0.0, 0.0, 0
	for i := range ll[0] {
		d := ll[0][i] - ll[1][i]
		sum, squares = sum+d, squares+d*d
		if d > 0 {
			better++
		}
	}
	mean := sum / n
	sem := math.Sqrt((squares - n*mean*mean) / (n - 1) / n)
	got := runJSON(t, "runs", "compare", "a", "b")
	if d := number(t, got, "difference"); !(math.Abs(d-mean) <= 1e-9*math.Abs(mean)) || d == 0 {
		t.Errorf("difference %v, want %v", d, mean)
	}
	if e := number(t, got, "standard_error"); !(math.Abs(e-sem) <= 1e-6*sem) {
		t.Errorf("standard error %v, want %v", e, sem)
	}
	if number(t, got, "a_better") != float64(better) || number(t, got, "rows") != n {
		t.Errorf("%v, want %d of %v rows better under A", got, better, n)
	}
	for _, name := range []string{"a", "b"} {
		if l, want := number(t, got, name+"_ll"), number(t, ends[name], "test_ll"); !(math.Abs(l-want) <= 1e-9*math.Abs(want)) {
			t.Errorf("%s has %v, train said %v", name, l, want)
		}
	}
}

// TestCompareRows compares rows that a model holds for impossible.
func TestCompareRows(t *testing.T) {
	inf := math.Inf(-1)
	c := compareRows([]float64{-1, inf, inf}, []float64{-2, -3, inf})
	if c.Difference != nil || c.StandardError != nil || c.ALL != nil || c.ABetter != 1 || c.BBetter != 1 || c.AImpossible != 2 || c.BImpossible != 1 {
		t.Errorf("%+v", c)
	}
	var out bytes.Buffer
	a := testApp()
	a.stdout = &out
	if err := a.printComparison(c); err != nil || !strings.Contains(out.String(), "not finite") || !strings.Contains(out.String(), "impossible  2 rows under A, 1 under B") {
		t.Errorf("%v: %s", err, &out)
	}
	if c := compareRows(nil, nil); c.Difference != nil || c.StandardError != nil || c.Rows != 0 {
		t.Errorf("no rows: %+v", c)
	}
	if c := compareRows([]float64{1, 2, 4}, []float64{0, 0, 0}); !(math.Abs(*c.Difference-7./3) <= 1e-15 && math.Abs(*c.StandardError-math.Sqrt(7)/3) <= 1e-15) {
		t.Errorf("difference %v ± %v", *c.Difference, *c.StandardError)
	}
}

// TestRunsList lists runs that are done, cut, in their first epoch, trained further, stopped within the next epoch, damaged and none.
func TestRunsList(t *testing.T) {
	t.Chdir(t.TempDir())
	metrics, err := json.Marshal(em.Metrics{Epoch: 7, Step: 28, ValidLL: -2.5, TrainLL: -2, StepSize: 1, Seconds: 90})
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("x", 90)
	for path, text := range map[string]string{
		"runs/done/result.json":          `{"epochs":3,"valid_ll":-1.25,"test_ll":-883.6873399,"test_bpd":1.5,"train_seconds":59}`,
		"runs/part/metrics.jsonl":        string(metrics) + "\n{\"ep",
		"runs/more/result.json":          `{"epochs":6,"valid_ll":-3,"test_ll":-3,"train_seconds":59}`,
		"runs/more/metrics.jsonl":        string(metrics) + "\n",
		"runs/cut/result.json":           `{"epochs":7,"steps":26,"valid_ll":-3,"test_ll":-3,"train_seconds":59}`,
		"runs/cut/metrics.jsonl":         string(metrics) + "\n",
		"runs/unlikely/result.json":      `{"epochs":1,"valid_ll":null,"test_ll":null}`,
		"runs/unlikely/config.yaml":      "name: unlikely\ndata: {train: a.csv, valid: b.csv, test: ''}\n",
		"runs/vain/metrics.jsonl":        `{"epoch":2,"step":8,"train_ll":-3,"valid_ll":null}` + "\n",
		"runs/vain/config.yaml":          "name: vain\ndata: {train: a.csv, valid: b.csv, test: c.csv}\n",
		"runs/whole/result.json":         `{"epochs":7,"steps":28,"valid_ll":-3,"test_ll":-3,"train_seconds":59}`,
		"runs/whole/metrics.jsonl":       string(metrics) + "\n",
		"runs/next/result.json":          `{"epochs":7,"steps":28,"valid_ll":-3,"test_ll":-3,"train_seconds":59}`,
		"runs/next/metrics.jsonl":        string(metrics) + "\n",
		"runs/bad/result.json":           "{",
		"runs/" + long + "/result.json":  "{}",
		"runs/none/file":                 "",
		"runs/begun/checkpoints/nothing": "",
		"runs/first/metrics.jsonl":       "",

		"runs/whole/checkpoints/step-000000000028.safetensors": "",
		"runs/next/checkpoints/step-000000000028.safetensors":  "",
		"runs/next/checkpoints/step-000000000031.safetensors":  "",
	} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	want := strings.ReplaceAll(`run_                                            state   epochs  valid ll   test ll test bpd  trained
runs/bad                                        damaged      0         -         -        -     0.0s
runs/begun                                      partial      0         -         -        -     0.0s
runs/cut                                        partial      7   -2.5000         -        -      90s
runs/done                                       done         3   -1.2500  -883.687   1.5000      59s
runs/first                                      partial      0         -         -        -     0.0s
runs/more                                       partial      7   -2.5000         -        -      90s
runs/next                                       partial      7   -2.5000         -        -      90s
runs/part                                       partial      7   -2.5000         -        -      90s
runs/unlikely                                   done         1      -Inf         -        -     0.0s
runs/vain                                       partial      2      -Inf         -        -     0.0s
runs/whole                                      done         7   -3.0000   -3.0000        -      59s
...xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx  done         0         -         -        -     0.0s
`, "_", " ")
	if got := plain(t, "runs", "list"); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if got := plain(t, "runs", "list", "runs/done"); strings.Count(got, "\n") != 2 {
		t.Errorf("a run lists as %s", got)
	}
	if got := plain(t, "runs", "list", "runs/none"); got != "no runs\n" {
		t.Errorf("none list as %q", got)
	}
	if list, ok := runJSON(t, "runs", "list")["runs"].([]any); !ok || len(list) != 12 || list[0].(map[string]any)["problem"] == nil {
		t.Errorf("lists as %v", list)
	}
	if list, ok := runJSON(t, "runs", "list", "runs/none")["runs"].([]any); !ok || len(list) != 0 {
		t.Errorf("none list as %v", list)
	}
	refused(t, exitData, "nowhere", "runs", "list", "nowhere")
}

// TestPlot draws runs into one picture, and says what it lacks.
func TestPlot(t *testing.T) {
	t.Chdir(t.TempDir())
	line := `{"epoch":1,"step":4,"train_ll":-3,"valid_ll":-2,"step_size":0.5,"seconds":1,"samples_per_second":9}` + "\n"
	for path, text := range map[string]string{"x/a/metrics.jsonl": line + line, "y/a/metrics.jsonl": line + "{", "z/metrics.jsonl": "", "w/other": ""} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	if got := plain(t, "plot", "x/a"); got != "x/a/curves.png\n" {
		t.Errorf("printed %q", got)
	}
	if got := plain(t, "plot", "x/a", "--over", "steps"); got != "x/a/curves.png\n" { // its own picture is replaced
		t.Errorf("printed %q", got)
	}
	if config, err := png.DecodeConfig(bytes.NewReader(readFile(t, "x/a/curves.png"))); err != nil || config.Width != 768 {
		t.Errorf("%v, %v", config, err)
	}
	if got := plain(t, "plot", "x/a", "y/a", "--out", "both.svg"); got != "both.svg\n" {
		t.Errorf("printed %q", got)
	}
	for _, name := range []string{"x/a, validation", "y/a, training"} {
		if !strings.Contains(string(readFile(t, "both.svg")), name) {
			t.Errorf("no %q in the picture", name)
		}
	}
	if got := plain(t, "plot", "x/a", "--of", "step-size", "--out", "-"); !strings.Contains(got, "<svg") {
		t.Errorf("stdout has %.40q", got)
	}
	if err := os.WriteFile("x/a/config.yaml", []byte("model: {class: kind}\ntrain: {discriminative: 0.5}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for measure, want := range map[string]bool{"ll": true, "step-size": false} {
		if got := strings.Contains(plain(t, "plot", "x/a", "y/a", "--of", measure, "--out", "-"), "x/a (objective of train.discriminative)"); got != want {
			t.Errorf("%s of a discriminative run is called that of its objective: %v, want %v", measure, got, want)
		}
	}
	if err := os.WriteFile("x/a/config.yaml", []byte("train: {discriminativ: 0.5}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	var svg, notes bytes.Buffer
	if code := Run(t.Context(), []string{"plot", "x/a", "--out", "-"}, nil, nil, &svg, &notes); code != 0 || !strings.Contains(notes.String(), "note: what the curves of x/a are of is unknown: ") ||
		!strings.Contains(notes.String(), "x/a/config.yaml:1") {
		t.Errorf("plot of a run whose config cannot be read: exit %d, %s", code, &notes)
	}
	if list, _, err := listRuns("x/a"); err != nil || len(list) != 1 || !strings.Contains(list[0].Problem, "x/a/config.yaml:1") {
		t.Errorf("a run whose config cannot be read is listed as %+v, error %v", list, err)
	}
	refused(t, exitUsage, "both.svg exists", "plot", "x/a", "--out", "both.svg")
	refused(t, exitUsage, `format "pdf"`, "plot", "x/a", "--out", "c.pdf")
	refused(t, exitUsage, `measure "x"`, "plot", "x/a", "--of", "x", "--out", "c.png")
	refused(t, exitData, "report: no curve: w/metrics.jsonl: no such file or directory; give", "plot", "w")
	refused(t, exitData, "report: no curve: nowhere/metrics.jsonl: no such file or directory; give", "plot", "nowhere")
	refused(t, exitData, "it has no epoch", "plot", "z")
	if err := os.WriteFile("z/metrics.jsonl", []byte("{damaged\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	refused(t, exitData, "z/metrics.jsonl: line 1: invalid character 'd' looking for beginning of object key string; give", "plot", "z")
	if _, err := os.Stat("c.png"); err == nil {
		t.Error("a picture that could not be drawn was written")
	}
}
