package main

import (
	"cmp"
	"context"
	"io"
	"sync"

	"github.com/pce-engine/pce"
	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/run"
	"github.com/pce-engine/pce/serve"
)

// modelLoader opens circuits and forests for the server.
type modelLoader struct {
	run   run.Options
	notes io.Writer
	// under returns a forest's model under the server's schedule, and closes m where that is another; nil without one. It says which
	// schedule it chose unless it is asked to be quiet.
	under func(m *pce.Model, path string, quiet bool) (*pce.Model, error)
	large sync.Map   // path -> true, of models that take largeModel or more
	gc    sync.Mutex // held while GOGC is changed for one of them
}

// largeModel is what a model takes for which opening it collects garbage more often.
// A small one leaves little, and collecting it would slow the batches of a server
// that loads a new version.
const largeModel = 64 << 20

// Plan says what a model file takes: a circuit from its structure alone. A forest is opened for
// it and closed again, since its tables depend on how many thresholds are equal, and on the server's schedule. TellForest refuses a pipe:
// opening one waits for its writer, and with it would the model's next version and the end of the server.
func (l *modelLoader) Plan(ctx context.Context, path string) (int64, error) {
	if forest, err := run.TellForest(path); err != nil {
		return 0, err
	} else if forest {
		m, err := pce.Open(ctx, path, l.run)
		if err == nil && l.under != nil {
			m, err = l.under(m, path, true)
		}
		if err != nil {
			return 0, err
		}
		return m.ForestBytes(), m.Close()
	}
	how, err := l.run.How()
	if err != nil {
		return 0, err
	}
	b, err := run.OpenModelFor(how, path, l.run.Compile())
	if err != nil {
		return 0, err
	}
	defer b.Close()
	m, err := b.Memory(run.QueryLoad(l.run))
	if err != nil {
		return 0, err
	}
	bytes := m.Beside(l.run.Engines)
	if bytes >= largeModel {
		l.large.Store(path, true)
	}
	return bytes, nil
}

// Open opens a model file for the server, which has planned its memory before. A circuit
// lists the queries that it can answer. A large model has the garbage collector run more often while it is opened, one
// model at a time, since that setting is the process's.
func (l *modelLoader) Open(ctx context.Context, path string) (serve.Model, error) {
	if _, large := l.large.Load(path); large {
		l.gc.Lock()
		defer l.gc.Unlock()
		defer headroom(openGC)()
	}
	m, err := pce.Open(ctx, path, l.run)
	if err != nil {
		return nil, err
	}
	if m.Forest() != nil {
		if l.under != nil {
			if m, err = l.under(m, path, false); err != nil {
				return nil, err
			}
		}
		return newServedForest(m), nil
	}
	noteModel(l.notes, path, m)
	c := &servedCircuit{Model: m, leaves: numberLeaves(m), domains: circuit.RootDomains(m.Graph()), work: workOf(m.Graph())}
	info, err := m.Info()
	if err == nil {
		c.bytes, c.queries = info.Memory.Beside(l.run.Engines), servedQueries(m.Schema(), c.domains, c.work, m.MPEExact(), l.run.Soft)
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
	leaves  []circuit.Leaf // of columns whose leaves describe numbers; nil of others
	domains []int          // of columns, as circuit.RootDomains has them; -1: no leaf reads it
	work    rowWork
}

// numberLeaves returns a leaf of each column whose leaves describe numbers, and nil of others. Where some of a column's leaves take
// positive numbers alone it is one that takes all, as the engine has it: a number that one leaf takes is one of the column.
// Columns of bins have codes: every number is in one, or outside of them all.
func numberLeaves(m *pce.Model) []circuit.Leaf {
	leaves := make([]circuit.Leaf, len(m.Schema().Columns))
	g := m.Graph()
	used := circuit.Reachable(g)
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if n.Kind != circuit.Input || !used[i] || n.Leaf.Codes() > 0 {
			continue
		}
		if l := &leaves[n.Var]; *l == nil || n.Leaf.Check(-1) == nil {
			*l = n.Leaf
		}
	}
	return leaves
}

// CheckCell refuses what the leaves of a continuous column do not describe, such as fractions where they count. They see
// the number as rows have it, which may be scaled and rounded; the message has the number of the request unless rounding
// is what made it one that they refuse.
func (c *servedCircuit) CheckCell(column int, x float64) error {
	leaf := c.leaves[column]
	if leaf == nil {
		return nil
	}
	err := leaf.Check(float64(c.Schema().Columns[column].Standard(x)))
	if err == nil {
		return nil
	}
	return cmp.Or(leaf.Check(x), err)
}

// Device is the name of the device that computes. Models with the same name share one queue of
// batches.
func (c *servedCircuit) Device() string { return c.device }

// Bytes is what the model takes, of all engines together; the server adds these up against
// --max-memory.
func (c *servedCircuit) Bytes() int64 { return c.bytes }

// Queries lists what the circuit answers, with the operations of each per row, by which the
// server limits what a request may ask for.
func (c *servedCircuit) Queries() []serve.Query {
	list := make([]serve.Query, len(c.queries))
	for i := range list {
		list[i] = c.queries[i].Query
	}
	return list
}

// Run answers the query that w names for the rows of its batch, which may be those of several
// requests. Soft evidence is put into the batch first. A name that Queries does not list is a
// bug of the server.
func (c *servedCircuit) Run(ctx context.Context, w *serve.Work) error {
	for i := range c.queries {
		if c.queries[i].Name == w.Query {
			c.soften(w, c.queries[i].Inputs)
			return c.queries[i].run(c, ctx, w)
		}
	}
	panic("BUG: cmd/pce: the server asks for " + w.Query + ", which circuits do not answer")
}
