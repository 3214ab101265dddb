package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pce-engine/pce/kernels/cpu"
)

// discreteRows returns seeded rows of six columns that depend on each other, as
// the lines of a file.
func discreteRows(n int, seed uint64) []string {
	rng := rand.New(rand.NewPCG(seed, 1))
	lines := make([]string, n)
	for i := range lines {
		x := rng.IntN(3)
		cells := make([]string, 6)
		for k := range cells {
			if rng.IntN(4) == 0 {
				x = rng.IntN(3)
			}
			cells[k] = fmt.Sprint(x)
		}
		lines[i] = strings.Join(cells, ",")
	}
	return lines
}

func writeLines(t *testing.T, path string, lines []string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}

// stopAfter makes a writer cancel a context once it was given so many times a
// text that is logged.
type stopAfter struct {
	io.Writer
	text   string
	times  int
	cancel func()
}

func (s *stopAfter) Write(p []byte) (int, error) {
	if s.times -= bytes.Count(p, []byte(s.text)); s.times <= 0 {
		s.cancel()
	}
	return s.Writer.Write(p)
}

// onFiles are the arguments of a short run on train.csv and valid.csv.
var onFiles = []string{
	"--config", "preset:hclt", "--set", "name=files", "--set", "model.latents=3", "--threads", "1", "--set", "data.image=[]",
	"--set", "data.train=train.csv", "--set", "data.valid=valid.csv", "--set", "data.test=", "--set", "train.patience=50",
	"--set", "train.epochs=6", "--set", "train.batch_size=64", "--set", "train.samples=0",
	"--set", "train.pseudocount=0.1",
}

// interrupted trains on files until two epochs are done, and returns the rows.
func interrupted(t *testing.T) (train, valid []string) {
	t.Helper()
	t.Chdir(t.TempDir())
	train, valid = discreteRows(300, 1), discreteRows(60, 2)
	writeLines(t, "train.csv", train)
	writeLines(t, "valid.csv", valid)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out, errs bytes.Buffer
	code := Run(ctx, append([]string{"train", "--out", "run"}, onFiles...), nil, nil, &out, &stopAfter{&errs, "epoch done", 2, cancel})
	if code != exitCheckpointed {
		t.Fatalf("exit %d, want %d: %s", code, exitCheckpointed, &errs)
	}
	return train, valid
}

// resume resumes a copy of the run, and returns the code, the log and the copy.
func resume(t *testing.T, args ...string) (code int, log, dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "run")
	if err := os.CopyFS(dir, os.DirFS("run")); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	code = Run(t.Context(), append([]string{"train", "--resume", "--config", filepath.Join(dir, "config.yaml"), "--out", dir}, args...), nil, nil, &out, &errs)
	return code, errs.String(), dir
}

