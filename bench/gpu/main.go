package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// options are the flags.
type options struct {
	pce, suite, configs, out string
	pyjuice, peer, python    string
	device, precision        string
	work                     string // folder of files that tasks prepare
	sets                     []string
	budget                   time.Duration
	suiteTime, taskTime      time.Duration
	rehearse, anyway         bool
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "gpu:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	var o options
	var names, tableOf string
	f := flag.NewFlagSet("gpu", flag.ContinueOnError)
	f.StringVar(&o.pce, "pce", "bin/pce-cuda", "the program to measure")
	f.StringVar(&o.suite, "suite", "bin/cuda.test", "the conformance suite as a program; empty: none")
	f.StringVar(&o.configs, "configs", "configs/bench", "folder of the benchmark configs")
	f.StringVar(&o.out, "out", "gpu.jsonl", "file of results, added to")
	f.StringVar(&o.pyjuice, "pyjuice", "", "folder of PyJuice's source; empty: no peer")
	f.StringVar(&o.peer, "peer", "", "the peer's benchmark, a Python program")
	f.StringVar(&o.python, "python", "python3", "the Python that has PyTorch")
	f.StringVar(&o.device, "device", "cuda:0", "cuda:0, cuda:1, ... or emulator")
	f.StringVar(&o.precision, "precision", "mixed", "mixed or fp32")
	f.StringVar(&names, "sets", "main", "comma-separated: main, rat-batch, block-size, memory, sparse")
	f.DurationVar(&o.budget, "budget", 480*time.Second, "time for all")
	f.DurationVar(&o.suiteTime, "suite-time", 300*time.Second, "time for the conformance suite, of that for all")
	f.DurationVar(&o.taskTime, "task-time", 150*time.Second, "time for any other task")
	f.BoolVar(&o.anyway, "anyway", false, "measure even if the conformance suite fails")
	f.BoolVar(&o.rehearse, "rehearse", false, "tiny sizes, to see that everything runs")
	f.StringVar(&tableOf, "table", "", "print the results of this file as a table, and stop")
	if err := f.Parse(args); err != nil {
		return err
	}
	if tableOf != "" {
		return printTable(os.Stdout, tableOf)
	}
	if (o.pyjuice == "") != (o.peer == "") {
		return errors.New("-pyjuice and -peer go together")
	}
	o.sets = strings.Split(names, ",")
	var err error
	if o.work, err = os.MkdirTemp("", "gpu"); err != nil {
		return err
	}
	defer os.RemoveAll(o.work)
	return o.measure()
}

// record is a line of the results.
type record struct {
	Task    string            `json:"task"`
	Seconds float64           `json:"seconds"`
	Time    string            `json:"time"`
	Results []json.RawMessage `json:"results,omitempty"`
	Error   string            `json:"error,omitempty"`
}

