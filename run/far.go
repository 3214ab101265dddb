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
	read := make([]bool, len(near))
	for i := range b.Graph.Nodes {
		n := &b.Graph.Nodes[i]
		if n.Kind != circuit.Input {
			continue
		}
		read[n.Var] = true
		_, normal := n.Leaf.(circuit.Gaussian)
		if !leavesOutFar(n.Leaf) || schema.Columns[n.Var].Scale == 0 && !normal {
			near[n.Var] = engine.Range{}
		}
	}
	for v := range near {
		if !read[v] { // nor is there anything to tell of
			near[v] = engine.Range{}
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

// warnFar tells of columns with numbers that training leaves out: of unscaled ones, and of those that are stored in units of another
// table, as of a model that is trained further. Others are told of where their units are found.
func (b *Blueprint) warnFar(ctx context.Context, log *slog.Logger, others bool) error {
	told := func(n *circuit.Node) bool {
		return n.Kind == circuit.Input && (b.unscaled(n) || others && leavesOutFar(n.Leaf) && b.Train.Schema().Columns[n.Var].Scale != 0)
	}
	if log == nil || !slices.ContainsFunc(b.Graph.Nodes, func(n circuit.Node) bool { return told(&n) }) {
		return nil
	}
	ranges, sums, err := b.ranges(ctx)
	if err != nil {
		return err
	}
	all, schema := slices.Clone(ranges), b.Train.Schema()
	for v, near := range b.limits(ranges, sums) {
		c := &schema.Columns[v]
		if near == (engine.Range{}) || c.Scale != 0 && !others {
			continue
		}
		median, spread, whose := sums[v].Median, sums[v].Spread, "its spread"
		if c.Scale != 0 {
			median, spread, whose = 0, c.Scale, "the model's spread"
		}
		far := all[v].Max
		if median-all[v].Min > far-median {
			far = all[v].Min
		}
		log.Warn(fmt.Sprintf("%s has numbers such as %v, more than %d times %s of %.3g away from %.6g; training takes those as missing: list them in data.missing if they mark missing cells",
			schema.ColumnName(v), float32(c.Number(float32(far))), dataset.FarValue, whose, spread, c.Number(float32(median))))
	}
	return nil
}
