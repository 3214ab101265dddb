package job

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/cluster/blocks"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/em"
	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/run"
)

// Names of the sources of a run of training.
const (
	trainSource = "train"
	validSource = "valid"
	testSource  = "test"
)

// Training is the worker's side of the kind of job that trains a circuit. On the
// coordinator a run.TrainElsewhere leads it, whose flows Lead.Flows opens.
type Training struct{}

// trainSettings are all that a session of training is made of.
type trainSettings struct {
	Circuit []byte               `json:"circuit"` // as Blueprint.WriteCircuit writes it
	Compile compile.Options      `json:"compile"`
	Load    loadRef              `json:"load"`
	Sources map[string]sourceRef `json:"sources"` // train, valid, test
}

// loadRef is a run.Load without what is each member's own.
type loadRef struct {
	Rows     int   `json:"rows"`
	StepRows int64 `json:"step_rows"`
	Mixed    bool  `json:"mixed"`
	Averages bool  `json:"averages"`
}

// Load makes a session that trains: it opens the rows of all splits, reads the circuit, checks
// its digest against the run's and makes the engine. Rows or a circuit that cannot be read are
// the job's fault.
func (Training) Load(ctx context.Context, in *Loading) (_ cluster.Session, err error) {
	var d trainSettings
	if err := in.Decode(&d); err != nil {
		return nil, err
	}
	s := &trainSession{sources: map[string]dataset.Source{}, averages: d.Load.Averages}
	load := run.Load{Options: in.Options, Train: true, Shards: true, Mixed: d.Load.Mixed, Averages: d.Load.Averages, StepRows: d.Load.StepRows}
	load.Rows = d.Load.Rows
	for name, ref := range d.Sources {
		src, err := ref.open(ctx, in)
		if err != nil {
			return nil, fmt.Errorf("%s rows: %w", name, err)
		}
		if t, ok := src.(*dataset.Table); ok && name != trainSource {
			load.Tables += t.Bytes()
		}
		s.sources[name] = src
	}
	train := s.sources[trainSource]
	if train == nil {
		return nil, Bad(in.Run, "it has no training rows")
	}
	if s.plan, err = run.ReadCircuit(bytes.NewReader(d.Circuit), int64(len(d.Circuit)), train, d.Compile); err != nil {
		return nil, Bad(in.Run, "%w", err)
	}
	defer func() {
		if err != nil {
			s.plan.Close()
		}
	}()
	if err := in.Check(s.plan.Program.Digest()); err != nil {
		return nil, err
	}
	if s.engine, err = s.plan.Engine(ctx, load); err != nil {
		return nil, err
	}
	info := s.engine.Info().Device
	s.info = cluster.SessionInfo{Device: info.Name, Path: info.KernelPath, Precision: s.engine.Precision().String()}
	s.start()
	return s, nil
}

// Rows name the rows of a run, files or a builtin source, and how they are read. The schema is
// that of the rows. FindRows makes them.
type Rows struct {
	Paths   []string
	Options dataset.Options

	files []FileRef // with the contents that they had before they were read; none of a builtin source
}

// FindRows names the rows that paths mean. It is called before they are read, so that what the
// workers are told to read later is what was read here.
func FindRows(ctx context.Context, paths []string, o dataset.Options) (Rows, error) {
	rows := Rows{Paths: paths, Options: o}
	if len(paths) == 1 && IsBuiltin(paths[0]) {
		return rows, nil
	}
	files, err := dataset.FindFiles(paths, o)
	if err != nil {
		return rows, err
	}
	for _, f := range files {
		r, err := FileAt(ctx, f)
		if err != nil {
			return rows, err
		}
		rows.files = append(rows.files, r)
	}
	return rows, nil
}

// TrainRows name the rows of a run of training. Those that it does not have do not
// count.
type TrainRows struct{ Train, Valid, Test Rows }

// Flows returns what opens the flows of a run of training that the workers compute.
// The first time, it waits for workers and begins the run.
func (l *Lead) Flows(c compile.Options, rows TrainRows) run.OpenFlows {
	return func(ctx context.Context, b *run.Blueprint, load run.Load, valid, test dataset.Source) (run.Flows, error) {
		if l.run == nil {
			if l.members == nil {
				if err := l.Gather(ctx); err != nil {
					return nil, err
				}
			}
			d, err := l.trainSettings(ctx, b, load, c, rows, valid, test)
			if err != nil {
				return nil, err
			}
			var files []FileRef
			for _, s := range d.Sources {
				files = append(files, s.contents()...)
			}
			if err := l.Begin(ctx, b.Program.Digest(), d, files...); err != nil {
				return nil, err
			}
		}
		sources := map[dataset.Source]string{}
		for src, name := range map[dataset.Source]string{b.Train: trainSource, valid: validSource, test: testSource} {
			if src != nil {
				sources[src] = name
			}
		}
		return &flows{l.run.Flows(ctx, b.Program, b.Train.Rows(), load.Averages, sources), l.run, l.kernels()}, nil
	}
}

