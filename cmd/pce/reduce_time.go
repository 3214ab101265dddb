package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pce-engine/pce/compile/reduction"
	"github.com/pce-engine/pce/compile/reduction/gosource"
	"github.com/pce-engine/pce/compile/reduction/simplify"
)

// reduceLeave is how long a program that a signal has killed is waited for: compilers that the go command has started are not
// killed with it, and keep its output open.
const reduceLeave = time.Second

// errGo means that the go command builds nothing on this machine.
var errGo = errors.New("go build")

// emit prints a program in another language.
func (a *app) emit(path string, p *reduction.Program, simplified bool, language string) error {
	if language != "go" {
		return usagef("--emit %s: want go", language)
	}
	source, err := emitGo(path, p, simplified)
	if err == nil {
		_, err = io.WriteString(a.stdout, source)
	}
	return err
}

// emitGo returns p, which is the program at path or the simplified one, as a Go program.
func emitGo(path string, p *reduction.Program, simplified bool) (string, error) {
	source, err := gosource.Source(p, "main")
	switch {
	case err == nil:
		return source, nil
	case simplified:
		err = ofSimplified(err)
	}
	return "", inProgram(path, err)
}

// reduceTimes is what reduce run prints with --time and --json.
type reduceTimes struct {
	Seconds    *float64 `json:"seconds,omitempty"` // of the program as it is written
	Simplified float64  `json:"seconds_simplified"`
	Difference *float64 `json:"difference,omitempty"` // of the outputs, the largest, relative
}

// reduceTime compiles the program as it is written, unless only simplified ones are wanted, and the simplified one,
// and runs each once on the same inputs.
func (a *app) reduceTime(ctx context.Context, f *reduceFlags, path string, p *reduction.Program, sizes map[string]int64, inputs map[string]*reduction.Tensor) error {
	if f.time != "both" && f.time != "simplified" {
		return usagef("--time %s: want both or simplified", f.time)
	}
	if _, err := exec.LookPath("go"); err != nil {
		return fmt.Errorf("--time compiles Go: %w; install Go", err)
	}
	q, report, err := simplify.Simplify(p.Sized(sizes))
	if err != nil {
		return inProgram(path, err)
	}
	dir, err := scratch("pce-reduce-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for name, t := range inputs {
		if err := writeTensor(filepath.Join(dir, name+".txt"), t); err != nil {
			return err
		}
	}
	var r reduceTimes
	var outputs [2]map[string]*reduction.Tensor
	for k, program := range []*reduction.Program{p, q} {
		if k == 0 && f.time == "simplified" {
			continue
		}
		seconds, err := a.timeProgram(ctx, path, program, k > 0, sizes, f.maxMemory, dir, strconv.Itoa(k))
		if err != nil {
			return err
		}
		if outputs[k], err = readOutputs(p, filepath.Join(dir, strconv.Itoa(k)), sizes, f.maxMemory); err != nil {
			return inProgram(path, err)
		}
		if r.Simplified = seconds; k == 0 {
			r.Seconds = &seconds
		}
	}
	if r.Seconds != nil {
		r.Difference = new(float64)
		for _, name := range p.Outputs {
			d := difference(outputs[0][name], outputs[1][name], report)
			if *r.Difference = max(*r.Difference, d); !(d <= checkTolerance) {
				return inProgram(path, differs(name, d, outputs[0][name]))
			}
		}
	}
	if f.asJSON {
		return a.printJSON(&r)
	}
	text := fmt.Sprintf("seconds         %.4g simplified\n", r.Simplified)
	if r.Seconds != nil {
		text = fmt.Sprintf("seconds         %.4g as written, outputs equal but for %.2g, relative\n", *r.Seconds, *r.Difference) + text
	}
	_, err = io.WriteString(a.stdout, text)
	return err
}

func writeTensor(path string, t *reduction.Tensor) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	if _, err := t.WriteTo(file); err != nil {
		file.Close()
		return err
	}
	return file.Close()
}

// timeProgram compiles p in a folder below dir, runs it on the inputs of dir, and returns its seconds; the
// outputs are left in that folder.
func (a *app) timeProgram(ctx context.Context, path string, p *reduction.Program, simplified bool, sizes map[string]int64, maxMemory int64, dir, name string) (float64, error) {
	source, err := emitGo(path, p, simplified)
	if err != nil {
		return 0, err
	}
	own := filepath.Join(dir, name)
	if err := os.Mkdir(own, 0o777); err != nil {
		return 0, err
	}
	for file, text := range map[string]string{"main.go": source, "go.mod": "module emitted\n\ngo 1.21\n"} {
		if err := os.WriteFile(filepath.Join(own, file), []byte(text), 0o666); err != nil {
			return 0, err
		}
	}
	build := exec.CommandContext(ctx, "go", "build", "-o", "program", ".")
	build.Dir, build.WaitDelay = own, reduceLeave
	build.Env = append(slices.Clone(a.env), "GOFLAGS=", "GOWORK=off", "GOTMPDIR="+own) // a killed go command leaves its work there
	said, err := build.CombinedOutput()
	if errors.Is(err, exec.ErrWaitDelay) { // it ended well, only something that it has started did not
		err = nil
	}
	switch said = bytes.TrimSpace(said); {
	case ctx.Err() != nil: // it was killed for that
		return 0, ctx.Err()
	case err != nil && bytes.HasPrefix(said, []byte("# ")): // the program is at fault
		return 0, fmt.Errorf("%s: go build: %w: %s", path, err, said)
	case err != nil:
		return 0, fmt.Errorf("%w: %w: %s; --time wants a go command that builds programs here", errGo, err, said)
	}
	c := exec.CommandContext(ctx, filepath.Join(own, "program"), "-p", sizesText(p, sizes), "-data", dir, "-out", own, "-max-memory", strconv.FormatInt(maxMemory, 10))
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.Output()
	switch text := strings.TrimSpace(stderr.String()); {
	case ctx.Err() != nil:
		return 0, ctx.Err()
	case err != nil && text != "":
		return 0, fmt.Errorf("%s: %w: %s", path, reduction.ErrProgram, text)
	case err != nil:
		return 0, fmt.Errorf("%s: the compiled program: %w", path, err)
	}
	return strconv.ParseFloat(strings.TrimSpace(string(out)), 64)
}

// readOutputs reads what an emitted program wrote.
func readOutputs(p *reduction.Program, dir string, sizes map[string]int64, maxMemory int64) (map[string]*reduction.Tensor, error) {
	out := map[string]*reduction.Tensor{}
	for _, name := range p.Outputs {
		file, err := os.Open(filepath.Join(dir, name+".txt"))
		if err != nil {
			return nil, err
		}
		t, err := p.ReadTensor(file, name, sizes, maxMemory)
		file.Close()
		if err != nil {
			return nil, err
		}
		out[name] = t
	}
	return out, nil
}
