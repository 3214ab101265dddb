package structures

import "fmt"

// PublishedPDSize returns the nodes and edges of the circuit that PyJuice makes
// of the same options, counted as its paper does.
//
// Its sums are layered by depth. A product that lies below the layer under its
// sum is lifted by an identity sum, which is trainable: M nodes, a block
// diagonal of M·B edges and 2·M product edges. The sum of a cell is block
// diagonal too. B is the largest power of two that divides M, up to 32 (16 for
// M up to 32).
func PublishedPDSize(opts PDOptions) (nodes, edges int64, err error) {
	rows, cols, err := opts.axes()
	if err != nil {
		return 0, 0, err
	}
	if nodes := opts.nodes(rows, cols); nodes > maxNodes || opts.Latents < 1 || opts.Latents > 1<<16 {
		return 0, 0, fmt.Errorf("%w: pd of %.3g nodes with %d latents; choose at most %d nodes and 1 to %d latents",
			ErrOptions, nodes, opts.Latents, maxNodes, 1<<16)
	}
	m, block := int64(opts.Latents), int64(16)
	if m > 32 {
		block = 32
	}
	block = min(block, m&-m)
	pixels := int64(opts.vars())
	nodes, edges = pixels*m+1, pixels*m
	for h := 1; h <= rows.cells; h++ {
		for w := 1; w <= cols.cells; w++ {
			rects := int64(rows.cells-h+1) * int64(cols.cells-w+1)
			products := int64(h + w - 2)
			lifted := int64(max(h-3, 0) + max(w-3, 0))
			nodes += rects * lifted * m
			edges += rects * (products*2*m + lifted*m*(block+2))
			switch {
			case h == rows.cells && w == cols.cells:
				edges += max(products, 1) * m
			case products == 0:
				nodes += rects * m
				edges += rects * m * block
			default:
				nodes += rects * m
				edges += rects * min(products, int64(opts.MaxProductBlocks)) * m * m
			}
		}
	}
	return nodes, edges, nil
}
