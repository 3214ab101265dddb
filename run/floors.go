package run

import (
	"context"
	"errors"
	"maps"
	"math"
	"slices"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/format"
	"github.com/pce-engine/pce/dataset"
)

// leastFloor bounds floors, so that float32 holds their squares.
const leastFloor = 0x1p-60

// lowerFloors gives Gaussian and log-normal leaves without a floor of their own a lower one than the family's where that would be too
// wide. It is 0.01, a hundredth of the spread of a column that is stored in units of it, but the columns of circuits that were made
// elsewhere, or of a program's own rows, may be stored as they are: training would widen units that are narrower, and lose likelihood.
// Here it is at most a hundredth of the column's spread, and no unit that is given is below it. It is a power of two, so that the circuit stays
// the same for a few more rows.
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
	b.Graph = &g
	return nil
}

// floors returns the floors that are below the family's, by the node that owns the parameters.
func (b *Blueprint) floors(ctx context.Context) (map[circuit.NodeID]float64, error) {
	usual := circuit.Gaussian{}.Constants()[0]
	floors := map[circuit.NodeID]float64{}
	var sums []dataset.Summary
	for i := range b.Graph.Nodes {
		n, owner := &b.Graph.Nodes[i], b.Graph.Owner(circuit.NodeID(i))
		if n.Leaf != (circuit.Gaussian{}) && n.Leaf != (circuit.LogNormal{}) {
			continue
		}
		if _, ok := floors[owner]; !ok {
			floors[owner] = usual
		}
		if !b.unscaled(n) {
			continue
		}
		if sums == nil {
			var err error
			if sums, err = dataset.Summarize(ctx, b.Train); err != nil {
				return nil, err
			}
		}
		if spread := sums[n.Var].Spread; spread > 0 {
			floors[owner] = min(floors[owner], usual*spread)
		}
	}
	for owner := range floors {
		least, err := b.narrowest(owner)
		if err != nil {
			return nil, err
		}
		if least < float32(usual) {
			floors[owner] = min(floors[owner], float64(least))
		}
	}
	maps.DeleteFunc(floors, func(_ circuit.NodeID, floor float64) bool { return floor == usual })
	for owner, floor := range floors {
		floors[owner] = max(math.Exp2(math.Floor(math.Log2(floor))), leastFloor)
	}
	return floors, nil
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
