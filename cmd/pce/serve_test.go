package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pce-engine/pce/run"
)

// serving starts the command serve and returns where it answers. stop ends it as
// SIGTERM does, and returns its exit code and what it said.
func serving(t *testing.T, env []string, args ...string) (url string, stop func() (int, string)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	var errs bytes.Buffer
	code := make(chan int, 1)
	go func() {
		code <- Run(ctx, append([]string{"serve", "--addr", "127.0.0.1:0"}, args...), env, strings.NewReader(""), w, &errs)
		w.Close()
	}()
	line, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		cancel()
		t.Fatalf("serve %v: exit %d: %s", args, <-code, &errs)
	}
	return strings.TrimSpace(line), func() (int, string) {
		http.DefaultClient.CloseIdleConnections() // which the server would give time to ask
		cancel()
		return <-code, errs.String()
	}
}

// post sends JSON and returns the status and the answer.
func post(t *testing.T, url, body string) (int, []byte) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "POST", url, strings.NewReader(body))
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
	return w.StatusCode, text
}

// numbersOf returns the contents of the first output of an answer.
func numbersOf(t *testing.T, status int, text []byte) []float64 {
	t.Helper()
	var answer struct{ Outputs []struct{ Data []any } }
	if err := json.Unmarshal(text, &answer); err != nil || status != 200 {
		t.Fatalf("%d %s: %v", status, text, err)
	}
	var out []float64
	for _, x := range answer.Outputs[0].Data {
		f, ok := x.(float64)
		if !ok {
			f = map[string]float64{"NaN": math.NaN(), "-Infinity": math.Inf(-1)}[x.(string)]
		}
		out = append(out, f)
	}
	return out
}

