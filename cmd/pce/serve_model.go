package main

import (
	"context"
	"io"
	"runtime/debug"

	"github.com/pce-engine/pce"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/run"
	"github.com/pce-engine/pce/serve"
)

// circuitLoader opens circuits for the server.
type circuitLoader struct {
	run   run.Options
	notes io.Writer
}

// Plan says what a model file takes, from its structure alone.
func (l *circuitLoader) Plan(_ context.Context, path string) (int64, error) {
	b, err := run.OpenModel(path, compile.Options{})
	if err != nil {
		return 0, err
	}
	defer b.Close()
	m, err := b.Memory(run.QueryLoad(l.run))
	return m.Total * int64(l.run.Engines), err
}

// Open opens a model file.
func (l *circuitLoader) Open(ctx context.Context, path string) (serve.Model, error) {
	defer debug.SetGCPercent(debug.SetGCPercent(openGC))
	m, err := pce.Open(ctx, path, l.run)
	if err != nil {
		return nil, err
	}
	if m.Unchecked() {
		noteUnchecked(l.notes, path)
	}
	c := &servedCircuit{Model: m}
	info, err := m.Info()
	if err == nil {
		c.bytes, c.queries = info.Memory.Total*int64(l.run.Engines), servedQueries(m.Schema(), 2*info.SumEdges, m.MPEExact())
		c.device, err = deviceName(ctx, m)
	}
	if err != nil {
		m.Close()
		return nil, err
	}
	return c, nil
}

func deviceName(ctx context.Context, m *pce.Model) (string, error) {
	info, err := m.Device(ctx)
	return info.Name, err
}

// servedCircuit is a circuit as the server sees models.
type servedCircuit struct {
	*pce.Model
	bytes   int64
	device  string
	queries []servedQuery
}

func (c *servedCircuit) Device() string { return c.device }
func (c *servedCircuit) Bytes() int64   { return c.bytes }

// Queries lists what circuits answer.
func (c *servedCircuit) Queries() []serve.Query {
	list := make([]serve.Query, len(c.queries))
	for i := range list {
		list[i] = c.queries[i].Query
	}
	return list
}

// Run answers a query for a batch.
func (c *servedCircuit) Run(ctx context.Context, w *serve.Work) error {
	for i := range c.queries {
		if c.queries[i].Name == w.Query {
			return c.queries[i].run(c, ctx, w)
		}
	}
	panic("BUG: cmd/pce: the server asks for " + w.Query + ", which circuits do not answer")
}
