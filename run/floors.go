package run

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"math"
	"slices"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/format"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/engine"
)

// Squares are added up in steps of 2^-40 of the largest one, and a variance is what they leave beside the square of the mean. Units
// narrower than digits of the largest number would have that of roundings alone. Those of equal numbers, which are given as narrow, may
// be.
const (
	digits     = 0x1p-22
	leastFloor = 0x1p-60 // of which float32 holds the square
)

// lowerFloors gives Gaussian and log-normal leaves without a floor of their own a lower one than the family's where that would be too
// wide. It is 0.01, a hundredth of the spread of a column that is stored in units of it, but the columns of circuits that were made
// elsewhere may be stored as they are: training would widen units that are narrower, and lose likelihood.
// Here it is at most a hundredth of the column's spread, and no unit that is given is below it, as far as statistics have the digits. Whole
// numbers are at least 1 apart, whatever their spread is, and keep the family's. It is a power of two, so that the circuit stays the same
// for a few more rows.
func (b *Blueprint) lowerFloors(ctx context.Context) error {
	floors, err := b.floors(ctx)
	if err != nil || len(floors) == 0 {
		return err
	}
	g := *b.Graph // which may be the caller's
	g.Nodes = slices.Clone(g.Nodes)
	for i := range g.Nodes {
		floor, ok := floors[b.Graph.Owner(circuit.NodeID(i))]
		if !ok {
			continue
		}
		switch n := &g.Nodes[i]; n.Leaf.(type) {
		case circuit.Gaussian:
			n.Leaf = circuit.Gaussian{MinSigma: floor}
		case circuit.LogNormal:
			n.Leaf = circuit.LogNormal{MinSigma: floor}
		}
	}
	b.Graph, b.given = &g, b.Graph
	return nil
}

// keepFloors gives a run that is resumed the floors that it began with, as its checkpoints, of the program with that digest, fit no other
// circuit: those of the circuit at path, where the spread of rows has become another one meanwhile, or none that are lower, of a run that
// an earlier version began.
func (b *Blueprint) keepFloors(path, program string, opts compile.Options) error {
	fits := func() bool {
		d := b.Digest()
		return program == hex.EncodeToString(d[:])
	}
	if program == "" || fits() {
		return nil
	}
	now, given := b.Graph, b.given
	plain := cmp.Or(given, now)
	for _, g := range []*circuit.Graph{floorsOf(path, plain), plain} {
		if g == nil || g == now {
			continue
		}
		b.Graph, b.given = g, nil
		if g != plain {
			b.given = plain
		}
		if err := b.compile(opts); err != nil || fits() {
			return err
		}
	}
	b.Graph, b.given = now, given
	return b.compile(opts)
}

// floorsOf returns a graph with the floors that the circuit at path has, nil where that is of another shape or cannot be read.
func floorsOf(path string, g *circuit.Graph) *circuit.Graph {
	m, _, err := OpenCircuit(path)
	if err != nil {
		return nil
	}
	defer m.Close()
	if len(m.Graph.Nodes) != len(g.Nodes) {
		return nil
	}
	out := *g
	out.Nodes = slices.Clone(g.Nodes)
	for i := range out.Nodes {
		n := &out.Nodes[i]
		switch l := m.Graph.Nodes[i].Leaf.(type) {
		case circuit.Gaussian:
			if n.Leaf == (circuit.Gaussian{}) {
				n.Leaf = l
			}
		case circuit.LogNormal:
			if n.Leaf == (circuit.LogNormal{}) {
				n.Leaf = l
			}
		}
	}
	return &out
}

