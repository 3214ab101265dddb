package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/configs"
	"github.com/pce-engine/pce/internal/atomicfile"
	"github.com/pce-engine/pce/run"
)

// jobEnv is where a coordinator runs jobs.
type jobEnv struct {
	bus   cluster.Bus
	dir   string      // runs are written to runs/<id> in it
	files *fileStore  // what jobs may read
	local run.Options // what is computed here: pictures of samples
	log   io.Writer   // gets log lines, besides the run's events
}

// runJob executes a job from the queue on the workers that follow co, from where
// an earlier attempt left it. A job that cannot be run gives an error that
// matches cluster.ErrJob, and a dead letter.
func (a *app) runJob(ctx context.Context, id string, text []byte, co *cluster.Coordinator, env jobEnv) error {
	err := a.doJob(ctx, id, text, co, env)
	if errors.Is(err, cluster.ErrJob) && ctx.Err() == nil {
		letter := cluster.DeadLetter{Run: id, Shard: -1, Reason: oneLine(err.Error()), Time: time.Now().UTC()}
		err = errors.Join(err, env.bus.Jobs().Bury(ctx, letter))
	}
	return err
}

func (a *app) doJob(ctx context.Context, id string, text []byte, co *cluster.Coordinator, env jobEnv) (err error) {
	if err := checkRunID(id); err != nil {
		return badJob(id, "%w", err)
	}
	j, cfg, err := parseJob(id, text)
	if err != nil {
		return err
	}
	if err := j.resolve(ctx, cfg, env.files, env.bus.Blobs()); err != nil {
		return err
	}
	cfg.Output = filepath.Join(env.dir, "runs", id)
	if err := os.MkdirAll(cfg.Output, 0o755); err != nil {
		return err
	}
	log := runLog(env.log, env.bus.Events(), id)
	c := &clusterRun{app: a, co: co, bus: env.bus, cfg: cfg, id: id, dir: cfg.Output, log: log}
	defer func() { err = errors.Join(err, c.close(ctx, over(ctx, err))) }()
	if j.Kind == kindTrain {
		return a.trainJob(ctx, j, cfg, c, env.local)
	}
	return c.answer(ctx)
}

// over reports whether a run that ends with err will not go on.
func over(ctx context.Context, err error) bool {
	if context.Cause(ctx) != nil {
		return errors.Is(context.Cause(ctx), errCancelled)
	}
	return !isSetback(err)
}

// trainJob trains.
func (a *app) trainJob(ctx context.Context, j *job, cfg *configs.Config, c *clusterRun, local run.Options) error {
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
	text, err := written.YAML()
	if err != nil {
		return err
	}
	c.written = written
	o := a.trainOptions(cfg)
	o.Resume, o.Config, o.Options = true, text, local
	o.EM.Logger = c.log
	meter := c.measured(&o)
	res, err := run.TrainElsewhere(ctx, o, c.elsewhere())
	if err == nil {
		meter.end(res)
	}
	return err
}

// writeJSON replaces a file by one line of JSON.
func writeJSON(path string, v any) error {
	return atomicfile.Write(path, 0o644, func(w io.Writer) error { return json.NewEncoder(w).Encode(v) })
}