// trainSettings describes to the workers all that the run is made of, and gives the
// broker what they cannot read.
func (l *Lead) trainSettings(ctx context.Context, b *run.Blueprint, load run.Load, c compile.Options, rows TrainRows, valid, test dataset.Source) (*trainSettings, error) {
	d := &trainSettings{
		Compile: c, Sources: map[string]sourceRef{},
		Load: loadRef{Rows: load.Rows, StepRows: load.StepRows, Mixed: load.Mixed, Averages: load.Averages},
	}
	var text bytes.Buffer
	if err := b.WriteCircuit(&text); err != nil {
		return nil, err
	}
	d.Circuit = text.Bytes()
	for _, s := range []struct {
		name string
		rows Rows
		src  dataset.Source
	}{{trainSource, rows.Train, b.Train}, {validSource, rows.Valid, valid}, {testSource, rows.Test, test}} {
		if s.src == nil {
			continue
		}
		ref, err := l.share(ctx, s.rows, s.src)
		if err != nil {
			return nil, err
		}
		d.Sources[s.name] = *ref
	}
	return d, nil
}

// share says to the workers where rows come from: files that all of them have,
// or else a copy that the broker keeps of the rows that were read. Files that have other
// contents than before they were read are refused, as the circuit comes from the former ones.
func (l *Lead) share(ctx context.Context, rows Rows, src dataset.Source) (*sourceRef, error) {
	ref := &sourceRef{Rows: src.Rows(), Options: rows.Options}
	ref.Options.Schema = src.Schema()
	if len(rows.Paths) == 1 && IsBuiltin(rows.Paths[0]) {
		ref.Builtin = rows.Paths[0]
		return ref, nil
	}
	if slices.ContainsFunc(rows.files, func(f FileRef) bool { return !InEveryRoot(l.members, f.Path) }) {
		return ref, l.uploadTable(ctx, ref, src)
	}
	for _, f := range rows.files {
		now, err := FileAt(ctx, f.Path)
		if err != nil {
			return nil, err
		}
		if now.Digest != f.Digest {
			return nil, Bad(l.ID, "%s changed while the run waited for workers; start the run again", f.Path)
		}
	}
	ref.Files = rows.files
	return ref, nil
}

// uploadTable gives the rows of a source to the broker.
func (l *Lead) uploadTable(ctx context.Context, ref *sourceRef, src dataset.Source) error {
	path, digest, size, err := blocks.WriteTable(ctx, l.Dir, l.ID, src)
	if err != nil {
		return err
	}
	defer os.Remove(path)
	l.Log.Info("uploading rows that lie in no root of all workers", "rows", src.Rows(), "bytes", size)
	if err := l.note(ctx, digest); err != nil {
		return err
	}
	ref.Table = &FileRef{Name: "rows", Digest: digest, Size: size}
	return ref.Table.Upload(ctx, l.Bus.Blobs(), path)
}

// mixedKernels is the fact for devices and kernel paths that differ between workers.
const mixedKernels = "mixed"

// flows are the flows of a run that a cluster computes.
type flows struct {
	*cluster.FlowSource
	run     *cluster.Run
	kernels kernels.Info
}

var _ run.Flows = (*flows)(nil)

// Device counts the workers that computed shards of the run, once there are some.
func (f *flows) Device() string {
	n := 0
	f.run.Update(func(s *cluster.RunStatus) { n = len(s.Shards) })
	if n == 0 {
		return "cluster"
	}
	return fmt.Sprintf("cluster: %d × %s", n, f.run.Info().Device)
}

func (f *flows) Kernels() kernels.Info { return f.kernels }
func (f *flows) PrecisionUsed() string { return f.run.Info().Precision }
func (f *flows) Lost(err error) bool   { return errors.Is(err, cluster.ErrLost) }
func (f *flows) Close() error          { return nil } // the run continues

// sourceRef says where the rows of a source come from: the program itself, files,
// or a file of blocks.
type sourceRef struct {
	Rows    int             `json:"rows"`
	Builtin string          `json:"builtin,omitempty"`
	Files   []FileRef       `json:"files,omitempty"`
	Table   *FileRef        `json:"table,omitempty"`
	Options dataset.Options `json:"options"` // Schema is set
}

// contents lists the files of a source.
func (r *sourceRef) contents() []FileRef {
	if r.Table != nil {
		return []FileRef{*r.Table}
	}
	return r.Files
}

