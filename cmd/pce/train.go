package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/pce-engine/pce/em"
	"github.com/pce-engine/pce/run"
)

// trainGC is GOGC while training: nearly all of the heap are big buffers that
// live as long as the run, so little headroom keeps the memory near the plan.
const trainGC = 10

// trainFlags are the flags of train.
type trainFlags struct {
	config configFlags
	run    deviceFlags
	lead   leadFlags
	out    string
	resume bool
	allow  bool
	asJSON bool
}

func (a *app) trainCommand() *cobra.Command {
	var f trainFlags
	c := &cobra.Command{
		Use:   "train --config FILE",
		Short: "Train a circuit; the run is written to a directory",
		Long: `Train a circuit; the run is written to a directory.

The directory gets model.safetensors, metrics.jsonl (one line an epoch),
config.yaml, checkpoints/, result.json and, for images, samples.png.

train_ll in metrics.jsonl is a running mean: each row counts as it was before the
step that it was part of, so it lags behind. What the command ends with, and
result.json, is evaluated at the end: all log-likelihoods there are those of the
model that was saved, the one of best_epoch.

An interrupt (SIGINT or
SIGTERM) writes a checkpoint and ends with exit code 75: run again with --resume.
With --resume and --out, --config may be left out: the run's own is used.

A checkpoint keeps a fingerprint of the rows, the settings and the kernels. A run
that is resumed with others ends with exit code 3 and names what has changed, was
and is; --allow-changes continues it, and config.yaml notes the changes. The number
of epochs and steps, patience and what is written may change freely: to train a run
for longer, resume it with a larger train.epochs.

With --cluster the workers of a cluster compute, and this process leads: it waits
until the cluster has no other run, gives the workers rows that they cannot read
themselves, and writes the directory. The result has the bits of a run on one
machine of the workers' kind.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			res, err := a.train(cmd.Context(), &f, cmd.Flags().Changed)
			if err != nil {
				return err
			}
			if f.asJSON {
				return a.printJSON(res)
			}
			return a.printResult(res)
		},
	}
	f.config.register(c.Flags())
	f.run.register(c.Flags())
	f.lead.register(c.Flags())
	c.Flags().StringVar(&f.out, "out", "", "directory of the run, instead of the config's output")
	c.Flags().BoolVar(&f.resume, "resume", false, "continue the run in the directory")
	c.Flags().BoolVar(&f.allow, "allow-changes", false, "with --resume: continue also if rows, settings or kernels are not those of the checkpoint")
	c.Flags().BoolVar(&f.asJSON, "json", false, "end with one JSON object")
	return c
}

func (a *app) train(ctx context.Context, f *trainFlags, given func(string) bool) (*run.Result, error) {
	if err := f.lead.check(given); err != nil {
		return nil, err
	}
	if f.allow && !f.resume {
		return nil, usagef("--allow-changes has no effect without --resume")
	}
	if own := filepath.Join(f.out, run.ConfigFile); len(f.config.files) == 0 && f.resume && f.out != "" {
		if _, err := os.Stat(own); err != nil {
			return nil, usagef("--resume without --config: %v; give --config FILE", err)
		}
		f.config.files = []string{own}
	}
	cfg, err := a.loadConfig(&f.config)
	if err != nil {
		return nil, err
	}
	if given("out") {
		cfg.Output = f.out
	}
	f.run.override(cfg, given)
	if err := cfg.Data.RequireTraining(); err != nil {
		return nil, err
	}
	if cfg.Train.ShardRows == 0 && f.resume {
		if cfg.Train.ShardRows, err = keptShardRows(cfg.Output); err != nil {
			return nil, err
		}
	}
	if !f.lead.given() {
		cfg.Train.ShardRows = shardRowsHere(&cfg.Train)
	}
	o := a.trainOptions(cfg)
	o.Resume, o.AllowChanges = f.resume, f.allow
	if o.Config, err = cfg.YAML(); err != nil {
		return nil, err
	}
	bar := newProgress(a.stderr, a.env)
	defer bar.hide()
	o.EM.OnStep = bar.step
	o.EM.Logger = slog.New(slog.NewTextHandler(bar, &slog.HandlerOptions{ReplaceAttr: withoutTime}))
	defer debug.SetGCPercent(debug.SetGCPercent(trainGC))
	var res *run.Result
	if f.lead.given() {
		res, err = a.trainOnCluster(ctx, &f.lead, cfg, o, bar)
	} else {
		res, err = run.Train(ctx, o)
	}
	if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) && !errors.Is(err, em.ErrStopped) {
		return nil, fmt.Errorf("%w: outside the training steps; run again with --resume", em.ErrStopped)
	}
	return res, err
}

// withoutTime drops the time of log lines: equal runs log equal lines.
func withoutTime(groups []string, attr slog.Attr) slog.Attr {
	if len(groups) == 0 && attr.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return attr
}

// printResult prints the figures of the model that was saved.
func (a *app) printResult(r *run.Result) error {
	text := fmt.Sprintf("circuit     %d nodes, %d edges, %d parameters\n", r.Nodes, r.Edges, r.Parameters)
	perplexity := math.NaN()
	if r.Unit != "" {
		perplexity = run.Perplexity(r.TestLL, r.Variables)
	}
	for _, x := range []struct {
		name  string
		value float64
	}{
		{"train ll", r.TrainLL}, {"valid ll", r.ValidLL}, {"test ll", r.TestLL},
		{"test bpd", run.BitsPerDimension(r.TestLL, r.Variables)}, {"test perp.", perplexity},
	} {
		if !math.IsNaN(x.value) {
			text += fmt.Sprintf("%-11s %.6g\n", x.name, x.value)
		}
	}
	text += fmt.Sprintf("epoch       %d of %d\ntrained     %d steps in %.1f s, %.0f rows/s on %s (%s)\nrecomputed  %d tiles in log space\nwritten     %s\n",
		r.BestEpoch, r.Epochs, r.Steps, r.TrainSeconds, r.SamplesPerSecond, r.Device, r.PrecisionUsed, r.Recomputed, r.Out)
	_, err := fmt.Fprint(a.stdout, text)
	return err
}