// TestResumeNamesChanges resumes a run with other rows, settings or kernels: it
// ends with exit code 3 and names each of them with both values, and nothing on
// the disk changes; --allow-changes continues, and config.yaml keeps the history.
func TestResumeNamesChanges(t *testing.T) {
	t.Setenv("PCE_CPU", "") // the best kernels, whatever the other tests are run with
	train, valid := interrupted(t)
	sorted := slices.Sorted(slices.Values(train))
	edited := slices.Clone(train)
	edited[137] = "0,1,2,0,1,2"
	elsewhere := slices.Clone(valid)
	elsewhere[7] = "0,1,2,0,1,2"
	kernelPaths := cpu.KernelPaths()
	best, other := kernelPaths[0], kernelPaths[len(kernelPaths)-1]
	for _, tc := range []struct {
		name         string
		train, valid []string // nil: as they were
		path         string   // kernels; "": the best
		set          []string
		want         []string // parts of the line
	}{
		{name: "an edited row", train: edited, want: []string{"training rows: 300 (digest ", "now 300 (digest "}},
		{name: "sorted rows", train: sorted, want: []string{"training rows: 300 (digest ", "now 300 (digest "}},
		{name: "one row fewer", train: train[:299], want: []string{"training rows: 300 (digest ", "now 299 (digest "}},
		{name: "one row more", train: append(slices.Clone(train), train[0]), want: []string{"training rows: 300 (digest ", "now 301 (digest "}},
		{name: "another validation row", valid: elsewhere, want: []string{"validation rows: 60 (digest ", "now 60 (digest "}},
		{name: "pseudocount", set: []string{"train.pseudocount=0.5"}, want: []string{"train.pseudocount: 0.1, now 0.5"}},
		{name: "schedule", set: []string{"train.step_size.schedule=constant"}, want: []string{"train.step_size.schedule: cosine, now constant"}},
		{name: "step size", set: []string{"train.step_size.to=0.5"}, want: []string{"train.step_size.to: 0.02, now 0.5"}},
		{name: "rule", set: []string{"train.rule=fullbatch-em"}, want: []string{"train.rule: minibatch-em, now fullbatch-em"}},
		{name: "batch size", set: []string{"train.batch_size=32"}, want: []string{"train.batch_size: 64, now 32"}},
		{name: "shards", set: []string{"train.shard_rows=16"}, want: []string{"train.shard_rows: 512, now 16"}},
		{name: "precision", set: []string{"precision=fp32"}, want: []string{"precision: mixed, now fp32"}},
		{name: "seed", set: []string{"seed=43"}, want: []string{"seed: 42, now 43"}},
		{name: "a column typed as inference does", set: []string{"data.columns=[{name: '2', type: discrete}]"}, want: []string{"data.columns: [], now [{name: "}},
		{name: "kernels", path: other, want: []string{"kernel path: " + best + ", now " + other}},
		{
			name: "several", train: edited, set: []string{"train.pseudocount=0.5", "train.epochs=9"}, path: other,
			want: []string{"training rows: 300 (digest ", "train.pseudocount: 0.1, now 0.5", "kernel path: "},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if testing.Short() && len(tc.want) == 1 && len(tc.set) == 1 && tc.name != "pseudocount" {
				t.Skip("resumes the run twice for one more setting; run without -short")
			}
			if tc.path != "" {
				if best == other {
					t.Skip("this machine has one kernel path")
				}
				t.Setenv("PCE_CPU", tc.path)
			}
			if tc.train != nil {
				writeLines(t, "train.csv", tc.train)
				defer writeLines(t, "train.csv", train)
			}
			if tc.valid != nil {
				writeLines(t, "valid.csv", tc.valid)
				defer writeLines(t, "valid.csv", valid)
			}
			var args []string
			for _, s := range tc.set {
				args = append(args, "--set", s)
			}
			code, log, dir := resume(t, args...)
			line := log[strings.LastIndex(strings.TrimSuffix(log, "\n"), "\n")+1:]
			if code != exitData || !strings.HasPrefix(line, "em: the run has changed since ") || !strings.Contains(line, "--allow-changes") {
				t.Errorf("exit %d, want %d and the changes: %s", code, exitData, log)
			}
			for _, want := range tc.want {
				if !strings.Contains(line, want) {
					t.Errorf("no %q in %s", want, line)
				}
			}
			if strings.Contains(line, "epochs:") {
				t.Errorf("what is free to change is held against the run: %s", line)
			}
			sameFiles(t, "run", dir)

			code, log, dir = resume(t, append(args, "--allow-changes")...)
			if code != exitOK {
				t.Fatalf("with --allow-changes: exit %d: %s", code, log)
			}
			text, err := os.ReadFile(filepath.Join(dir, "config.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range append(tc.want, "# history: after 2 epochs and ") {
				if !strings.Contains(string(text), want) || !strings.Contains(log, strings.TrimPrefix(want, "# history: after 2 epochs and ")) {
					t.Errorf("no %q in config.yaml and the log:\n%s\n%s", want, text, log)
				}
			}
			// What it trained with holds from now on, and the history stays.
			var out, errs bytes.Buffer
			if code := Run(t.Context(), []string{"train", "--resume", "--out", dir}, nil, nil, &out, &errs); code != exitOK {
				t.Errorf("resumed once more: exit %d: %s", code, &errs)
			}
			if again, err := os.ReadFile(filepath.Join(dir, "config.yaml")); err != nil || !bytes.Equal(again, text) {
				t.Errorf("config.yaml is now (%v)\n%s, was\n%s", err, again, text)
			}
		})
	}
}