// open opens the rows of a source on a worker: a builtin one, files, or a table that the lead
// wrote. A number of rows other than where the run was made means that the members read
// differently, and is refused.
func (r *sourceRef) open(ctx context.Context, in *Loading) (src dataset.Source, err error) {
	if r.Options.Schema == nil {
		return nil, fmt.Errorf("%w: rows without a schema", cluster.ErrJob)
	}
	switch {
	case r.Builtin != "":
		if !IsBuiltin(r.Builtin) {
			return nil, fmt.Errorf("%w: %.80q is not a builtin source", cluster.ErrJob, r.Builtin)
		}
		src, err = dataset.Open(ctx, r.Builtin, r.Options)
	case r.Table != nil:
		var path string
		if path, err = in.Open(ctx, *r.Table); err == nil {
			src, err = blocks.ReadTable(ctx, path, r.Options.Schema, r.Rows)
		}
	default:
		paths := make([]string, len(r.Files))
		for i, f := range r.Files {
			if paths[i], err = in.Open(ctx, f); err != nil {
				return nil, err
			}
		}
		src, err = dataset.OpenAll(ctx, paths, r.Options)
	}
	if err != nil {
		return nil, err
	}
	if src.Rows() != r.Rows {
		return nil, fmt.Errorf("%w: %d rows here, %d where the run was made; give all members the same version of pce", dataset.ErrFormat, src.Rows(), r.Rows)
	}
	return src, nil
}

// IsBuiltin reports whether a path names a source that the program makes itself.
func IsBuiltin(path string) bool { return strings.HasPrefix(path, "builtin:") }

// Meter keeps the status of a run of training up to date with what the trainer
// says. Speeds are those of the steps of this part of the run, as pce train has them; the time that is left counts evaluations, too.
type Meter struct {
	update func(func(*cluster.RunStatus))
	steps  int64 // that end the run early; 0: its epochs do

	mu     sync.Mutex // guards what follows
	begin  time.Time  // when the first step seen had been done
	from   float64    // epochs done then
	first  int64      // steps done then
	epochs int
	rows   int64         // since begin
	newest time.Time     // when the newest step had been done
	other  time.Duration // since begin, that evaluations took
}

// step takes note of a step that was done, and puts the running log-likelihood, the rate and
// the time left into the run's status. Times count from the first step that this process saw.
func (m *Meter) step(p em.Progress) {
	m.mu.Lock()
	defer m.mu.Unlock()
	done := float64(p.Epoch-1) + float64(p.Step)/float64(p.Steps)
	m.newest = time.Now()
	m.update(func(s *cluster.RunStatus) {
		s.TrainLL = run.Finite(p.LL)
		if m.begin.IsZero() {
			m.begin, m.from, m.first, m.epochs = m.newest, done, s.Step, p.Epochs
			return
		}
		m.rows += int64(p.Rows)
		took, computed := m.newest.Sub(m.begin).Seconds(), (m.newest.Sub(m.begin) - m.other).Seconds()
		if computed <= 0 || done <= m.from {
			return
		}
		left := took * (float64(m.epochs) - done) / (done - m.from)
		if m.steps > 0 && s.Step > m.first {
			left = min(left, took*float64(m.steps-s.Step)/float64(s.Step-m.first))
		}
		s.RowsPerSecond, s.SecondsLeft = run.Finite(float64(m.rows)/computed), run.Finite(max(0, left))
	})
}

// epoch takes note of an epoch that was done, and evaluated since its last step.
func (m *Meter) epoch(x em.Metrics) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.newest.IsZero() {
		m.other += time.Since(m.newest)
	}
	m.update(func(s *cluster.RunStatus) { s.TrainLL, s.ValidLL = run.Finite(x.TrainLL), run.Finite(x.ValidLL) })
}

// End takes note of what the run came to.
func (m *Meter) End(r *run.Result) {
	m.update(func(s *cluster.RunStatus) {
		s.TrainLL, s.ValidLL, s.TestLL = run.Finite(r.TrainLL), run.Finite(r.ValidLL), run.Finite(r.TestLL)
		s.RowsPerSecond, s.SecondsLeft = run.Finite(r.SamplesPerSecond), nil
	})
}

// Measure has the callbacks of a run of training keep its status up to date, in
// addition to what they do.
func (l *Lead) Measure(o *em.Options) *Meter {
	m := &Meter{steps: o.Steps, update: l.Update}
	onStep, onEpoch := o.OnStep, o.OnEpoch
	o.OnStep = func(p em.Progress) {
		m.step(p)
		if onStep != nil {
			onStep(p)
		}
	}
	o.OnEpoch = func(x em.Metrics) {
		m.epoch(x)
		if onEpoch != nil {
			onEpoch(x)
		}
	}
	return m
}
