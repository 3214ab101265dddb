// Package engine runs compiled programs on devices.
//
// A Runner turns rows into numbers, whatever its program is. Engine is that of a
// circuit's tensor program: with log-likelihoods it gives expected counts,
// parameter updates and samples. A Pool lends runners to many calls at a time.
//
// # Shapes and units
//
// Rows come as dataset batches, [row, variable]. Log-likelihoods are float64
// natural logs, one per row.
//
// # Errors
//
// Errors of the data match dataset.ErrFormat, errors of the device
// kernels.ErrDevice or kernels.ErrMemory.
//
// # Source
//
// Flows follow Liu, Ahmed, Van den Broeck, "Scaling Tractable Probabilistic
// Circuits: A Systems Perspective", ICML 2024. Their sum over shards is an
// integer sum on a fixed grid, so its bits do not depend on the order.
package engine

import (
	"context"
	"fmt"
	"math"

	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/tensor"
	"github.com/pce-engine/pce/layers"
)

// MaxShardRows is the most rows whose flows are added up in float32.
const MaxShardRows = 2048

// Options choose how an engine works.
type Options struct {
	Rows  int  // the most rows per call of the program; more take several calls. 0: 512
	Train bool // flows and updates can be computed
	// Queries says that conditionals, moments and most probable completions can be
	// computed.
	Queries bool
	Mixed   bool // products of lower precision where the device has them
	// Ranges holds, for each variable, the values that its leaves without codes will
	// see in training; they scale their statistics. nil: these are 1 at most.
	Ranges []Range
	// StepRows is the most rows between two updates. 0: 2^22, the most that
	// the finest grid of counts can hold.
	StepRows int64
	// Limits holds, for each variable, the values that a training step uses; it treats others
	// as missing. The zero Range or nil: no limit.
	Limits []Range
	// Schema says what a row is: of which numbers the cells of a column are stored, as
	// log-likelihoods are of the numbers, and which bins the codes of a histogram over
	// values mean. nil: cells are the numbers.
	Schema *dataset.Schema
	// OwnsDevice says that Close closes the device too.
	OwnsDevice bool
}

// Range is all values from Min to Max, as cells are stored.
type Range struct{ Min, Max float64 }

// Engine is a program on a device with its parameters. It is not safe for
// concurrent use.
type Engine struct {
	prog   *layers.Program
	dev    kernels.Device
	owns   bool // the device
	closed bool
	rows   int
	// families holds, for each column, the family of its leaves that takes the most numbers: all of a variable
	// share one domain, but some leaves have only the positive ones of real numbers.
	families []layers.Family
	exec     tensor.Program
	params   kernels.Buffer
	slots    []slot         // one, or two on a device that works while rows are copied; passes take turns
	loaded   int64          // passes that have taken a slot
	flows    kernels.Buffer // nil until the first Accumulate
	scales   [][]float64    // of statistics, see layers.Module
	grid     float64        // the unit of flows, in rows
	most     int64          // rows that may be added up between two updates
	added    int64          // rows added up since the last one

	// Of Anemone; nil until they are first asked for.
	averages, topDown kernels.Buffer
	// posterior is the output of Posteriors, nil until it is first asked for, and taken room for it on the host.
	posterior kernels.Buffer
	taken     []float32

	logScales  []float64       // of variables; nil: zeros
	limits     []Range         // of variables; nil: none
	schema     *dataset.Schema // nil: not told
	bins       []*bins         // of variables; nil: none has any
	soft       *softRows       // nil: the program has no rows of evidence
	code       codes           // [coded columns, rows]
	value      []float32       // [value columns, rows]
	lls        [2][]float64
	recomputed int64
}

