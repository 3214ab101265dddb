package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/serve/oip"
)

// lines runs a command that must succeed and returns the cells that it prints.
func lines(t *testing.T, input string, args ...string) (rows [][]string) {
	t.Helper()
	var out, errs bytes.Buffer
	if code := Run(t.Context(), args, nil, strings.NewReader(input), &out, &errs); code != 0 {
		t.Fatalf("%v: exit %d: %s", args, code, &errs)
	}
	for line := range strings.Lines(out.String()) {
		rows = append(rows, strings.Split(strings.TrimSpace(line), ","))
	}
	return rows
}

// asked is an answer of the server: outputs by name, and parameters.
type asked struct {
	outputs map[string][]float64
	shapes  map[string][]int
	params  map[string]any
}

// infer sends a request to the model mixed that must succeed.
func infer(t *testing.T, url, body string) asked {
	t.Helper()
	return inferOf(t, url, "mixed", body)
}

// inferOf sends a request to a model that must succeed.
func inferOf(t *testing.T, url, model, body string) asked {
	t.Helper()
	status, text := post(t, url+"/v2/models/"+model+"/infer", body)
	var answer struct {
		Parameters map[string]any
		Outputs    []struct {
			Name  string
			Shape []int
			Data  []any
		}
	}
	if err := json.Unmarshal(text, &answer); err != nil || status != 200 {
		t.Fatalf("%s: %d %s: %v", body, status, text, err)
	}
	a := asked{map[string][]float64{}, map[string][]int{}, answer.Parameters}
	for _, out := range answer.Outputs {
		a.shapes[out.Name] = out.Shape
		a.outputs[out.Name] = []float64{}
		for _, x := range out.Data {
			f, ok := x.(float64)
			if !ok {
				f = map[string]float64{"NaN": math.NaN(), "-Infinity": math.Inf(-1), "Infinity": math.Inf(1)}[x.(string)]
			}
			a.outputs[out.Name] = append(a.outputs[out.Name], f)
		}
	}
	return a
}

