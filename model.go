package pce

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/engine"
	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/run"
)

// Model is a circuit with parameters, ready for queries. It is safe for
// concurrent use.
type Model struct {
	plan  *run.Blueprint
	opts  Options
	pool  *engine.Pool[*engine.Engine]
	exact func() bool  // whether max-product gives most probable completions
	close func() error // does its work once
}

// Info describes a circuit and its program.
type Info = run.Info

// QueryInfo says how a circuit answers a query.
type QueryInfo = run.QueryInfo

// Open opens the model file at path, native or text, gzip included. Every
// parameter must be in the file. Close it.
func Open(ctx context.Context, path string, opts Options) (*Model, error) {
	b, err := run.OpenModel(path, compile.Options{})
	if err != nil {
		return nil, err
	}
	m, err := newModel(ctx, b, opts)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}

// New makes a model of a circuit made by hand, whose parameters params gives.
func New(ctx context.Context, g *circuit.Graph, params circuit.ParamFunc, opts Options) (*Model, error) {
	b, err := run.FromGraph(g, params, compile.Options{})
	if err != nil {
		return nil, err
	}
	return newModel(ctx, b, opts)
}

// newModel makes the first engine at once, so that bad parameters show early. It
// closes the Blueprint where it fails.
func newModel(ctx context.Context, b *run.Blueprint, opts Options) (*Model, error) {
	pool, err := b.Pool(ctx, opts)
	if err != nil {
		b.Close()
		return nil, err
	}
	end := sync.OnceValue(func() error { return errors.Join(pool.Close(), b.Close()) })
	return &Model{b, opts, pool, sync.OnceValue(b.MPEExact), end}, nil
}

// do calls use with an engine for a call over so many rows.
func (m *Model) do(ctx context.Context, rows int, use func(*engine.Engine) error) error {
	err := m.pool.Do(ctx, rows, use)
	if errors.Is(err, engine.ErrClosed) {
		return ErrClosed
	}
	return err
}

// Schema says what a row of the model is: columns, categories, labels. It must
// not be changed.
func (m *Model) Schema() *dataset.Schema { return m.plan.Schema }

// Unchecked reports whether the model comes from a file of an earlier version,
// which has no checksum: damage to its parameters need not show.
func (m *Model) Unchecked() bool { return m.plan.Unchecked }

// Graph returns the circuit. It must not be changed.
func (m *Model) Graph() *circuit.Graph { return m.plan.Graph }

// Info describes the model; its memory is that of one of its engines.
func (m *Model) Info() (*Info, error) { return m.plan.Info(run.QueryLoad(m.opts)) }

// Queries says how the model answers each query: exactly, or not, and what that depends on.
func (m *Model) Queries() []QueryInfo { return m.plan.Queries() }

// Device describes the device that the model runs on.
func (m *Model) Device(ctx context.Context) (info kernels.Info, err error) {
	err = m.do(ctx, 0, func(e *engine.Engine) error {
		info = e.Info().Device
		return nil
	})
	return info, err
}

// Save writes the model to a native model file.
func (m *Model) Save(ctx context.Context, path string) error {
	return m.do(ctx, 0, func(e *engine.Engine) error { return m.plan.Save(ctx, path, e, nil) })
}

// Close waits for running calls and frees the model's memory. Later calls fail
// with ErrClosed; a second Close does nothing more.
func (m *Model) Close() error { return m.close() }
