// Package simulate runs designs of package verilog in a simulator that is installed: Verilator
// or Icarus Verilog.
//
// # Errors
//
// Errors match ErrTool: a simulator that is not there, or that failed, with its first line.
package simulate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/pce-engine/pce/compile/rtl/verilog"
)

// ErrTool means that a simulator is not installed or failed.
var ErrTool = errors.New("simulate: simulator")

// The simulators. Verilator builds a program, which takes a while and is fast; Icarus starts
// at once and is slow.
const (
	Verilator = "verilator"
	Icarus    = "iverilog"
)

// Find returns the simulator of a name if it is installed; for "" the first one that is, of
// Verilator and Icarus.
func Find(name string) (string, error) {
	names := []string{Verilator, Icarus}
	switch name {
	case "":
	case Verilator, Icarus:
		names = []string{name}
	default:
		return "", fmt.Errorf("%w %.40q; want %s or %s", ErrTool, name, Verilator, Icarus)
	}
	for _, n := range names {
		if _, err := exec.LookPath(n); err == nil {
			return n, nil
		}
	}
	return "", fmt.Errorf("%w: %s not found; install Debian's package %s", ErrTool, strings.Join(names, " and "), names[0])
}

// Program is a testbench that was built.
type Program struct {
	command []string
}

// Build writes files to a folder, which must exist, and builds the module bench of them.
func Build(ctx context.Context, simulator, dir, bench string, files []verilog.File) (*Program, error) {
	var names []string
	for _, f := range files {
		path := filepath.Join(dir, f.Name)
		if err := os.WriteFile(path, []byte(f.Text), 0o644); err != nil {
			return nil, err
		}
		names = append(names, path)
	}
	if simulator == Icarus {
		out := filepath.Join(dir, bench+".vvp")
		_, err := run(ctx, append([]string{Icarus, "-g2005", "-s", bench, "-o", out}, names...))
		return &Program{[]string{"vvp", "-n", out}}, err
	}
	obj := filepath.Join(dir, "obj_"+bench)
	_, err := run(ctx, append([]string{Verilator, "--binary", "--top-module", bench, "-Mdir", obj, "-o", bench,
		"-Wno-fatal", "-Wno-lint", "-Wno-style", "-Wno-STMTDLY", "--x-assign", "fast", "--x-initial", "fast", "-CFLAGS", "-O1"}, names...))
	return &Program{[]string{filepath.Join(obj, bench)}}, err
}

// Run runs a testbench with plus-arguments and returns what it printed.
func (p *Program) Run(ctx context.Context, args ...string) (string, error) {
	return run(ctx, append(append([]string(nil), p.command...), args...))
}

func run(ctx context.Context, command []string) (string, error) {
	out, err := exec.CommandContext(ctx, command[0], command[1:]...).CombinedOutput()
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err != nil:
		line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
		return "", fmt.Errorf("%w: %s: %w: %.300s", ErrTool, filepath.Base(command[0]), err, line)
	}
	return string(out), nil
}
