package main

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/pce-engine/pce/circuit/format"
	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/engine"
	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/layers"
	"github.com/pce-engine/pce/run"
)

// Kinds of runs, as configs.Job has them.
const (
	kindTrain  = "train"
	kindEval   = "eval"
	kindLoglik = "loglik"
	kindSample = "sample"
)

// maxDescription bounds the description of a run.
const maxDescription = 256 << 20

// runBody is the body of a cluster.Spec.
type runBody struct {
	Description fileRef `json:"description"`
}

// description is all that a session is made of. It is JSON, kept by the broker.
type description struct {
	Run  string `json:"run"`
	Kind string `json:"kind"`

	// Of train.
	Circuit []byte               `json:"circuit,omitempty"` // as Blueprint.WriteCircuit writes it
	Compile compile.Options      `json:"compile"`
	Load    loadRef              `json:"load"`
	Sources map[string]sourceRef `json:"sources,omitempty"` // train, valid, test

	// Of the other kinds.
	Model *fileRef `json:"model,omitempty"`
}

// loadRef is a run.Load without what is each member's own.
type loadRef struct {
	Rows     int   `json:"rows"`
	StepRows int64 `json:"step_rows"`
	Mixed    bool  `json:"mixed"`
	Averages bool  `json:"averages"`
}

// sourceRef says where the rows of a source come from: the program itself, files,
// or a file of blocks.
type sourceRef struct {
	Rows    int             `json:"rows"`
	Builtin string          `json:"builtin,omitempty"`
	Files   []fileRef       `json:"files,omitempty"`
	Table   *fileRef        `json:"table,omitempty"`
	Options dataset.Options `json:"options"` // Schema is set
}

// loader makes the sessions of a worker.
type loader struct {
	files   *fileStore
	options run.Options
	cpu     bool
	paths   []string // kernel paths, best first
}

var _ cluster.Loader = (*loader)(nil)

// newLoader returns the loader of a worker that keeps copies of files below dir,
// reads others in the roots alone, and computes as o says.
func newLoader(dir string, roots []string, o run.Options) (*loader, error) {
	files, err := newFileStore(dir, roots)
	if err != nil {
		return nil, err
	}
	info, paths, err := run.Probe(o)
	if err != nil {
		return nil, err
	}
	return &loader{files, o, info.Name == "cpu", paths}, nil
}

// Paths lists the kernel paths of the worker's device, best first.
func (l *loader) Paths() []string { return l.paths }

// Load makes the session of a run.
func (l *loader) Load(ctx context.Context, spec cluster.Spec, blobs cluster.Blobs) (cluster.Session, error) {
	d, err := l.describe(ctx, spec, blobs)
	if err != nil {
		return nil, err
	}
	o := l.options
	switch {
	case l.cpu:
		o.KernelPath = spec.Path
	case spec.Path != "" && spec.Path != l.paths[0]:
		return nil, fmt.Errorf("%w: run %s has the kernel path %.40q, this device %s", kernels.ErrDevice, spec.Run, spec.Path, l.paths[0])
	}
	switch d.Kind {
	case kindTrain:
		return l.trains(ctx, spec, d, o, blobs)
	case kindEval, kindLoglik, kindSample:
		return l.answers(ctx, spec, d, o, blobs)
	}
	return nil, fmt.Errorf("%w: no runs of kind %.40q; there are %s, %s, %s and %s", cluster.ErrJob, d.Kind, kindTrain, kindEval, kindLoglik, kindSample)
}

// describe reads the description of a run, and forgets the files of other runs.
func (l *loader) describe(ctx context.Context, spec cluster.Spec, blobs cluster.Blobs) (*description, error) {
	var body runBody
	if err := strictJSON(spec.Body, &body); err != nil {
		return nil, fmt.Errorf("%w: run %s: its body: %v", cluster.ErrJob, spec.Run, err)
	}
	ref := body.Description
	if ref.Size > maxDescription {
		return nil, fmt.Errorf("%w: run %s: a description of %d bytes; at most %d are taken", cluster.ErrJob, spec.Run, ref.Size, maxDescription)
	}
	ref.Path, ref.Blob = "", true
	path, err := l.files.open(ctx, ref, blobs)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	d := new(description)
	if err := strictJSON(text, d); err != nil {
		return nil, fmt.Errorf("%w: run %s: its description: %v", cluster.ErrJob, spec.Run, err)
	}
	if d.Run != spec.Run {
		return nil, fmt.Errorf("%w: run %s has the description of run %.80q", cluster.ErrJob, spec.Run, d.Run)
	}
	keep := map[string]bool{ref.Digest: true}
	for _, s := range d.Sources {
		for _, f := range s.Files {
			keep[f.Digest] = true
		}
		if s.Table != nil {
			keep[s.Table.Digest] = true
		}
	}
	if d.Model != nil {
		keep[d.Model.Digest] = true
	}
	return d, l.files.prune(keep)
}