// mixedModel trains a model with labels, numbers as labels, a continuous column and
// missing cells, and returns rows of its data.
func mixedModel(t *testing.T) (rows []string) {
	t.Helper()
	rng := rand.New(rand.NewPCG(5, 6))
	for range 300 {
		c := rng.IntN(3)
		size := fmt.Sprint(10 * (1 + rng.IntN(3)))
		if rng.IntN(6) == 0 {
			size = ""
		}
		rows = append(rows, fmt.Sprintf("%s,%s,%.3f,%d", []string{"low", "mid", "high"}[c], size, rng.NormFloat64()+float64(c), rng.IntN(2)))
	}
	text := "level,size,score,flag\n" + strings.Join(rows, "\n") + "\n"
	if err := os.WriteFile("train.csv", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	runJSON(t, "train", "--config", "preset:hclt", "--set", "data.train=train.csv", "--set", "data.valid=", "--set", "data.test=",
		"--set", "model.latents=4", "--set", "train.epochs=2", "--set", "train.batch_size=64", "--set", "data.columns=[{name: size, type: label}]", "--out", "run", "--threads", "1")
	return rows
}

// TestServe asks a server what query asks a model, and wants the same bits.
func TestServe(t *testing.T) {
	t.Chdir(t.TempDir())
	rows := mixedModel(t)[:40]
	model := filepath.Join("run", "model.safetensors")
	loglik := answer(t, "level,size,score,flag\n"+strings.Join(rows, "\n")+"\n", "query", "loglik", "--model", model, "--data", "-")
	url, stop := serving(t, nil, "--model", "mixed="+model)

	var texts, numbers []string
	for _, row := range rows {
		cells := strings.Split(row, ",")
		for _, c := range cells {
			texts = append(texts, fmt.Sprintf("%q", c))
		}
		// Numbers are codes of a column whose labels are text, labels that are numbers,
		// and values; null is a missing cell. Codes follow the metadata's list of labels.
		cells[0] = fmt.Sprint(codeOf(t, url, cells[0]))
		for _, c := range cells {
			if c == "" {
				c = "null"
			}
			numbers = append(numbers, c)
		}
	}
	for _, in := range []string{
		fmt.Sprintf(`"BYTES","shape":[%d,4],"data":[%s]`, len(rows), strings.Join(texts, ",")),
		fmt.Sprintf(`"FP64","shape":[%d,4],"data":[%s]`, len(rows), strings.Join(numbers, ",")),
	} {
		status, text := post(t, url+"/v2/models/mixed/infer", `{"inputs":[{"name":"x","datatype":`+in+`}],"outputs":[{"name":"log_prob","parameters":{"datatype":"FP64"}}]}`)
		got := numbersOf(t, status, text)
		for i, want := range loglik {
			if got[i] != want {
				t.Errorf("row %d: %v over REST, %v from query loglik", i, got[i], want)
			}
		}
	}

	// Samples are those of query sample with the same seed: two of each row.
	given := "level,size,score,flag\nmid,,,1\n,20,,\n"
	if err := os.WriteFile("given.csv", []byte(given), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	if code := Run(t.Context(), []string{"query", "sample", "--model", model, "--given", "given.csv", "-n", "2", "--seed", "9"}, nil, strings.NewReader(""), &out, &errs); code != 0 {
		t.Fatal(&errs)
	}
	status, text := post(t, url+"/v2/models/mixed/infer", `{"parameters":{"query":"sample","seed":9,"n_samples":2},
		"inputs":[{"name":"x","datatype":"BYTES","shape":[2,4],"data":["mid","","","1","","20","",""]}]}`)
	drawn := numbersOf(t, status, text)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 4 || len(drawn) != 16 {
		t.Fatalf("%s\n%v", &out, drawn)
	}
	for i, line := range lines {
		var level string
		var size, score, flag float64
		if _, err := fmt.Sscanf(strings.ReplaceAll(line, ",", " "), "%s %g %g %g", &level, &size, &score, &flag); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		want := []float64{codeOf(t, url, level), size, score, flag}
		for v, x := range want {
			// What query sample writes of a score is the shortest number that is stored the
			// same: it may differ in the last digits of a float32.
			if got := drawn[4*i+v]; !(got == x || v == 2 && math.Abs(got-x) <= 1e-6*math.Abs(x)) {
				t.Errorf("sample %d, column %d: %v over REST, %v from query sample", i, v, got, x)
			}
		}
	}
	http.DefaultClient.CloseIdleConnections()
	if code, said := stop(); code != 0 || strings.Contains(said, "ERROR") {
		t.Errorf("exit %d: %s", code, said)
	}
}

// codeOf finds the code of a label in the metadata of the model.
func codeOf(t *testing.T, url, label string) float64 {
	t.Helper()
	r, err := http.Get(url + "/v2/models/mixed")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	var info struct{ Columns []struct{ Labels []string } }
	if err := json.NewDecoder(r.Body).Decode(&info); err != nil {
		t.Fatal(err)
	}
	for code, l := range info.Columns[0].Labels {
		if l == label {
			return float64(code)
		}
	}
	t.Fatalf("no label %q in %v", label, info.Columns[0].Labels)
	return 0
}

// TestServedMemory wants a small model to count with what it takes: what the process takes counts for none, and was that of 60 small
// models in a gigabyte.
func TestServedMemory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rain.txt")
	if err := os.WriteFile(path, []byte("circuit 1\nrain = input x0 bernoulli 0.3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var plans [2]int64
	for i := range plans {
		l := &modelLoader{run: run.Options{Device: "cpu", Threads: 1, Engines: i + 1}, notes: io.Discard}
		bytes, err := l.Plan(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		plans[i] = bytes
		m, err := l.Open(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		if m.Bytes() != bytes {
			t.Errorf("an open model of %d engines counts with %d bytes, its plan is %d", i+1, m.Bytes(), bytes)
		}
		m.Close()
	}
	if plans[0] < 1<<14 || plans[0] > 1<<20 || plans[1] != 2*plans[0] {
		t.Errorf("one engine of a circuit of one leaf takes %d bytes, two take %d", plans[0], plans[1])
	}
}

// TestServeRefuses tries command lines and models that cannot be served.
func TestServeRefuses(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{"bad.safetensors": "no model", "empty": "", "secret": "s\n", "rain.txt": "circuit 1\nrain = input x0 bernoulli 0.3\n",
		"wide.txt": "circuit 1\nwide = input x0 categorical categories=4000" + strings.Repeat(" 0.00025", 4000) + "\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		args []string
		code int
		want string
	}{
		{nil, exitUsage, "no --model"},
		{[]string{"--model", "x.safetensors"}, exitUsage, "want NAME=PATH"},
		{[]string{"--model", "a/b=x"}, exitUsage, `model name "a/b"`},
		{[]string{"--model", "a=x", "--model", "a=y"}, exitUsage, `two models are named "a"`},
		{[]string{"--model", "stats=x"}, exitUsage, `a model is named "stats"`},
		{[]string{"--model", "a="}, exitUsage, `model "a" has no path`},
		{[]string{"--model", "a=none.safetensors"}, exitData, "none.safetensors"},
		{[]string{"--model", "a=bad.safetensors"}, exitData, `model "a" cannot be loaded`},
		{[]string{"--model", "a=x", "--addr", "0.0.0.0:0"}, exitUsage, "is not loopback"},
		{[]string{"--model", "a=x", "--addr", "nowhere"}, exitUsage, "--addr nowhere"},
		{[]string{"--model", "a=x", "--token-file", "empty"}, exitUsage, "--token-file empty is empty"},
		{[]string{"--model", "a=x", "--token-file", "none"}, exitData, "none"},
		{[]string{"--model", "a=x", "--tls-cert", "empty"}, exitUsage, "--tls-cert"},
		{[]string{"--model", "a=x", "--max-body", "0"}, exitUsage, "--max-body 0"},
		{[]string{"--model", "a=x", "--max-memory", "-1"}, exitUsage, "--max-memory -1"},
		{[]string{"--model", "a=wide.txt", "--max-memory", "1"}, exitMachine, "MiB, models may take 1; raise the limit"},
		{[]string{"--model", "a=x", "--max-memory", "9223372036854775807"}, exitUsage, "want 0 to 1099511627776 MiB"},
		{[]string{"--model", "a=x", "--profile", "none"}, exitUsage, "--profile is for --schedule"},
		{[]string{"--model", "a=rain.txt", "--schedule", "preset:padded"}, exitUsage, "every --model is a circuit"},
		{[]string{"--model", "a=x", "--parallel", "0"}, exitUsage, "--parallel 0"},
		{[]string{"--model", "a=x", "--parallel", "1025"}, exitUsage, "--parallel 1025"},
		{[]string{"--model", "a=x", "--max-connections", "0"}, exitUsage, "--max-connections 0"},
		{[]string{"--model", "a=x", "--max-batch-rows", "-1"}, exitUsage, "--max-batch-rows -1"},
	} {
		var out, errs bytes.Buffer
		args := append([]string{"serve", "--addr", "127.0.0.1:0"}, tc.args...)
		if code := Run(t.Context(), args, nil, strings.NewReader(""), &out, &errs); code != tc.code || !strings.Contains(errs.String(), tc.want) || out.Len() > 0 {
			t.Errorf("%v: exit %d, want %d: %s%s", tc.args, code, tc.code, &errs, &out)
		}
	}
}
