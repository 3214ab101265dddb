package main

import (
	"context"
	"io"
	"math"
	"runtime/debug"

	"github.com/pce-engine/pce"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/run"
	"github.com/pce-engine/pce/serve"
	"github.com/pce-engine/pce/serve/oip"
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
		c.flops, c.bytes = 2*info.SumEdges, info.Memory.Total*int64(l.run.Engines)
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
	flops, bytes int64
	device       string
}

func (c *servedCircuit) Device() string { return c.device }
func (c *servedCircuit) Bytes() int64   { return c.bytes }

// Names of queries and their parameters.
const (
	queryLogProb = "log_prob"
	querySample  = "sample"
	paramSamples = "n_samples"
	paramSeed    = "seed"
)

// Queries lists what circuits answer.
func (c *servedCircuit) Queries() []serve.Query {
	columns := int64(len(c.Schema().Columns))
	samples := serve.Output{Name: "samples", Datatype: oip.FP32, Shape: []int64{columns}}
	for i := range c.Schema().Columns {
		if c.Schema().Columns[i].Kind == dataset.Continuous {
			samples.Datatype = oip.FP64
		}
	}
	return []serve.Query{
		{Name: queryLogProb, Flops: c.flops, Outputs: []serve.Output{{Name: "log_prob", Datatype: oip.FP32}}},
		{
			Name: querySample, Flops: 2 * c.flops, RowsOptional: true, Repeat: paramSamples,
			Outputs: []serve.Output{samples},
			Params:  []serve.Param{{Name: paramSamples, Default: int64(1), Min: 1, Max: math.MaxInt32}, {Name: paramSeed}},
		},
	}
}

// Run answers a query for a batch.
func (c *servedCircuit) Run(ctx context.Context, w *serve.Work) error {
	if w.Query == queryLogProb {
		ll, err := c.LogLikelihoodBatch(ctx, w.Batch)
		copy(w.Outputs[0], ll)
		return err
	}
	at := 0
	for _, p := range w.Parts { // each has its own seed
		rows := w.Batch.Slice(at, at+p.Rows)
		if err := c.SampleBatch(ctx, rows, p.Params[paramSeed].(uint64), p.First); err != nil {
			return err
		}
		c.numbers(rows, w.Outputs[0][at*len(rows.Columns):])
		at += p.Rows
	}
	return nil
}

// numbers writes the cells of b, row by row, as requests write them in x.
func (c *servedCircuit) numbers(b *dataset.Batch, out []float64) {
	columns := len(b.Columns)
	for v := range b.Columns {
		cells, column := &b.Columns[v], &c.Schema().Columns[v]
		labels := column.LabelNumbers()
		for row := range b.Rows {
			x := math.NaN()
			switch {
			case cells.IsMissing(row): // nothing was drawn: what the row says is impossible
			case !cells.Discrete():
				x = column.Number(cells.Values[row])
			case labels != nil:
				x = labels[cells.Codes.At(row)]
			default:
				x = float64(cells.Codes.At(row))
			}
			out[row*columns+v] = x
		}
	}
}