// New loads a program on a device and allocates what every call needs. Its parameters are zeros
// until WriteParams. Rows out of range, a device that lacks memory and a schema that does not
// fit the program are errors, after which nothing is left on the device; Close of the engine
// closes the device only if it owns it.
func New(ctx context.Context, dev kernels.Device, prog *layers.Program, o Options) (*Engine, error) {
	if o.Rows == 0 {
		o.Rows = 512
	}
	if o.Rows < 1 || o.Rows > MaxShardRows {
		return nil, fmt.Errorf("%w: %d rows per call, want 1..%d", kernels.ErrDevice, o.Rows, MaxShardRows)
	}
	e := &Engine{prog: prog, dev: dev, owns: o.OwnsDevice, rows: o.Rows, limits: o.Limits}
	err := e.describe(o.Schema)
	if err != nil {
		return nil, err
	}
	e.scales = statScales(prog, o.Ranges)
	mod := layers.Module{Program: prog, Rows: o.Rows, Train: o.Train, Queries: o.Queries, Mixed: o.Mixed, Scales: e.scales, StepRows: o.StepRows}
	e.grid, e.most = prog.Grid(o.StepRows), max(o.StepRows, 1<<22)
	if e.exec, err = kernels.LoadAs[tensor.Program](ctx, dev, mod); err != nil {
		return nil, err
	}
	e.families = make([]layers.Family, len(prog.Columns))
	for _, in := range prog.Inputs {
		if f := &e.families[in.Column]; *f == nil || in.Family.Check(-1) == nil {
			*f = in.Family
		}
	}
	if err = e.alloc(ctx); err == nil {
		err = e.needSoft(ctx)
	}
	if err != nil {
		e.free()
		return nil, err
	}
	return e, nil
}

// alloc makes the buffers that every call needs: the parameters, and codes, values and results
// of each slot. Where it fails, free releases what there is.
func (e *Engine) alloc(ctx context.Context) (err error) {
	prog, dev := e.prog, e.dev
	coded, valued := 0, 0
	for _, c := range prog.Columns {
		if c.Codes > 0 {
			coded++
		} else {
			valued++
		}
	}
	if e.params, err = dev.Alloc(ctx, kernels.Float32, int(prog.NumParams)); err != nil {
		return err
	}
	e.code, e.value = newCodes(prog.WideCodes(), coded*e.rows), make([]float32, valued*e.rows)
	e.slots = make([]slot, slots(dev.Info()))
	for i := range e.slots {
		s := &e.slots[i]
		s.excess = make([]float64, e.rows)
		for _, b := range []struct {
			buf *kernels.Buffer
			t   kernels.DType
			n   int
		}{
			{&s.codes, e.code.dtype(), coded * e.rows},
			{&s.values, kernels.Float32, valued * e.rows},
			{&s.ll, kernels.Float64, e.rows},
		} {
			if *b.buf, err = dev.Alloc(ctx, b.t, b.n); err != nil {
				return err
			}
		}
	}
	for i := range e.lls {
		e.lls[i] = make([]float64, e.rows)
	}
	return nil
}

// statScales gives each statistic of leaves without codes a power of two that no row exceeds: for each owner of
// parameters, the least one for the largest statistic of all inputs that share them, however small that is, as a variance
// is what squares leave beside the square of a mean. Statistics are largest at an end of a range, or, of logarithms, near 0.
// Those of shares have none, and those that are 0 in all rows have 1.
func statScales(p *layers.Program, ranges []Range) [][]float64 {
	scales := make([][]float64, len(p.Inputs))
	for _, i := range p.Functions() {
		in := &p.Inputs[i]
		v := int(p.Columns[in.Column].Var)
		if v >= len(ranges) || layers.StatsAreShares(in.Family) {
			continue
		}
		of := &scales[in.Owner]
		if *of == nil {
			*of = make([]float64, in.Family.NumStats())
		}
		stats := make([]float64, len(*of))
		ends := []float64{ranges[v].Min, ranges[v].Max}
		if ranges[v].Min <= 0 && ranges[v].Max > 0 {
			ends = append(ends, math.SmallestNonzeroFloat32)
		}
		for _, x := range ends {
			in.Family.Stats(x, stats)
			for k, s := range stats {
				if s = math.Abs(s); s < math.MaxFloat64/2 { // else it is that of no cell: of the logarithm of 0, say
					(*of)[k] = max((*of)[k], s)
				}
			}
		}
	}
	for _, of := range scales {
		for k, s := range of {
			of[k] = 1
			if s > 0 {
				of[k] = math.Exp2(math.Ceil(math.Log2(s)))
			}
		}
	}
	return scales
}

