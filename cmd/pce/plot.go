package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pce-engine/pce/report"
	"github.com/pce-engine/pce/report/curves"
	"github.com/pce-engine/pce/run"
)

// plotCommand makes the command pce plot. What may be measured, and over what, is listed by
// package curves, which also refuses other values.
func (a *app) plotCommand() *cobra.Command {
	var out outputFlags
	var measure, axis string
	c := &cobra.Command{
		Use:   "plot RUN... [--out FILE.png|FILE.svg]",
		Short: "Draw the curves of runs into one picture",
		Long: `Draw the curves of the runs in the directories RUN into one picture, PNG or SVG by
the extension of --out, and print its name. Without --out it is curves.png in the only RUN
and is replaced, or curves.png here.

Training curves are dashed. They are running means, as metrics.jsonl has them. Those of runs of
train.discriminative are of its objective, as their names say.`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: completeRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.plot(cmd.Context(), args, measure, axis, &out)
		},
	}
	c.Flags().StringVar(&measure, "of", curves.LogLikelihood, "what is drawn: "+strings.Join(curves.Measures, ", "))
	c.Flags().StringVar(&axis, "over", curves.Epochs, "over what: "+strings.Join(curves.Axes, ", "))
	c.Flags().StringVar(&out.path, "out", "", "file to write, .png or .svg; - is stdout, SVG")
	c.Flags().BoolVar(&out.force, "force", false, "replace the file of --out if there is one")
	return c
}

// curvesFile is the picture of pce plot unless it is told another name.
const curvesFile = "curves.png"

// plot draws the epochs of the runs in dirs and prints the name of the file. A picture that it
// names itself in the only run is replaced without --force, one in the working directory is
// not. Runs that are still being written are drawn as far as they are, with a note; a directory
// without any epoch is an error.
func (a *app) plot(ctx context.Context, dirs []string, measure, axis string, out *outputFlags) error {
	o := *out
	switch {
	case o.path == "" && len(dirs) == 1:
		o = outputFlags{path: filepath.Join(dirs[0], curvesFile), force: true}
	case o.path == "":
		o.path = curvesFile
	}
	if err := a.checkOutput(ctx, &o); err != nil && (out.path != "" || !errors.Is(err, fs.ErrNotExist)) { // of a run that is not there its metrics say more
		return err
	}
	var runs []curves.Run
	names := runNames(dirs)
	for i, dir := range dirs {
		path := filepath.Join(dir, run.MetricsFile)
		epochs, err := report.ReadEpochs(path)
		if err != nil && len(epochs) == 0 {
			var of *fs.PathError
			if errors.As(err, &of) { // which has the path too
				err = of.Err
			}
			return fmt.Errorf("%w: %s: %w; give directories of runs that have ended an epoch", report.ErrNoCurve, path, err)
		}
		if err != nil { // a run that is being written ends with half a line
			a.tell("note: %s: %v", path, err)
		}
		name := names[i]
		if measure == curves.LogLikelihood {
			discriminative, err := isDiscriminative(dir)
			if err != nil {
				a.tell("note: what the curves of %s are of is unknown: %v", dir, err)
			}
			if discriminative {
				name += " (objective of train.discriminative)"
			}
		}
		runs = append(runs, curves.Run{Name: name, Epochs: epochs})
	}
	format := strings.ToLower(strings.TrimPrefix(filepath.Ext(o.named("stdout.svg")), "."))
	err := a.output(ctx, &o, func(w io.Writer, _ string) error { return curves.Write(w, format, measure, axis, runs) })
	if err != nil || o.named("-") == "-" { // the name would be part of a picture that goes to /dev/stdout
		return err
	}
	_, err = fmt.Fprintln(a.stdout, o.path)
	return err
}

// runNames returns the last elements of paths, or the paths where two have the same.
func runNames(dirs []string) []string {
	names, seen := make([]string, len(dirs)), map[string]bool{}
	for i, dir := range dirs {
		names[i] = filepath.Base(filepath.Clean(dir))
		if abs, err := filepath.Abs(dir); err == nil {
			names[i] = filepath.Base(abs)
		}
		if seen[names[i]] {
			return dirs
		}
		seen[names[i]] = true
	}
	return names
}