// TestInterruptedResume interrupts a run that is resumed with other settings, before its rows are read and while it trains: the
// command that continues it has these settings, or the run's own config has. With --allow-changes it has that flag too.
func TestInterruptedResume(t *testing.T) {
	interrupted(t)
	args := append([]string{"train", "--out", "run", "--resume"}, onFiles...)
	for _, tc := range []struct{ at, more, want string }{
		{"run started", "--set=train.epochs=9", "--set=train.epochs=9\n"},
		{"run started", "--allow-changes", "--allow-changes\n"},
		{"run started", "--verbose", "pce train --resume --out run\n"}, // the settings are those of the run
		{"epoch done", "--set=train.epochs=9", "pce train --resume --out run\n"},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		var out, errs bytes.Buffer
		code := Run(ctx, append(args, tc.more), nil, nil, &out, &stopAfter{&errs, tc.at, 1, cancel})
		if code != exitCheckpointed || !strings.HasSuffix(errs.String(), tc.want) {
			t.Errorf("interrupted at %q with %s: exit %d: %s; want a command that ends with %q", tc.at, tc.more, code, &errs, tc.want)
		}
		cancel()
	}
}

// TestResumeCopied resumes by the config of a copy of a run, which names the directory of the first: it is refused, with the first run
// there or gone, unless --out or a setting says which of them is meant.
func TestResumeCopied(t *testing.T) {
	interrupted(t)
	if err := os.CopyFS("copy", os.DirFS("run")); err != nil {
		t.Fatal(err)
	}
	metrics := readFile(t, "run", "metrics.jsonl")
	resumed := []string{"train", "--resume", "--config", "copy/config.yaml"}
	refused(t, exitUsage, "add --out copy to continue it where it is, or --out run", resumed...)
	if !bytes.Equal(readFile(t, "run", "metrics.jsonl"), metrics) {
		t.Error("the run that was copied was continued")
	}
	if err := os.Rename("run", "kept"); err != nil {
		t.Fatal(err)
	}
	refused(t, exitUsage, "add --out copy", resumed...)
	if _, err := os.Stat("run"); err == nil {
		t.Error("a run begins where the copied one was")
	}
	if err := os.Rename("kept", "run"); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{append(resumed, "--out", "copy"), {"train", "--resume", "--config", "run/config.yaml"}, append(resumed, "--set", "output=third")} {
		if end := runJSON(t, args...); number(t, end, "epochs") != 6 {
			t.Errorf("%q ends with %v", args, end)
		}
	}
}

// TestResumeDamagedCircuit resumes a run whose circuit is damaged or gone: it is
// made again of the rows, and written anew.
func TestResumeDamagedCircuit(t *testing.T) {
	interrupted(t)
	_, _, whole := resume(t)
	name := filepath.Join("checkpoints", "circuit.gz")
	good := readFile(t, "run", name)
	for what, spoil := range map[string]func() error{
		"gone": func() error { return os.Remove(filepath.Join("run", name)) },
		"cut":  func() error { return os.WriteFile(filepath.Join("run", name), good[:len(good)/2], 0o644) },
		"none": func() error { return os.WriteFile(filepath.Join("run", name), []byte("circuit"), 0o644) },
	} {
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		code, log, dir := resume(t)
		if code != exitOK || strings.Contains(log, "damaged") != (what != "gone") {
			t.Errorf("%s: exit %d: %s", what, code, log)
		}
		if !bytes.Equal(readFile(t, dir, name), good) || !bytes.Equal(readFile(t, dir, "model.safetensors"), readFile(t, whole, "model.safetensors")) {
			t.Errorf("%s: another circuit or model", what)
		}
	}
}

