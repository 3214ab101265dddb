package main

import (
	"context"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/pce-engine/pce/internal/atomicfile"
	"github.com/pce-engine/pce/kernels/device"
	"github.com/pce-engine/pce/report"
	"github.com/pce-engine/pce/run"
)

// reportFile is the report's name in the directory of its run.
const reportFile = "report.html"

// reported is what report --json prints.
type reported struct {
	Report  string   `json:"report"`
	Missing []string `json:"missing,omitempty"`
}

// reportCommand makes the command pce report, which writes one HTML file about a run. It takes
// the flags of devices because the report describes how the model is compiled for one.
func (a *app) reportCommand() *cobra.Command {
	var on deviceFlags
	var out outputFlags
	var asJSON bool
	c := &cobra.Command{
		Use:   "report RUN",
		Short: "Make one HTML file of a run: results, curves, samples, layers, memory, settings",
		Long: `Make one HTML file of the run in the directory RUN, and print its name. It needs no
other file and no network. Without --out it is ` + reportFile + ` in RUN, and is replaced.

What a run that is unfinished or damaged lacks is listed in the report and on stderr.`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: oneRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.report(cmd.Context(), args[0], &on, &out, asJSON)
		},
	}
	on.register(c.Flags())
	c.Flags().StringVar(&out.path, "out", "", "file to write, or - for stdout; left out: "+reportFile+" in RUN")
	c.Flags().BoolVar(&out.force, "force", false, "replace the file of --out if there is one")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

// filesOfRun are the files of the run in dir that a report may read.
func filesOfRun(dir string) []string {
	names := []string{run.ModelFile, run.MetricsFile, run.ConfigFile, run.ResultFile, run.SamplesFile}
	for i, name := range names {
		names[i] = filepath.Join(dir, name)
	}
	return names
}

// report reads the run in dir and writes its page to out, or to report.html in dir, which it
// may replace. What the run lacks is listed on stderr; that is not an error. It prints the
// path that it wrote.
func (a *app) report(ctx context.Context, dir string, on *deviceFlags, out *outputFlags, asJSON bool) error {
	if err := on.check(); err != nil {
		return err
	}
	if _, err := device.Find(on.device); err != nil { // which would be told as something that the run lacks
		return err
	}
	path := out.path
	if path == "-" && asJSON {
		return usagef("--json and --out - both write to stdout; name a file")
	}
	if path == "" {
		path = filepath.Join(dir, reportFile)
	} else if err := a.checkOutput(ctx, out, filesOfRun(dir)...); err != nil {
		return err
	}
	r, err := report.Read(ctx, dir, runOptions(on.device, on.threads))
	if err != nil {
		return err
	}
	if r.Objective == "" { // of a config that cannot be read the report says so
		if discriminative, _ := isDiscriminative(dir); discriminative {
			r.Objective = discriminativeObjective
		}
	}
	for _, line := range r.Missing {
		if _, err := io.WriteString(a.stderr, line+"\n"); err != nil {
			return err
		}
	}
	if path == "-" {
		return r.Write(a.stdout)
	}
	if err := atomicfile.WriteContext(ctx, path, 0o644, r.Write); err != nil {
		return err
	}
	if asJSON {
		return a.printJSON(reported{path, r.Missing})
	}
	if out.path != "" && out.named("-") == "-" { // the name would follow a page that goes to /dev/stdout
		return nil
	}
	_, err = io.WriteString(a.stdout, path+"\n")
	return err
}
