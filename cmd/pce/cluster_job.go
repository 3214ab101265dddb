package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pce-engine/pce/cluster/job"
	"github.com/pce-engine/pce/cluster/query"
	lower "github.com/pce-engine/pce/compile/forest"
	"github.com/pce-engine/pce/compile/forest/schedule"
	"github.com/pce-engine/pce/configs"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/forest"
	"github.com/pce-engine/pce/run"
)

// kindTrain is the kind of job that trains, as configs.Job has it. The others are
// query.Kinds.
const kindTrain = "train"

// jobKinds returns the kinds of jobs whose config is a configs.Config. A
// coordinator draws samples of trained models as local says.
func (a *app) jobKinds(local run.Options) job.Kinds {
	kinds := job.Kinds{}
	kinds.Register(kindTrain, trainKind{app: a, local: local})
	for name, kind := range query.Kinds() {
		kinds.Register(name, queryKind{kind, a})
	}
	return kinds
}

// trainKind trains what the config of a job says.
type trainKind struct {
	job.Training
	app   *app
	local run.Options
}

// Lead trains on the workers what the config of a job says, and writes the run into the
// directory of the lead. A job that was taken up before continues from its checkpoint with the
// rows per shard that it had then, since other shards would give other bits. The config.yaml
// that is written has the paths of the one who submitted the job, not those of the copies here.
// A config that cannot be read is the job's fault, so the job is not tried again.
func (k trainKind) Lead(ctx context.Context, l *job.Lead, j *job.Job) error {
	cfg, err := jobConfig(ctx, l, j)
	if err != nil {
		return err
	}
	written, _, err := configs.Load(configs.Options{Text: []byte(j.Config)})
	if err != nil {
		return err
	}
	if cfg.Train.ShardRows == 0 {
		if cfg.Train.ShardRows, err = keptShardRows(cfg.Output); err != nil {
			return err
		}
		written.Train.ShardRows = cfg.Train.ShardRows
	}
	a := k.app.telling(l, j)
	c := &clusterTraining{app: a, Lead: l, cfg: cfg, written: written}
	o := a.trainOptions(cfg)
	if o.Config, err = written.YAML(); err != nil {
		return err
	}
	o.Resume, o.Options = true, k.local
	_, err = c.train(ctx, o)
	return err
}

// queryKind asks about the rows that the config of a job says.
type queryKind struct {
	query.Kind
	app *app
}

// Lead has the workers answer the query about the rows that the config of a job names, and
// writes the answers into the directory of the lead in the order of the rows. Data settings
// that are not valid are the job's fault, so the job is not tried again.
func (k queryKind) Lead(ctx context.Context, l *job.Lead, j *job.Job) error {
	cfg, err := jobConfig(ctx, l, j)
	if err != nil {
		return err
	}
	o, err := k.app.telling(l, j).datasetOptions(&cfg.Data, nil)
	if err != nil {
		return job.Bad(j.ID, "%w", err)
	}
	result, err := forest.ParseWhat(cfg.Job.Result)
	if err != nil {
		return job.Bad(j.ID, "%w", err)
	}
	return query.Do(ctx, l, k.Kind, &query.Job{
		Model: cfg.Job.Model, Data: cfg.Job.Data, Read: o, Rows: cfg.Job.Rows, Seed: cfg.Job.Seed, Format: cfg.Job.Format,
		Columns: cfg.Job.Columns, Levels: jobLevels(cfg), Of: cfg.Job.Of, All: cfg.Job.Probabilities, Candidates: cfg.Job.Candidates, Search: cfg.Job.Search, Result: result, Schedule: cfg.Job.Schedule, Profile: cfg.Job.Profile, Soft: cfg.Job.Soft, Unchanged: j.Unchanged,
	})
}

// telling returns an app that tells what it has to tell, as warnings about rows, in the log of a run: the user who has submitted
// the job does not see what its coordinator prints.
func (a *app) telling(l *job.Lead, j *job.Job) *app {
	own := *a
	own.stderr = noteWriter{l, j}
	return &own
}

// noteWriter writes lines to the log of a run.
type noteWriter struct {
	lead *job.Lead
	job  *job.Job
}

