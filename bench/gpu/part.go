package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// part is what is measured, recorded and repeated as a whole. Its steps run one after
// the other, and the first that fails ends it.
type part struct {
	name     string
	budget   time.Duration
	rest     bool // it may take all the time that is left, if that is at least the budget
	measures bool // it makes claims that a failed conformance suite puts in doubt
	steps    []step
}

// step is a program that is run, or work of this one.
type step struct {
	name    string
	command []string
	env     []string                            // nil: that of this program
	prepare func() error                        // writes the files that the command reads
	read    func(output []byte) (any, error)    // makes a result of the output; nil: its JSON objects are the results
	log     string                              // a file that keeps the output; empty: none
	maybe   bool                                // skipped where the program is missing
	do      func(before []outcome) (any, error) // the work, where there is no command
}

// lingering is how long a killed program may take to end. One that a driver holds on
// to may never end; it is left behind then.
const lingering = 10 * time.Second

// run runs the part's steps until one fails or the context ends.
func (p *part) run(ctx context.Context, work string) (steps []outcome, err error) {
	for i := range p.steps {
		begin := time.Now()
		out, err := p.steps[i].run(ctx, work, steps)
		out.Name, out.Seconds = p.steps[i].name, time.Since(begin).Seconds()
		steps = append(steps, out)
		if ctx.Err() != nil && errors.Is(context.Cause(ctx), errBudget) {
			return steps, fmt.Errorf("%s: not done within %v: %w", out.Name, p.budget, orNil(err, context.Cause(ctx)))
		}
		if err != nil {
			return steps, fmt.Errorf("%s: %w", out.Name, err)
		}
	}
	return steps, nil
}

// able reports whether the programs of all steps are there.
func (p *part) able() bool {
	return !slices.ContainsFunc(p.steps, func(s step) bool {
		if len(s.command) == 0 {
			return false
		}
		_, err := exec.LookPath(s.command[0])
		return err != nil
	})
}

// errBudget ends a part whose time is up.
var errBudget = errors.New("the budget is spent")

func orNil(err, otherwise error) error {
	if err != nil {
		return err
	}
	return otherwise
}

// run runs a step after others of its part.
func (s *step) run(ctx context.Context, work string, before []outcome) (out outcome, err error) {
	if s.prepare != nil {
		if err := s.prepare(); err != nil {
			return out, err
		}
	}
	if s.do != nil {
		return s.results(s.do(before))
	}
	if _, err := exec.LookPath(s.command[0]); err != nil && s.maybe {
		out.Skipped = "there is no " + s.command[0]
		return out, nil
	}
	stdout, stderr, err := s.spawn(ctx, work)
	if err == nil && s.read != nil {
		return s.results(s.read(stdout))
	}
	for line := range bytes.Lines(stdout) {
		if line = bytes.TrimSpace(line); bytes.HasPrefix(line, []byte("{")) && json.Valid(line) {
			out.Results = append(out.Results, json.RawMessage(line))
		}
	}
	all := append(stdout, stderr...)
	if err != nil {
		return out, fmt.Errorf("%w: %s%s", err, failures(stdout), tail(all))
	}
	if len(out.Results) == 0 {
		return out, fmt.Errorf("no JSON object in the output: %s", tail(all))
	}
	return out, nil
}

// results makes an outcome of one value. A value that comes with an error is kept.
func (s *step) results(value any, err error) (out outcome, _ error) {
	if value != nil {
		line, failed := json.Marshal(value)
		if failed != nil {
			return out, errors.Join(err, failed)
		}
		out.Results = []json.RawMessage{line}
	}
	return out, err
}

// spawn runs the command. Its outputs go to files, so that no pipe keeps a wait open.
func (s *step) spawn(ctx context.Context, work string) (stdout, stderr []byte, err error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	outPath, errPath := s.log, filepath.Join(work, "stderr")
	if outPath == "" {
		outPath = filepath.Join(work, "stdout")
	}
	outFile, err := os.Create(outPath)
	if err != nil {
		return nil, nil, err
	}
	defer outFile.Close()
	errFile, err := os.Create(errPath)
	if err != nil {
		return nil, nil, err
	}
	defer errFile.Close()
	cmd := exec.Command(s.command[0], s.command[1:]...)
	cmd.Env, cmd.Stdout, cmd.Stderr = s.env, outFile, errFile
	err = runGroup(ctx, cmd)
	stdout, outErr := os.ReadFile(outPath)
	stderr, errErr := os.ReadFile(errPath)
	return stdout, stderr, errors.Join(err, outErr, errErr)
}

// runGroup runs a command in a process group of its own, which is killed as a whole
// when the context ends. It does not wait for a process that survives that.
func runGroup(ctx context.Context, cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	killed := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	select {
	case err := <-ended:
		return err
	case <-time.After(lingering):
		return errors.Join(fmt.Errorf("process %d does not end when it is killed", cmd.Process.Pid), killed)
	}
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

// tail returns the end of an output.
func tail(b []byte) string {
	const most = 2000
	b = bytes.TrimSpace(b)
	if len(b) > most {
		b = b[len(b)-most:]
	}
	return string(b)
}