// get returns what is at a URL.
func get(t *testing.T, url string) []byte {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	w, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Body.Close()
	text, err := io.ReadAll(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestServeKeeps: completed rows have the observed cells as the request has them, as the commands have those of a file, and
// not as the model stores them.
func TestServeKeeps(t *testing.T) {
	t.Chdir(t.TempDir())
	mixedModel(t)
	model := filepath.Join("run", "model.safetensors")
	url, stop := serving(t, nil, "--model", "mixed="+model)
	cells := []string{"", "20", "0.551", "NA", "", "", "-1.3770000000000002", "1", "", "10", "", "0"}
	var csv, texts, numbers strings.Builder
	csv.WriteString("level,size,score,flag\n")
	for i, cell := range cells {
		csv.WriteString(cell + []string{",", ",", ",", "\n"}[i%4])
		if i > 0 {
			texts.WriteString(",")
			numbers.WriteString(",")
		}
		texts.WriteString(strconv.Quote(cell))
		if cell == "" || cell == "NA" || i == 7 { // which observed marks as missing
			cell = "null"
		}
		numbers.WriteString(cell)
	}
	const observed = `,{"name":"observed","datatype":"BOOL","shape":[3,4],"data":[1,1,1,1,1,1,1,0,1,1,1,1]}`
	for _, query := range []struct {
		name, params, output string
		times                int
		args                 []string
	}{
		{"sample", `"n_samples":2,"seed":7`, "samples", 2, []string{"sample", "--given", "-", "-n", "2", "--seed", "7"}},
		{"mpe", `"seed":7`, "mpe", 1, []string{"mpe", "--data", "-", "--seed", "7"}},
	} {
		given := strings.Replace(csv.String(), "-1.3770000000000002,1", "-1.3770000000000002,", 1)
		want := lines(t, given, append([]string{"query", query.args[0], "--model", model}, query.args[1:]...)...)
		for datatype, data := range map[string]string{"BYTES": texts.String(), "FP64": numbers.String(), "FP32": numbers.String()} {
			got := infer(t, url, fmt.Sprintf(`{"parameters":{"query":%q,%s},"inputs":[{"name":"x","datatype":%q,"shape":[3,4],"data":[%s]}%s]}`,
				query.name, query.params, datatype, data, observed)).outputs[query.output]
			if len(got) != 4*len(want) || len(want) != 3*query.times {
				t.Fatalf("%s of %s: %d cells, the command prints %d rows", query.name, datatype, len(got), len(want))
			}
			for i, x := range got {
				row, v := i/4, i%4
				cell, drawn := cells[row/query.times*4+v], want[row][v]
				if v == 0 {
					drawn = map[string]string{"high": "0", "low": "1", "mid": "2"}[drawn]
				}
				wanted, err := strconv.ParseFloat(drawn, 64)
				if err != nil {
					t.Fatal(err)
				}
				near := 1e-6 // the command writes the shortest number that is stored alike
				if v == 2 && cell != "" {
					if near = 0; datatype == "FP32" {
						wanted = float64(float32(wanted))
					}
				}
				if !(math.Abs(x-wanted) <= near) {
					t.Errorf("%s of %s: row %d has %v in column %d, want %v", query.name, datatype, row, x, v, wanted)
				}
			}
		}
	}
	if code, said := stop(); code != 0 {
		t.Errorf("exit %d: %s", code, said)
	}
}

// TestServeQueries asks a server every query that its metadata lists, and wants what the
// commands print.
func TestServeQueries(t *testing.T) {
	t.Chdir(t.TempDir())
	mixedModel(t)
	model := filepath.Join("run", "model.safetensors")
	rows := []string{",20,,1", "low,,1.25,", ",,,", "high,30,-0.5,0", "mid,10,,"}
	csv := "level,size,score,flag\n" + strings.Join(rows, "\n") + "\n"
	command := func(args ...string) [][]string {
		t.Helper()
		return lines(t, csv, append([]string{"query", args[0], "--model", model, "--data", "-"}, args[1:]...)...)
	}
	url, stop := serving(t, nil, "--model", "mixed="+model)
	var cells []string
	for _, row := range rows {
		for cell := range strings.SplitSeq(row, ",") {
			cells = append(cells, strconv.Quote(cell))
		}
	}
	x := fmt.Sprintf(`{"name":"x","datatype":"BYTES","shape":[%d,4],"data":[%s]}`, len(rows), strings.Join(cells, ","))
	ask := func(query, params, inputs string, outputs ...string) asked {
		t.Helper()
		var wanted []string
		for _, name := range outputs {
			wanted = append(wanted, fmt.Sprintf(`{"name":%q,"parameters":{"datatype":"FP64"}}`, name))
		}
		return infer(t, url, fmt.Sprintf(`{"parameters":{"query":%q%s},"inputs":[%s%s],"outputs":[%s]}`, query, params, x, inputs, strings.Join(wanted, ",")))
	}
	played := map[string]bool{"log_prob": true, "sample": true, "entropy": true, "kl": true} // TestServe, TestServeInformation
	number := func(text string) float64 {
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	same := func(what string, got float64, want string) {
		t.Helper()
		if w := number(want); got != w && !(math.IsNaN(got) && math.IsNaN(w)) {
			t.Errorf("%s: %v, the command prints %v", what, got, want)
		}
	}

	a := ask("marginal", "", "", "marginals", "log_prob")
	ll, of := command("loglik"), command("conditional", "--of", "1,2,4")
	played["marginal"] = true
	if fmt.Sprint(a.shapes["marginals"]) != "[5 4 3]" {
		t.Errorf("marginals have the shape %v", a.shapes["marginals"])
	}
	for r := range rows {
		same("log_prob", a.outputs["log_prob"][r], ll[r][0])
		at := 0
		for v, n := range []int{3, 3, 0, 2} {
			for c, p := range a.outputs["marginals"][(r*4+v)*3:][:3] {
				if c >= n {
					same("marginals beyond the categories", p, "0")
					continue
				}
				same("marginals", p, of[r][at])
				at++
			}
		}
	}

	// What is asked about in the mask is what is not given to the command.
	mask := `,{"name":"query_mask","datatype":"BOOL","shape":[5,4],"data":[` + strings.Repeat("true,true,false,true,", 4) + `true,true,false,true]}`
	a = ask("conditional", "", mask, "log_prob")
	given := command("loglik", "--given", "score")
	played["conditional"] = true
	for r := range rows {
		same("conditional", a.outputs["log_prob"][r], given[r][0])
	}

	a = ask("moments", "", "", "mean", "variance")
	moments := command("moments")
	played["moments"] = true
	for r := range rows {
		for v := range 4 {
			same("mean", a.outputs["mean"][r*4+v], moments[r][v])
			same("variance", a.outputs["variance"][r*4+v], moments[r][4+v])
		}
	}

	a = ask("mpe", `,"candidates":3,"seed":5`, "", "mpe", "log_prob", "bound")
	full := command("mpe", "--candidates", "3", "--seed", "5")
	var text string
	for _, row := range full {
		text += strings.Join(row, ",") + "\n"
	}
	complete := lines(t, text, "query", "loglik", "--model", model, "--data", "-")
	played["mpe"] = true
	labels := map[string]string{"high": "0", "low": "1", "mid": "2"}
	for r := range rows {
		for v, cell := range full[r] {
			if code, ok := labels[cell]; ok {
				cell = code
			}
			// The command writes the shortest number that is stored alike.
			if got := a.outputs["mpe"][r*4+v]; !(math.Abs(got-number(cell)) < 1e-6) {
				t.Errorf("mpe: %v, the command prints %v", got, cell)
			}
		}
		if got := a.outputs["log_prob"][r]; !(math.Abs(got-number(complete[r][0])) < 1e-5) || !(a.outputs["bound"][r] >= got-1e-5) {
			t.Errorf("row %d: log-likelihood %v with the bound %v, the command's row has %v", r, got, a.outputs["bound"][r], complete[r])
		}
	}
	if exact, ok := a.params["mpe_exact"].(bool); !ok || exact {
		t.Errorf("parameters %v, want mpe_exact false", a.params)
	}

	for _, columns := range []string{"level,4", "score"} { // what is not named stays missing
		a = ask("mpe", `,"of":"`+columns+`"`, "", "mpe")
		for r, row := range command("mpe", "--of", columns) {
			for v, cell := range row {
				if code, ok := labels[cell]; ok {
					cell = code
				}
				if got := a.outputs["mpe"][r*4+v]; math.IsNaN(got) != (cell == "") || cell != "" && !(math.Abs(got-number(cell)) < 1e-6) {
					t.Errorf("mpe of %s, row %d, column %d: %v, the command prints %q", columns, r, v, got, cell)
				}
			}
		}
	}

	for _, class := range []string{"level", "size", "1", "2"} {
		a = ask("classify", `,"class":"`+class+`"`, "", "label", "probability", "probabilities")
		want, all := command("classify", "--class", class), command("classify", "--class", class, "--probabilities")
		played["classify"] = true
		for r := range rows {
			label := want[r][0]
			if code, ok := labels[label]; ok {
				label = code
			}
			same("label", a.outputs["label"][r], label)
			same("probability", a.outputs["probability"][r], want[r][1])
			for c, p := range a.outputs["probabilities"][r*3:][:3] {
				same("probabilities", p, all[r][1+c])
			}
		}
	}

	for _, level := range []string{"0.5", "0.05", "0.999"} {
		a = ask("quantiles", `,"level":`+level, "", "quantiles")
		played["quantiles"] = true
		for r, want := range command("quantiles", "--of", "1,2,3,4", "--at", level) {
			for v := range want {
				same("quantiles", a.outputs["quantiles"][r*4+v], want[v])
			}
		}
	}
	for _, of := range []string{"score", "level,score", "4,1,size,score"} { // of several columns the one order has other roundings than the other
		k := strings.Count(of, ",") + 1
		a = ask("covariance", `,"of":"`+of+`"`, "", "covariance")
		if got, want := fmt.Sprint(a.shapes["covariance"]), fmt.Sprint([]int{5, k, k}); got != want {
			t.Errorf("the covariances of %s have the shape %s, want %s", of, got, want)
		}
		played["covariance"] = true
		for i, want := range slices.Concat(command("moments", "--covariance", of)...) {
			same("covariance of "+of, a.outputs["covariance"][i], want)
		}
	}
	for _, of := range []string{"3", "2*score - $2", "score*size + 0.5*$4*score - score^2"} {
		a = ask("expect", `,"of":"`+of+`"`, "", "expectation")
		played["expect"] = true
		for r, want := range command("expect", "--of", of) {
			same("expect "+of, a.outputs["expectation"][r], want[0])
		}
	}
	long := strings.Repeat("x", 1<<20)
	for params, want := range map[string]string{
		`"quantiles","level":0`:           "the quantile at 0; want a level between 0 and 1",
		`"quantiles","level":1`:           "the quantile at 1; want a level between 0 and 1",
		`"covariance"`:                    "of is empty; name the columns whose covariances are wanted",
		`"covariance","of":"size,2"`:      "is named twice",
		`"covariance","of":"elsewhere"`:   "elsewhere",
		`"expect"`:                        "of is empty; give the function whose expectation is wanted",
		`"expect","of":"score^3"`:         "moments of higher degree",
		`"expect","of":"score*elsewhere"`: "elsewhere",
		`"mpe","of":"elsewhere"`:          "elsewhere",
		`"mpe","of":"level,"`:             "no column",
		`"mpe","of":"\"level"`:            "not a list of names",
		`"mpe","of":"level\nscore"`:       "not a list of names",
		`"mpe","of":"` + long + `"`:       "no column",
		`"mpe","of":"` + long + `\n"`:     "no column",
		`"mpe","of":"` + long + `\"b"`:    "not a list of names",
	} {
		status, said := post(t, url+"/v2/models/mixed/infer", `{"parameters":{"query":`+params+`},"inputs":[`+x+`]}`)
		if status != 400 || !strings.Contains(string(said), want) || len(said) > 1000 {
			t.Errorf("%.80s: %d %.200s, want %q", params, status, said, want)
		}
	}

	half := strings.Replace(strings.NewReplacer("BOOL", "FP64", "true", "1", "false", "0").Replace(mask), "1,1,0,1]", "1,1,null,1]", 1)
	for _, flag := range []string{"", "--soft"} { // which looks at its own inputs
		at := url
		if flag != "" {
			var stop func() (int, string)
			at, stop = serving(t, nil, "--model", "mixed="+model, flag)
			defer stop()
		}
		status, said := post(t, at+"/v2/models/mixed/infer", `{"parameters":{"query":"conditional"},"inputs":[`+x+half+`]}`)
		if status != 400 || !strings.Contains(string(said), `input \"query_mask\": data: row 4, \"score\": NaN; want 1 or 0`) {
			t.Errorf("a mask of neither 1 nor 0, %q: %d %s", flag, status, said)
		}
	}

	var meta struct{ Queries []struct{ Name string } }
	for _, class := range []string{"score", "3", "0", "5", ""} {
		_, said := post(t, url+"/v2/models/mixed/infer", `{"parameters":{"query":"classify","class":"`+class+`"},"inputs":[`+x+`]}`)
		if !strings.Contains(string(said), `class is \"`+class+`\"; want one of [\"level\" \"size\" \"flag\"]`) {
			t.Errorf("the class %q: %s", class, said)
		}
	}
	if err := json.Unmarshal(get(t, url+"/v2/models/mixed"), &meta); err != nil || len(meta.Queries) == 0 {
		t.Fatalf("%+v, %v", meta, err)
	}
	for _, q := range meta.Queries {
		if !played[q.Name] {
			t.Errorf("nothing asks for the query %q", q.Name)
		}
	}
	if code, said := stop(); code != 0 {
		t.Errorf("exit %d: %s", code, said)
	}
}

// TestServeLargeLabels: completed rows have labels that float32 does not hold, and the metadata names a datatype of x that has
// every label.
func TestServeLargeLabels(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, tc := range []struct{ low, high, rows string }{
		{"16777216", "16777217", "INT32"},
		{"3000000000", "3000000256", "FP64"}, // which float32 holds
		{"0.1", "1e40", "FP64"},
	} {
		text := "id,w\n" + strings.Repeat(tc.low+",0\n"+tc.high+",1\n", 40)
		if err := os.WriteFile("ids.csv", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		out := "run-" + tc.low
		runJSON(t, "train", "--config", "preset:hclt", "--set", "data.train=ids.csv", "--set", "data.valid=", "--set", "data.test=",
			"--set", "model.latents=2", "--set", "train.epochs=1", "--set", "data.columns=[{name: id, type: label}]", "--out", out, "--threads", "1")
		url, stop := serving(t, nil, "--model", "ids="+filepath.Join(out, "model.safetensors"))
		if meta := string(get(t, url+"/v2/models/ids")); !strings.Contains(meta, `"inputs":[{"name":"x","datatype":"`+tc.rows+`"`) {
			t.Errorf("%s and %s: x should be %s: %s", tc.low, tc.high, tc.rows, meta)
		}
		for query, output := range map[string]string{"mpe": "mpe", "sample": "samples"} {
			got := inferOf(t, url, "ids", fmt.Sprintf(`{"parameters":{"query":%q},"inputs":[{"name":"x","datatype":"FP64","shape":[2,2],"data":[%s,null,%s,null]}]}`,
				query, tc.low, tc.high)).outputs[output]
			for i, label := range []string{tc.low, tc.high} {
				if want, err := strconv.ParseFloat(label, 64); err != nil || len(got) != 4 || got[2*i] != want {
					t.Errorf("%s: a row with %s is completed as %v", query, label, got)
				}
			}
		}
		if code, said := stop(); code != 0 {
			t.Errorf("exit %d: %s", code, said)
		}
	}
}

// TestServedWork wants what a row is said to take to grow with the categories of its columns, whose probabilities are all
// computed, and with the candidates that are asked for, and never to be beyond the numbers there are.
func TestServedWork(t *testing.T) {
	work := func(categories int, exact bool, query string, candidates int64) int64 {
		t.Helper()
		leaf := circuit.Categorical{Categories: categories}
		g := &circuit.Graph{NumVars: 2, Root: 3, Nodes: []circuit.Node{
			{Kind: circuit.Input, Units: 8, Var: 0, Leaf: leaf},
			{Kind: circuit.Input, Units: 8, Var: 1, Leaf: leaf},
			{Kind: circuit.Product, Units: 8, Children: []circuit.NodeID{0, 1}},
			{Kind: circuit.Sum, Units: 1, Children: []circuit.NodeID{2}},
		}}
		column := dataset.Column{Categories: categories}
		s := &dataset.Schema{Columns: []dataset.Column{column, column}}
		for _, q := range servedQueries(s, circuit.Domains(g), workOf(g), exact, false) {
			switch {
			case q.Name != query:
			case q.Plan == nil:
				return q.Flops
			default:
				of := map[string]string{"expect": "$1*$2", "covariance": "1,2"}[query]
				n, err := q.Plan(oip.Params{paramCandidates: candidates, paramLevel: 0.5, paramOf: of})
				if err != nil {
					t.Fatal(err)
				}
				return n
			}
		}
		t.Fatalf("no query %s", query)
		return 0
	}
	const many = 100_000
	for _, query := range []string{"marginal", "moments", "quantiles", "mpe", "expect", "covariance"} {
		if few, all := work(2, true, query, 8), work(many, true, query, 8); few < 8*16 || all < 2*2*8*many {
			t.Errorf("%s takes %d operations with 2 categories, and %d with %d", query, few, all, many)
		}
	}
	eight, more := work(many, false, "mpe", 8), work(many, false, "mpe", 64)
	if least := int64(2*2*8*many) * (8 + 200); eight < least || more-eight < 56*2*2*8*many {
		t.Errorf("8 candidates take %d operations, 64 take %d; want at least %d, and what 56 more take", eight, more, least)
	}
	wide := &circuit.Graph{NumVars: 1000, Root: 1001, Nodes: []circuit.Node{1000: {Kind: circuit.Product, Units: 2}, 1001: {Kind: circuit.Sum, Units: 1, Children: []circuit.NodeID{1000}}}}
	for v := range 1000 {
		wide.Nodes[v] = circuit.Node{Units: 2, Var: v, Leaf: circuit.Categorical{Categories: 2}}
		wide.Nodes[1000].Children = append(wide.Nodes[1000].Children, circuit.NodeID(v))
	}
	if w := workOf(wide); w.likelihood != 2*2+2*1000 || w.leaves != 2*2*2*1000 {
		t.Errorf("a circuit of two products of 1000 leaves takes %+v", w)
	}
	if n := operations(math.Inf(1)); n < 1<<61 {
		t.Errorf("operations beyond all numbers are %d", n)
	}
}

// TestServedWorkOfColumns wants what a row is said to take to be about the columns that are asked for: of a product the values of the
// one that is named first are summed over, a class has its own categories, and others than those to complete are summed out.
func TestServedWorkOfColumns(t *testing.T) {
	const many, columns = 100_000, 1000
	s := &dataset.Schema{Columns: slices.Repeat([]dataset.Column{{Categories: 2}}, columns)}
	s.Columns[1].Categories = many
	row := rowWork{likelihood: 1e4, leaves: 1e3}
	work := func(query, column string) float64 {
		t.Helper()
		for _, q := range servedQueries(s, make([]int, columns), row, false, false) {
			if q.Name == query {
				n, err := q.Plan(oip.Params{paramCandidates: int64(8), paramClass: column, paramOf: column})
				if err != nil {
					t.Fatal(err)
				}
				return float64(n)
			}
		}
		t.Fatalf("no query %s", query)
		return 0
	}
	for query, cases := range map[string]map[string]float64{
		"expect": {
			"$1*$2": 1 + 2, "$2*$1": 1 + many, "$1*$2 + $2*$1": 1 + 2, "$1*$2 + $3*$2": 1 + 2 + many, "$1*$2 + $1*$3 + $2 + $2^2": 1 + 2, "$2": 1,
		},
		"covariance": {"1": 1, "1,2": 1 + 1 + 2, "2,1": 1 + 1 + many, "1,2,3": 1 + 1 + 2 + 1 + many},
		"classify":   {"1": 2 * row.likelihood / row.posterior(), "2": many * row.likelihood / row.posterior()},
		"mpe": {
			"": 1 + row.search(columns, 8)/row.posterior(), "7": 1 + row.search(1, 8)/row.posterior(), "7,9": 1 + row.search(2, 8)/row.posterior(),
		},
	} {
		for column, passes := range cases {
			if got := work(query, column); !(math.Abs(got-passes*row.posterior()) <= 1) {
				t.Errorf("%s %q takes %v operations, want %v", query, column, got, passes*row.posterior())
			}
		}
	}
	if all, one := work("mpe", ""), work("mpe", "7"); all < 30*one {
		t.Errorf("a completion takes %v operations, that of one column of %d takes %v", all, columns, one)
	}
}

// TestServedClasses: the metadata names columns by which a request can classify. One without a name, whose number is the name of
// another column, is none.
func TestServedClasses(t *testing.T) {
	two := dataset.Column{Categories: 2}
	named := dataset.Column{Name: "3", Categories: 2}
	s := &dataset.Schema{Columns: []dataset.Column{two, named, two}}
	if got := servedClasses(s, []int{2, 2, 2}); !slices.Equal(got, []string{"1", "3"}) {
		t.Errorf("classes %q, want 1 and 3", got)
	}
}

// servedClasses are the columns by which requests may classify.
func servedClasses(s *dataset.Schema, domains []int) []string {
	for _, q := range servedQueries(s, domains, rowWork{}, true, false) {
		if q.Name == "classify" {
			return q.Params[0].Values
		}
	}
	return nil
}

// TestServedClassesOfMany: columns are found without a look at all others for each of them, which takes half an hour.
func TestServedClassesOfMany(t *testing.T) {
	const many = dataset.MaxColumns
	s := &dataset.Schema{Columns: slices.Repeat([]dataset.Column{{Categories: 2}}, many)}
	s.Columns[1].Name, s.Columns[2].Name = "twice", "twice" // the first is meant
	got := servedClasses(s, make([]int, many))
	if len(got) != many-1 || !slices.Equal(got[:3], []string{"1", "twice", "4"}) || got[many-2] != strconv.Itoa(many) {
		t.Errorf("%d classes, the first %q", len(got), got[:min(len(got), 3)])
	}
}

// TestEachSome takes all rows, in order, and no more of them at a time than have answers of bounded size.
func TestEachSome(t *testing.T) {
	b := dataset.NewBatch(&dataset.Schema{Columns: []dataset.Column{{Categories: 2}}}, 100)
	for width, want := range map[int]int{1: 100, readCells / 30: 30, readCells: 1, 2 * readCells: 1} {
		next, most := 0, 0
		if err := eachSome(b, width, func(rows *dataset.Batch, at int) error {
			if at != next {
				t.Errorf("width %d: row %d comes after %d", width, at, next)
			}
			next, most = at+rows.Rows, max(most, rows.Rows)
			return nil
		}); err != nil || next != 100 || most != want {
			t.Errorf("width %d: %v, %d rows, %d at a time, want 100 and %d", width, err, next, most, want)
		}
	}
}