func (w noteWriter) Write(lines []byte) (int, error) {
	for line := range strings.Lines(string(lines)) {
		w.lead.Log.Warn(w.job.Submitted(strings.TrimPrefix(strings.TrimSpace(line), "warning: ")))
	}
	return len(lines), nil
}

// jobLevels are the levels of quantiles that a config asks for.
func jobLevels(cfg *configs.Config) []float64 {
	if cfg.Job.Kind == run.QueryQuantiles && len(cfg.Job.Levels) == 0 {
		return usualLevels
	}
	return cfg.Job.Levels
}

// jobFiles are the lists of files that a config of a kind of job has. A builtin
// source is alone in its list.
func jobFiles(cfg *configs.Config) []*configs.Paths {
	if cfg.Job.Kind == kindTrain {
		return []*configs.Paths{&cfg.Data.Train, &cfg.Data.Valid, &cfg.Data.Test}
	}
	return []*configs.Paths{&cfg.Job.Data}
}

// jobModel is the model file, or the equations, that a config reads for a kind of job, or nil.
func jobModel(cfg *configs.Config, kind string) *string {
	switch {
	case kind != kindTrain:
		return &cfg.Job.Model
	case cfg.Model.Structure == "file":
		return &cfg.Model.File
	case cfg.Model.Structure == "equations":
		return &cfg.Model.Equations
	}
	return nil
}

// findOptions is datasetOptions for finding the files of rows before the circuit that they are rows of is opened. Of one whose
// rows are text, all files of a folder are rows, whatever their names are. What is wrong with a circuit shows when it is opened.
func (a *app) findOptions(cfg *configs.Config, kind string) (dataset.Options, error) {
	o, err := a.datasetOptions(&cfg.Data, nil)
	if m := jobModel(cfg, kind); m != nil && o.Text.Unit == "" && isRegular(*m) {
		if c, schema, err := run.OpenCircuit(*m); err == nil {
			o.Text.Unit = schema.Unit
			c.Close()
		}
	}
	return o, err
}

