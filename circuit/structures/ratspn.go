package structures

import (
	"fmt"
	"math/rand/v2"

	"github.com/pce-engine/pce/circuit"
)

// RATSPNOptions are the settings of a random tensorised sum-product network.
type RATSPNOptions struct {
	Vars        int
	Latents     int
	Depth       int // splits between the root and a leaf region
	Repetitions int // independent random region trees under one root
	Pieces      int // parts of a split
	Seed        uint64
	Leaf        Leaf
}

// DefaultRATSPN returns the usual settings, without Vars, Latents and Leaf.
func DefaultRATSPN() RATSPNOptions {
	return RATSPNOptions{Depth: 5, Repetitions: 2, Pieces: 2}
}

// RATSPN returns a random tensorised sum-product network.
//
// Each repetition shuffles the variables and splits them into Pieces parts
// whose sizes differ by at most one, again and again down to Depth. A region is
// a dense sum over the product of its parts, a leaf region a dense sum over the
// product of its inputs, which all repetitions share; the root sums over one
// product a repetition. A region of fewer variables than Pieces splits into
// single variables, and a single variable is a leaf region at any depth.
//
// Over 784 variables, with depth 5, 2 repetitions and 2 pieces, it has
// 908·M + 1 nodes and 124·M² + 1694·M edges.
func RATSPN(opts RATSPNOptions) (*circuit.Graph, error) {
	if opts.Depth < 1 || opts.Repetitions < 1 || opts.Pieces < 2 {
		return nil, fmt.Errorf("%w: rat-spn with depth %d, %d repetitions and %d pieces; at least 1, 1 and 2 are needed",
			ErrOptions, opts.Depth, opts.Repetitions, opts.Pieces)
	}
	regions := 1.0 // of one repetition
	for range min(opts.Depth, 64) {
		regions = 1 + regions*float64(opts.Pieces)
	}
	regions = min(regions, 2*float64(opts.Vars))
	b, err := newBuilder("rat-spn", opts.Vars, opts.Latents, opts.Leaf,
		float64(opts.Vars)+1+2*float64(opts.Repetitions)*regions)
	if err != nil {
		return nil, err
	}
	b.inputs()
	if opts.Vars == 1 {
		return b.root(0)
	}
	rng := rand.New(rand.NewPCG(opts.Seed, 0x726174))
	all := make([]circuit.NodeID, opts.Vars)
	tops := make([]circuit.NodeID, opts.Repetitions)
	for r := range tops {
		for v := range all {
			all[v] = circuit.NodeID(v)
		}
		tops[r] = b.split(all, opts.Depth, opts.Pieces, rng)
	}
	return b.root(tops...)
}

// split adds the product of the parts of a region of inputs, and all below it.
// It reorders the region.
func (b *builder) split(region []circuit.NodeID, depth, pieces int, rng *rand.Rand) circuit.NodeID {
	if depth == 0 || len(region) == 1 {
		return b.product(append([]circuit.NodeID(nil), region...)...)
	}
	rng.Shuffle(len(region), func(i, j int) { region[i], region[j] = region[j], region[i] })
	pieces = min(pieces, len(region))
	sums := make([]circuit.NodeID, pieces)
	for i := range sums {
		part := region[i*len(region)/pieces : (i+1)*len(region)/pieces]
		sums[i] = b.sum(b.split(part, depth-1, pieces, rng))
	}
	return b.product(sums...)
}
