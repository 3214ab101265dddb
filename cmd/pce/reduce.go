package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pce-engine/pce/compile/reduction"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/internal/atomicfile"
)

// reduceFlags are the flags of the commands below reduce.
type reduceFlags struct {
	sizes     []string
	seed      uint64
	data, out string
	count     bool
	check     bool
	time      string
	emit      string
	maxMemory int64
	asJSON    bool
}

func (a *app) reduceCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "reduce",
		Short: "Read programs of equations, say what they cost, simplify and run them",
	}
	c.AddCommand(a.reduceShowCommand(), a.reduceSimplifyCommand(), a.reduceRunCommand())
	return c
}

func (a *app) reduceShowCommand() *cobra.Command {
	var f reduceFlags
	c := &cobra.Command{
		Use:   "show FILE.red",
		Short: "Check a program and print how its work grows with its parameters",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.reduceShow(cmd.Context(), &f, args[0])
		},
	}
	f.registerSizes(c)
	f.registerEmit(c)
	return c
}

// reduceRunCommand makes the command pce reduce run, the reference that every faster way to run
// a program is compared with.
func (a *app) reduceRunCommand() *cobra.Command {
	var f reduceFlags
	c := &cobra.Command{
		Use:   "run FILE.red",
		Short: "Compute a program's outputs as its equations read, in no fixed order",
		Long: `Compute a program's outputs as its equations read, in no fixed order.

This is what the program means, and slow. Inputs are made from --seed: integers
uniform in their range, floats multiples of 1/1024 between 0 and 1. With --data
an input NAME is read from DIR/NAME.txt instead if there is such a file: numbers
in row-major order.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.reduceRun(cmd.Context(), &f, args[0])
		},
	}
	f.registerSizes(c)
	c.Flags().Uint64Var(&f.seed, "seed", 1, "of the inputs that are made")
	c.Flags().StringVar(&f.data, "data", "", "folder of inputs, NAME.txt")
	c.Flags().StringVar(&f.out, "out", "", "folder to write the outputs to, NAME.txt")
	c.Flags().BoolVar(&f.count, "count", false, "print how many points of each statement were evaluated")
	c.Flags().BoolVar(&f.check, "check", false, "run the simplified program too and compare the outputs")
	c.Flags().StringVar(&f.time, "time", "", "compile the program and the simplified one as Go, and time both; 'simplified': that one alone; needs the go command")
	c.Flags().Lookup("time").NoOptDefVal = "both"
	c.Flags().Int64Var(&f.maxMemory, "max-memory", reduction.DefaultMaxMemory, "bytes that all arrays may take")
	return c
}

func (f *reduceFlags) registerSizes(c *cobra.Command) {
	c.Flags().StringArrayVarP(&f.sizes, "param", "p", nil, "N=1000,K=10: sizes in place of the program's; repeatable")
	c.Flags().BoolVar(&f.asJSON, "json", false, "print one JSON object")
}

func (f *reduceFlags) registerEmit(c *cobra.Command) {
	c.Flags().StringVar(&f.emit, "emit", "", "go: print the program as Go source instead")
}

// checkEmit refuses --json beside a program in another language.
func (f *reduceFlags) checkEmit() error {
	if f.emit != "" && f.asJSON {
		return usagef("--json has no effect with --emit, which prints a program; leave one of them out")
	}
	return nil
}

// openProgram reads and checks the program at path, and returns it with the sizes to run it
// with: its own defaults, replaced by those of --param. A parameter that has neither is missing
// from the map; what needs all sizes refuses that. Unknown parameters and sizes that are not
// integers are usage errors, faults of the program and sizes that it excludes name file, line and
// column.
func (f *reduceFlags) openProgram(ctx context.Context, path string) (*reduction.Program, map[string]int64, error) {
	file, err := dataset.OpenPath(ctx, path)
	if err != nil {
		return nil, nil, ended(ctx, path, fmt.Errorf("%w; check the path", err))
	}
	defer file.Close()
	source, err := reduction.ReadSource(file)
	if err != nil {
		return nil, nil, ended(ctx, path, fmt.Errorf("%w; check the path", err))
	}
	p, err := reduction.Parse(source)
	if err != nil {
		return nil, nil, inProgram(path, err)
	}
	sizes := p.DefaultSizes()
	for _, list := range f.sizes {
		for _, s := range strings.Split(list, ",") {
			name, value, ok := strings.Cut(s, "=")
			n, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
			name = strings.TrimSpace(name)
			known := slices.ContainsFunc(p.Params, func(q reduction.Param) bool { return q.Name == name })
			switch {
			case !ok || err != nil:
				return nil, nil, usagef("--param %s: want NAME=INTEGER", s)
			case !known:
				return nil, nil, usagef("--param %s: %s has no parameter %s", s, path, name)
			}
			sizes[name] = n
		}
	}
	if len(sizes) == len(p.Params) {
		if err := p.CheckSizes(sizes); err != nil {
			return nil, nil, inProgram(path, err)
		}
	}
	return p, sizes, nil
}

// inProgram puts the file before what is wrong with it.
func inProgram(path string, err error) error {
	var e *reduction.Error
	if errors.As(err, &e) && e.Line > 0 && strings.HasPrefix(err.Error(), e.Error()) { // else the line is of another program
		return fmt.Errorf("%s:%w", path, err)
	}
	return fmt.Errorf("%s: %w", path, err)
}

// ofSimplified says that the line of an error is one of the simplified program, not of the file.
func ofSimplified(err error) error { return fmt.Errorf("the simplified program: %w", err) }

// reduceReport is what reduce show prints with --json.
type reduceReport struct {
	Statements []reduceStatement `json:"statements"`
	Degree     string            `json:"degree"`
	Guarded    string            `json:"degree_guarded"`
	Points     string            `json:"points,omitempty"` // at the sizes, if all are known
}

type reduceStatement struct {
	Text   string `json:"text"`
	Degree string `json:"degree"`
}

// reduceShow prints the degree of each statement and of the program, the monomials of its
// parameters that its points grow with, and how many points there are at the given sizes if all
// of these are known. Nothing is computed.
func (a *app) reduceShow(ctx context.Context, f *reduceFlags, path string) error {
	p, sizes, err := f.openProgram(ctx, path)
	if err == nil {
		err = f.checkEmit()
	}
	if err != nil {
		return err
	}
	if f.emit != "" {
		return a.emit(path, p.Sized(sizes), false, f.emit)
	}
	r, err := costs(p, sizes)
	if err != nil {
		return inProgram(path, err)
	}
	if f.asJSON {
		return a.printJSON(r)
	}
	var out bytes.Buffer
	for _, s := range r.Statements {
		fmt.Fprintf(&out, "%-14s %s\n", s.Degree, s.Text)
	}
	fmt.Fprintf(&out, "\ndegree          %s\n", r.Degree)
	fmt.Fprintf(&out, "guards once     %s\n", r.Guarded)
	if r.Points != "" {
		fmt.Fprintf(&out, "points          %s%s\n", r.Points, atSizes(p, sizes))
	}
	_, err = out.WriteTo(a.stdout)
	return err
}

// costs counts the points that a program evaluates, twice: as it is written, and with each
// dimension that a guard fixes counted as one point. The number of points is left out if a bound has a coefficient other
// than 1 and -1.
func costs(p *reduction.Program, sizes map[string]int64) (*reduceReport, error) {
	written, err := p.Cost(false)
	if err != nil {
		return nil, err
	}
	once, err := p.Cost(true)
	if err != nil {
		return nil, err
	}
	r := &reduceReport{}
	for k, s := range p.Statements {
		d, err := written.StatementDegree(k)
		if err != nil {
			return nil, err
		}
		r.Statements = append(r.Statements, reduceStatement{s.String(), d.String()})
	}
	for _, c := range []struct {
		cost *reduction.Cost
		to   *string
	}{{written, &r.Degree}, {once, &r.Guarded}} {
		d, err := c.cost.Degree()
		if err != nil {
			return nil, err
		}
		*c.to = d.String()
	}
	for _, q := range p.Params {
		if _, ok := sizes[q.Name]; !ok {
			return r, nil
		}
	}
	if written.Exact() {
		r.Points = written.Total(sizes).String()
	}
	return r, nil
}

// atSizes says at which sizes of its parameters a program was looked at, if it has some.
func atSizes(p *reduction.Program, sizes map[string]int64) string {
	if len(p.Params) == 0 {
		return ""
	}
	return " at " + sizesText(p, sizes)
}

func sizesText(p *reduction.Program, sizes map[string]int64) string {
	var parts []string
	for _, q := range p.Params {
		parts = append(parts, fmt.Sprintf("%s=%d", q.Name, sizes[q.Name]))
	}
	return strings.Join(parts, ",")
}

// reduceOutcome is what reduce run prints with --json.
type reduceOutcome struct {
	Outputs map[string][]any `json:"outputs"`
	Check   *reduceCheck     `json:"check,omitempty"`
	Points  []int64          `json:"points,omitempty"` // of each statement
}

// reduceRun computes a program and prints its outputs, or writes them to --out. A program whose
// arrays would take more than --max-memory is refused before they are made. What shows only
// while it runs, such as an overflow or an element that needs itself, is an error that names
// the place in the program; no output is written then.
func (a *app) reduceRun(ctx context.Context, f *reduceFlags, path string) error {
	if f.maxMemory < 1 {
		return usagef("--max-memory is %d, want at least 1", f.maxMemory)
	}
	if f.time != "" {
		for _, x := range []struct {
			flag  string
			given bool
		}{{"out", f.out != ""}, {"count", f.count}, {"check", f.check}} {
			if x.given {
				return usagef("--%s has no effect with --time, which prints seconds alone; leave one of them out", x.flag)
			}
		}
	}
	p, sizes, err := f.openProgram(ctx, path)
	if err != nil {
		return err
	}
	if err := p.CheckSizes(sizes); err != nil { // one that is missing would be 0
		return inProgram(path, err)
	}
	if err := a.spareInputs(ctx, f, path, p); err != nil {
		return err
	}
	inputs, err := f.inputs(ctx, p, sizes)
	if err != nil {
		return inProgram(path, err)
	}
	if f.time != "" {
		return a.reduceTime(ctx, f, path, p, sizes, inputs)
	}
	o, err := reduction.Interpret(ctx, p, reduction.Options{Sizes: sizes, Inputs: inputs, MaxMemory: f.maxMemory})
	if err != nil {
		if ctx.Err() != nil {
			return err
		}
		return inProgram(path, err)
	}
	var check *reduceCheck
	if f.check {
		if check, err = compareSimplified(ctx, p, o, reduction.Options{Sizes: sizes, Inputs: inputs, MaxMemory: f.maxMemory}); err != nil {
			return inProgram(path, err)
		}
	}
	if f.out != "" {
		if err := a.writeOutputs(ctx, p, o, f); err != nil {
			return err
		}
	}
	if f.asJSON {
		r := outcome(p, o, f.count)
		r.Check = check
		return a.printJSON(r)
	}
	if f.out == "" {
		for _, name := range p.Outputs {
			fmt.Fprintf(a.stdout, "%s\n", name)
			if _, err := o.Outputs[name].WriteTo(a.stdout); err != nil {
				return err
			}
		}
	}
	if err := a.printPoints(p, o, f.count); err != nil {
		return err
	}
	return a.printSimplified(check)
}

// spareInputs refuses outputs that would replace the program at path or one of its inputs.
func (a *app) spareInputs(ctx context.Context, f *reduceFlags, path string, p *reduction.Program) error {
	if f.out == "" {
		return nil
	}
	read := []string{path}
	for _, in := range p.Arrays {
		if f.data != "" && in.Input {
			read = append(read, filepath.Join(f.data, in.Name+".txt"))
		}
	}
	for _, name := range p.Outputs {
		if err := a.spare(ctx, filepath.Join(f.out, name+".txt"), read...); err != nil {
			return err
		}
	}
	return nil
}

// inputs reads the inputs of a program that have a file in --data, and makes the others from
// the seed. An input that is made depends on the seed and its place among the program's arrays,
// so that a file for one of them does not change the others. Numbers that are too few or too
// many are errors that name the file.
func (f *reduceFlags) inputs(ctx context.Context, p *reduction.Program, sizes map[string]int64) (map[string]*reduction.Tensor, error) {
	data := map[string]*reduction.Tensor{}
	if f.data != "" {
		if _, err := os.Stat(f.data); err != nil {
			return nil, fmt.Errorf("%w; check --data", err)
		}
		for _, in := range p.Arrays {
			if !in.Input {
				continue
			}
			t, err := f.input(ctx, p, in.Name, sizes)
			if err != nil {
				return nil, err
			}
			if t != nil {
				data[in.Name] = t
			}
		}
	}
	if err := p.Synthesise(sizes, f.seed, data, f.maxMemory); err != nil {
		return nil, err
	}
	return data, nil
}

// input reads an input from its file, or returns nil if there is none.
func (f *reduceFlags) input(ctx context.Context, p *reduction.Program, name string, sizes map[string]int64) (*reduction.Tensor, error) {
	path := filepath.Join(f.data, name+".txt")
	file, err := dataset.OpenPath(ctx, path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, ended(ctx, path, err)
	}
	defer file.Close()
	t, err := p.ReadTensor(file, name, sizes, f.maxMemory)
	if err != nil {
		return nil, ended(ctx, path, fmt.Errorf("%w (%s)", err, path))
	}
	return t, nil
}

// writeOutputs writes a file for each output.
func (a *app) writeOutputs(ctx context.Context, p *reduction.Program, o *reduction.Outcome, f *reduceFlags) error {
	if err := os.MkdirAll(f.out, 0o777); err != nil {
		return fmt.Errorf("%w; --out is the folder of the outputs", err)
	}
	for _, name := range p.Outputs {
		path := filepath.Join(f.out, name+".txt")
		err := atomicfile.WriteContext(ctx, path, 0o666, func(w io.Writer) error {
			_, err := o.Outputs[name].WriteTo(w)
			return err
		})
		if err != nil {
			return err
		}
		fmt.Fprintf(a.stderr, "written     %s\n", path)
	}
	return nil
}

func (a *app) printPoints(p *reduction.Program, o *reduction.Outcome, count bool) error {
	var out bytes.Buffer
	for k, s := range p.Statements {
		if count {
			fmt.Fprintf(&out, "%-14d %s\n", o.Points[k], s)
		}
	}
	_, err := out.WriteTo(a.stdout)
	return err
}

// outcome is what reduce run prints with --json: outputs as flat lists in row-major order. NaN
// and infinities, which JSON does not have, become strings.
func outcome(p *reduction.Program, o *reduction.Outcome, count bool) *reduceOutcome {
	r := &reduceOutcome{Outputs: map[string][]any{}}
	for _, name := range p.Outputs {
		list := []any{}
		t := o.Outputs[name]
		for _, x := range t.Ints {
			list = append(list, x)
		}
		for _, x := range t.Floats {
			if math.IsNaN(x) || math.IsInf(x, 0) { // JSON has no such numbers
				list = append(list, fmt.Sprint(x))
				continue
			}
			list = append(list, x)
		}
		r.Outputs[name] = list
	}
	if count {
		r.Points = o.Points
	}
	return r
}
