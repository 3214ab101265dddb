package codec

import (
	"slices"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/codec/lanes"
)

// weights is a block of a sum's weights: rows of the sum's units, cols of the
// children's, w[row*stride+col].
type weights struct {
	w          []float32
	rows, cols int
	stride     int
}

// sumWeights are the weights of a sum: one block if it is dense, else its edge blocks.
type sumWeights struct {
	blocks []edgeBlock // ascending by row, then by column
	byCol  []edgeBlock // the same, ascending by column, then by row
}

// edgeBlock is the weights of rows row.. and columns col.. of a sum.
type edgeBlock struct {
	weights
	row, col int
}

// newSumWeights gives weights in canonical order the shape of a sum.
func newSumWeights(g *circuit.Graph, id circuit.NodeID, w []float32) sumWeights {
	n := &g.Nodes[id]
	e := n.Edges
	if e == nil {
		all := []edgeBlock{{weights: weights{w, n.Units, len(w) / n.Units, len(w) / n.Units}}}
		return sumWeights{all, all}
	}
	blocks := make([]edgeBlock, len(e.Pairs))
	size := e.Rows * e.Cols
	for k, p := range e.Pairs {
		blocks[k] = edgeBlock{weights{w[k*size:][:size], e.Rows, e.Cols, e.Cols}, int(p[0]) * e.Rows, int(p[1]) * e.Cols}
	}
	byCol := slices.Clone(blocks)
	slices.SortStableFunc(byCol, func(a, b edgeBlock) int { return a.col - b.col })
	return sumWeights{blocks, byCol}
}

// down adds the outsides that a sum with the outside d gives its columns from col on
// to out.
func (s sumWeights) down(out, d []lane, col int) {
	first, _ := slices.BinarySearchFunc(s.byCol, col, func(b edgeBlock, col int) int { return b.col + b.cols - 1 - col })
	for _, b := range s.byCol[first:] {
		if b.col >= col+len(out) {
			break
		}
		from, to := max(b.col, col), min(b.col+b.cols, col+len(out))
		part := b.weights
		part.w, part.cols = b.w[from-b.col:], to-from
		lanes.Down(out[from-col:][:part.cols], part.w, part.stride, d[b.row:][:part.rows])
	}
}
