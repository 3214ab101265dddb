package main

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/configs"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/em"
	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/run"
)

const (
	// auditFile, in the directory of a run, says who computed what.
	auditFile = "audit.jsonl"
	// memberInterval is how often the list of members is read while too few are there.
	memberInterval = 250 * time.Millisecond
	// mixedKernels is the fact for devices and kernel paths that differ between workers.
	mixedKernels = "mixed"
)

// clusterRun leads a run that the workers of a cluster compute.
type clusterRun struct {
	app *app
	co  *cluster.Coordinator
	bus cluster.Bus
	cfg *configs.Config
	// written is cfg as the run's config.yaml has it: with the paths that its owner
	// knows.
	written *configs.Config
	id      string
	dir     string // of the run; it exists
	log     *slog.Logger

	run     *cluster.Run     // nil before begin
	blobs   []string         // digests of contents that no other run has
	members []cluster.Member // present at the start; nil: not read yet
}

// publish gives the description of the run to the broker, and says so.
func (c *clusterRun) publish(ctx context.Context, d *description, program [32]byte) (spec cluster.Spec, err error) {
	d.Run = c.id
	text, err := json.Marshal(d)
	if err != nil {
		return spec, err
	}
	digest, err := digestOf(bytes.NewReader(text))
	if err != nil {
		return spec, err
	}
	c.blobs = append(c.blobs, digest)
	if err := c.bus.Blobs().Put(ctx, digest, bytes.NewReader(text), int64(len(text))); err != nil {
		return spec, err
	}
	body, err := json.Marshal(runBody{fileRef{Name: "description", Digest: digest, Size: int64(len(text)), Blob: true}})
	return cluster.Spec{Run: c.id, Program: hex.EncodeToString(program[:]), Body: body}, err
}

// begin waits for workers and the lead, and starts the run that d describes.
func (c *clusterRun) begin(ctx context.Context, d *description, program [32]byte) error {
	spec, err := c.publish(ctx, d, program)
	if err != nil {
		return err
	}
	c.run, err = c.co.Begin(ctx, cluster.RunOptions{
		Spec:      spec,
		Status:    cluster.RunStatus{Run: c.id, Name: c.cfg.Name, Kind: d.Kind, State: stateRunning, Epochs: c.cfg.Train.Epochs, Out: c.dir},
		Transport: c.cfg.Cluster.Transport,
		Workers:   c.cfg.Cluster.Workers,
		Path:      c.earlierPath(),
		AuditFile: filepath.Join(c.dir, auditFile),
		OnWait: func(h cluster.Holder) {
			c.log.Info("another run has the cluster, waiting for it", "run", h.Run, "host", h.Host, "pid", h.PID)
		},
		OnSpare: func(shards, workers int) {
			c.log.Warn("a step has fewer shards than there are workers, so some have nothing to do; a new run with fewer rows a shard would use all of them",
				"shards", shards, "workers", workers, "shard_rows", c.cfg.Train.ShardRows)
		},
	})
	return err
}

// earlierPath returns the kernel path of an earlier part of the run, "" if there
// is none.
func (c *clusterRun) earlierPath() string {
	for _, f := range em.LastFingerprint(filepath.Join(c.dir, run.CheckpointDir)) {
		if f.Name == run.KernelPathFact {
			return f.Value
		}
	}
	return ""
}

// kernels describes what the workers have in common that the run began with.
func (c *clusterRun) kernels() kernels.Info {
	path := c.run.Path()
	for _, m := range c.members {
		if path != "" && slices.Contains(m.Paths, path) {
			return kernels.Info{Name: m.Device, KernelPath: path}
		}
	}
	return kernels.Info{Name: mixedKernels, KernelPath: mixedKernels}
}

// gather waits until there are as many workers as the config wants.
func (c *clusterRun) gather(ctx context.Context) error {
	for told := false; ; told = true {
		members, err := listRecords[cluster.Member](ctx, c.bus.Bucket(cluster.MembersBucket))
		if err != nil {
			return err
		}
		c.members = slices.DeleteFunc(members, func(m cluster.Member) bool { return m.Version != cluster.Protocol || m.Stopping })
		if len(c.members) >= c.cfg.Cluster.Workers {
			return nil
		}
		if !told {
			c.log.Info("waiting for workers", "want", c.cfg.Cluster.Workers, "have", len(c.members))
			watched, stop := endWithStorage(ctx, c.bus)
			defer stop()
			ctx = watched
		}
		select {
		case <-time.After(memberInterval):
		case <-ctx.Done():
			if cause := context.Cause(ctx); errors.Is(cause, cluster.ErrUnreachable) {
				return cause
			}
			return ctx.Err()
		}
	}
}

// elsewhere says that the workers compute. A config that leaves train.shard_rows out
// gets them once the workers are there.
func (c *clusterRun) elsewhere() run.Elsewhere {
	by := run.Elsewhere{Flows: c.open}
	if c.cfg.Train.ShardRows == 0 {
		by.Prepare = c.chooseShards
	}
	return by
}

