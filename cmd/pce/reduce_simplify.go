package main

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/spf13/cobra"

	"github.com/pce-engine/pce/compile/reduction"
	"github.com/pce-engine/pce/compile/reduction/simplify"
)

func (a *app) reduceSimplifyCommand() *cobra.Command {
	var f reduceFlags
	c := &cobra.Command{
		Use:   "simplify FILE.red",
		Short: "Print a program with the same outputs that does less work",
		Long: `Print a program with the same outputs that does less work, with a comment on each
step, and on each refusal with its reason. A sum whose terms do not change along a
vector is computed from the neighbour's; an index on which an array does not depend is dropped.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.reduceSimplify(cmd.Context(), &f, args[0])
		},
	}
	f.registerSizes(c)
	f.registerEmit(c)
	return c
}

// simplifyReport is what reduce simplify prints with --json. Degrees count guards once, but for the
// first.
type simplifyReport struct {
	Degree  string `json:"degree"`
	Guarded string `json:"degree_guarded"`
	After   string `json:"degree_after"`
	*simplify.Report
	Points      string `json:"operations_before,omitempty"` // at the sizes, if all are known
	PointsAfter string `json:"operations,omitempty"`
	Program     string `json:"program"`
}

// reduceSimplify prints the simplified program of a file, its steps and refusals as comments, as
// JSON or as Go, as the flags say. A program that cannot be simplified is printed as it was, which
// is not an error; one that is wrong gives an error with file, line and column.
func (a *app) reduceSimplify(ctx context.Context, f *reduceFlags, path string) error {
	defer headroom(simplifyGC)()
	p, sizes, err := f.openProgram(ctx, path)
	if err == nil {
		err = f.checkEmit()
	}
	if err != nil {
		return err
	}
	q, report, err := simplify.Simplify(p.Sized(sizes)) // bins pay at some sizes alone
	if err != nil {
		return inProgram(path, err)
	}
	if f.emit != "" {
		return a.emit(path, q, true, f.emit)
	}
	before, err := costs(p, sizes)
	if err != nil {
		return inProgram(path, err)
	}
	after, err := costs(q, sizes)
	if err != nil {
		return inProgram(path, ofSimplified(err))
	}
	if f.asJSON {
		return a.printJSON(&simplifyReport{before.Degree, before.Guarded, after.Guarded, report, before.Points, after.Points, q.String()})
	}
	var out bytes.Buffer
	for _, s := range report.Steps {
		fmt.Fprintf(&out, "# %s\n", s)
	}
	for _, r := range report.Refused {
		fmt.Fprintf(&out, "# %s\n", r)
	}
	fmt.Fprintf(&out, "# degree    %s, was %s\n", after.Guarded, before.Guarded)
	if before.Points != "" && after.Points != "" {
		fmt.Fprintf(&out, "# points    %s, were %s%s\n", after.Points, before.Points, atSizes(p, sizes))
	}
	fmt.Fprint(&out, q)
	_, err = out.WriteTo(a.stdout)
	return err
}

// reduceCheck compares the outputs of a program and of the simplified one.
type reduceCheck struct {
	Difference float64 `json:"difference"` // the largest, relative; 0: the same bits
	Points     int64   `json:"points"`     // that the program evaluated
	Simplified int64   `json:"points_simplified"`
}

// checkTolerance is how much the outputs of a simplified program may differ, relative to their size: sums are
// added in another order.
const checkTolerance = 1e-9

// compareSimplified runs the simplified p and compares its outputs with those of p.
func compareSimplified(ctx context.Context, p *reduction.Program, o *reduction.Outcome, options reduction.Options) (*reduceCheck, error) {
	sizes := maps.Clone(options.Sizes)
	maps.Copy(sizes, p.Sizes) // so that what is printed for the program's own sizes is checked at small ones
	q, report, err := simplify.Simplify(p.Sized(sizes))
	if err != nil {
		return nil, err
	}
	s, err := reduction.Interpret(ctx, q, options)
	if err != nil {
		return nil, ofSimplified(err)
	}
	check := &reduceCheck{Points: total(o), Simplified: total(s)}
	for _, name := range p.Outputs {
		d := difference(o.Outputs[name], s.Outputs[name], report)
		if check.Difference = max(check.Difference, d); !(d <= checkTolerance) {
			return nil, differs(name, d, o.Outputs[name])
		}
	}
	return check, nil
}

// difference is how much an output of a program and that of the simplified one differ, relative to each element. Where steps subtract
// terms that are in a neighbour's sum, what is left of large ones may be 0 in one program and not in the other: then it is relative to
// the largest element, if that is enough.
func difference(written, simplified *reduction.Tensor, report *simplify.Report) float64 {
	d := written.Difference(simplified)
	if d > checkTolerance && slices.ContainsFunc(report.Steps, func(s simplify.Step) bool { return s.Subtracts }) {
		d = written.Rounding(simplified)
	}
	return d
}

// differs is the error of an output that differs by more than a comparison allows from t, that of the program as written. An
// infinite difference of floats is one from NaN or infinity, which programs with infinite terms have: simplification
// takes terms for finite.
func differs(name string, by float64, t *reduction.Tensor) error {
	if math.IsInf(by, 1) && len(t.Ints) == 0 {
		return fmt.Errorf("%w: output %s of the simplified program differs where a number is infinite or NaN: simplification is for finite terms, see docs/reductions.md; if all are finite, please report the program", reduction.ErrProgram, name)
	}
	return fmt.Errorf("%w: output %s of the simplified program differs by %g, relative; please report the program", reduction.ErrProgram, name, by)
}

func total(o *reduction.Outcome) (sum int64) {
	for _, n := range o.Points {
		sum += n
	}
	return sum
}

// printSimplified writes a comparison that was made.
func (a *app) printSimplified(c *reduceCheck) error {
	if c == nil {
		return nil
	}
	equal := "equal in all bits"
	if c.Difference != 0 {
		equal = fmt.Sprintf("equal but for %.2g, relative", c.Difference)
	}
	_, err := fmt.Fprintf(a.stdout, "check           %s; %s, simplified %d\n", equal, several(c.Points, "point"), c.Simplified)
	return err
}
