package main

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/pce-engine/pce/run"
)

// TestResizeOpen prunes, grows and checks a circuit with a node that the root does not reach and whose parameters are open, as queries take it.
func TestResizeOpen(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	for name, text := range map[string]string{
		"m.txt":    "circuit 1\nopen = input x0 bernoulli\na = input[2] x0 bernoulli 0.25 / 0.5\ns = sum a : 0.1 0.9\nroot s\n",
		"rows.csv": "0\n1\n1\n",
	} {
		if err := os.WriteFile(path(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{
		{"check", path("m.txt"), "--data", path("rows.csv")},
		{"compress", "--model", path("m.txt"), path("rows.csv"), path("rows.pcz")},
		{"decompress", "--model", path("m.txt"), path("rows.pcz"), path("back.csv")},
		{"grow", "--model", path("m.txt"), "--out", path("large.safetensors")},
		{"prune", "--model", path("m.txt"), "--data", path("rows.csv"), "--keep", "1", "--out", path("small.safetensors")},
	} {
		if code, _, stderr := do(t, "", args...); code != exitOK {
			t.Errorf("pce %s: %s", args[0], stderr)
		}
	}
}

// TestResize prunes and grows circuits of every origin: what should not change does not, files that are written are opened by
// training, and what cannot work is refused without a file.
func TestResize(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	write := func(name, text string) string {
		if err := os.WriteFile(path(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path(name)
	}
	var rows strings.Builder
	for i := range 300 {
		x := i * 7 % 5
		for _, v := range []int{x % 2, (x + i%11/10) % 2, x % 3, (x*x + i%7/6) % 3} {
			rows.WriteString(strconv.Itoa(v) + ",")
		}
		rows.WriteString(strconv.Itoa(i*i%2) + "\n")
	}
	data := write("rows.csv", rows.String())
	config := write("c.yaml", "model: {structure: hclt, latents: 12}\ndata: {train: "+data+"}\ntrain: {epochs: 4}\n")
	ok := func(args ...string) string {
		t.Helper()
		code, out, stderr := do(t, "", args...)
		if code != exitOK {
			t.Fatalf("pce %s: %s", strings.Join(args, " "), stderr)
		}
		return out
	}
	lls := func(model string) []float64 {
		t.Helper()
		var lls []float64
		for _, text := range strings.Fields(ok("query", "loglik", "--model", model, "--data", data)) {
			ll, err := strconv.ParseFloat(text, 64)
			if err != nil {
				t.Fatal(err)
			}
			lls = append(lls, ll)
		}
		return lls
	}
	same := func(what, a, b string) {
		t.Helper()
		got := lls(a)
		for i, want := range lls(b) {
			if !(math.Abs(got[i]-want) < 1e-5) {
				t.Fatalf("%s: row %d has the log-likelihood %v, want %v", what, i+1, got[i], want)
			}
		}
	}
	resized := func(args ...string) run.Resized {
		t.Helper()
		var r run.Resized
		if err := json.Unmarshal([]byte(ok(append(args, "--json")...)), &r); err != nil {
			t.Fatal(err)
		}
		return r
	}
	ok("train", "--config", config, "--out", path("a"))
	ok("train", "--config", config, "--out", path("learned"), "--set", "model.structure=learnspn", "--set", "train.epochs=0")
	network := write("net.spn", "SumNode_0 SumNode(0.25*P_1, 0.75*P_2){\nP_1 ProductNode(A_3, B_4){\nA_3 Bernoulli(x|p=0.1)\nB_4 Gaussian(y|mean=0.1;stdev=1)\n}\nP_2 ProductNode(A_5, B_6){\n"+
		"A_5 Bernoulli(x|p=0.7)\nB_6 Gaussian(y|mean=-2.3;stdev=0.5)\n}\n}\n# x;y\n")
	models := []string{path("a/model.safetensors"), path("learned/model.safetensors")}
	for i, model := range models {
		n := strconv.Itoa(i)
		r := resized("grow", "--model", model, "--out", path("g"+n), "--noise", "0")
		same("grown without noise", path("g"+n), model)
		if r.Flow != nil || r.After.SumEdges <= r.Before.SumEdges {
			t.Errorf("grown: %+v", r)
		}
		r = resized("prune", "--model", model, "--data", data, "--keep", "1", "--out", path("p"+n))
		same("pruned by nothing", path("p"+n), model)
		if r.Flow == nil || *r.Flow < 0.999 || r.Rows != 300 || r.After != r.Before && i == 0 {
			t.Errorf("pruned by nothing: %+v", r)
		}
	}
	// Half of what was grown is left out, and training continues from the file with other likelihoods.
	r := resized("prune", "--model", path("g0"), "--data", data, "--keep", "0.5", "--block", "2", "--out", path("half"))
	if share := float64(r.After.SumEdges) / float64(r.Before.SumEdges); share > 0.5 || share < 0.4 || *r.Flow < 0.5 || *r.Flow >= 1 {
		t.Errorf("half: %+v", r)
	}
	ok("train", "--config", config, "--out", path("b"), "--set", "model.structure=file", "--set", "model.file="+path("half"))
	before, after := 0.0, 0.0
	for i, ll := range lls(path("half")) {
		before += ll
		after += lls(path("b/model.safetensors"))[i]
		if i > 3 {
			break
		}
	}
	if before == after {
		t.Error("training from the pruned circuit changed nothing")
	}
	// Rows that the circuit cannot have use nothing, and every digit of a network's weights stays.
	cells := write("cells.csv", "x,y\n1,-2.5\n0,?\n")
	r = resized("prune", "--model", network, "--data", cells, "--keep", "1", "--out", path("net"))
	a, b := ok("query", "loglik", "--model", network, "--data", cells), ok("query", "loglik", "--model", path("net"), "--data", cells)
	if a != b || r.Rows != 2 {
		t.Errorf("a network without a change answers %q, and before %q; %+v", b, a, r)
	}
	r = resized("prune", "--model", network, "--data", cells, "--keep", "0.5", "--block", "1", "--out", path("one"))
	if r.After.SumEdges != 1 {
		t.Errorf("half of two edges: %+v", r)
	}
	// Counts whose sum over rows is beyond what statistics of flows hold do not matter, nor do numbers that training takes as missing.
	var counts strings.Builder
	counts.WriteString("count,size\n")
	for i := range 3000 {
		counts.WriteString(strconv.Itoa(9_000_000+i%2*60_000+i%97) + "," + strconv.Itoa(100+i%13) + ".5\n")
	}
	large := write("large.csv", counts.String()+"9000000,1e9\n")
	ok("train", "--out", path("large"), "--config", write("l.yaml", "model: {structure: hclt, latents: 3}\ntrain: {epochs: 2}\ndata:\n  train: "+large+"\n  columns: [{name: count, leaf: {type: poisson}}]\n"))
	for _, device := range []string{"cpu", "emulator"} {
		r = resized("prune", "--model", path("large/model.safetensors"), "--data", large, "--keep", "1", "--device", device, "--force", "--out", path("large.kept"))
		if r.Rows != 3001 || r.After != r.Before {
			t.Errorf("large counts on %s: %+v", device, r)
		}
	}
	impossible := write("never.spn", "P_0 ProductNode(A_1, B_2){\nA_1 Categorical(x|p=[1.0, 0.0])\nB_2 Bernoulli(y|p=0.5)\n}\n# x;y\n")
	forest := write("forest.json", `{"version":[1,7,4],"learner":{"feature_names":["a"],"learner_model_param":{"base_score":"0.5","num_class":"0","num_feature":"1"},
"objective":{"name":"binary:logistic"},"gradient_booster":{"name":"gbtree","model":{"tree_info":[0],"trees":[{"tree_param":{"num_nodes":"1"},
"left_children":[-1],"right_children":[-1],"split_indices":[0],"split_conditions":[0.5],"default_left":[0]}]}}}}`)
	open, zero := write("open.txt", "circuit 1\na = input x0 bernoulli\ns = sum a\n"), write("zero.csv", "x\n0\n")
	for _, test := range []struct {
		name, want string
		code       int
		args       []string
	}{
		{"no rows", "no --data", exitUsage, []string{"prune", "--model", models[0]}},
		{"no model", "no --model", exitUsage, []string{"grow"}},
		{"all", "share above 0", exitUsage, []string{"prune", "--model", models[0], "--data", data, "--keep", "0"}},
		{"block", "power of two", exitUsage, []string{"prune", "--model", models[0], "--data", data, "--block", "3"}},
		{"noise", "noise of NaN", exitUsage, []string{"grow", "--model", models[0], "--noise", "NaN"}},
		{"forest", "forest", exitData, []string{"grow", "--model", forest}},
		{"forest with rows", "forest", exitData, []string{"prune", "--model", forest, "--data", data}},
		{"other rows", "", exitData, []string{"prune", "--model", models[0], "--data", cells}},
		{"impossible rows", "no row of probability above 0", exitUsage, []string{"prune", "--model", impossible, "--data", write("never.csv", "x,y\n1,0\n1,1\n")}},
		{"open with rows", "open.txt: format: node has no parameters", exitData, []string{"prune", "--model", open, "--data", zero}},
		{"open", "open.txt: format: node has no parameters", exitData, []string{"grow", "--model", open}},
		{"absent", "no such file", exitData, []string{"grow", "--model", path("absent")}},
	} {
		code, _, stderr := do(t, "", append(test.args, "--out", path("refused"))...)
		if code != test.code || !strings.Contains(stderr, test.want) || strings.Count(stderr, "\n") > 2 || strings.Count(stderr, open) > 1 { // the second line is where help is
			t.Errorf("%s: exit code %d, %q; want %d, a line with %q, and a file once", test.name, code, stderr, test.code, test.want)
		}
		if _, err := os.Stat(path("refused")); err == nil {
			t.Fatalf("%s: a file was written", test.name)
		}
	}
	if code, _, stderr := do(t, "", "grow", "--model", models[0], "--out", models[0], "--force"); code != exitUsage {
		t.Errorf("the model itself as output: exit code %d, %s", code, stderr)
	}
	// Before the model is opened.
	refused(t, exitData, "make the folder of "+path("nowhere/m"), "prune", "--model", path("absent"), "--data", data, "--out", path("nowhere/m"))
}

// TestTinyWeights has weights and probabilities by which float32 cannot divide flows: training and pruning count every row, and
// queries take them as they are.
func TestTinyWeights(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	data := write("rows.csv", "x\n"+strings.Repeat("0\n0\n0\n0\n0\n0\n0\n0\n0\n1\n", 200))
	zero := write("zero.csv", "x\n0\n")
	ok := func(args ...string) string {
		t.Helper()
		code, out, stderr := do(t, "", args...)
		if code != exitOK {
			t.Fatalf("pce %s: %s", strings.Join(args, " "), stderr)
		}
		return out
	}
	number := func(text string) float64 {
		t.Helper()
		x, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	for i, text := range []string{
		"a = input[2] x0 categorical categories=2 1 0 / 0 1\ns = sum a : 2e-38 1\n",
		"a = input[2] x0 categorical categories=2 1 0 / 0 1\ns = sum a : 1e-40 1\n",
		"a = input[2] x0 categorical categories=2 1e-40 1 / 1e-40 1\ns = sum a : 0.5 0.5\n",
	} {
		model := write("model.txt", "circuit 1\n"+text)
		if ll := number(ok("query", "loglik", "--model", model, "--data", zero)); !(ll < -86) {
			t.Errorf("circuit %d: a query has the log-likelihood %v, want that of the file", i, ll)
		}
		config := write("c.yaml", "model: {structure: file, file: "+model+"}\ndata: {train: "+data+", header: yes}\n"+
			"train: {epochs: 1, rule: fullbatch-em, pseudocount: 0, step_size: {from: 1, to: 1}}\n")
		out := filepath.Join(dir, "run"+strconv.Itoa(i))
		ok("train", "--config", config, "--out", out)
		if p := math.Exp(number(ok("query", "loglik", "--model", filepath.Join(out, "model.safetensors"), "--data", zero))); !(math.Abs(p-0.9) < 1e-4) {
			t.Errorf("circuit %d: training gives 0 the probability %v, want 0.9", i, p)
		}
		if strings.Contains(text, "sum a : 0.5") {
			continue
		}
		var r run.Resized
		if err := json.Unmarshal([]byte(ok("prune", "--model", model, "--data", data, "--keep", "0.5", "--block", "1", "--out", filepath.Join(dir, "pruned"+strconv.Itoa(i)), "--json")), &r); err != nil {
			t.Fatal(err)
		}
		if !(math.Abs(*r.Flow-0.9) < 1e-4) {
			t.Errorf("circuit %d: %v of the flow is kept, want 0.9", i, *r.Flow)
		}
	}
}

// TestPruneExcludes prunes a tree whose inputs rule values out, as those of learned trees and of forests do: without one of its weights rows have
// probability 0, and a warning says that this may be.
func TestPruneExcludes(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	data := write("rows.csv", "0,0\n0,0\n0,1\n0,0\n1,1\n")
	for name, inputs := range map[string]string{
		"indicators": "no = input x0 indicator codes=2 value=0\nyes = input x0 indicator codes=2 value=1\n",
		"histograms": "no = input x0 histogram edges=0,1,2 1 0\nyes = input x0 histogram edges=0,1,2 0 1\n", // as those of forests
	} {
		model := write(name+".txt", "circuit 2\n"+inputs+
			"a = input x1 bernoulli 0.1\nb = input x1 bernoulli 0.8\np = product no a\nq = product yes b\ns = sum p q : 0.9 0.1\n")
		for keep, warns := range map[string]bool{"0.5": true, "1": false} {
			out := filepath.Join(dir, name+keep)
			code, _, stderr := do(t, "", "prune", "--model", model, "--data", data, "--keep", keep, "--out", out)
			if code != exitOK || strings.Contains(stderr, "warning: inputs of the circuit rule values out") != warns {
				t.Errorf("%s, keep %s: exit code %d, %s", name, keep, code, stderr)
			}
			if _, lls, _ := do(t, "", "query", "loglik", "--model", out, "--data", data); strings.Contains(lls, "-Inf") != warns {
				t.Errorf("%s, keep %s: log-likelihoods %s", name, keep, lls)
			}
		}
	}
	model := write("beside.txt", "circuit 2\nno = input x0 bernoulli 0.1\nyes = input x0 bernoulli 0.9\n"+
		"a = input x1 bernoulli 0.1\nb = input x1 bernoulli 0.8\np = product no a\nq = product yes b\nbeside = input x0 bernoulli 0\ns = sum p q : 0.9 0.1\nroot s\n")
	code, _, stderr := do(t, "", "prune", "--model", model, "--data", data, "--keep", "0.5", "--out", filepath.Join(dir, "beside"))
	if code != exitOK || strings.Contains(stderr, "warning") {
		t.Errorf("a leaf that the root does not reach: exit code %d, %s", code, stderr)
	}
}

// TestPruneClasses prunes a circuit with a class by rows that hardly have one of them, and do not have another: all stay possible.
func TestPruneClasses(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	rows := map[string]*strings.Builder{"all.csv": {}, "some.csv": {}}
	for name, b := range rows {
		b.WriteString("a,b,kind\n")
		for i := range 300 {
			kind := i * i % 5 % 2
			if i == 7 {
				kind = 2
			} else if i%50 == 0 && name == "all.csv" {
				kind = 3
			}
			b.WriteString(strconv.Itoa(i*7%5%3) + "," + strconv.Itoa((i+kind)%3) + "," + strconv.Itoa(kind) + "\n")
		}
		if err := os.WriteFile(path(name), []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(path("c.yaml"), []byte("model: {structure: rat-spn, latents: 6, class: kind}\ndata: {train: "+path("all.csv")+"}\ntrain: {epochs: 3}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ok := func(args ...string) string {
		t.Helper()
		code, out, stderr := do(t, "", args...)
		if code != exitOK {
			t.Fatalf("pce %s: %s", strings.Join(args, " "), stderr)
		}
		return out
	}
	ok("train", "--config", path("c.yaml"), "--out", path("run"))
	ok("grow", "--model", path("run/model.safetensors"), "--out", path("grown"))
	for _, model := range []string{path("run/model.safetensors"), path("grown")} {
		ok("prune", "--model", model, "--data", path("some.csv"), "--keep", "0.01", "--out", path("pruned"), "--force")
		for i, text := range strings.Fields(ok("query", "loglik", "--model", path("pruned"), "--data", path("all.csv"))) {
			if ll, err := strconv.ParseFloat(text, 64); err != nil || math.IsInf(ll, 0) {
				t.Fatalf("%s, pruned: row %d has the log-likelihood %s (%v)", model, i+1, text, err)
			}
		}
	}
}

// TestNativeNames: commands that write native model files refuse a name by which other programs would read another format.
func TestNativeNames(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{"rain.txt": "circuit 1\nrain = input x0 bernoulli 0.3\n", "forest.json": singleForest, "rows.csv": "1\n0\n", "two.csv": "humidity,wind\n1,3\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, ending := range []string{".spn", ".BIN", ".bspn", ".jpc"} {
		for _, args := range [][]string{{"grow", "--model", "rain.txt"}, {"prune", "--model", "rain.txt", "--data", "rows.csv"}, {"forest", "circuit", "forest.json", "--data", "two.csv"}} {
			refused(t, exitUsage, "have pce convert write "+ending+" from it", append(args, "--out", "out"+ending)...)
		}
	}
}