// open is a run.OpenFlows.
func (c *clusterRun) open(ctx context.Context, b *run.Blueprint, l run.Load, valid, test dataset.Source) (run.Flows, error) {
	if c.run == nil {
		if c.members == nil {
			if err := c.gather(ctx); err != nil {
				return nil, err
			}
		}
		d, err := c.describe(ctx, b, l, valid, test)
		if err != nil {
			return nil, err
		}
		if err := c.begin(ctx, d, b.Program.Digest()); err != nil {
			return nil, err
		}
	}
	sources := map[dataset.Source]string{}
	for src, name := range map[dataset.Source]string{b.Train: trainSource, valid: validSource, test: testSource} {
		if src != nil {
			sources[src] = name
		}
	}
	return &clusterFlows{c.run.Flows(b.Program, b.Train.Rows(), l.Averages, sources), c.run, c.kernels()}, nil
}

// describe gives the workers all that the run is made of.
func (c *clusterRun) describe(ctx context.Context, b *run.Blueprint, l run.Load, valid, test dataset.Source) (*description, error) {
	d := &description{
		Kind: kindTrain, Compile: compileOptions(&c.cfg.Compile), Sources: map[string]sourceRef{},
		Load: loadRef{Rows: l.Rows, StepRows: l.StepRows, Mixed: l.Mixed, Averages: l.Averages},
	}
	var text bytes.Buffer
	if err := b.WriteCircuit(&text); err != nil {
		return nil, err
	}
	d.Circuit = text.Bytes()
	for _, s := range []struct {
		name  string
		paths configs.Paths
		src   dataset.Source
	}{{trainSource, c.cfg.Data.Train, b.Train}, {validSource, c.cfg.Data.Valid, valid}, {testSource, c.cfg.Data.Test, test}} {
		if s.src == nil {
			continue
		}
		ref, err := c.share(ctx, s.paths, s.src)
		if err != nil {
			return nil, err
		}
		d.Sources[s.name] = *ref
	}
	return d, nil
}

// share says to the workers where rows come from: files that all of them have,
// or else a copy that the broker keeps.
func (c *clusterRun) share(ctx context.Context, paths configs.Paths, src dataset.Source) (*sourceRef, error) {
	o, err := c.app.datasetOptions(&c.cfg.Data, src.Schema())
	if err != nil {
		return nil, err
	}
	ref := &sourceRef{Rows: src.Rows(), Options: o}
	if len(paths) == 1 && isBuiltin(paths[0]) {
		ref.Builtin = paths[0]
		return ref, nil
	}
	files, err := c.app.expandPaths(ctx, paths)
	if err != nil {
		return nil, err
	}
	if files, err = dataset.FindFiles(files, o); err != nil {
		return nil, err
	}
	for _, f := range files {
		path, err := filepath.Abs(f)
		if err != nil {
			return nil, err
		}
		if !inEveryRoot(c.members, path) {
			ref.Files = nil
			return ref, c.uploadTable(ctx, ref, src)
		}
		r, err := refTo(path)
		if err != nil {
			return nil, err
		}
		ref.Files = append(ref.Files, r)
	}
	return ref, nil
}

// uploadTable gives the rows of a source to the broker.
func (c *clusterRun) uploadTable(ctx context.Context, ref *sourceRef, src dataset.Source) error {
	path, table, err := writeTable(ctx, c.dir, c.id, src)
	if err != nil {
		return err
	}
	defer os.Remove(path)
	c.log.Info("uploading rows that lie in no root of all workers", "rows", src.Rows(), "bytes", table.Size)
	c.blobs = append(c.blobs, table.Digest)
	ref.Table = &table
	return table.upload(ctx, c.bus.Blobs(), path)
}

// close lets go of the workers. What only this run needs is removed from the
// broker if the run is over.
func (c *clusterRun) close(ctx context.Context, over bool) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), partingTime)
	defer cancel()
	var err error
	if c.run != nil {
		err = c.run.Close(ctx)
		c.run = nil
	}
	if over {
		for _, digest := range c.blobs {
			if e := c.bus.Blobs().Delete(ctx, digest); e != nil && !errors.Is(e, cluster.ErrNoRecord) {
				err = errors.Join(err, e)
			}
		}
		c.blobs = nil
	}
	return err
}

// clusterFlows are the flows of a run that a cluster computes.
type clusterFlows struct {
	*cluster.FlowSource
	run     *cluster.Run
	kernels kernels.Info
}

// Device counts the workers that computed shards of the run.
func (f *clusterFlows) Device() string {
	n := 0
	f.run.Update(func(s *cluster.RunStatus) { n = len(s.Shards) })
	return fmt.Sprintf("cluster: %d × %s", n, f.run.Info().Device)
}

// Kernels describes what the workers have in common.
func (f *clusterFlows) Kernels() kernels.Info { return f.kernels }

func (f *clusterFlows) PrecisionUsed() string { return f.run.Info().Precision }
func (f *clusterFlows) Lost(err error) bool   { return errors.Is(err, cluster.ErrLost) }
func (f *clusterFlows) Close() error          { return nil } // the run goes on

// eventWriter publishes what is written to it, a line a call, as events of a run.
type eventWriter struct {
	events cluster.Events
	run    string
}

func (w eventWriter) Write(line []byte) (int, error) {
	return len(line), w.events.Publish(w.run, bytes.TrimSuffix(line, []byte("\n")))
}

// runLog returns a log to w, and as JSON to the events of a run.
func runLog(w io.Writer, events cluster.Events, run string) *slog.Logger {
	return slog.New(slog.NewMultiHandler(
		slog.NewTextHandler(w, &slog.HandlerOptions{ReplaceAttr: withoutTime}),
		slog.NewJSONHandler(eventWriter{events, run}, nil),
	))
}