// isRegular reports whether a path is that of a regular file. Another, such as a pipe, may be waited for, and has its bytes once.
func isRegular(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// newJob makes a job of a config: patterns and directories are replaced by the
// files that they mean now, and the name of a schedule by its text. Nothing is uploaded.
func (a *app) newJob(ctx context.Context, id string, cfg *configs.Config) (*job.Job, error) {
	j := &job.Job{Version: job.Version, ID: id, Name: cfg.Name, Kind: cfg.Job.Kind}
	if j.Kind == kindTrain {
		if err := cfg.Data.RequireTraining(); err != nil {
			return nil, err
		}
		if d := cfg.Train.Discriminative; d > 0 {
			return nil, usagef("train.discriminative is %v, which a cluster does not do; train with pce train, on one machine", d)
		}
	}
	own := *cfg
	o, err := a.findOptions(cfg, j.Kind)
	if err != nil {
		return nil, err
	}
	for _, list := range jobFiles(&own) {
		*list = slices.DeleteFunc(slices.Clone(*list), func(p string) bool { return p == "" })
		if len(*list) == 0 || len(*list) == 1 && job.IsBuiltin((*list)[0]) {
			continue
		}
		paths, err := a.expandPaths(ctx, *list)
		if err != nil {
			return nil, err
		}
		if paths, err = dataset.FindFiles(paths, o); err != nil {
			return nil, err
		}
		for i := range paths {
			if paths[i], err = j.AddFile(ctx, paths[i]); err != nil {
				return nil, err
			}
		}
		*list = paths
	}
	if m := jobModel(&own, j.Kind); m != nil {
		if *m, err = j.AddFile(ctx, *m); err != nil {
			return nil, err
		}
	}
	if own.Job.Schedule, err = a.jobSchedule(&own.Job); err != nil {
		return nil, err
	}
	if own.Job.Profile != "" {
		if own.Job.Profile, err = j.AddFile(ctx, own.Job.Profile); err != nil {
			return nil, err
		}
	}
	text, err := own.YAML()
	j.Config = string(text)
	return j, err
}

// jobRows is how many rows the workers of a job are asked about at a time, for the choice of a schedule.
const jobRows = 4096

// jobSchedule returns the text of the schedule that a job names, "" if it names none; of auto, the one that is chosen here, so that
// all workers run the same. A schedule that is
// illegal, or under which the forest has no code, is refused here rather than by a cluster later.
func (a *app) jobSchedule(j *configs.Job) (text string, err error) {
	if j.Schedule == "" {
		return "", nil
	}
	named := !strings.Contains(j.Schedule, "\n") // a text is told from a name by its lines
	if text = j.Schedule; named && text != autoSchedule {
		if text, err = readSchedule(a.ctx, j.Schedule); err != nil {
			return "", err
		}
	}
	var s *schedule.Schedule
	if text != autoSchedule {
		if s, err = schedule.Parse(text); err != nil {
			return "", jobScheduleError("", j, err)
		}
	}
	f, err := run.OpenForest(j.Model)
	if err == nil {
		err = f.Check()
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", j.Model, err)
	}
	if s == nil {
		if text, err = a.automatic(f, 0, jobRows); err == nil {
			s, err = schedule.Parse(text)
		}
	}
	var hits [][]int64
	if err == nil && j.Profile != "" {
		if hits, err = run.ReadProfile(j.Profile, f); err != nil {
			return "", err
		}
	}
	if err == nil {
		var c *lower.Code
		if c, err = lower.Compile(f, s, hits); err == nil && c.Module == nil { // represent sliced
			_, err = lower.Lower(f)
		}
	}
	if err != nil {
		return "", jobScheduleError(j.Model+": ", j, err)
	}
	if named {
		text += "\n"
	}
	return text, nil
}

// jobScheduleError says which schedule of a job is at fault.
func jobScheduleError(model string, j *configs.Job, err error) error {
	name := ""
	if !strings.Contains(j.Schedule, "\n") {
		name = " " + j.Schedule
	}
	return fmt.Errorf("%sjob.schedule%s: %w", model, name, err)
}

// jobConfig reads the config of a job and replaces the files in it by such as can be
// read here. It tells the lead what the config says of the run.
func jobConfig(ctx context.Context, l *job.Lead, j *job.Job) (*configs.Config, error) {
	cfg, _, err := configs.Load(configs.Options{Text: []byte(j.Config)})
	if err != nil {
		return nil, job.Bad(j.ID, "%w", err)
	}
	if j.Kind != cfg.Job.Kind {
		return nil, job.Bad(j.ID, "its kind is %.40q, its config's %s", j.Kind, cfg.Job.Kind)
	}
	for _, list := range jobFiles(cfg) {
		if len(*list) == 1 && job.IsBuiltin((*list)[0]) {
			continue
		}
		for i, path := range *list {
			if !filepath.IsAbs(path) {
				return nil, job.Bad(j.ID, "path %.200q does not start at /; submit it with pce cluster submit", path)
			}
			if (*list)[i], err = j.Open(ctx, path); err != nil {
				return nil, err
			}
		}
	}
	if m := jobModel(cfg, j.Kind); m != nil {
		if *m, err = j.Open(ctx, *m); err != nil {
			return nil, err
		}
	}
	if cfg.Job.Profile != "" {
		if cfg.Job.Profile, err = j.Open(ctx, cfg.Job.Profile); err != nil {
			return nil, err
		}
	}
	cfg.Output = l.Dir
	configure(l, cfg)
	return cfg, nil
}

// configure tells a lead what a config says of its run. Its kind is the lead's: pce train --cluster does not read the section job.
func configure(l *job.Lead, cfg *configs.Config) {
	l.Name, l.Transport, l.Workers = cfg.Name, cfg.Cluster.Transport, cfg.Cluster.Workers
	l.Epochs, l.ShardRows = jobEpochs(cfg, l.Kind), cfg.Train.ShardRows
}

// jobEpochs is how many epochs a config has for a kind of job; 0 if it does not train.
func jobEpochs(cfg *configs.Config, kind string) int {
	if kind != kindTrain {
		return 0
	}
	return cfg.Train.Epochs
}