// TestResumeFile stops and resumes the training of a circuit from a file, which has
// a node that the root cannot reach: the node keeps its parameters.
func TestResumeFile(t *testing.T) {
	t.Chdir(t.TempDir())
	text, nodes := "circuit 6\n", ""
	for v := range 6 {
		text += fmt.Sprintf("a%d = input[2] x%[1]d categorical categories=3 0.2 0.3 0.5 / 0.5 0.4 0.1\n", v)
		nodes += fmt.Sprintf(" a%d", v)
	}
	text += "p = product" + nodes + "\ns = sum p : 0.4 0.6\nalone = input x0 categorical categories=3 0.1 0.2 0.7\nroot s\n"
	if err := os.WriteFile("c.txt", []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	writeLines(t, "train.csv", discreteRows(100, 1))
	writeLines(t, "valid.csv", discreteRows(30, 2))
	args := append(slices.Clone(onFiles), "--set", "model.structure=file", "--set", "model.file=c.txt", "--out")
	runJSON(t, append(append([]string{"train"}, args...), "whole")...)
	runJSON(t, append(append([]string{"train", "--set", "train.steps=3"}, args...), "broken")...)
	runJSON(t, append(append([]string{"train", "--resume"}, args...), "broken")...)
	if !bytes.Equal(readFile(t, "whole", "model.safetensors"), readFile(t, "broken", "model.safetensors")) {
		t.Error("a run that was resumed has another model")
	}
}

// TestResumeOtherCircuit resumes a run with a setting that makes another circuit:
// its parameters do not fit, so --allow-changes does not help.
func TestResumeOtherCircuit(t *testing.T) {
	interrupted(t)
	for set, want := range map[string]string{
		"model.latents=4":         "model.latents: 3, now 4",
		"model.structure=rat-spn": "model.structure: hclt, now rat-spn", "compile.block_size=8": "compile.block_size: 0, now 8",
		"data.columns=[{name: '2', type: continuous}]":                       `data.columns: [], now [{name: "2", type: continuous`,
		"data.columns=[{name: '2', leaf: {type: histogram}}]":                `data.columns: [], now [{name: "2", type: "", categories: 0, leaf: {type: histogram`,
		"data.columns=[{name: '2', type: continuous, leaf: {min_sigma: 3}}]": `data.columns: [], now [{name: "2", type: continuous`,
	} {
		for _, allow := range []bool{false, true} {
			args := []string{"--set", set}
			if allow {
				args = append(args, "--allow-changes")
			}
			code, log, dir := resume(t, args...)
			if code != exitData || !strings.Contains(log, want) || !strings.Contains(log, "the circuit differs") || strings.Contains(log, "panic") {
				t.Errorf("%v: exit %d, want %d and %q: %s", args, code, exitData, want, log)
			}
			sameFiles(t, "run", dir)
		}
	}
}

// TestResumeReadOtherwise resumes runs with another way to read the same cells: none of it may
// be taken for granted, because the rows are read as the kept circuit says. Without such a change
// the run continues, and its config gives the same model.
func TestResumeReadOtherwise(t *testing.T) {
	t.Chdir(t.TempDir())
	writeLines(t, "train.csv", discreteRows(60, 1))
	marked := discreteRows(60, 2)
	marked[7] = "1,-9,2,0,-9,1"
	writeLines(t, "marked.csv", marked)
	writeLines(t, "train.txt", []string{strings.Repeat("a cat and a dog ", 20)})
	for set, c := range map[string]struct{ structure, now, want string }{
		"data.image=[2,3]":       {"pd", "data.image=[3,2]", "data.image: [2, 3], now [3, 2]"},
		"data.missing=['-9']":    {"hclt", "data.missing=[]", "data.missing: [\"-9\"], now []"},
		"data.text.length=8":     {"hmm", "data.text.length=4", "data.text.length: 8, now 4"},
		"data.text.vocabulary=0": {"hmm", "data.text.vocabulary=3", "data.text.vocabulary: 0, now 3"},
		"data.text.unit=char":    {"hmm", "data.text.unit=word", "data.text.unit: char, now word"},
	} {
		t.Run(c.now, func(t *testing.T) {
			rows := "train.csv"
			if c.structure == "hmm" {
				rows = "train.txt"
			} else if c.structure == "hclt" {
				rows = "marked.csv"
			}
			out, args := t.TempDir(), append(slices.Clone(onFiles), "--set", "data.train="+rows, "--set", "data.valid=", "--set", "train.patience=0",
				"--set", "model.structure="+c.structure, "--set", "train.epochs=2", "--set", set, "--out")
			whole := filepath.Join(out, "whole")
			broken := filepath.Join(out, "broken")
			runJSON(t, append(append([]string{"train"}, args...), whole)...)
			runJSON(t, append(append([]string{"train", "--set", "train.steps=1"}, args...), broken)...)
			var stdout, errs bytes.Buffer
			resume := append(append([]string{"train", "--resume"}, args...), broken)
			if code := Run(t.Context(), append(resume, "--set", c.now), nil, nil, &stdout, &errs); code != exitData || !strings.Contains(errs.String(), c.want) {
				t.Errorf("exit %d, want %d and %q: %s", code, exitData, c.want, &errs)
			}
			runJSON(t, resume...)
			if !bytes.Equal(readFile(t, whole, "model.safetensors"), readFile(t, broken, "model.safetensors")) {
				t.Error("a run that was resumed has another model")
			}
		})
	}
}

// TestResumeLearned resumes a run of a learned circuit with other validation rows. They decide
// what is saved also without patience, so they are not free; where they are allowed, the start
// and the epochs so far are judged by them.
func TestResumeLearned(t *testing.T) {
	t.Chdir(t.TempDir())
	writeLines(t, "train.csv", discreteRows(60, 1))
	easy := make([]string, 40)
	for i := range easy {
		easy[i] = "1,1,1,1,1,1"
	}
	writeLines(t, "easy.csv", easy)
	writeLines(t, "valid.csv", discreteRows(60, 2))
	args := append(slices.Clone(onFiles), "--set", "model.structure=learnspn", "--set", "model.learnspn.min_rows=20", "--set", "train.patience=0", "--out", "run")
	first := runJSON(t, append(append([]string{"train"}, args...), "--set", "data.valid=easy.csv", "--set", "train.epochs=2")...)
	var out, errs bytes.Buffer
	resume := append([]string{"train", "--resume"}, args...)
	if code := Run(t.Context(), resume, nil, nil, &out, &errs); code != exitData || !strings.Contains(errs.String(), "validation rows: 40 (digest ") {
		t.Errorf("exit %d, want %d and the validation rows: %s", code, exitData, &errs)
	}
	out.Reset()
	errs.Reset()
	if code := Run(t.Context(), append(resume, "--allow-changes", "--json"), nil, nil, &out, &errs); code != exitOK || !strings.Contains(errs.String(), "judged by the new validation rows") {
		t.Errorf("exit %d: %s", code, &errs)
	}
	again := map[string]any{}
	if err := json.Unmarshal(out.Bytes(), &again); err != nil {
		t.Fatal(err)
	}
	least := math.Inf(-1)
	for line := range strings.Lines(string(readFile(t, "run", "metrics.jsonl"))) {
		m := struct {
			Epoch int     `json:"epoch"`
			Valid float64 `json:"valid_ll"`
		}{}
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(err)
		}
		if m.Epoch > 2 {
			least = max(least, m.Valid)
		}
	}
	if got := number(t, again, "valid_ll"); !(got >= least) || !(number(t, first, "valid_ll") > got) {
		t.Errorf("valid_ll %v after %v with other rows, and %v in some epoch since", got, first["valid_ll"], least)
	}
}

