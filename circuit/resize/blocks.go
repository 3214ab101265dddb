package resize

import (
	"cmp"
	"slices"

	"github.com/pce-engine/pce/circuit"
)

// grid is the weights of a sum, cut into blocks of rows × cols units each of
// which lies within one child.
type grid struct {
	rows, cols int
	columns    int // blocks beside each other; of grids of a new circuit alone
	blocks     []block
}

// block is an edge block of a grid.
type block struct {
	row, col int32 // among the blocks of the grid
	at       int   // its first weight in the node's canonical order
	stride   int   // from one row of it to the next
}

// gridOf cuts the weights of a sum of a valid graph into blocks of at most size × size, 0 for any size, in
// ascending order. What the graph's own edge blocks leave out is not among them.
func gridOf(g *circuit.Graph, id circuit.NodeID, size int) grid {
	n := &g.Nodes[id]
	e := n.Edges
	if e == nil {
		e = &circuit.Edges{Rows: n.Units, Cols: g.Columns(id), Pairs: [][2]int32{{0, 0}}}
	}
	w := grid{rows: gcd(size, e.Rows), cols: gcd(size, e.Cols)}
	for _, c := range n.Children {
		w.cols = gcd(w.cols, g.Nodes[c].Units)
	}
	down, across := e.Rows/w.rows, e.Cols/w.cols
	w.blocks = make([]block, 0, len(e.Pairs)*down*across)
	for k, p := range e.Pairs {
		first := k * e.Rows * e.Cols
		for i := range down {
			for j := range across {
				w.blocks = append(w.blocks, block{
					row: p[0]*int32(down) + int32(i), col: p[1]*int32(across) + int32(j),
					at: first + i*w.rows*e.Cols + j*w.cols, stride: e.Cols,
				})
			}
		}
	}
	slices.SortFunc(w.blocks, inOrder)
	return w
}

// inOrder sorts blocks by rows, then by columns.
func inOrder(a, b block) int {
	return cmp.Or(cmp.Compare(a.row, b.row), cmp.Compare(a.col, b.col))
}

// each calls do with the canonical place of every weight of a block, row by row.
func (w *grid) each(b block, do func(r, c, at int)) {
	for r := range w.rows {
		for c := range w.cols {
			do(r, c, b.at+r*b.stride+c)
		}
	}
}

// edges returns the edge blocks of a sum whose weights are those of a grid, of which has says whether
// they exist: nil if the grid has all blocks of so many rows, and all weights.
func (w *grid) edges(rows int, has func(at int) bool) *circuit.Edges {
	e := &circuit.Edges{Rows: w.rows, Cols: w.cols, Pairs: make([][2]int32, len(w.blocks))}
	weights := len(w.blocks) * w.rows * w.cols
	mask := make([]uint64, (weights+63)/64)
	i, holes := 0, false
	for k, b := range w.blocks {
		e.Pairs[k] = [2]int32{b.row, b.col}
		w.each(b, func(_, _, at int) {
			if has(at) {
				mask[i>>6] |= 1 << (uint(i) & 63)
			} else {
				holes = true
			}
			i++
		})
	}
	if holes {
		e.Mask = mask
	} else if len(w.blocks) == rows*w.columns {
		return nil
	}
	return e
}

// fill sets dst to the weights of a node, whose edge blocks are those of the grid, normalised for each unit: weight
// gives them by their places, has says whether they exist. Units without a mass get equal weights. Positive ones are at least
// circuit.MinProb: they would else be 0 as float32, which is structural.
func (w *grid) fill(n *circuit.Node, has func(at int) bool, dst []float64, weight func(b block, at int) float64) {
	sums, counts := make([]float64, n.Units), make([]float64, n.Units)
	each := func(do func(i, unit int, b block, at int)) { // over the weights that exist
		for k, b := range w.blocks {
			w.each(b, func(r, c, at int) {
				u, i := int(b.row)*w.rows+r, (k*w.rows+r)*w.cols+c
				if n.Edges == nil {
					i = (u*w.columns+int(b.col))*w.cols + c
				}
				if has(at) {
					do(i, u, b, at)
				}
			})
		}
	}
	clear(dst)
	each(func(i, u int, b block, at int) {
		dst[i] = weight(b, at)
		sums[u] += dst[i]
		counts[u]++
	})
	each(func(i, u int, _ block, _ int) {
		switch {
		case sums[u] == 0:
			dst[i] = 1 / counts[u]
		case dst[i] > 0:
			dst[i] = max(dst[i]/sums[u], circuit.MinProb)
		}
	})
}

// has reports whether a weight of a sum exists, by its place in the canonical order.
func has(n *circuit.Node) func(at int) bool {
	if n.Edges == nil {
		return func(int) bool { return true }
	}
	return n.Edges.Has
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
