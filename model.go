package pce

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/format/native"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/engine"
	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/layers"
)

// Model is a circuit with parameters, ready for queries. It is safe for
// concurrent use.
type Model struct {
	plan   *Blueprint
	opts   Options
	rows   launchRows
	idle   chan *engine.Engine // engines that nobody uses
	fresh  chan struct{}       // permits to make one more
	closed chan struct{}       // one token until Close takes it
	done   chan struct{}       // closed by Close
}

// Open opens the model file at path, native or text, gzip included. Every
// parameter must be in the file. Close it.
func Open(ctx context.Context, path string, opts Options) (*Model, error) {
	b := &Blueprint{close: func() error { return nil }}
	err := b.fromFile(path)
	if err == nil {
		err = b.compile(compile.DefaultOptions())
	}
	if err != nil {
		b.Close()
		return nil, err
	}
	m, err := newModel(ctx, b, opts)
	if err != nil {
		b.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}

// New makes a model of a circuit made by hand, whose parameters params gives.
func New(ctx context.Context, g *circuit.Graph, params circuit.ParamFunc, opts Options) (*Model, error) {
	b, err := Build(ctx, Structure{Graph: g}, nil, compile.DefaultOptions())
	if err != nil {
		return nil, err
	}
	b.params = params
	return newModel(ctx, b, opts)
}

// newModel makes the first engine at once, so that bad parameters show early.
func newModel(ctx context.Context, b *Blueprint, opts Options) (*Model, error) {
	opts = opts.withDefaults()
	if err := opts.validate(); err != nil {
		return nil, err
	}
	m := &Model{
		plan: b, opts: opts,
		idle:   make(chan *engine.Engine, opts.Engines),
		fresh:  make(chan struct{}, opts.Engines),
		closed: make(chan struct{}, 1),
		done:   make(chan struct{}),
	}
	var err error
	if m.rows, err = b.queryRows(opts); err != nil {
		return nil, err
	}
	m.closed <- struct{}{}
	for range opts.Engines {
		m.fresh <- struct{}{}
	}
	e, err := m.acquire(ctx, 1)
	if err != nil {
		return nil, err
	}
	m.idle <- e
	return m, nil
}

// acquire returns an engine for a call that asks for the given number of rows. It is the
// caller's until it is put into m.idle.
func (m *Model) acquire(ctx context.Context, rows int) (*engine.Engine, error) {
	e, err := m.take(ctx, rows)
	if err != nil || e.Rows() >= m.rows.of(rows) {
		return e, err
	}
	// The engine was made for fewer rows; one at a time is in memory.
	if err := e.Close(); err != nil {
		m.fresh <- struct{}{}
		return nil, err
	}
	return m.open(ctx, rows)
}

// open makes an engine, for which the caller has the permit.
func (m *Model) open(ctx context.Context, rows int) (*engine.Engine, error) {
	o := m.opts
	o.Rows = m.rows.of(rows)
	e, err := m.plan.Engine(ctx, Load{Options: o})
	if err != nil {
		m.fresh <- struct{}{}
	}
	return e, err
}

// take returns an idle engine of any size, or one that is made for the given number of rows.
func (m *Model) take(ctx context.Context, rows int) (*engine.Engine, error) {
	select {
	case <-m.done:
		return nil, ErrClosed
	default:
	}
	select {
	case e := <-m.idle:
		return e, nil
	default:
	}
	select {
	case e := <-m.idle:
		return e, nil
	case <-m.fresh:
		return m.open(ctx, rows)
	case <-m.done:
		return nil, ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Schema says what a row of the model is: columns, categories, labels. It must
// not be changed.
func (m *Model) Schema() *dataset.Schema { return m.plan.Schema }

// Unchecked reports whether the model comes from a file of an earlier version,
// which has no checksum: damage to its parameters need not show.
func (m *Model) Unchecked() bool { return m.plan.unchecked }

// Graph returns the circuit. It must not be changed.
func (m *Model) Graph() *circuit.Graph { return m.plan.Graph }

// Program returns what the circuit was compiled to. It must not be changed.
func (m *Model) Program() *layers.Program { return m.plan.Program }

// Device describes the device that the model runs on.
func (m *Model) Device(ctx context.Context) (kernels.Info, error) {
	e, err := m.acquire(ctx, 1)
	if err != nil {
		return kernels.Info{}, err
	}
	defer func() { m.idle <- e }()
	return e.Device(), nil
}

// Save writes the model to a native model file.
func (m *Model) Save(ctx context.Context, path string) error {
	e, err := m.acquire(ctx, 1)
	if err != nil {
		return err
	}
	defer func() { m.idle <- e }()
	return m.plan.save(ctx, path, e, nil)
}

// save writes parameters with the model's structure and schema.
func (b *Blueprint) save(ctx context.Context, path string, params paramReader, meta map[string]string) error {
	text, err := json.Marshal(b.Schema)
	if err != nil {
		return err
	}
	all := maps.Clone(b.meta)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, meta)
	all[metaSchema] = string(text)
	return native.Write(path, b.Graph, all, b.read(ctx, params))
}

// Close waits for running calls and frees the model's memory. Later calls fail
// with ErrClosed; a second Close does nothing.
func (m *Model) Close() error {
	select {
	case <-m.closed:
	default:
		return nil
	}
	close(m.done)
	for range m.opts.Engines {
		select {
		case e := <-m.idle:
			e.Close()
		case <-m.fresh:
		}
	}
	return m.plan.Close()
}