// Close frees the engine's program and buffers, and closes its device if it owns
// it. It may be called more than once.
func (e *Engine) Close() error {
	e.free()
	if e.owns {
		return e.dev.Close()
	}
	return nil
}

// free gives back what the engine has on its device.
func (e *Engine) free() {
	e.closed = true
	e.exec.Free()
	all := []kernels.Buffer{e.params, e.flows, e.averages, e.topDown, e.posterior}
	for i := range e.slots {
		s := &e.slots[i]
		all = append(all, s.codes, s.values, s.ll)
	}
	for _, b := range all {
		if b != nil {
			b.Free()
		}
	}
}

// Program returns the program that the engine runs.
func (e *Engine) Program() *layers.Program { return e.prog }

// Schema says what a row is, nil if New was not told.
func (e *Engine) Schema() *dataset.Schema { return e.schema }

// Info describes the engine, which gives a log-likelihood for each row.
func (e *Engine) Info() Info { return Info{Device: e.dev.Info(), Rows: e.rows, Outputs: 1} }

// Precision says where the engine's program has products of lower precision.
func (e *Engine) Precision() tensor.Precision { return e.exec.Precision() }

// Meter returns what the device measures of itself, nil if it does not.
func (e *Engine) Meter() kernels.Meter {
	m, _ := e.dev.(kernels.Meter)
	return m
}

// Recomputed is the number of (vector, row) pairs that forward passes have
// recomputed in log space so far.
func (e *Engine) Recomputed() int64 { return e.recomputed }

// WriteParams copies parameters to the parameter buffer at offset.
func (e *Engine) WriteParams(ctx context.Context, offset int64, params []float32) error {
	if err := e.dev.Write(ctx, e.params, int(offset), params); err != nil || e.soft == nil {
		return err
	}
	e.soft.forgetAll()
	return e.writeOnes(ctx, offset, offset+int64(len(params)))
}

// ReadParams copies parameters from the parameter buffer at offset.
func (e *Engine) ReadParams(ctx context.Context, offset int64, params []float32) error {
	return e.dev.Read(ctx, params, e.params, int(offset))
}

// check refuses rows that are not in the batch, or more than one call takes.
func (e *Engine) check(b *dataset.Batch, lo, hi int, ll []float64) error {
	if lo < 0 || lo >= hi || hi > b.Rows || hi-lo > e.rows || len(ll) < hi-lo {
		return fmt.Errorf("%w: rows %d..%d of %d with space for %d log-likelihoods; want 1..%d rows per call",
			dataset.ErrFormat, lo, hi-1, b.Rows, len(ll), e.rows)
	}
	return nil
}

// LogLikelihood writes the natural log-likelihood of every row of b to ll.
// Missing cells are marginalised; an impossible row gives -Inf.
func (e *Engine) LogLikelihood(ctx context.Context, b *dataset.Batch, ll []float64) error {
	return EvaluateBatch(ctx, e, b, ll)
}

// Step does one training step on the rows lo..hi-1 of b as one shard, at most
// Rows: log-likelihoods to ll, expected counts, and the update, fused.
func (e *Engine) Step(ctx context.Context, b *dataset.Batch, lo, hi int, rule tensor.Rule, ll []float64) error {
	p, err := e.LoadStep(ctx, b, lo, hi, ll)
	if err != nil {
		return err
	}
	if err := p.Step(ctx, rule); err != nil {
		return err
	}
	return p.Wait(ctx)
}

// Accumulate adds the expected counts of the rows lo..hi-1 of b, as one shard,
// to the flows. Any order of shards gives the same bits.
func (e *Engine) Accumulate(ctx context.Context, b *dataset.Batch, lo, hi int, ll []float64) error {
	p, err := e.LoadStep(ctx, b, lo, hi, ll)
	if err != nil {
		return err
	}
	if err := p.Accumulate(ctx); err != nil {
		return err
	}
	return p.Wait(ctx)
}
