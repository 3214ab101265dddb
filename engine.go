package pce

import (
	"context"
	"fmt"
	"math"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/engine"
)

// Engine returns the circuit on a device, with its starting parameters. The
// memory is planned first and refused above l.MaxMemory.
func (b *Blueprint) Engine(ctx context.Context, l Load) (*engine.Engine, error) {
	e, err := b.bare(ctx, l)
	if err != nil || b.params == nil {
		return e, err
	}
	if err := b.write(ctx, e); err != nil {
		e.Close()
		return nil, err
	}
	return e, nil
}

// bare is Engine without parameters.
func (b *Blueprint) bare(ctx context.Context, l Load) (*engine.Engine, error) {
	l.Options = l.Options.withDefaults()
	if err := b.check(l); err != nil {
		return nil, err
	}
	o := engine.Options{Rows: l.Rows, Train: l.Train, Mixed: l.Mixed, StepRows: l.StepRows, OwnsDevice: true, LogScales: logScales(b.Schema), Bins: bins(b.Schema)}
	if l.Train && b.Train != nil {
		var err error
		if o.Ranges, err = b.ranges(ctx); err != nil {
			return nil, err
		}
		o.Limits = limits(b.Train.Schema(), o.Ranges)
	}
	dev, err := openDevice(l.Options)
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

// ranges returns the largest absolute value of each column of the training rows,
// or that of its logarithm where leaves are log-normal.
func (b *Blueprint) ranges(ctx context.Context) ([]float64, error) {
	src, any := b.Train, false
	for _, c := range src.Schema().Columns {
		any = any || c.Kind == dataset.Continuous
	}
	if !any {
		return codeRanges(src.Schema()), nil
	}
	sums, err := dataset.Summarize(ctx, src)
	if err != nil {
		return nil, err
	}
	r := make([]float64, len(sums))
	for i, s := range sums {
		r[i] = max(math.Abs(s.Min), math.Abs(s.Max))
	}
	for i := range b.Graph.Nodes {
		n := &b.Graph.Nodes[i]
		if n.Kind != circuit.Input || n.Leaf.Name() != (circuit.LogNormal{}).Name() {
			continue
		}
		if s := sums[n.Var]; s.Min > 0 {
			r[n.Var] = max(math.Abs(math.Log(s.Min)), math.Abs(math.Log(s.Max)))
		}
	}
	return r, nil
}

// bins returns the bins of columns with edges, nil if there are none.
func bins(s *dataset.Schema) []*engine.Bins {
	var all []*engine.Bins
	for i := range s.Columns {
		c := &s.Columns[i]
		if c.Edges == nil {
			continue
		}
		if all == nil {
			all = make([]*engine.Bins, len(s.Columns))
		}
		b := &engine.Bins{LogOutside: math.Log(c.Outside)}
		for k, e := range c.Edges {
			b.Edges = append(b.Edges, c.Standard(e))
			if k > 0 {
				b.LogWidth = append(b.LogWidth, math.Log(e-c.Edges[k-1]))
			}
		}
		all[i] = b
	}
	return all
}

// limits bounds the ranges of scaled columns, and returns the bounds where rows
// are beyond them; nil if none are.
func limits(s *dataset.Schema, ranges []float64) []float64 {
	var out []float64
	for i, r := range ranges {
		if s.Columns[i].Scale == 0 || r <= dataset.FarValue {
			continue
		}
		if out == nil {
			out = make([]float64, len(ranges))
		}
		ranges[i], out[i] = dataset.FarValue, dataset.FarValue
	}
	return out
}

// logScales returns LogScale of every column, nil if all are 0.
func logScales(s *dataset.Schema) []float64 {
	logs, any := make([]float64, len(s.Columns)), false
	for i := range logs {
		logs[i] = s.Columns[i].LogScale()
		any = any || logs[i] != 0
	}
	if !any {
		return nil
	}
	return logs
}

// codeRanges returns the largest code of each discrete column.
func codeRanges(s *dataset.Schema) []float64 {
	r := make([]float64, len(s.Columns))
	for i, c := range s.Columns {
		r[i] = float64(c.Categories)
	}
	return r
}

// paramWriter is what takes parameters in the layout of a program.
type paramWriter interface {
	WriteParams(ctx context.Context, offset int64, params []float32) error
}

// write moves the starting parameters to dst, one owner at a time.
func (b *Blueprint) write(ctx context.Context, dst paramWriter) error {
	var canonical, region []float32
	for i := range b.Map.Len() {
		if err := ctx.Err(); err != nil {
			return err
		}
		id := b.Map.Node(i)
		offset, n := b.Map.Region(i)
		canonical, region = sized(canonical, b.Graph.NumParams(id)), sized(region, n)
		if err := b.params(id, canonical); err != nil {
			return err
		}
		if err := b.Map.Pack(i, canonical, region); err != nil {
			return err
		}
		if err := dst.WriteParams(ctx, offset, region); err != nil {
			return err
		}
	}
	return nil
}

// paramReader is what holds parameters in the layout of a program.
type paramReader interface {
	ReadParams(ctx context.Context, offset int64, params []float32) error
}

// read returns a ParamFunc over a program's parameters. Nodes that the root
// cannot reach have no place there: they keep what they started with.
func (b *Blueprint) read(ctx context.Context, src paramReader) circuit.ParamFunc {
	owner := make(map[circuit.NodeID]int, b.Map.Len())
	for i := range b.Map.Len() {
		owner[b.Map.Node(i)] = i
	}
	var region []float32
	return func(id circuit.NodeID, dst []float32) error {
		i, ok := owner[id]
		if !ok {
			return b.params(id, dst)
		}
		offset, n := b.Map.Region(i)
		region = sized(region, n)
		if err := src.ReadParams(ctx, offset, region); err != nil {
			return fmt.Errorf("pce: read parameters of node %d: %w", id, err)
		}
		return b.Map.Unpack(i, region, dst)
	}
}

// sized returns a slice of n floats in the memory of buf if it has room.
func sized(buf []float32, n int) []float32 {
	if cap(buf) < n {
		return make([]float32, n)
	}
	return buf[:n]
}
