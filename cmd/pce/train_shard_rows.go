package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pce-engine/pce/configs"
	"github.com/pce-engine/pce/em"
	"github.com/pce-engine/pce/run"
)

// shardRowsHere returns the rows of a shard of a run on this machine.
func shardRowsHere(t *configs.Train) int {
	if t.ShardRows == 0 {
		return em.DefaultShardRows
	}
	return t.ShardRows
}

// keptShardRows returns train.shard_rows of the run in a directory, or 0 if it
// holds none. The bits of a run depend on it, so it is chosen once.
func keptShardRows(dir string) (int, error) {
	file := filepath.Join(dir, run.ConfigFile)
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	cfg, _, err := configs.Load(configs.Options{Files: []string{file}})
	if err != nil {
		return 0, err
	}
	return cfg.Train.ShardRows, nil
}

// chooseShards is a run.Elsewhere.Prepare for a run whose config leaves
// train.shard_rows out: it gives each of the workers that are there a shard of
// every step. The number goes into the run's config and stays when workers join or
// leave later.
func (c *clusterTraining) chooseShards(ctx context.Context, rows int, o *run.TrainOptions) (err error) {
	if err := c.Gather(ctx); err != nil {
		return err
	}
	n := o.EM.SpreadShards(rows, len(c.Members()))
	c.Log.Info("train.shard_rows was left out and is chosen for the workers that are there; it stays for the whole run", "shard_rows", n, "workers", len(c.Members()))
	o.EM.ShardRows, c.cfg.Train.ShardRows, c.ShardRows = n, n, n
	o.Settings = settingFacts(c.cfg)
	written := *c.written
	written.Train.ShardRows = n
	o.Config, err = written.YAML()
	return err
}
