package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/serve/oip"
)

// informationModels writes models of two columns, of which one says nothing but by draws of its rows, one by all of them and one by
// a pass, and returns their names and files as flags of a server.
func informationModels(t *testing.T) (flags []string, files map[string]string) {
	t.Helper()
	mixedModel(t)
	files = map[string]string{"drawn": filepath.Join("run", "model.safetensors")}
	for name, text := range map[string]string{
		"listed":  "circuit 2\na = input[2] x0 bernoulli 0.25 / 0.75\nb = input[2] x1 bernoulli 0.5 / 0.125\np = product a b\ns = sum p : 0.25 0.75\n",
		"pass":    "circuit 2\na = input x0 bernoulli 0.25\nb = input x1 bernoulli 0.5\np = product a b\n",
		"other":   "circuit 2\na = input x0 bernoulli 0.5\nb = input x1 bernoulli 0.125\np = product a b\n",
		"certain": "circuit 2\na = input x0 bernoulli 1\nb = input x1 bernoulli 0.5\np = product a b\n",
	} {
		files[name] = name + ".txt"
		if err := os.WriteFile(files[name], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, path := range files {
		flags = append(flags, "--model", name+"="+path)
	}
	return flags, files
}

// sameAsPrinted compares an answer about a whole model with what the command prints.
func sameAsPrinted(t *testing.T, got asked, args ...string) {
	t.Helper()
	printed := runJSON(t, append(args, "--json")...)
	if got.params["rows"] != printed["rows"] || got.params["exact"] != printed["exact"] {
		t.Errorf("%v: parameters %v, the command prints %v", args, got.params, printed)
	}
	estimates := 0
	for name, x := range printed {
		e, ok := x.(map[string]any)
		if !ok {
			continue
		}
		estimates++
		for output, want := range map[string]any{name: e["nats"], name + "_error": e["standard_error"]} {
			out := got.outputs[output]
			if len(out) != 1 || fmt.Sprint(got.shapes[output]) != "[1]" {
				t.Fatalf("%v: output %s is %v", args, output, out)
			}
			if want == nil && !math.IsNaN(out[0]) && !math.IsInf(out[0], 1) || want != nil && out[0] != want {
				t.Errorf("%v: %s is %v, the command prints %v", args, output, out[0], want)
			}
		}
	}
	if estimates == 0 || 2*estimates != len(got.outputs) {
		t.Errorf("%v: the outputs are %v, the command prints %v", args, got.outputs, printed)
	}
}

// TestServeInformation asks a server about whole models, and wants what the commands print.
func TestServeInformation(t *testing.T) {
	t.Chdir(t.TempDir())
	flags, files := informationModels(t)
	url, stop := serving(t, nil, flags...)
	for name, path := range files {
		sameAsPrinted(t, inferOf(t, url, name, `{"parameters":{"query":"entropy","n_samples":3000,"seed":5}}`), "query", "entropy", "--model", path, "-n", "3000", "--seed", "5")
	}
	sameAsPrinted(t, inferOf(t, url, "drawn", `{"parameters":{"query":"entropy"}}`), "query", "entropy", "--model", files["drawn"])
	sameAsPrinted(t, inferOf(t, url, "drawn", `{"parameters":{"query":"entropy","n_samples":1}}`), "query", "entropy", "--model", files["drawn"], "-n", "1")
	one := inferOf(t, url, "pass", `{"parameters":{"query":"entropy"},"outputs":[{"name":"entropy_error"}]}`)
	if len(one.outputs) != 1 || one.outputs["entropy_error"][0] != 0 {
		t.Errorf("the error alone is %v", one.outputs)
	}

	x := `"inputs":[{"name":"x","datatype":"FP64","shape":[1,2],"data":[0,1]}],`
	for body, want := range map[string]string{
		`{"parameters":{"query":"entropy","n_samples":0}}`:             "400 n_samples is 0; want 1 to",
		`{"parameters":{"query":"entropy","n_samples":2e9}}`:           "400 n_samples is 2000000000; want 1 to",
		`{` + x + `"parameters":{"query":"entropy"}}`:                  "400 about the model and takes none",
		`{"parameters":{"query":"entropy"},"outputs":[{"name":"kl"}]}`: "400 gives [entropy entropy_error]",
	} {
		status, said := post(t, url+"/v2/models/pass/infer", body)
		if text := fmt.Sprint(status, " ", string(said)); !strings.HasPrefix(text, want[:4]) || !strings.Contains(text, want[4:]) || !json.Valid(said) {
			t.Errorf("%s: %s, want %q", body, text, want)
		}
	}
	// A request that cannot be answered in time is given up, and those behind it are answered.
	long := `{"parameters":{"query":"entropy","n_samples":1073741824,"timeout":20000}}`
	if status, said := post(t, url+"/v2/models/drawn/infer", long); status != 504 {
		t.Errorf("%s: %d %s", long, status, said)
	}
	inferOf(t, url, "drawn", `{"parameters":{"query":"entropy","n_samples":10}}`)
	if code, said := stop(); code != 0 {
		t.Errorf("exit %d: %s", code, said)
	}
}

// TestServedWorkOfModels wants what a request about a model is said to take to be of the rows that it is answered by: none where a
// pass says it, all complete rows where these are few, else those that it has drawn.
func TestServedWorkOfModels(t *testing.T) {
	work := func(categories int, domains []int, exact bool, n int64) float64 {
		t.Helper()
		s := &dataset.Schema{Columns: []dataset.Column{{Categories: 2}, {Categories: categories}}}
		for _, q := range servedQueries(s, domains, rowWork{likelihood: 100, leaves: 1e6}, exact, false) {
			if q.Name == "entropy" {
				flops, err := q.Plan(oip.Params{paramSamples: n})
				if err != nil {
					t.Fatal(err)
				}
				return float64(flops) / 100
			}
		}
		t.Fatal("no query entropy")
		return 0
	}
	both := []int{2, 2}
	for i, c := range []struct{ got, want float64 }{
		{work(2, both, true, 1e6), 1},
		{work(2, both, false, 1e6), 4},
		{work(1e6, both, false, 10), 3 * 10},
		{work(1e6, both, false, 1e7), 2e6},
		{work(1e6, []int{2, -1}, false, 10), 2}, // of what no leaf reads all values are one
	} {
		if c.got != c.want {
			t.Errorf("case %d: %v likelihoods, want %v", i, c.got, c.want)
		}
	}
}