// floors returns the floors that are below the family's, by the node that owns the parameters.
func (b *Blueprint) floors(ctx context.Context) (map[circuit.NodeID]float64, error) {
	usual := circuit.Gaussian{}.Constants()[0]
	given, spread := map[circuit.NodeID]float64{}, map[circuit.NodeID]float64{}
	var sums []dataset.Summary
	var whole []bool // columns
	summarize := func() (err error) {
		if sums == nil {
			sums, err = dataset.Summarize(ctx, b.Train)
		}
		return err
	}
	lower := false
	for i := range b.Graph.Nodes {
		n, owner := &b.Graph.Nodes[i], b.Graph.Owner(circuit.NodeID(i))
		if n.Leaf != (circuit.Gaussian{}) && n.Leaf != (circuit.LogNormal{}) {
			continue
		}
		if _, ok := given[owner]; !ok {
			least, err := b.narrowest(owner)
			if err != nil {
				return nil, err
			}
			if given[owner], spread[owner] = usual, usual; least < float32(usual) {
				given[owner], lower = float64(least), true
			}
		}
		if !b.unscaled(n) {
			continue
		}
		if err := summarize(); err != nil {
			return nil, err
		}
		s := sums[n.Var].Spread
		if !(s > 0 && s < 1) {
			continue
		}
		if whole == nil {
			var err error
			if whole, err = wholeColumns(ctx, b.Train); err != nil {
				return nil, err
			}
		}
		if !whole[n.Var] {
			spread[owner], lower = min(spread[owner], usual*s), true
		}
	}
	if !lower {
		return nil, nil
	}
	if err := summarize(); err != nil {
		return nil, err
	}
	near, largest := b.farLimits(sums), map[circuit.NodeID]float64{}
	for i := range b.Graph.Nodes {
		n, owner := &b.Graph.Nodes[i], b.Graph.Owner(circuit.NodeID(i))
		if _, ok := given[owner]; ok {
			largest[owner] = max(largest[owner], largestOf(n.Leaf, &sums[n.Var], near[n.Var]))
		}
	}
	floors := map[circuit.NodeID]float64{}
	for owner, floor := range given {
		if floor = min(floor, max(spread[owner], digits*largest[owner])); floor < usual {
			floors[owner] = max(math.Exp2(math.Floor(math.Log2(floor))), leastFloor)
		}
	}
	return floors, nil
}

// wholeColumns reports which columns of numbers have whole ones alone.
func wholeColumns(ctx context.Context, src dataset.Source) ([]bool, error) {
	whole, b := make([]bool, len(src.Schema().Columns)), &dataset.Batch{}
	for v := range whole {
		whole[v] = true
	}
	const chunk = 1024
	rows := make([]int, 0, chunk)
	for lo := 0; lo < src.Rows(); lo += chunk {
		rows = rows[:0]
		for i := lo; i < min(lo+chunk, src.Rows()); i++ {
			rows = append(rows, i)
		}
		if err := src.Gather(ctx, b, rows); err != nil {
			return nil, err
		}
		for v := range whole {
			whole[v] = whole[v] && !slices.ContainsFunc(b.Columns[v].Values, func(x float32) bool {
				return x == x && float64(x) != math.Trunc(float64(x))
			})
		}
	}
	return whole, nil
}

// largestOf returns the largest absolute value that the statistics of a leaf meet in training, given the values of the column that it
// takes. Those of a log-normal leaf are of logarithms.
func largestOf(l circuit.Leaf, s *dataset.Summary, near engine.Range) (largest float64) {
	_, logs := l.(circuit.LogNormal)
	least, most := s.Min, s.Max
	if near != (engine.Range{}) {
		least, most = max(least, near.Min), min(most, near.Max)
	}
	for _, x := range []float64{least, most} {
		if logs && !(x > 0) { // no row of the leaf, or none at all
			continue
		} else if logs {
			x = math.Log(x)
		}
		largest = max(largest, math.Abs(x))
	}
	return largest
}

// narrowest returns the least standard deviation of the units of an owner that are given, infinity where none are.
func (b *Blueprint) narrowest(owner circuit.NodeID) (float32, error) {
	least := float32(math.Inf(1))
	if b.params == nil {
		return least, nil
	}
	p := make([]float32, b.Graph.NumParams(owner))
	if err := b.params(owner, p); errors.Is(err, format.ErrNoParams) {
		return least, nil
	} else if err != nil {
		return 0, err
	}
	for k := 1; k < len(p); k += 2 {
		least = min(least, p[k])
	}
	return least, nil
}
