package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pce-engine/pce"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/run"
	"github.com/pce-engine/pce/serve"
	"github.com/pce-engine/pce/serve/oip"
)

// TestServeSoft asks a server about rows with ranges, sets and likelihoods, and wants what the
// commands print. A request that is wrong is refused with a line, and alone.
func TestServeSoft(t *testing.T) {
	t.Chdir(t.TempDir())
	mixedModel(t)
	model := filepath.Join("run", "model.safetensors")
	const csv = "level,size,score,flag\n{low|mid},10..20,..0.5,1\nhigh,30,0..1.5,[0.25|1]\n,20..,-1..,0..1\n[0|1|3],,,\n"
	const x = `{"name":"x","datatype":"BYTES","shape":[4,4],"data":["","","","1","high","30","","","","","","","","","",""]}`
	const low = `{"name":"low","datatype":"FP64","shape":[4,4],"data":[null,10,null,null, null,null,0,null, null,20,-1,0, null,null,null,null]}`
	const high = `{"name":"high","datatype":"FP64","shape":[4,4],"data":[null,20,0.5,null, null,null,1.5,null, null,null,null,1, null,null,null,null]}`
	likelihood := make([]string, 4*4*3)
	for i := range likelihood {
		likelihood[i] = "null"
	}
	// Labels have the order of the data's first rows or of the alphabet: ask the model.
	order := strings.Split(strings.Trim(labelsOf(t, model, "level"), ","), ",")
	put := func(row, column int, of ...string) { copy(likelihood[(row*4+column)*3:], of) }
	set, weights := []string{}, []string{}
	for _, label := range order {
		set = append(set, map[string]string{"low": "1", "mid": "1", "high": "0"}[label])
	}
	weights = append(weights, "0", "1", "3")
	put(0, 0, set...)
	put(1, 3, "0.25", "1")
	put(3, 0, weights...)
	soft := fmt.Sprintf(`%s,%s,%s,{"name":"likelihood","datatype":"FP64","shape":[4,4,3],"data":[%s]}`, x, low, high, strings.Join(likelihood, ","))
	url, stop := serving(t, nil, "--model", "mixed="+model, "--soft")
	command := func(args ...string) []float64 {
		t.Helper()
		var all []float64
		for _, row := range lines(t, csv, append([]string{"query", args[0], "--model", model, "--data", "-", "--soft"}, args[1:]...)...) {
			for _, cell := range row {
				f, err := strconv.ParseFloat(cell, 64)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, f)
			}
		}
		return all
	}
	ask := func(query, params string, output string) []float64 {
		t.Helper()
		return infer(t, url, fmt.Sprintf(`{"parameters":{"query":%q%s},"inputs":[%s],"outputs":[{"name":%q,"parameters":{"datatype":"FP64"}}]}`, query, params, soft, output)).outputs[output]
	}
	if got, want := ask("log_prob", "", "log_prob"), command("loglik"); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("log_prob %v, the command prints %v", got, want)
	}
	moments := command("moments")
	mean := ask("moments", "", "mean")
	for i, m := range mean {
		if want := moments[i/4*8+i%4]; m != want {
			t.Errorf("mean %d is %v, the command prints %v", i, m, want)
		}
	}
	class := ask("classify", `,"class":"flag"`, "probability")
	for i, row := range lines(t, csv, "query", "classify", "--model", model, "--data", "-", "--soft", "--class", "flag") {
		if fmt.Sprint(class[i]) != row[1] && !strings.HasPrefix(row[1], strconv.FormatFloat(class[i], 'g', -1, 64)) {
			t.Errorf("class of row %d has %v, the command prints %v", i, class[i], row)
		}
	}
	for query, output := range map[string]string{"sample": "samples", "mpe": "mpe", "marginal": "marginals"} {
		if got := ask(query, "", output); len(got) < 16 {
			t.Errorf("%s: %v", query, got)
		}
	}
	// Without x, too, a sample is that of the command with --soft: the model has further vectors for evidence, and draws others.
	drawn := infer(t, url, `{"parameters":{"query":"sample","n_samples":3,"seed":7}}`).outputs["samples"]
	for i, cell := range slices.Concat(lines(t, "level,size,score,flag\n,,,\n", "query", "sample", "--model", model, "--soft", "--given", "-", "-n", "3", "--seed", "7")...) {
		if code := slices.Index(order, cell); code >= 0 {
			cell = strconv.Itoa(code)
		}
		if want, err := strconv.ParseFloat(cell, 64); err != nil || !(math.Abs(drawn[i]-want) < 1e-6) {
			t.Errorf("cell %d of the samples is %v, the command prints %s", i, drawn[i], cell)
		}
	}
	for inputs, want := range map[string]string{
		x + "," + strings.Replace(low, "10", "25", 1) + "," + high:                             `row 0, \"size\": the range 25..20 has no numbers`,
		x + "," + low + "," + strings.Replace(high, "1.5", "0", 1):                             `row 1, \"score\": the range 0..0 is one number`,
		soft[:len(soft)-len("null]}")] + "7]}":                                                 "beyond the",
		x + `,{"name":"low","datatype":"FP64","shape":[4,3],"data":[0,0,0,0,0,0,0,0,0,0,0,0]}`: "shape",
	} {
		for _, params := range []string{`"query":"log_prob"`, `"query":"sample","n_samples":3`} { // rows are those of the request
			status, text := post(t, url+"/v2/models/mixed/infer", fmt.Sprintf(`{"inputs":[%s],"parameters":{%s}}`, inputs, params))
			if status != 400 || !strings.Contains(string(text), want) || strings.Count(string(text), "\n") > 1 {
				t.Errorf("%s: %d %s, want %q", params, status, text, want)
			}
		}
	}
	// Each row is drawn three times with its own evidence, also where the request lacks one of the inputs.
	inRange := infer(t, url, fmt.Sprintf(`{"inputs":[%s,%s,%s],"parameters":{"query":"sample","n_samples":3}}`, x, low, high))
	for draw := range 3 {
		of := inRange.outputs["samples"]
		if a, b := of[draw*4+1], of[(2*3+draw)*4+1]; !(a >= 10 && a <= 20) || !(b >= 20) {
			t.Errorf("draw %d of sizes 10..20 and 20.. is %v and %v", draw, a, b)
		}
	}
	if code, errs := stop(); code != 0 {
		t.Errorf("exit %d: %s", code, errs)
	}
	url, stop = serving(t, nil, "--model", "mixed="+model)
	if status, text := post(t, url+"/v2/models/mixed/infer", fmt.Sprintf(`{"inputs":[%s,%s]}`, x, low)); status != 400 || !strings.Contains(string(text), `"low\"`) {
		t.Errorf("a server without --soft: %d %s", status, text)
	}
	stop()
}

