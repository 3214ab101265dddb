package main

import (
	"encoding/binary"
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
	for _, pair := range [][2]string{{"drawn", "drawn"}, {"listed", "listed"}, {"listed", "pass"}, {"pass", "other"}, {"other", "listed"}, {"pass", "certain"}, {"certain", "pass"}} {
		got := inferOf(t, url, pair[0], fmt.Sprintf(`{"parameters":{"query":"kl","other":%q,"n_samples":3000,"seed":5}}`, pair[1]))
		sameAsPrinted(t, got, "query", "kl", "--model", files[pair[0]], "--other", files[pair[1]], "-n", "3000", "--seed", "5")
		if infinite := math.IsInf(got.outputs["kl"][0], 1); infinite != (pair[1] == "certain") {
			t.Errorf("the divergence of %v is %v", pair, got.outputs["kl"])
		}
		req := oip.Request{Model: pair[0], Params: oip.Params{"query": "kl", "other": pair[1], "n_samples": int64(3000), "seed": uint64(5)}, Outputs: []oip.Output{{Name: "kl"}}}
		want := oip.Response{Model: pair[0], Version: "1", Params: oip.Params{"rows": int64(got.params["rows"].(float64)), "exact": got.params["exact"]}}
		raw := binary.LittleEndian.AppendUint64(nil, math.Float64bits(got.outputs["kl"][0]))
		want.Outputs = []oip.Tensor{{Name: "kl", Datatype: oip.FP64, Shape: []int64{1}, Raw: raw}}
		overGRPC(t, url, &req, &want)
	}
	one := inferOf(t, url, "pass", `{"parameters":{"query":"entropy"},"outputs":[{"name":"entropy_error"}]}`)
	if len(one.outputs) != 1 || one.outputs["entropy_error"][0] != 0 {
		t.Errorf("the error alone is %v", one.outputs)
	}

	x := `"inputs":[{"name":"x","datatype":"FP64","shape":[1,2],"data":[0,1]}],`
	for body, want := range map[string]string{
		`{"parameters":{"query":"entropy","n_samples":0}}`:             "400 n_samples is 0; want 1 to",
		`{"parameters":{"query":"entropy","n_samples":2e9}}`:           "400 n_samples is 2000000000; want 1 to",
		`{` + x + `"parameters":{"query":"entropy"}}`:                  "400 about the model and takes none",
		`{"parameters":{"query":"kl"}}`:                                "400 other is empty; give the name of a model of this server",
		`{"parameters":{"query":"kl","other":"pass.txt"}}`:             "404 other: no such model",
		`{"parameters":{"query":"kl","other":"drawn"}}`:                "400 the models are not of the same columns",
		`{"parameters":{"query":"entropy","other":"pass"}}`:            "400 is not known",
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

// TestServedWorkOfTwoModels wants the likelihoods of the other model to count, and refuses one that is not a circuit.
func TestServedWorkOfTwoModels(t *testing.T) {
	s := &dataset.Schema{Columns: []dataset.Column{{Kind: dataset.Continuous, Scale: 1}}}
	plan := klQuery(s, []int{0}, rowWork{likelihood: 100}).Plan
	if n, err := plan(oip.Params{paramSamples: int64(10), paramOther: &servedCircuit{work: rowWork{likelihood: 7}}}); err != nil || n != 10*(300+7) {
		t.Errorf("%d operations, %v", n, err)
	}
	if _, err := plan(oip.Params{paramSamples: int64(10), paramOther: &servedForest{}}); err == nil || err.Error() != "other is a decision forest; give the name of a circuit" {
		t.Error(err)
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