// measure runs what the file of results does not hold yet.
func (o *options) measure() error {
	tasks, err := plan(o)
	if err != nil {
		return err
	}
	done, err := readRecords(o.out)
	if err != nil {
		return err
	}
	held := map[string]bool{}
	for _, r := range done {
		held[r.Task] = held[r.Task] || r.Error == ""
	}
	file, err := os.OpenFile(o.out, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer file.Close()
	ctx, cancel := context.WithTimeout(context.Background(), o.budget)
	defer cancel()
	if o.suite != "" && !held["conformance"] {
		tasks = append(tasks[:1:1], append([]task{{name: "conformance"}}, tasks[1:]...)...)
	}
	failed := 0
	for _, t := range tasks {
		if held[t.name] {
			continue
		}
		if ctx.Err() != nil {
			return fmt.Errorf("the time is up before %q; run again to go on", t.name)
		}
		r := o.do(ctx, t)
		if r.Error != "" {
			failed++
		}
		line, err := json.Marshal(r)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(file, "%s\n", line); err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "%-32s %6.1f s  %s\n", t.name, r.Seconds, r.Error)
		if t.name == "conformance" && r.Error != "" && !o.anyway {
			return fmt.Errorf("the conformance suite fails on this card, see %s; nothing is measured on wrong results, but with -anyway", o.suiteLog())
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d tasks failed; their errors are in %s", failed, o.out)
	}
	return file.Close()
}

// suiteLog is the file of what the conformance suite prints, written as it comes.
func (o *options) suiteLog() string { return o.out + ".suite.log" }

// do runs one task.
func (o *options) do(ctx context.Context, t task) record {
	r := record{Task: t.name, Time: time.Now().UTC().Format(time.RFC3339)}
	var cmd *exec.Cmd
	var stdout, stderr bytes.Buffer
	var to io.Writer = &stdout
	most := o.taskTime
	if t.name == "conformance" {
		most = o.suiteTime
	}
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	switch {
	case t.name == "conformance":
		cmd = exec.CommandContext(ctx, o.suite, "-test.run", "^TestConformanceOnCard$", "-test.v")
		cmd.Env = append(o.environment(), "PCE_CARD="+o.device)
		log, err := os.Create(o.suiteLog())
		if err != nil {
			r.Error = err.Error()
			return r
		}
		defer log.Close()
		to = io.MultiWriter(&stdout, log)
	case t.peer:
		cmd = exec.CommandContext(ctx, o.python, t.args...)
	default:
		cmd = exec.CommandContext(ctx, o.pce, t.args...)
		cmd.Env = o.environment()
	}
	cmd.Stdout, cmd.Stderr = to, &stderr
	cmd.WaitDelay = 10 * time.Second
	begin := time.Now()
	err := o.start(cmd, t)
	r.Seconds = time.Since(begin).Seconds()
	for line := range bytes.Lines(stdout.Bytes()) {
		if line = bytes.TrimSpace(line); json.Valid(line) && bytes.HasPrefix(line, []byte("{")) {
			r.Results = append(r.Results, json.RawMessage(line))
		}
	}
	switch {
	case err != nil:
		r.Error = fmt.Sprintf("%v: %s%s", err, failures(stdout.Bytes()), tail(append(stdout.Bytes(), stderr.Bytes()...)))
	case t.name == "conformance" && !bytes.Contains(stdout.Bytes(), []byte("--- PASS: TestConformanceOnCard")):
		r.Error = "the suite has not run: " + tail(stdout.Bytes()) // a program without CUDA skips it
	case t.name != "conformance" && len(r.Results) == 0:
		r.Error = "no JSON object in the output"
	}
	return r
}

// environment is that of the programs that compile kernels: the driver keeps what it
// compiles, some seconds' worth, for the next of them, also where the home folder
// cannot be written.
func (o *options) environment() []string {
	env := os.Environ()
	if os.Getenv("CUDA_CACHE_PATH") == "" {
		env = append(env, "CUDA_CACHE_PATH="+filepath.Join(os.TempDir(), "pce-cuda-cache"))
	}
	return env
}

// failures returns the first lines of a test's output that name failed tests.
func failures(b []byte) string {
	const most = 40
	var list []string
	for line := range bytes.Lines(b) {
		if line = bytes.TrimSpace(line); bytes.HasPrefix(line, []byte("--- FAIL")) && len(list) < most {
			list = append(list, string(line)+"\n")
		}
	}
	return strings.Join(list, "")
}

// start prepares a task and runs its command.
func (o *options) start(cmd *exec.Cmd, t task) error {
	if t.prepare != nil {
		if err := t.prepare(); err != nil {
			return err
		}
	}
	return cmd.Run()
}

// tail returns the last lines of an output.
func tail(b []byte) string {
	const most = 2000
	b = bytes.TrimSpace(b)
	if len(b) > most {
		b = b[len(b)-most:]
	}
	return string(b)
}

// readRecords reads a file of results; one that does not exist has none.
func readRecords(path string) ([]record, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []record
	for line := range bytes.Lines(data) {
		var r record
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, fmt.Errorf("%s: line %d: %w", path, len(out)+1, err)
		}
		out = append(out, r)
	}
	return out, nil
}
