package structures

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/pce-engine/pce/circuit"
)

const (
	pdBlock  = 32  // side of the edge blocks of a sparse sum
	maxCells = 256 // along an axis: more give millions of rectangles at any width
)

// PDOptions are the settings of a Poon-Domingos circuit over images.
type PDOptions struct {
	Shape            [3]int // height, width, channels; variable (y·width + x)·channels + c
	SplitInterval    int    // pixels between the lines along which rectangles may be split
	MaxProductBlocks int    // products of its rectangle that a block of 32 units of a sum takes
	Latents          int
	Seed             uint64
	Leaf             Leaf
}

// DefaultPD returns the usual settings, without Shape, Latents and Leaf.
func DefaultPD() PDOptions {
	return PDOptions{SplitInterval: 4, MaxProductBlocks: 8}
}

// PD returns a Poon-Domingos circuit: a sum for every rectangle of cells and a
// product for every way to split a rectangle in two.
//
// Cells are squares of SplitInterval pixels, smaller at the lower and right
// borders where the interval does not divide the image. A cell is a dense sum
// over the product of all channels of its pixels. The root sees all products of
// the whole image. In any other sum each block of 32 units takes at most
// MaxProductBlocks of the rectangle's products, all of their units; the choice
// is seeded and takes all products about equally often. Latents that 32 does
// not divide make one block. Where the blocks are too few to use every product
// they take more.
//
// Over 28×28 pixels with the default options and a multiple of 32, at least 64,
// as Latents it has 1567·M + 1 nodes and 3121·M² + 7068·M edges.
func PD(opts PDOptions) (*circuit.Graph, error) {
	rows, cols, err := opts.axes()
	if err != nil {
		return nil, err
	}
	b, err := newBuilder("pd", opts.vars(), opts.Latents, opts.Leaf, opts.nodes(rows, cols))
	if err != nil {
		return nil, err
	}
	b.inputs()
	rng := rand.New(rand.NewPCG(opts.Seed, 0x7064))
	sums := make([]circuit.NodeID, rows.count()*cols.count())
	at := func(y, h, x, w int) *circuit.NodeID { return &sums[rows.index(y, h)*cols.count()+cols.index(x, w)] }
	for h := 1; h <= rows.cells; h++ {
		for w := 1; w <= cols.cells; w++ {
			for y := 0; y+h <= rows.cells; y++ {
				for x := 0; x+w <= cols.cells; x++ {
					var products []circuit.NodeID
					for a := 1; a < h; a++ {
						products = append(products, b.product(*at(y, a, x, w), *at(y+a, h-a, x, w)))
					}
					for a := 1; a < w; a++ {
						products = append(products, b.product(*at(y, h, x, a), *at(y, h, x+a, w-a)))
					}
					if h+w == 2 {
						products = append(products, b.product(opts.cell(y, x)...))
					}
					if h == rows.cells && w == cols.cells {
						return b.root(products...)
					}
					id := b.sum(products...)
					*at(y, h, x, w) = id
					if b.g.Nodes[id].Edges, err = opts.edges(b, len(products), rng); err != nil {
						return nil, err
					}
				}
			}
		}
	}
	panic("BUG: structures: a pd circuit without a root")
}

// axes checks the options and returns the rows and columns of cells.
func (o *PDOptions) axes() (rows, cols segments, err error) {
	if min(o.Shape[0], o.Shape[1], o.Shape[2]) < 1 || max(o.Shape[0], o.Shape[1], o.Shape[2]) > 1<<16 {
		return rows, cols, fmt.Errorf("%w: pd over an image of shape %v; give height, width and channels, each from 1 to %d",
			ErrOptions, o.Shape, 1<<16)
	}
	if o.SplitInterval < 1 || o.MaxProductBlocks < 1 {
		return rows, cols, fmt.Errorf("%w: pd with split interval %d and %d product blocks; both must be at least 1",
			ErrOptions, o.SplitInterval, o.MaxProductBlocks)
	}
	rows, cols = newSegments(o.Shape[0], o.SplitInterval), newSegments(o.Shape[1], o.SplitInterval)
	if max(rows.cells, cols.cells) > maxCells {
		return rows, cols, fmt.Errorf("%w: pd of %d×%d cells, at most %d either way; choose a larger split interval",
			ErrOptions, rows.cells, cols.cells, maxCells)
	}
	return rows, cols, nil
}

func (o *PDOptions) vars() int { return o.Shape[0] * o.Shape[1] * o.Shape[2] }

// nodes returns the number of nodes: inputs, sums and products.
func (o *PDOptions) nodes(rows, cols segments) float64 {
	cells, rects := float64(rows.cells*cols.cells), float64(rows.count()*cols.count())
	return float64(o.vars()) + cells + rects + float64(rows.splits()*cols.count()+cols.splits()*rows.count())
}

// cell returns the input nodes of cell (y, x).
func (o *PDOptions) cell(y, x int) []circuit.NodeID {
	s := o.SplitInterval
	var ids []circuit.NodeID
	for py := y * s; py < min((y+1)*s, o.Shape[0]); py++ {
		for px := x * s; px < min((x+1)*s, o.Shape[1]); px++ {
			for c := range o.Shape[2] {
				ids = append(ids, circuit.NodeID((py*o.Shape[1]+px)*o.Shape[2]+c))
			}
		}
	}
	return ids
}

// edges draws the edge blocks of a sum over n products, nil for a dense sum, which it is where
// the sum sees all products anyway. Each block of the sum's units takes MaxProductBlocks
// products, or as many more as it needs for every product to be seen by some block; those used
// least come first. More edge blocks in the whole circuit than memory allows are an error that
// matches ErrOptions.
func (o *PDOptions) edges(b *builder, n int, rng *rand.Rand) (*circuit.Edges, error) {
	side := pdBlock
	if o.Latents%pdBlock != 0 {
		side = o.Latents
	}
	blocks := o.Latents / side // of one product, and of the sum
	take := max(o.MaxProductBlocks, (n+blocks-1)/blocks)
	if take >= n {
		return nil, nil
	}
	if b.blocks += blocks * take * blocks; b.blocks > maxEdgeBlocks {
		return nil, fmt.Errorf("%w: pd with %d latents has more than %d edge blocks; choose fewer latents or a larger split interval",
			ErrOptions, o.Latents, maxEdgeBlocks)
	}
	e := &circuit.Edges{Rows: side, Cols: side, Pairs: make([][2]int32, 0, blocks*take*blocks)}
	order, used := rng.Perm(n), make([]int, n)
	for r := range blocks {
		// The products used least so far, in random order among equals.
		rng.Shuffle(n, func(i, j int) { order[i], order[j] = order[j], order[i] })
		slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(used[i], used[j]) })
		taken := slices.Clone(order[:take])
		slices.Sort(taken)
		for _, p := range taken {
			used[p]++
			for c := range blocks {
				e.Pairs = append(e.Pairs, [2]int32{int32(r), int32(p*blocks + c)})
			}
		}
	}
	return e, nil
}

// segments numbers the runs of consecutive cells along one axis.
type segments struct{ cells int }

func newSegments(pixels, interval int) segments { return segments{(pixels-1)/interval + 1} }

// count returns the number of runs, at least one cell long.
func (s segments) count() int { return s.cells * (s.cells + 1) / 2 }

// splits returns the number of ways to split the runs in two, over all runs.
func (s segments) splits() int { return s.cells * (s.cells*s.cells - 1) / 6 }

// index numbers the run of n cells from cell i on: all runs of one cell, then
// those of two, ...
func (s segments) index(i, n int) int { return (n-1)*s.cells - (n-1)*(n-2)/2 + i }
