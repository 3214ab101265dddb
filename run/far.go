package run

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/engine"
)

// farLimits returns the values of each column that training takes, the zero Range where it takes all: those within FarValue of a
// column that is stored in units of its spread around its median. One of Gaussian leaves that is stored as it is, as of a network of
// another program, has as many spreads around its median, once sums are known: statistics of one value far from the others leave those
// too few digits for a variance, and one unit would become as wide as the distance.
func (b *Blueprint) farLimits(sums []dataset.Summary) []engine.Range {
	schema := b.Schema
	if b.Train != nil {
		schema = b.Train.Schema()
	}
	near := make([]engine.Range, len(schema.Columns))
	for v := range near {
		if c := &schema.Columns[v]; c.Scale != 0 {
			near[v] = engine.Range{Min: -dataset.FarValue, Max: dataset.FarValue}
		} else if c.Kind == dataset.Continuous && sums != nil && sums[v].Spread > 0 {
			s := &sums[v]
			near[v] = engine.Range{Min: s.Median - dataset.FarValue*s.Spread, Max: s.Median + dataset.FarValue*s.Spread}
		}
	}
	for i := range b.Graph.Nodes {
		n := &b.Graph.Nodes[i]
		if n.Kind != circuit.Input {
			continue
		}
		_, normal := n.Leaf.(circuit.Gaussian)
		if !leavesOutFar(n.Leaf) || schema.Columns[n.Var].Scale == 0 && !normal {
			near[n.Var] = engine.Range{}
		}
	}
	return near
}

// beyond reports whether a column has values outside of those that training takes.
func beyond(near engine.Range, least, most float64) bool {
	return near != (engine.Range{}) && (least < near.Min || most > near.Max)
}

// unscaled reports whether a node is a Gaussian leaf of a column that is stored as it is, and not in units of its spread.
func (b *Blueprint) unscaled(n *circuit.Node) bool {
	_, normal := n.Leaf.(circuit.Gaussian)
	return normal && b.Train.Schema().Columns[n.Var].Scale == 0
}

// warnFar tells of unscaled columns with numbers that training leaves out. Those of scaled ones are told of where rows are read.
func (b *Blueprint) warnFar(ctx context.Context, log *slog.Logger) error {
	if log == nil || !slices.ContainsFunc(b.Graph.Nodes, func(n circuit.Node) bool { return b.unscaled(&n) }) {
		return nil
	}
	ranges, sums, err := b.ranges(ctx)
	if err != nil {
		return err
	}
	all, schema := slices.Clone(ranges), b.Train.Schema()
	for v, near := range b.limits(ranges, sums) {
		if near == (engine.Range{}) || schema.Columns[v].Scale != 0 {
			continue
		}
		far := all[v].Max
		if sums[v].Median-all[v].Min > far-sums[v].Median {
			far = all[v].Min
		}
		log.Warn(fmt.Sprintf("%s has numbers such as %v, more than %d times its spread of %.3g away from %.6g; training takes those as missing: list them in data.missing if they mark missing cells",
			schema.ColumnName(v), float32(far), dataset.FarValue, sums[v].Spread, sums[v].Median))
	}
	return nil
}