// strictJSON reads one value without unknown keys.
func strictJSON(text []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return err
	}
	if _, err := dec.Token(); err != io.EOF {
		return fmt.Errorf("more than one value")
	}
	return nil
}

// trains makes a session that trains.
func (l *loader) trains(ctx context.Context, spec cluster.Spec, d *description, o run.Options, blobs cluster.Blobs) (_ cluster.Session, err error) {
	s := &trainSession{sources: map[string]dataset.Source{}, averages: d.Load.Averages}
	load := run.Load{Options: o, Train: true, Shards: true, Mixed: d.Load.Mixed, Averages: d.Load.Averages, StepRows: d.Load.StepRows}
	load.Rows = d.Load.Rows
	for name, ref := range d.Sources {
		src, err := l.source(ctx, &ref, blobs)
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
		return nil, fmt.Errorf("%w: run %s has no training rows", cluster.ErrJob, spec.Run)
	}
	if s.plan, err = run.ReadCircuit(bytes.NewReader(d.Circuit), int64(len(d.Circuit)), train, d.Compile); err != nil {
		return nil, fmt.Errorf("%w: run %s: %w", cluster.ErrJob, spec.Run, err)
	}
	defer func() {
		if err != nil {
			s.plan.Close()
		}
	}()
	if err := sameProgram(spec, s.plan.Program); err != nil {
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

// answers makes a session that answers queries.
func (l *loader) answers(ctx context.Context, spec cluster.Spec, d *description, o run.Options, blobs cluster.Blobs) (cluster.Session, error) {
	if d.Model == nil {
		return nil, fmt.Errorf("%w: run %s has no model", cluster.ErrJob, spec.Run)
	}
	path, err := l.files.open(ctx, *d.Model, blobs)
	if err != nil {
		return nil, err
	}
	s := &querySession{kind: d.Kind}
	if s.plan, err = run.OpenModel(path, compile.Options{}); err != nil {
		return nil, badModel(spec, err)
	}
	if err := sameProgram(spec, s.plan.Program); err != nil {
		s.plan.Close()
		return nil, err
	}
	o.Engines = 1
	if s.pool, err = s.plan.Pool(ctx, o); err != nil {
		s.plan.Close()
		return nil, badModel(spec, fmt.Errorf("%s: %w", path, err))
	}
	err = s.pool.Do(ctx, 0, func(e *engine.Engine) error {
		info := e.Info().Device
		s.info = cluster.SessionInfo{Device: info.Name, Path: info.KernelPath, Precision: "fp32"}
		return nil
	})
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// badModel says that a run is to blame for a model that cannot be read.
func badModel(spec cluster.Spec, err error) error {
	if errors.Is(err, format.ErrModel) || errors.Is(err, format.ErrNoParams) {
		return badJob(spec.Run, "%w", err)
	}
	return err
}

// sameProgram refuses a program that is not the run's.
func sameProgram(spec cluster.Spec, p *layers.Program) error {
	digest := p.Digest()
	if have := hex.EncodeToString(digest[:]); have != spec.Program {
		return fmt.Errorf("run %s: the circuit compiles to %.12s here, to %.12s where the run was made; give all members the same version of pce",
			spec.Run, have, spec.Program)
	}
	return nil
}

// source opens the rows of a source.
func (l *loader) source(ctx context.Context, r *sourceRef, blobs cluster.Blobs) (src dataset.Source, err error) {
	if r.Options.Schema == nil {
		return nil, fmt.Errorf("%w: rows without a schema", cluster.ErrJob)
	}
	switch {
	case r.Builtin != "":
		if !isBuiltin(r.Builtin) {
			return nil, fmt.Errorf("%w: %.80q is no builtin source", cluster.ErrJob, r.Builtin)
		}
		src, err = dataset.Open(ctx, r.Builtin, r.Options)
	case r.Table != nil:
		var path string
		if path, err = l.files.open(ctx, *r.Table, blobs); err == nil {
			src, err = readTable(ctx, path, r.Options.Schema, r.Rows)
		}
	default:
		paths := make([]string, len(r.Files))
		for i, f := range r.Files {
			if paths[i], err = l.files.open(ctx, f, blobs); err != nil {
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

// isBuiltin reports whether a path names a source that the program makes itself.
func isBuiltin(path string) bool { return strings.HasPrefix(path, "builtin:") }