// TestServeSoftTogether has a request that multiplies two columns computed in a batch with one that has evidence, which such a
// request may not have: each gets the answer that it gets alone.
func TestServeSoftTogether(t *testing.T) {
	t.Chdir(t.TempDir())
	mixedModel(t)
	loader := &modelLoader{run: run.Options{Engines: 1, Soft: true}, notes: io.Discard}
	m, err := loader.Open(t.Context(), filepath.Join("run", "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	c := m.(*servedCircuit)
	nan := math.NaN()
	ask := func(low []float64, of ...string) ([]float64, error) {
		w := &serve.Work{Query: "expect", Batch: dataset.NewBatch(c.Schema(), len(of)), Inputs: [][]float64{low, nil, nil}, Outputs: [][]float64{make([]float64, len(of))}}
		for _, text := range of {
			w.Parts = append(w.Parts, serve.Part{Rows: 1, Params: oip.Params{paramOf: text}})
		}
		err := c.Run(t.Context(), w)
		for _, p := range w.Parts {
			err = cmp.Or(err, p.Err)
		}
		return w.Outputs[0], err
	}
	alone, err := ask(nil, "size*score")
	if err != nil {
		t.Fatal(err)
	}
	together, err := ask([]float64{nan, 15, nan, nan, nan, nan, nan, nan}, "size", "size*score")
	if err != nil || together[1] != alone[0] || !(together[0] > 15) {
		t.Errorf("%v, %v; want a size above 15 and %v", together, err, alone)
	}
	if _, err := ask([]float64{nan, 15, nan, nan}, "size*score"); err == nil || !strings.Contains(err.Error(), "covariances of rows with ranges") {
		t.Errorf("a product with evidence: %v", err)
	}
}

// labelsOf returns the labels of a column in the order of its codes, as the command writes their
// probabilities.
func labelsOf(t *testing.T, model, column string) string {
	t.Helper()
	s := modelSchema(t, model)
	for i := range s.Columns {
		if s.Columns[i].Name == column {
			return strings.Join(s.Columns[i].Labels, ",")
		}
	}
	t.Fatalf("no column %s", column)
	return ""
}

func modelSchema(t *testing.T, path string) *dataset.Schema {
	t.Helper()
	m, err := pce.Open(t.Context(), path, pce.Options{Device: "cpu"})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	return m.Schema()
}
