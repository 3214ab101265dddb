package circuit

import (
	"math"
	"math/rand/v2"
)

// initSpread is the spread of random starts: a weight is proportional to
// exp(-initSpread·u) with uniform u, so the largest is at most e² times the
// smallest.
const initSpread = 2

// InitParams writes a random start of a node that owns parameters to dst, of
// length g.NumParams(id). The result depends on seed, id and cols only. Weights
// of a sum are proportional to exp(-2u) with uniform u in [0, 1); each row is
// normalised, and weights that the mask rules out are 0. Inputs are drawn by
// Leaf.Init. cols describes the variables' data; nil means unknown.
func InitParams(g *Graph, id NodeID, seed uint64, cols []ColumnStats, dst []float32) error {
	if err := g.checkID(id); err != nil {
		return err
	}
	n := &g.Nodes[id]
	if owner := g.Owner(id); n.Kind != Product && owner != id {
		return fault(g, id, "shares its parameters; start those of node %d", owner)
	}
	if want := g.NumParams(id); len(dst) != want {
		return fault(g, id, "has %d parameters and a slice of %d; pass NumParams of them", want, len(dst))
	}
	// The second word is odd times id, so that different nodes get different streams.
	pcg := rand.NewPCG(seed, uint64(id)*0x9e3779b97f4a7c15+0xd1b54a32d192ed03)
	switch n.Kind {
	case Input:
		col := ColumnStats{}
		if n.Var < len(cols) {
			col = cols[n.Var]
		}
		initInput(n, col, rand.New(pcg), dst)
	case Sum:
		drawWeights(dst, pcg)
		if n.Edges == nil {
			columns := len(dst) / n.Units
			for r := 0; r < len(dst); r += columns {
				normaliseRow(dst[r : r+columns])
			}
		} else {
			normaliseBlocks(n, dst)
		}
	}
	return nil
}

func initInput(n *Node, col ColumnStats, rng *rand.Rand, dst []float32) {
	p := make([]float64, n.Leaf.NumParams())
	for u := range n.Units {
		n.Leaf.Init(p, col, rng)
		for i, v := range p {
			dst[u*len(p)+i] = float32(v)
		}
	}
}

// drawWeights draws two weights from each 64 random bits.
func drawWeights(dst []float32, pcg *rand.PCG) {
	var bits uint64
	for i := range dst {
		if i&1 == 0 {
			bits = pcg.Uint64()
		} else {
			bits >>= 32
		}
		dst[i] = float32(math.Exp(-initSpread * 0x1p-32 * float64(uint32(bits))))
	}
}

func normaliseRow(w []float32) {
	sum := 0.0
	for _, v := range w {
		sum += float64(v)
	}
	scale := 1 / sum
	for i, v := range w {
		w[i] = float32(float64(v) * scale)
	}
}

// normaliseBlocks zeroes the weights that the mask of a block-sparse sum rules out, and divides
// the others so that the weights of each unit, over all of its edge blocks, sum to 1. It is
// called with positive random weights, in the order of n.Edges.Pairs; every unit has an edge,
// which Validate has checked.
func normaliseBlocks(n *Node, dst []float32) {
	e := n.Edges
	if e.Mask != nil {
		for i := range dst {
			if !e.Has(i) {
				dst[i] = 0
			}
		}
	}
	scale := make([]float64, n.Units)
	for k, p := range e.Pairs {
		for r := range e.Rows {
			from := (k*e.Rows + r) * e.Cols
			for _, v := range dst[from : from+e.Cols] {
				scale[int(p[0])*e.Rows+r] += float64(v)
			}
		}
	}
	for i, sum := range scale {
		scale[i] = 1 / sum
	}
	for k, p := range e.Pairs {
		for r := range e.Rows {
			from := (k*e.Rows + r) * e.Cols
			f := scale[int(p[0])*e.Rows+r]
			for i, v := range dst[from : from+e.Cols] {
				dst[from+i] = float32(float64(v) * f)
			}
		}
	}
}
