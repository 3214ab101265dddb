package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/configs"
	"github.com/pce-engine/pce/dataset"
)

// jobVersion is the version of jobs in the queue. Others are refused.
const jobVersion = 1

// maxJobBytes bounds a job in the queue; the broker's messages may be smaller.
const maxJobBytes = 8 << 20

// job is what lies in the queue: data only. Its config names each file by its
// absolute path, and Files has all of them.
type job struct {
	Version int       `json:"version"`
	ID      string    `json:"id"` // of the run
	Name    string    `json:"name"`
	Kind    string    `json:"kind"`
	Config  string    `json:"config"` // YAML, as configs prints it
	Files   []fileRef `json:"files"`
}

// badJob returns an error that matches cluster.ErrJob and, if one is wrapped,
// the class of its cause.
func badJob(id, format string, args ...any) error {
	return fmt.Errorf("%w %.80s: %w", cluster.ErrJob, id, fmt.Errorf(format, args...))
}

// jobFiles are the lists of files that a config of a kind of job has. A builtin
// source stands alone in its list.
func jobFiles(cfg *configs.Config) []*configs.Paths {
	if cfg.Job.Kind == kindTrain {
		return []*configs.Paths{&cfg.Data.Train, &cfg.Data.Valid, &cfg.Data.Test}
	}
	return []*configs.Paths{&cfg.Job.Data}
}

// jobModel is the model file that a config of a kind of job reads, or nil.
func jobModel(cfg *configs.Config) *string {
	switch {
	case cfg.Job.Kind != kindTrain:
		return &cfg.Job.Model
	case cfg.Model.Structure == "file":
		return &cfg.Model.File
	}
	return nil
}

// newJob makes a job of a config: patterns and directories are replaced by the
// files that they stand for now. Nothing is uploaded.
func (a *app) newJob(ctx context.Context, id string, cfg *configs.Config) (*job, error) {
	j := &job{Version: jobVersion, ID: id, Name: cfg.Name, Kind: cfg.Job.Kind}
	if j.Kind == kindTrain {
		if err := cfg.Data.RequireTraining(); err != nil {
			return nil, err
		}
	}
	own := *cfg
	known := map[string]bool{}
	add := func(path string) (string, error) {
		r, err := refTo(path)
		if err == nil && !known[r.Path] {
			known[r.Path] = true
			j.Files = append(j.Files, r)
		}
		return r.Path, err
	}
	o, err := a.datasetOptions(&cfg.Data, nil)
	if err != nil {
		return nil, err
	}
	for _, list := range jobFiles(&own) {
		*list = slices.DeleteFunc(slices.Clone(*list), func(p string) bool { return p == "" })
		if len(*list) == 0 || len(*list) == 1 && isBuiltin((*list)[0]) {
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
			if paths[i], err = add(paths[i]); err != nil {
				return nil, err
			}
		}
		*list = paths
	}
	if m := jobModel(&own); m != nil {
		if *m, err = add(*m); err != nil {
			return nil, err
		}
	}
	text, err := own.YAML()
	j.Config = string(text)
	return j, err
}

// encode writes the job for a queue that takes messages of so many bytes.
func (j *job) encode(most int) ([]byte, error) {
	text, err := json.Marshal(j)
	if err != nil {
		return nil, err
	}
	if most = min(most, maxJobBytes); len(text) > most {
		return nil, usagef("the job has %d bytes with its %d files, and the queue takes %d; name fewer files, or use pce train --cluster", len(text), len(j.Files), most)
	}
	return text, nil
}

// parseJob reads a job from the queue and checks what can be without its files.
// An error matches cluster.ErrJob.
func parseJob(id string, text []byte) (*job, *configs.Config, error) {
	if len(text) > maxJobBytes {
		return nil, nil, badJob(id, "it has %d bytes; at most %d are taken", len(text), maxJobBytes)
	}
	var head struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return nil, nil, badJob(id, "it cannot be read: %v", err)
	}
	if head.Version != jobVersion {
		return nil, nil, badJob(id, "it has version %d, this program takes %d; use the same version of pce everywhere", head.Version, jobVersion)
	}
	j := new(job)
	if err := strictJSON(text, j); err != nil {
		return nil, nil, badJob(id, "it cannot be read: %v", err)
	}
	if j.ID != id {
		return nil, nil, badJob(id, "it says that it is run %.80q", j.ID)
	}
	cfg, _, err := configs.Load(configs.Options{Text: []byte(j.Config)})
	if err != nil {
		return nil, nil, badJob(id, "%w", err)
	}
	if j.Kind != cfg.Job.Kind {
		return nil, nil, badJob(id, "its kind is %.40q, its config's %s; kinds are %s, %s, %s and %s", j.Kind, cfg.Job.Kind, kindTrain, kindEval, kindLoglik, kindSample)
	}
	for i := range j.Files {
		if err := j.Files[i].check(); err != nil {
			return nil, nil, badJob(id, "%w", err)
		}
	}
	return j, cfg, nil
}

// resolve replaces the files in the job's config by such as can be read here:
// those in the roots, and copies of those that were uploaded.
func (j *job) resolve(ctx context.Context, cfg *configs.Config, files *fileStore, blobs cluster.Blobs) error {
	keep := map[string]bool{}
	known := map[string]fileRef{}
	for _, r := range j.Files {
		known[r.Path] = r
		keep[r.Digest] = true
	}
	if err := files.prune(keep); err != nil {
		return err
	}
	open := func(path string) (string, error) {
		r, ok := known[path]
		if !ok {
			return "", badJob(j.ID, "%.200s is not among its files; submit it with pce cluster submit", path)
		}
		local, err := files.open(ctx, r, blobs)
		if errors.Is(err, dataset.ErrSetting) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, cluster.ErrNoRecord) {
			err = badJob(j.ID, "%w", err)
		}
		return local, err
	}
	for _, list := range jobFiles(cfg) {
		if len(*list) == 1 && isBuiltin((*list)[0]) {
			continue
		}
		for i, path := range *list {
			if !filepath.IsAbs(path) {
				return badJob(j.ID, "path %.200q does not start at /; submit it with pce cluster submit", path)
			}
			local, err := open(path)
			if err != nil {
				return err
			}
			(*list)[i] = local
		}
	}
	if m := jobModel(cfg); m != nil {
		local, err := open(*m)
		if err != nil {
			return err
		}
		*m = local
	}
	return nil
}
