package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/pce-engine/pce/dataset"
)

// playDoc plays the first lines to paste of a document as a reader does who has just trained
// the model, and returns it, what the lines are answered, and the first output of an answer.
func playDoc(t *testing.T, name string) (model string, answers []map[string]any, output func(i int) map[string]any) {
	t.Helper()
	for _, tool := range []string{"curl", "bash"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("SKIPPED: %s is not installed", tool)
		}
	}
	doc, err := os.ReadFile("../../docs/" + name)
	if err != nil {
		t.Fatal(err)
	}
	config, err := filepath.Abs("../../configs/hclt.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, script, _ := strings.Cut(string(doc), "```sh\n")
	script, _, _ = strings.Cut(script, "```")
	lines := strings.Split(strings.TrimSpace(script), "\n")
	if len(lines) != 3 {
		t.Fatalf("the doc has %d lines to paste, want 3: %q", len(lines), lines)
	}
	t.Chdir(t.TempDir())
	runJSON(t, "train", "--config", config, "--set", "train.epochs=1", "--set", "train.steps=3", "--set", "model.latents=4", "--set", "data.valid=", "--set", "data.test=")
	model = "runs/hclt-digits/model.safetensors"
	url, stop := serving(t, nil, "--model", "digits="+model)
	for _, line := range lines {
		line = strings.ReplaceAll(line, "localhost:8080", strings.TrimPrefix(url, "http://"))
		cmd := exec.CommandContext(t.Context(), "bash", "-euc", "pce() { "+roleVariable+"=pce "+os.Args[0]+` "$@"; }; `+line)
		out, err := cmd.CombinedOutput()
		var answer map[string]any
		if err == nil {
			err = json.Unmarshal(out, &answer)
		}
		if err != nil || answer["error"] != nil {
			t.Fatalf("%.200s\n%v: %.500s", line, err, out)
		}
		answers = append(answers, answer)
	}
	if code, said := stop(); code != 0 {
		t.Errorf("exit %d: %s", code, said)
	}
	return model, answers, func(i int) map[string]any { return answers[i]["outputs"].([]any)[0].(map[string]any) }
}

// TestQueriesDoc plays docs/queries.md.
func TestQueriesDoc(t *testing.T) {
	if testing.Short() {
		t.Skip("a training run and a server; without -short")
	}
	model, _, output := playDoc(t, "queries.md")
	means := lines(t, strings.Repeat(",", 783)+"\n", "query", "moments", "--model", model, "--data", "-")[0]
	for v, x := range output(0)["data"].([]any) {
		if want, err := strconv.ParseFloat(means[v], 64); err != nil || x.(float64) != want {
			t.Fatalf("mean of pixel %d: %v, the command prints %v", v, x, means[v])
		}
	}
	black := "0" + strings.Repeat(",", 783) + "\n"
	want := answer(t, black, "query", "loglik", "--model", model, "--data", "-")[0]
	if got := output(1)["data"].([]any)[0].(float64); float32(got) != float32(want) {
		t.Errorf("log_prob is %v, query loglik says %v", got, want)
	}
	class := lines(t, strings.Repeat("0,", 783)+"0\n", "query", "classify", "--class", "400", "--model", model, "--data", "-")[0]
	if label := output(2)["data"].([]any)[0].(float64); class[0] != strconv.Itoa(int(label)) {
		t.Errorf("the likeliest shade is %v, query classify says %v", label, class)
	}
}

// TestServingDocParams: docs/serving.md says of each parameter that metadata lists what it is, in a row of its table of requests
// that names the query, and names the queries that take no soft evidence.
func TestServingDocParams(t *testing.T) {
	doc, err := os.ReadFile("../../docs/serving.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(doc), "## Requests")
	table, _, _ = strings.Cut(table, "## Answers")
	said := func(query, name string) bool {
		for line := range strings.Lines(table) {
			cells := strings.SplitN(line, " | ", 2)
			if len(cells) == 2 && strings.Contains(cells[0], "`"+name+"`") && strings.Contains(cells[1], "`"+query+"`") {
				return true
			}
		}
		return false
	}
	s := &dataset.Schema{Columns: []dataset.Column{{Name: "a", Categories: 2}}}
	params := 0
	for _, q := range servedQueries(s, make([]int, len(s.Columns)), rowWork{}, false, false) {
		for _, p := range q.Params {
			if params++; !said(q.Name, p.Name) {
				t.Errorf("docs/serving.md does not say what the parameter %s of %s is", p.Name, q.Name)
			}
		}
	}
	if params < 7 {
		t.Errorf("queries have %d parameters", params)
	}
	for _, q := range servedQueries(s, make([]int, len(s.Columns)), rowWork{}, false, true) {
		soft := false
		for _, in := range q.Inputs {
			soft = soft || in.Name == inputLow
		}
		if soft == said(q.Name, inputLow) && q.Name != "expect" {
			t.Errorf("docs/serving.md and metadata differ about soft evidence of %s", q.Name)
		}
	}
}

// TestServingDoc plays docs/serving.md.
func TestServingDoc(t *testing.T) {
	if testing.Short() {
		t.Skip("a training run and a server; without -short")
	}
	model, answers, output := playDoc(t, "serving.md")
	if answers[0]["name"] != "digits" {
		t.Error(answers[0])
	}
	drawn := output(1)["data"].([]any)
	if len(drawn) != 784 {
		t.Errorf("the sample has %d cells", len(drawn))
	}
	// The image of the third line is the sample of the second.
	var cells []string
	for _, x := range drawn {
		text, err := json.Marshal(x)
		if err != nil {
			t.Fatal(err)
		}
		cells = append(cells, string(text))
	}
	want := answer(t, strings.Join(cells, ",")+"\n", "query", "loglik", "--model", model, "--data", "-")[0]
	if got := output(2)["data"].([]any)[0].(float64); float32(got) != float32(want) {
		t.Errorf("log_prob is %v, query loglik says %v", got, want)
	}
}
