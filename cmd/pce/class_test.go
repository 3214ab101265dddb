package main

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDiscriminativeTraining: few units spend themselves on columns that repeat each other, and not on the two whose parity
// is the class; training for the class finds it. What a run reports is its objective. Clusters refuse it.
func TestDiscriminativeTraining(t *testing.T) {
	t.Chdir(t.TempDir())
	rng := rand.New(rand.NewPCG(1, 2))
	text := strings.Builder{}
	var want []string
	text.WriteString("a,b,parity,c,d,e\n")
	for range 2000 {
		a, b, c := rng.IntN(2), rng.IntN(2), rng.IntN(4)
		class := []string{"even", "odd"}[(a+b)%2]
		fmt.Fprintf(&text, "%d,%d,%s,%d,%d,%d\n", a, b, class, c, c, c)
		want = append(want, class)
	}
	if err := os.WriteFile("rows.csv", []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	common := []string{"--config", "preset:ratspn", "--set", "data.train=rows.csv", "--set", "data.valid=", "--set", "data.test=rows.csv", "--set", "device=cpu",
		"--set", "model.class=parity", "--set", "model.latents=4", "--set", "train.samples=0", "--set", "train.epochs=20"}
	share := func(model string) float64 {
		t.Helper()
		var out, errs bytes.Buffer
		if code := Run(t.Context(), []string{"query", "classify", "--class", "parity", "--model", model, "--data", "rows.csv"}, nil, nil, &out, &errs); code != 0 {
			t.Fatalf("exit %d: %s", code, &errs)
		}
		right := 0
		for i, line := range strings.Split(strings.TrimSpace(out.String()), "\n") {
			if strings.HasPrefix(line, want[i]+",") {
				right++
			}
		}
		return float64(right) / float64(len(want))
	}
	joint := runJSON(t, append([]string{"train", "--out", "joint"}, common...)...)
	further := append(common, "--set", "model.structure=file", "--set", "model.file=joint/model.safetensors", "--set", "train.discriminative=1")
	end := runJSON(t, append([]string{"train", "--out", "class"}, further...)...)
	before, after := share("joint/model.safetensors"), share("class/model.safetensors")
	t.Logf("%.3f of the rows classified rightly, and %.3f after training for the class; the objective is %v", before, after, end["train_ll"])
	if e := runJSON(t, "eval", "--class", "parity", "--model", "class/model.safetensors", "--data", "rows.csv"); e["accuracy"] != after || e["right"] != after*2000 ||
		e["classified"] != 2000.0 || !(math.Abs(e["class_ll"].(float64)-end["train_ll"].(float64)) < 1e-6) {
		t.Errorf("eval says %v, where %v of the rows are right and the objective is %v", e, after, end["train_ll"])
	}
	some := strings.Join(strings.Split(text.String(), "\n")[:3], "\n") + "\n0,1,?,0,0,0\n" // two rows with a class, and one without
	if err := os.WriteFile("some.csv", []byte(some), 0o644); err != nil {
		t.Fatal(err)
	}
	if e := runJSON(t, "eval", "--class", "3", "--model", "class/model.safetensors", "--data", "some.csv"); e["rows"] != 3.0 || e["classified"] != 2.0 || e["accuracy"] != 1.0 {
		t.Errorf("eval of two rows with a class and one without: %v", e)
	}
	const objective = `log p("parity" given the others)`
	if list := plain(t, "runs", "list", "."); end["objective"] != objective || joint["objective"] != nil || !strings.HasSuffix(list, "\nclass: ll are of "+objective+"\n") {
		t.Errorf("the objective is %v, of the joint distribution %v; runs list as %s", end["objective"], joint["objective"], list)
	}
	if err := os.Rename("class/result.json", "kept.json"); err != nil {
		t.Fatal(err)
	}
	if list := plain(t, "runs", "list", "."); !strings.HasSuffix(list, "\nclass: ll are of the objective of train.discriminative\n") || strings.Contains(list, "joint: ") {
		t.Errorf("runs of which one is not done: %s", list)
	}
	if err := os.Rename("kept.json", "class/result.json"); err != nil {
		t.Fatal(err)
	}
	if text := plain(t, append([]string{"train", "--out", "half"}, append(further, "--set", "train.discriminative=0.5", "--set", "train.epochs=1")...)...); !strings.Contains(text, "\nll are of   log p(row) - 0.5 log p(all but \"parity\")\n") ||
		!strings.Contains(strings.Join(strings.Fields(strings.ReplaceAll(text, "\\", "")), " "), "--class parity --data rows.csv") {
		t.Errorf("the end of training says %s", text)
	}
	plain(t, "report", "class")
	page := readFile(t, "class", "report.html")
	if !bytes.Contains(page, []byte("The objective is the mean over rows of log p(&#34;parity&#34; given the others), in nats")) {
		t.Error("the report does not say what its objective is")
	}
	if bytes.Contains(page, []byte("og-likelihood")) {
		t.Error("the report calls its objective a log-likelihood")
	}
	if err := os.Remove("class/result.json"); err != nil {
		t.Fatal(err)
	}
	plain(t, "report", "class")
	if page := readFile(t, "class", "report.html"); !bytes.Contains(page, []byte("Of the objective of train.discriminative.")) || bytes.Contains(page, []byte("og-likelihood")) {
		t.Error("the report of a run that is not done calls its objective a log-likelihood")
	}
	if !(after > 0.95 && before < 0.8) {
		t.Errorf("%.3f of the rows classified rightly, and %.3f after training for the class", before, after)
	}
	if ll, plain := end["train_ll"].(float64), joint["train_ll"].(float64); !(ll > -0.5 && ll < 0) || !(plain < -2) || end["test_bpd"] != nil {
		t.Errorf("train_ll %v, of the joint distribution %v", ll, plain)
	}
	bench := append([]string{"bench"}, common...)
	var out, errs bytes.Buffer
	if code := Run(t.Context(), append(bench, "--set", "train.discriminative=1"), nil, nil, &out, &errs); code != exitUsage || !strings.Contains(errs.String(), "train.discriminative is 1, and bench") {
		t.Errorf("bench: exit %d: %s", code, &errs)
	}
	errs.Reset()
	code := Run(context.Background(), append([]string{"cluster", "submit", "--cluster", "nats://127.0.0.1:1"}, further...), nil, nil, &out, &errs)
	if code != exitUsage || !strings.Contains(errs.String(), "train.discriminative is 1, which a cluster does not do") {
		t.Errorf("cluster submit: exit %d: %s", code, &errs)
	}
}

// TestEvalClassImpossible evaluates rows of which the second and the fourth have probability 0, with their class or whatever it
// is: a warning counts them and names the first, by its place among all rows.
func TestEvalClassImpossible(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	model := write("m.txt", "circuit 2\na = input[2] x0 categorical categories=3 1 0 0 / 0 1 0\nb = input[2] x1 categorical categories=3 0.5 0.5 0 / 0.1 0.9 0\np = product a b\ns = sum p : 0.6 0.4\n")
	for rows, warns := range map[string]string{"0,0\n,?\n1,1\n1,2\n2,0\n": "2 rows have probability 0 with their class, the first is row 4", "0,0\n1,1\n": ""} {
		code, out, stderr := do(t, "", "eval", "--model", model, "--class", "2", "--data", write("rows.csv", rows))
		if code != exitOK || strings.Contains(out, "-inf") != (warns != "") || !strings.Contains(stderr, warns) || strings.Contains(stderr, "warning") != (warns != "") {
			t.Errorf("exit code %d, %s%s; want %q", code, out, stderr, warns)
		}
	}
}