// sameFiles wants two directories to have the same files, but for locks.
func sameFiles(t *testing.T, a, b string) {
	t.Helper()
	list := func(dir string) (names []string) {
		err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			if err == nil && !d.IsDir() && d.Name() != ".lock" {
				rel, _ := filepath.Rel(dir, path)
				names = append(names, rel)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return names
	}
	names := list(a)
	if other := list(b); !slices.Equal(names, other) {
		t.Errorf("%s holds %v, %s %v", a, names, b, other)
		return
	}
	for _, name := range names {
		x, errX := os.ReadFile(filepath.Join(a, name))
		y, errY := os.ReadFile(filepath.Join(b, name))
		if errX != nil || errY != nil || !bytes.Equal(x, y) {
			t.Errorf("%s differs (%v, %v)", name, errX, errY)
		}
	}
}

// TestResumeFree resumes a run with other values of what does not change a step:
// it continues without further ado, and if the length stays, with the same bits.
func TestResumeFree(t *testing.T) {
	train, valid := interrupted(t)
	code, log, whole := resume(t)
	if code != exitOK || strings.Contains(log, "changed") {
		t.Fatalf("exit %d: %s", code, log)
	}
	text, err := os.ReadFile(filepath.Join(whole, "config.yaml"))
	if err != nil || bytes.Contains(text, []byte("# history")) {
		t.Errorf("a run without changes has a history (%v):\n%s", err, text)
	}
	writeLines(t, "again.csv", train)
	writeLines(t, "valid2.csv", valid[:30])
	for _, tc := range []struct {
		name, log string
		args      []string
		same      bool
	}{
		{name: "threads", args: []string{"--threads", "2"}, same: true},
		{name: "the file of the rows", args: []string{"--set", "data.train=again.csv"}, same: true},
		{name: "checkpoints", args: []string{"--set", "train.checkpoint.steps=2", "--set", "train.checkpoint.keep=5"}, same: true},
		{name: "samples", args: []string{"--set", "train.samples=9"}, same: true},
		{name: "patience", args: []string{"--set", "train.patience=40"}, same: true},
		{name: "device", args: []string{"--set", "device=cpu"}, same: true},
		{name: "cluster", args: []string{"--set", "cluster.workers=3"}, same: true},
		{name: "test rows", args: []string{"--set", "data.test=valid.csv"}, same: true},
		{name: "no validation", args: []string{"--set", "data.valid=", "--set", "train.patience=0"}},
		{name: "other rows that decide nothing", args: []string{"--set", "data.valid=valid2.csv", "--set", "train.patience=0"}, log: "validation rows: 60"},
		{name: "longer", args: []string{"--set", "train.epochs=8"}, log: "epochs raised from 6 to 8; the schedule runs over the new total"},
		{name: "shorter", args: []string{"--set", "train.epochs=3"}, log: "epochs lowered from 6 to 3"},
		{name: "steps", args: []string{"--set", "train.steps=12"}, log: "train.steps: 0, now 12"},
		{name: "finish", args: []string{"--set", "train.finish.epochs=2", "--set", "train.finish.pseudocount=0.01"}, log: "train.finish.epochs: 0, now 2"},
	} {
		if testing.Short() && tc.log == "" && tc.name != "threads" {
			continue // what is free and says nothing is resumed once
		}
		code, log, dir := resume(t, tc.args...)
		if code != exitOK || !strings.Contains(log, tc.log) {
			t.Errorf("%s: exit %d, want 0 and %q: %s", tc.name, code, tc.log, log)
			continue
		}
		a, errA := os.ReadFile(filepath.Join(whole, "model.safetensors"))
		b, errB := os.ReadFile(filepath.Join(dir, "model.safetensors"))
		if errA != nil || errB != nil || bytes.Equal(a, b) != tc.same {
			t.Errorf("%s: the same model: %t, want %t (%v, %v)", tc.name, bytes.Equal(a, b), tc.same, errA, errB)
		}
	}
}

// TestCheckpointSteps wants a checkpoint after the steps that the config says.
func TestCheckpointSteps(t *testing.T) {
	t.Chdir(t.TempDir())
	runJSON(t, append([]string{"train", "--out", "run", "--set", "train.steps=7", "--set", "train.checkpoint.epochs=0", "--set", "train.checkpoint.steps=3", "--set", "train.checkpoint.keep=9"}, tiny...)...)
	files, err := filepath.Glob("run/checkpoints/step-*")
	var names []string
	for _, f := range files {
		names = append(names, strings.TrimLeft(strings.TrimSuffix(filepath.Base(f), ".safetensors"), "step-0"))
	}
	if err != nil || !slices.Equal(names, []string{"3", "6", "7"}) {
		t.Errorf("checkpoints after the steps %v (%v), want 3, 6 and the end", names, err)
	}
}

// TestResumeLonger makes a run longer that has stopped early: it trains on, with
// all of its patience, and what it saves is the best of all epochs.
func TestResumeLonger(t *testing.T) {
	t.Chdir(t.TempDir())
	writeLines(t, "train.csv", discreteRows(20, 1))
	writeLines(t, "valid.csv", discreteRows(60, 2))
	args := append(slices.Clone(onFiles), "--set", "train.rule=fullbatch-em", "--set", "train.pseudocount=0", "--set", "train.patience=2", "--set", "model.latents=6", "--set", "train.epochs=60")
	first := runJSON(t, append([]string{"train", "--out", "run"}, args...)...)
	epochs := number(t, first, "epochs")
	if !(epochs < 50) {
		t.Fatalf("the run did not stop early: %v", first)
	}
	again := runJSON(t, "train", "--resume", "--out", "run")
	if again["epochs"] != first["epochs"] || again["steps"] != first["steps"] {
		t.Errorf("resumed without a change: %v, want %v", again, first)
	}
	var out, errs bytes.Buffer
	if code := Run(t.Context(), []string{"train", "--resume", "--out", "run", "--set", "train.epochs=70", "--config", "run/config.yaml"}, nil, nil, &out, &errs); code != exitOK {
		t.Fatalf("exit %d: %s", code, &errs)
	}
	for _, want := range []string{"epochs raised from 60 to 70", "stopped early"} {
		if !strings.Contains(errs.String(), want) {
			t.Errorf("no %q in %s", want, &errs)
		}
	}
	longer := runJSON(t, "train", "--resume", "--out", "run")
	if got := number(t, longer, "epochs"); !(got >= epochs+2) {
		t.Errorf("%v epochs after %v, want at least two more", got, epochs)
	}
	if got, was := number(t, longer, "valid_ll"), number(t, first, "valid_ll"); !(got >= was) {
		t.Errorf("valid_ll %v after %v: the best epoch is lost", got, was)
	}
}
