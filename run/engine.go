package run

import (
	"context"
	"math"
	"slices"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/engine"
)

// Engine returns the circuit on a device, with its starting parameters. The
// memory is planned first and refused above l.MaxMemory.
func (b *Blueprint) Engine(ctx context.Context, l Load) (*engine.Engine, error) {
	if b.Code != nil {
		return nil, errCode
	}
	e, err := b.bare(ctx, l)
	if err != nil || b.params == nil {
		return e, err
	}
	if err := b.write(ctx, e, l.Train); err != nil {
		e.Close()
		return nil, err
	}
	return e, nil
}

// Runner returns the circuit on a device for queries: an engine, or code. The memory is
// planned first and refused above l.MaxMemory.
func (b *Blueprint) Runner(ctx context.Context, l Load) (engine.Runner, error) {
	if b.Code != nil {
		return b.code(ctx, l)
	}
	return b.Engine(ctx, l)
}

// Pool returns up to o.Engines runners for queries, with the starting parameters. A
// runner takes fewer rows at a time than o.Rows where its calls ask for fewer or
// o.MaxMemory wants it, which is for all of them together. Close the pool before the Blueprint.
func (b *Blueprint) Pool(ctx context.Context, o Options) (*engine.Pool[engine.Runner], error) {
	o, rows, err := b.within(o)
	if err != nil {
		return nil, err
	}
	return engine.OpenPool(ctx, o.Engines, rows, func(ctx context.Context, rows int) (engine.Runner, error) {
		o := o
		o.Rows = rows
		return b.Runner(ctx, QueryLoad(o))
	})
}

// within returns the options of the runners of a pool, each with its part of o.MaxMemory, and the rows of their launches.
func (b *Blueprint) within(o Options) (Options, engine.LaunchRows, error) {
	if b.Code != nil {
		o = o.forCode()
	}
	o = o.withDefaults()
	rows, err := b.queryRows(o)
	if err == nil {
		err = b.share(&o, rows.Most)
	}
	return o, rows, err
}

// PoolLoad says how the runners of a Pool run the circuit at most: in launches of the rows that o.MaxMemory leaves them.
func (b *Blueprint) PoolLoad(o Options) (Load, error) {
	o, rows, err := b.within(o)
	o.Rows = rows.Most
	return QueryLoad(o), err
}

// bare opens the device that l names and makes an engine on it, whose parameters are not
// written yet: the caller writes all of them before the first pass, and closes the engine,
// which closes the device. A plan above l.MaxMemory is refused before anything is allocated.
// Where it fails, nothing stays open.
func (b *Blueprint) bare(ctx context.Context, l Load) (*engine.Engine, error) {
	l.Options = l.Options.withDefaults()
	if err := b.check(l); err != nil {
		return nil, err
	}
	o := engine.Options{Rows: l.Rows, Train: l.Train, Queries: l.Queries, Mixed: l.Mixed, StepRows: l.StepRows, OwnsDevice: true, Schema: b.Schema}
	if l.Train && (b.Train != nil || l.AnyRows) {
		var sums []dataset.Summary
		var err error
		if o.Ranges, sums, err = b.ranges(ctx); err != nil {
			return nil, err
		}
		o.Limits = b.limits(o.Ranges, sums)
	}
	at, err := l.place()
	if err != nil {
		return nil, err
	}
	dev, err := at.Open(l.device())
	if err != nil {
		return nil, err
	}
	e, err := engine.New(ctx, dev, b.Program, o)
	if err != nil {
		dev.Close()
		return nil, err
	}
	return e, nil
}

// ranges returns the least and the largest value of each column of the training rows, or those that float32
// has where rows may be any, and what is known of the rows where some are continuous.
func (b *Blueprint) ranges(ctx context.Context) ([]engine.Range, []dataset.Summary, error) {
	src, any := b.Train, false
	if src == nil {
		return slices.Repeat([]engine.Range{{Min: -math.MaxFloat32, Max: math.MaxFloat32}}, len(b.Schema.Columns)), nil, nil
	}
	for _, c := range src.Schema().Columns {
		any = any || c.Kind == dataset.Continuous
	}
	if !any {
		return codeRanges(src.Schema()), nil, nil
	}
	sums, err := dataset.Summarize(ctx, src)
	if err != nil {
		return nil, nil, err
	}
	r := make([]engine.Range, len(sums))
	for i, s := range sums {
		r[i] = engine.Range{Min: s.Min, Max: s.Max}
	}
	return r, sums, nil
}

// limits bounds the ranges of columns with far values, and returns the bounds where rows
// are beyond them; nil if none are.
func (b *Blueprint) limits(ranges []engine.Range, sums []dataset.Summary) []engine.Range {
	var out []engine.Range
	for i, near := range b.farLimits(sums) {
		r := &ranges[i]
		if !beyond(near, r.Min, r.Max) {
			continue
		}
		if out == nil {
			out = make([]engine.Range, len(ranges))
		}
		*r, out[i] = engine.Range{Min: max(r.Min, near.Min), Max: min(r.Max, near.Max)}, near
	}
	return out
}

// leavesOutFar reports whether far values of a scaled column are missing where leaves are
// trained. They are not where a leaf has bins, or learns from logarithms, which are never far.
func leavesOutFar(l circuit.Leaf) bool {
	return l.Codes() == 0 && l.Name() != (circuit.LogNormal{}).Name()
}

// nearby returns rows as leaves are trained on them, one leaf for each column.
func nearby(src dataset.Source, leaves []circuit.Leaf) dataset.Source {
	var columns []int
	for v, l := range leaves {
		if c := &src.Schema().Columns[v]; c.Kind == dataset.Continuous && c.Scale != 0 && leavesOutFar(l) {
			columns = append(columns, v)
		}
	}
	return dataset.Nearby(src, columns)
}

// codeRanges returns the codes of each discrete column.
func codeRanges(s *dataset.Schema) []engine.Range {
	r := make([]engine.Range, len(s.Columns))
	for i, c := range s.Columns {
		r[i].Max = float64(c.Categories)
	}
	return r
}
