package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestServingDoc plays the first requests of docs/serving.md as a reader does who has
// just trained the model.
func TestServingDoc(t *testing.T) {
	for _, tool := range []string{"curl", "bash"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("SKIPPED: %s is not installed", tool)
		}
	}
	doc, err := os.ReadFile("../../docs/serving.md")
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
	const model = "runs/hclt-digits/model.safetensors"
	url, stop := serving(t, nil, "--model", "digits="+model)
	var answers []map[string]any
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
	output := func(i int) map[string]any { return answers[i]["outputs"].([]any)[0].(map[string]any) }
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
	if code, said := stop(); code != 0 {
		t.Errorf("exit %d: %s", code, said)
	}
}
