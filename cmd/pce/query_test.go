package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pce-engine/pce/run"
)

// answer runs a command that must succeed and returns the numbers that it
// prints, one of each line.
func answer(t *testing.T, input string, args ...string) []float64 {
	t.Helper()
	var out, errs bytes.Buffer
	if code := Run(t.Context(), args, nil, strings.NewReader(input), &out, &errs); code != 0 {
		t.Fatalf("%v: exit %d: %s", args, code, &errs)
	}
	var all []float64
	for line := range strings.Lines(out.String()) {
		x, err := strconv.ParseFloat(strings.TrimSpace(line), 64)
		if err != nil {
			t.Fatalf("%v printed %q", args, line)
		}
		all = append(all, x)
	}
	return all
}

// TestMarginalByName asks a trained model about some of its columns, by standard
// input, and wants the sum over the others. The file of the training marks missing
// cells in its own way, which the model keeps.
func TestMarginalByName(t *testing.T) {
	t.Chdir(t.TempDir())
	cities, pets := []string{"Köln", "Paris", "Rom"}, []string{"cat", "dog"}
	rng := rand.New(rand.NewPCG(1, 2))
	var rows strings.Builder
	rows.WriteString("pet;age;city\n")
	for range 400 {
		c := rng.IntN(len(cities))
		age := fmt.Sprint(38 + rng.IntN(3) + c)
		if rng.IntN(8) == 0 {
			age = "unknown"
		}
		fmt.Fprintf(&rows, "%s;%s;%s\n", pets[rng.IntN(2)*c/2], age, cities[c])
	}
	if err := os.WriteFile("train.csv", []byte(rows.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	runJSON(t, "train", "--config", "preset:hclt", "--set", "data.train=train.csv", "--set", "data.valid=", "--set", "data.test=",
		"--set", "data.missing=unknown", "--set", "model.latents=4", "--set", "train.epochs=3", "--set", "train.batch_size=64", "--out", "run", "--threads", "1")
	query := []string{"query", "loglik", "--model", "run/model.safetensors", "--data", "-"}

	got := answer(t, "age,city\n40,Paris\nunknown,Paris\nNA,Rom\n", query...)
	var full strings.Builder
	full.WriteString("city,pet,age\n")
	for _, city := range []string{"Paris", "Rom"} {
		for _, pet := range pets {
			for age := range 43 {
				fmt.Fprintf(&full, "%s,%s,%d\n", city, pet, age)
			}
		}
	}
	joint := answer(t, full.String(), query...)
	want := make([]float64, 3)
	for i, ll := range joint {
		p := math.Exp(ll)
		switch {
		case i >= 2*43:
			want[2] += p
		default:
			want[1] += p
			if i%43 == 40 {
				want[0] += p
			}
		}
	}
	for i := range want {
		if !(math.Abs(got[i]-math.Log(want[i])) < 1e-5) {
			t.Errorf("row %d: %v, the sum over the other columns gives %v", i, got[i], math.Log(want[i]))
		}
	}

	var out, errs bytes.Buffer
	if code := Run(t.Context(), query, nil, strings.NewReader("age,town\n40,Paris\n"), &out, &errs); code != exitData || !strings.Contains(errs.String(), `-:1:2: the header has "town"`) {
		t.Errorf("an unknown column: exit %d: %s", code, &errs)
	}
}

// TestEvidenceComesBack completes rows whose cells are written in ways that a
// program would not choose, and wants them back as they are.
func TestEvidenceComesBack(t *testing.T) {
	t.Chdir(t.TempDir())
	rng := rand.New(rand.NewPCG(5, 2))
	var rows strings.Builder
	rows.WriteString("time,level,kind\n")
	for i := range 300 {
		fmt.Fprintf(&rows, "%d,%.3f,%s\n", 1_700_000_000+i, 1e6*rng.Float64(), []string{"a b", "c,d"}[i%2])
	}
	train := strings.ReplaceAll(rows.String(), "c,d", `"c,d"`)
	if err := os.WriteFile("train.csv", []byte(train), 0o600); err != nil {
		t.Fatal(err)
	}
	runJSON(t, "train", "--config", "preset:hclt", "--set", "data.train=train.csv", "--set", "data.valid=", "--set", "data.test=",
		"--set", "model.latents=2", "--set", "train.epochs=1", "--out", "run", "--threads", "1")
	run := func(input string) string {
		var out, errs bytes.Buffer
		if code := Run(t.Context(), []string{"query", "sample", "--model", "run/model.safetensors", "--given", "-"}, nil, strings.NewReader(input), &out, &errs); code != 0 {
			t.Fatalf("exit %d: %s", code, &errs)
		}
		return out.String()
	}
	if got := run(train); got != strings.TrimPrefix(train, "time,level,kind\n") {
		t.Errorf("complete rows come back as %.200q", got)
	}
	got := strings.Split(run("kind,level\n\"c,d\",1000000\na b,+1e6\nNA,0.10\n"), "\n")
	for i, want := range []string{`,1000000,"c,d"`, ",+1e6,a b", ",0.10,"} {
		cells := strings.SplitN(got[i], ",", 2)
		x, err := strconv.ParseFloat(cells[0], 64)
		if !strings.Contains(got[i], want) || err != nil || !(math.Abs(x-1.70000015e9) < 1e4) {
			t.Errorf("row %d is completed as %q, want it to have %q", i, got[i], want)
		}
	}
}

// TestInfoListsQueries wants info to name the commands of query, all of them and
// nothing else.
func TestInfoListsQueries(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.txt")
	if err := os.WriteFile(path, []byte("circuit 1\na = input x0 bernoulli 0.3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var info struct{ Queries []run.QueryInfo }
	var out, errs bytes.Buffer
	if code := Run(t.Context(), []string{"info", path, "--json"}, nil, nil, &out, &errs); code != 0 {
		t.Fatalf("exit %d: %s", code, &errs)
	}
	if err := json.Unmarshal(out.Bytes(), &info); err != nil {
		t.Fatal(err)
	}
	var listed, commands []string
	for _, q := range info.Queries {
		listed = append(listed, q.Name)
		if !q.Allowed || !q.Exact {
			t.Errorf("%+v of a circuit that every query can be asked", q)
		}
	}
	for _, c := range testApp().queryCommand().Commands() {
		commands = append(commands, c.Name())
	}
	slices.Sort(listed)
	slices.Sort(commands)
	if len(commands) == 0 || !slices.Equal(listed, commands) {
		t.Errorf("info lists %q, the commands of query are %q", listed, commands)
	}
}

// TestLeafOfColumn sets leaves of columns by --set, whose names have case and dots,
// and continues with the config that the run leaves.
func TestLeafOfColumn(t *testing.T) {
	t.Chdir(t.TempDir())
	rng := rand.New(rand.NewPCG(5, 2))
	rows := "Income,Wealth.Net,Size\n"
	for range 200 {
		rows += fmt.Sprintf("%v,%v,%v\n", math.Exp(rng.NormFloat64()), math.Exp(9+rng.NormFloat64()), rng.Float64())
	}
	if err := os.WriteFile("train.csv", []byte(rows), 0o600); err != nil {
		t.Fatal(err)
	}
	columns := "data.columns=[{name: Income, leaf: {type: log-normal}}, {name: Wealth.Net, leaf: {type: log-normal, min_sigma: 0.1}}, {name: Size, leaf: {type: histogram, edges: [0, 0.25, 1], outside: 0.001}}]"
	args := []string{"--set", "train.epochs=2", "--set", "model.latents=2", "--threads", "1"}
	first := runJSON(t, append([]string{"train", "--config", "preset:hclt", "--set", "data.train=train.csv", "--set", "data.valid=", "--set", "data.test=train.csv", "--set", columns, "--out", "run"}, args...)...)
	again := runJSON(t, "train", "--config", "run/config.yaml", "--out", "again")
	if a, b := number(t, first, "test_ll"), number(t, again, "test_ll"); a != b {
		t.Errorf("test ll %v, and %v by config.yaml", a, b)
	}
	ll := answer(t, "Size\n0.1\n0.9\n3\n", "query", "loglik", "--model", "run/model.safetensors", "--data", "-")
	if mass := math.Exp(ll[0])*0.25 + math.Exp(ll[1])*0.75; !(math.Abs(mass-1) < 1e-5) || !(math.Abs(ll[2]-math.Log(0.001)) < 1e-9) {
		t.Errorf("log densities %v: mass %v", ll, mass)
	}
	for _, args := range [][]string{
		{"query", "sample", "--model", "run/model.safetensors", "-n", "50"},
		{"eval", "--model", "run/model.safetensors", "--data", "train.csv", "--device", "emulator"},
	} {
		var out, errs bytes.Buffer
		if code := Run(t.Context(), args, nil, nil, &out, &errs); code != 0 {
			t.Errorf("%v: exit %d: %s", args, code, &errs)
		}
	}
}

// TestDefaults trains on dna, of few rows and many columns, with default settings,
// and wants nearly what the preset reaches.
func TestDefaults(t *testing.T) {
	dir, err := filepath.Abs("../../../shared/data/density/dna")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("no data: %v", err)
	}
	t.Chdir(t.TempDir())
	if err := os.WriteFile("own.yaml", []byte("name: own\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"train", "--config", "own.yaml", "--out", "run"}
	for _, split := range []string{"train", "valid", "test"} {
		args = append(args, "--set", fmt.Sprintf("data.%s=%s/dna.%s.data.gz", split, dir, split))
	}
	const preset = -79.72
	if ll := number(t, runJSON(t, args...), "test_ll"); !(ll > preset-0.5) {
		t.Errorf("test ll %v, the preset has %v", ll, preset)
	}
}
