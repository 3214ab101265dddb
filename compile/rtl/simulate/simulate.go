// Package simulate runs designs of package verilog in a simulator that is installed: Verilator
// or Icarus Verilog.
//
// # Shapes and units
//
// Rows go in as codes, one per column, in the order of rtl.Datapath.Encode; likelihoods come out
// as the bits of float64 numbers. Time is in cycles.
//
// # Errors
//
// Errors match ErrTool: a simulator that is not there, or that failed, with its first line.
// An unknown name is an error that matches rtl.ErrOptions.
//
// # Source
//
// The manuals of Verilator 5 and Icarus Verilog 11 and later.
package simulate

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pce-engine/pce/compile/rtl"
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
		return "", fmt.Errorf("%w: simulator %.40q; want %s or %s", rtl.ErrOptions, name, Verilator, Icarus)
	}
	for _, n := range names {
		if _, err := exec.LookPath(n); err == nil {
			return n, nil
		}
	}
	return "", fmt.Errorf("%w: %s not found; install Debian's package %s", ErrTool, strings.Join(names, " and "), names[0])
}

// Design is a datapath in a simulator.
type Design struct {
	d       *rtl.Datapath
	dir     string
	command []string // of the testbench
}

// bench is the testbench that Run runs.
const bench = "tb_datapath"

// Open writes a datapath to a folder, which must exist and which the simulator also uses, and
// builds its testbench.
func Open(ctx context.Context, simulator, dir string, d *rtl.Datapath) (*Design, error) {
	command, err := Build(ctx, simulator, dir, bench, verilog.Write(d))
	if err != nil {
		return nil, err
	}
	return &Design{d, dir, command}, nil
}

// Build writes files to a folder, which must exist, and builds the module top of them. It returns
// the command that runs it.
func Build(ctx context.Context, simulator, dir, top string, files []verilog.File) ([]string, error) {
	var names []string
	for _, f := range files {
		path := filepath.Join(dir, f.Name)
		if err := os.WriteFile(path, []byte(f.Text), 0o644); err != nil {
			return nil, err
		}
		names = append(names, path)
	}
	if simulator == Icarus {
		out := filepath.Join(dir, top+".vvp")
		_, err := commandIn(ctx, dir, append([]string{Icarus, "-g2005", "-s", top, "-o", out}, names...))
		return []string{"vvp", "-n", out}, err
	}
	obj := filepath.Join(dir, "obj_"+top)
	_, err := commandIn(ctx, dir, append([]string{Verilator, "--binary", "--timing", "--top-module", top, "-Mdir", obj, "-o", top,
		"-Wno-fatal", "-Wno-lint", "-Wno-style", "-CFLAGS", "-O1"}, names...))
	return []string{filepath.Join(obj, top)}, err
}

// Run sends rows through a design, one per cycle, and returns the bits of their likelihoods and
// the cycles from the first row in to the last one out. A row is its codes.
func (s *Design) Run(ctx context.Context, rows [][]int) (bits []uint64, cycles int, err error) {
	in, out := filepath.Join(s.dir, "rows.hex"), filepath.Join(s.dir, "likelihoods.hex")
	var text bytes.Buffer
	for _, codes := range rows {
		text.WriteString(verilog.Hex(s.d.Word(codes), s.d.RowBits()))
		text.WriteByte('\n')
	}
	if err := os.WriteFile(in, text.Bytes(), 0o644); err != nil {
		return nil, 0, err
	}
	said, err := Command(ctx, append(slices.Clone(s.command), "+rows="+in, "+out="+out))
	if err != nil {
		return nil, 0, err
	}
	got := 0
	at := strings.Index(said, "rows ")
	if _, err := fmt.Sscanf(said[max(at, 0):], "rows %d cycles %d", &got, &cycles); err != nil || got != len(rows) {
		return nil, 0, fmt.Errorf("%w: %d rows went in and %d came out: %.100q", ErrTool, len(rows), got, said)
	}
	bits, err = Words(out)
	if err == nil && len(bits) != len(rows) {
		err = fmt.Errorf("%w: %d likelihoods of %d rows", ErrTool, len(bits), len(rows))
	}
	return bits, cycles, err
}

// Words reads a file of 64-bit hexadecimal numbers, one per line.
func Words(path string) (words []uint64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		x, err := strconv.ParseUint(lines.Text(), 16, 64)
		if err != nil {
			return nil, fmt.Errorf("%w: line %d of %s is %.40q", ErrTool, len(words)+1, filepath.Base(path), lines.Text())
		}
		words = append(words, x)
	}
	return words, lines.Err()
}

// leave is how long a command that was killed is waited for: programs that it has started, as verilator starts a compiler, keep its
// output open, and where systems have no groups of processes they are not killed with it.
const leave = time.Second

// Command runs a command and returns what it printed. An error has its first line.
func Command(ctx context.Context, command []string) (string, error) {
	return commandIn(ctx, "", command)
}

// commandIn is Command with its temporary files in a folder: compilers that are killed leave theirs.
func commandIn(ctx context.Context, dir string, command []string) (string, error) {
	c := exec.CommandContext(ctx, command[0], command[1:]...)
	if dir != "" {
		c.Env = append(c.Environ(), "TMPDIR="+dir)
	}
	c.WaitDelay = leave
	killGroup(c)
	out, err := c.CombinedOutput()
	if errors.Is(err, exec.ErrWaitDelay) { // the command ended well, only something that it has started did not
		err = nil
	}
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err != nil:
		line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
		return "", fmt.Errorf("%w: %s: %w: %.300s", ErrTool, filepath.Base(command[0]), err, line)
	}
	return string(out), nil
}
