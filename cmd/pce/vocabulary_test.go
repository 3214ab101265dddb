package main

import (
	"bytes"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/pce-engine/pce/run"
)

// vocabulary is a tied HMM over a vocabulary of 151,936 tokens.
const vocabulary = `
model: {structure: hmm, latents: 3}
data: {train: "builtin:random?rows=32&vars=4&categories=151936"}
train: {epochs: 1, batch_size: 16}
`

// TestVocabulary trains a vocabulary that 16 bits do not hold, on a CPU and on the
// emulator, and reads the model again: for queries, and to train it further.
func TestVocabulary(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("hmm.yaml", []byte(vocabulary), 0o644); err != nil {
		t.Fatal(err)
	}
	info := runJSON(t, "info", "--config", "hmm.yaml")
	// 3 latents have a distribution of tokens and one of successors each, and a start.
	if got, want := number(t, info, "parameters"), float64(3*151936+3*3+3); got != want {
		t.Errorf("%v parameters, want %v", got, want)
	}
	const rows = "151935,?,65536,131071\n?,?,?,?\n0,0,0,0\n"
	if err := os.WriteFile("rows.csv", []byte(rows), 0o644); err != nil {
		t.Fatal(err)
	}
	lls := map[string]string{}
	for _, device := range []string{"cpu", "emulator"} {
		end := runJSON(t, "train", "--config", "hmm.yaml", "--out", device, "--device", device, "--threads", "1")
		// Four random tokens are 4·ln 151,936 = 47.7 nats; 128 of them learned by heart, 19.4.
		if ll := number(t, end, "train_ll"); !(ll > -4*math.Log(151936) && ll < -4*math.Log(32*4)) || number(t, end, "steps") != 2 {
			t.Errorf("%s: train_ll %v after %v steps", device, ll, end["steps"])
		}
		var out, errs bytes.Buffer
		if code := Run(t.Context(), []string{"query", "loglik", "--model", device + "/" + run.ModelFile, "--data", "rows.csv"}, nil, nil, &out, &errs); code != 0 {
			t.Fatalf("exit %d: %s", code, &errs)
		}
		lls[device] = out.String()
		lines := strings.Split(out.String(), "\n")
		if len(lines) != 4 {
			t.Fatalf("%s: log-likelihoods %q", device, lines)
		}
		if ll, err := strconv.ParseFloat(lines[1], 64); err != nil || !(math.Abs(ll) <= 1e-5) {
			t.Errorf("%s: a log-likelihood of %s without evidence, want 0", device, lines[1])
		}
	}
	runJSON(t, "train", "--config", "hmm.yaml", "--out", "again", "--set", "model.structure=file", "--set", "model.file=cpu/"+run.ModelFile, "--set", "train.epochs=0")
	var out, errs bytes.Buffer
	if code := Run(t.Context(), []string{"query", "loglik", "--model", "again/" + run.ModelFile, "--data", "rows.csv"}, nil, nil, &out, &errs); code != 0 || out.String() != lls["cpu"] {
		t.Errorf("exit %d: a model that was read and written says %q of rows, want %q (%s)", code, out.String(), lls["cpu"], &errs)
	}
	if err := os.WriteFile("rows.csv", []byte("151936,0,0,0\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	code := Run(t.Context(), []string{"query", "loglik", "--model", "cpu/" + run.ModelFile, "--data", "rows.csv"}, nil, nil, &out, &errs)
	if code != 3 || !strings.Contains(errs.String(), "rows.csv:1:1: 151936 is out of range for column 1, whose categories are 0 to 151935") {
		t.Errorf("exit %d: %s", code, &errs)
	}
}
