package run

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"slices"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/dataset"
)

// farLimits returns the largest absolute value of each column that training takes, 0 where it takes all: FarValue of a
// column that is stored in units of its spread. One of Gaussian leaves that is stored as it is, as of a network of another program, has
// as many spreads beyond its median, once sums are known: statistics of one value far from 0 leave those of the others too few digits
// for a variance.
func (b *Blueprint) farLimits(sums []dataset.Summary) []float64 {
	schema := b.Schema
	if b.Train != nil {
		schema = b.Train.Schema()
	}
	most := make([]float64, len(schema.Columns))
	for v := range most {
		if c := &schema.Columns[v]; c.Scale != 0 {
			most[v] = dataset.FarValue
		} else if c.Kind == dataset.Continuous && sums != nil && sums[v].Spread > 0 {
			most[v] = math.Abs(sums[v].Median) + dataset.FarValue*sums[v].Spread
		}
	}
	for i := range b.Graph.Nodes {
		n := &b.Graph.Nodes[i]
		if n.Kind != circuit.Input {
			continue
		}
		_, normal := n.Leaf.(circuit.Gaussian)
		if !leavesOutFar(n.Leaf) || schema.Columns[n.Var].Scale == 0 && !normal {
			most[n.Var] = 0
		}
	}
	return most
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
	for v, most := range b.limits(ranges, sums) {
		if most == 0 || schema.Columns[v].Scale != 0 {
			continue
		}
		far := all[v].Max
		if -all[v].Min > far {
			far = all[v].Min
		}
		log.Warn(fmt.Sprintf("%s has numbers such as %v, more than %d times its spread of %.3g away from %.6g; training takes those as missing: list them in data.missing if they mark missing cells",
			schema.ColumnName(v), float32(far), dataset.FarValue, sums[v].Spread, sums[v].Median))
	}
	return nil
}
