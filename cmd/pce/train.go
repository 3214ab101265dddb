package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/pce-engine/pce/configs"
	"github.com/pce-engine/pce/em"
	"github.com/pce-engine/pce/run"
)

// trainFlags are the flags of train.
type trainFlags struct {
	config configFlags
	run    deviceFlags
	lead   leadFlags
	out    string
	resume bool
	allow  bool
	asJSON bool
	// events is the directory of event files; "": none are written.
	events string
	// verbose asks for log lines on a terminal.
	verbose bool
}

// trainCommand makes the command pce train. The result is printed after the run's directory is
// complete; a run that was interrupted prints nothing to stdout.
func (a *app) trainCommand() *cobra.Command {
	var f trainFlags
	c := &cobra.Command{
		Use:   "train --config FILE",
		Short: "Train a circuit; the run is written to a directory",
		Long: `Train a circuit; the run is written to a directory.

The directory gets model.safetensors, metrics.jsonl (one line per epoch),
config.yaml, checkpoints/, result.json and samples.png for images or samples.txt for text.

train_ll in metrics.jsonl is a running mean: each row counts as it was before the
step that it was part of, so it lags behind. What the command ends with, and
result.json, is evaluated at the end: all log-likelihoods there are those of the
model that was saved, the one of best_epoch.

On a terminal, stderr has a line for each stage and a bar that is redrawn; with
TERM=dumb it has a line for each epoch. Otherwise, and with -v, it has log lines.

An interrupt (SIGINT, SIGTERM, or SIGHUP as of a terminal that closes) writes a
checkpoint and ends with exit code 75: the command that continues the run is printed. So
does a run whose log is read by a program that ends, such as tee. With --resume and --out, --config may be
left out: the run's own is used.

A checkpoint keeps a fingerprint of the rows, the settings and the kernels. A run
that is resumed with others ends with exit code 3 and names what has changed, was
and is; --allow-changes continues it, and config.yaml notes the changes. The number
of epochs and steps, patience and what is written may change freely: to train a run
for longer, resume it with a larger train.epochs.

With --cluster the workers of a cluster compute, and this process leads: it waits
until the cluster has no other run, gives the workers rows that they cannot read
themselves, and writes the directory. The result has the bits of a run on one
machine of the workers' kind with the same train.shard_rows; if that is left out, the
cluster chooses it by the number of workers and notes it in config.yaml.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := a.unread(cmd.Context())
			defer stop()
			cfg, res, err := a.train(ctx, &f, cmd.Flags().Changed)
			if err != nil {
				return err
			}
			if f.asJSON {
				return a.printJSON(res)
			}
			return a.printResult(cfg, res)
		},
	}
	f.config.register(c.Flags())
	f.run.register(c.Flags())
	f.lead.register(c.Flags())
	c.Flags().StringVar(&f.out, "out", "", "directory of the run, instead of the config's output")
	c.Flags().BoolVar(&f.resume, "resume", false, "continue the run in the directory")
	c.Flags().BoolVar(&f.allow, "allow-changes", false, "with --resume: continue also if rows, settings or kernels are not those of the checkpoint")
	c.Flags().StringVar(&f.events, "tensorboard", "", "directory to write event files to, as TensorBoard shows them")
	c.Flags().BoolVarP(&f.verbose, "verbose", "v", false, "on a terminal: log lines instead of a line for each stage")
	c.Flags().BoolVar(&f.asJSON, "json", false, "end with one JSON object")
	return c
}

// unread returns a context that ends when what reads the log has ended, as a tee or the connection to another machine: the next line would
// end the process, with what the run did since its last checkpoint. After that nothing is told, and the exit code says it. Only the log
// is looked at: the signal also comes of a connection to a worker that has died, which a run on a cluster outlives.
func (a *app) unread(parent context.Context) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancel(parent)
	if !isTerminal(a.stderr) {
		a.stderr = &watchedLog{a.stderr, cancel}
	}
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE) // so that a write gives an error, and does not end the process
	return ctx, func() {
		unread := ctx.Err() != nil && parent.Err() == nil
		cancel()
		signal.Stop(broken)
		if unread {
			signal.Ignore(syscall.SIGPIPE)
		}
	}
}

// watchedLog is a log that says when its reader has ended.
type watchedLog struct {
	io.Writer
	unread func()
}

func (l *watchedLog) Write(line []byte) (int, error) {
	n, err := l.Writer.Write(line)
	if errors.Is(err, syscall.EPIPE) {
		l.unread()
	}
	return n, err
}

// train trains what the flags say, here or on a cluster, and returns the config that it found
// too, for what is printed at the end. The first line of progress is written before any row is
// read. An interrupt gives em.ErrStopped with the command that continues the run, also where it
// came outside of the training steps, such as while rows were read; then there may be no
// checkpoint, and the command repeats the run.
func (a *app) train(ctx context.Context, f *trainFlags, given func(string) bool) (*configs.Config, *run.Result, error) {
	if err := f.lead.check(given); err != nil {
		return nil, nil, err
	}
	if f.allow && !f.resume {
		return nil, nil, usagef("--allow-changes has no effect without --resume")
	}
	if own := filepath.Join(f.out, run.ConfigFile); len(f.config.files) == 0 && f.resume && f.out != "" {
		if _, err := os.Stat(own); err != nil {
			return nil, nil, usagef("--resume without --config: %v; give --config FILE", err)
		}
		f.config.files = []string{own}
	}
	cfg, err := a.loadConfig(&f.config)
	if err != nil {
		return nil, nil, err
	}
	if given("out") {
		cfg.Output = f.out
	} else if f.resume {
		if err := ofOtherRun(f.config.files, cfg.Output); err != nil {
			return nil, nil, err
		}
	}
	if err := f.run.override(cfg, given); err != nil {
		return nil, nil, err
	}
	if err := cfg.Data.RequireTraining(); err != nil {
		return nil, nil, err
	}
	for _, name := range []string{run.SamplesFile, run.TextSamplesFile} { // a run refuses to replace its other files itself
		if err := a.spare(ctx, filepath.Join(cfg.Output, name), slices.Concat(cfg.Data.Train, cfg.Data.Valid, cfg.Data.Test)...); err != nil {
			return nil, nil, err
		}
	}
	bar := newProgress(a.stderr, a.env, f.verbose)
	defer bar.hide()
	bar.start(subject(cfg), cfg.Output)
	if cfg.Train.ShardRows == 0 && f.resume {
		if cfg.Train.ShardRows, err = keptShardRows(cfg.Output); err != nil {
			return nil, nil, err
		}
	}
	if !f.lead.given() {
		cfg.Train.ShardRows = shardRowsHere(&cfg.Train)
	}
	o := a.trainOptions(cfg)
	o.Resume, o.AllowChanges = f.resume, f.allow
	if o.Config, err = cfg.YAML(); err != nil {
		return nil, nil, err
	}
	bar.limit = o.EM.Steps
	o.OnStage, o.EM.OnStep, o.EM.OnEpoch, o.EM.Logger = bar.stage, bar.step, bar.epoch, bar.log
	if f.events != "" {
		e, err := newEvents(f.events, &o, bar.log)
		if err != nil {
			return nil, nil, err
		}
		defer e.close()
	}
	defer headroom(trainGC)()
	var res *run.Result
	if f.lead.given() {
		res, err = a.trainOnCluster(ctx, &f.lead, cfg, o, bar.logLines())
	} else {
		res, err = run.Train(ctx, o)
	}
	if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) && !errors.Is(err, em.ErrStopped) {
		err = fmt.Errorf("%w: outside the training steps; run again with --resume", em.ErrStopped)
	}
	if errors.Is(err, em.ErrStopped) {
		err = &hinted{err, "continue with", a.continuing(f, cfg)}
	}
	return cfg, res, err
}

// ofOtherRun refuses to resume by the config of a run that was copied or moved. It has the directory that the run was in: that one would
// be continued in place of the copy, or begun anew.
func ofOtherRun(files []string, output string) error {
	for _, file := range files {
		dir := filepath.Dir(file)
		if filepath.Base(file) != run.ConfigFile || !isFile(dir, run.CheckpointDir) {
			continue
		}
		own, _, err := configs.Load(configs.Options{Files: []string{file}})
		if err != nil || own.Output != output { // another source says where
			continue
		}
		here, err := os.Stat(dir)
		there, missing := os.Stat(output)
		if err == nil && (missing != nil || !os.SameFile(here, there)) {
			return usagef("%s says that its run is in %s, as that of a run which was copied or moved does; add --out %s to continue it where it is, or --out %s", file, output, dir, output)
		}
	}
	return nil
}

// subject says what a config trains, in a few words.
func subject(cfg *configs.Config) string {
	paths := slices.DeleteFunc(slices.Clone(cfg.Data.Train), func(p string) bool { return p == "" })
	of := paths[0]
	if n := len(paths) - 1; n > 0 {
		of += fmt.Sprintf(" and %d more", n)
	}
	return fmt.Sprintf("%s: %s of %s", cfg.Name, cfg.Model.Structure, of)
}

// continuing returns the command that continues a run that was interrupted. One that
// has written its config needs no other settings; an earlier one repeats its own, as does one
// with changes, which its checkpoint may not have yet.
func (a *app) continuing(f *trainFlags, cfg *configs.Config) []string {
	if f.allow || !hasConfig(cfg) {
		args := command(a.args...)
		if !f.resume {
			args = append(args, "--resume")
		}
		return args
	}
	args := command("train", "--resume", "--out", cfg.Output)
	if f.events != "" {
		args = append(args, "--tensorboard", f.events)
	}
	return append(args, f.lead.args()...)
}

// hasConfig reports whether the config in the directory of a run is cfg. That of a run which is resumed stays as it was
// until its rows have been read; lines of its history follow it.
func hasConfig(cfg *configs.Config) bool {
	text, err := cfg.YAML()
	if err != nil {
		return false
	}
	kept, err := os.ReadFile(filepath.Join(cfg.Output, run.ConfigFile))
	return err == nil && bytes.HasPrefix(kept, text)
}
