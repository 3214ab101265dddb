package codec

import (
	"slices"

	"github.com/pce-engine/pce/circuit"
)

// weights is a block of a sum's weights: rows of the sum's units, cols of the
// children's, w[row*stride+col].
type weights struct {
	w          []float32
	rows, cols int
	stride     int
}

// up adds the products of the rows with v to out:
//
//	for u: for c: out[u] += w[u][c] · v[c]
func (b weights) up(out, v []lane) {
	v = v[:b.cols]
	for u := range out[:b.rows] {
		row := b.w[u*b.stride:][:len(v)]
		o := &out[u]
		s0, s1, s2, s3, s4, s5, s6, s7 := o[0], o[1], o[2], o[3], o[4], o[5], o[6], o[7]
		for c := range v {
			x, y := float64(row[c]), &v[c]
			s0 += float64(x * y[0])
			s1 += float64(x * y[1])
			s2 += float64(x * y[2])
			s3 += float64(x * y[3])
			s4 += float64(x * y[4])
			s5 += float64(x * y[5])
			s6 += float64(x * y[6])
			s7 += float64(x * y[7])
		}
		*o = lane{s0, s1, s2, s3, s4, s5, s6, s7}
	}
}

// down adds the products of the columns with d to out:
//
//	for c: for u: out[c] += w[u][c] · d[u]
func (b weights) down(out, d []lane) {
	d = d[:b.rows]
	for c := range out[:b.cols] {
		o := &out[c]
		s0, s1, s2, s3, s4, s5, s6, s7 := o[0], o[1], o[2], o[3], o[4], o[5], o[6], o[7]
		at := c
		for u := range d {
			x, y := float64(b.w[at]), &d[u]
			at += b.stride
			s0 += float64(x * y[0])
			s1 += float64(x * y[1])
			s2 += float64(x * y[2])
			s3 += float64(x * y[3])
			s4 += float64(x * y[4])
			s5 += float64(x * y[5])
			s6 += float64(x * y[6])
			s7 += float64(x * y[7])
		}
		*o = lane{s0, s1, s2, s3, s4, s5, s6, s7}
	}
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
		part.down(out[from-col:], d[b.row:])
	}
}
