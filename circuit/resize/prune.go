package resize

import (
	"fmt"
	"slices"

	"github.com/pce-engine/pce/circuit"
)

// maxBlock bounds PruneOptions.Block.
const maxBlock = 1 << 10

// PruneOptions say how much of a circuit stays.
type PruneOptions struct {
	// Keep is the share of the weights of sums that stays, above 0 and up to 1, rounded down. A little
	// more stays where what is left would fall apart.
	Keep float64
	// Block is the number of units on each side of the blocks in which weights go: a power of two. Where it
	// divides a side only in part, blocks are smaller there. Blocks of 1 lose the least
	// likelihood, large ones save the most time.
	Block int
	// Root says that all weights of the root stay, and count as what is kept, however little flow they have: those of
	// classes, of which one without its weight would be impossible.
	Root bool
}

// Check returns an error that matches ErrOptions if the options cannot work.
func (o PruneOptions) Check() error {
	switch {
	case !(o.Keep > 0 && o.Keep <= 1):
		return fmt.Errorf("%w: to keep %v of the weights; give a share above 0 and up to 1", ErrOptions, o.Keep)
	case o.Block < 1 || o.Block > maxBlock || o.Block&(o.Block-1) != 0:
		return fmt.Errorf("%w: blocks of %d units; give a power of two up to %d", ErrOptions, o.Block, maxBlock)
	}
	return nil
}

// Circuit is a graph with its parameters, which are computed when they are asked for.
type Circuit struct {
	Graph  *circuit.Graph
	Params circuit.ParamFunc64
	// Flow is the share of all flow through the weights of sums that goes through those
	// that Prune kept; 1 without flow.
	Flow float64
}

// Prune returns the circuit without the blocks of weights that have the least flow for each weight. What is
// left of a unit's weights is normalised, and a unit without a mass left has equal weights. Units that
// no weight leads to any more go too, a block at a time, and with them nodes of which none is left. Weights that the
// root does not reach count as none.
// Flows are those of the owners of parameters, each summed over the nodes that share them; they and
// the parameters are read a node at a time, and again by the result.
func Prune(g *circuit.Graph, params, flows circuit.ParamFunc64, o PruneOptions) (*Circuit, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	p := &pruner{g: g, params: params, size: o.Block, grids: make([]grid, len(g.Nodes)), alike: alike(g)}
	kept, err := p.choose(flows, o)
	if err != nil {
		return nil, err
	}
	p.rebuild()
	if err := circuit.Validate(p.graph); err != nil {
		return nil, err
	}
	return &Circuit{Graph: p.graph, Params: p.read, Flow: kept}, nil
}

// pruner is the state of Prune.
type pruner struct {
	g      *circuit.Graph
	params circuit.ParamFunc64
	size   int
	grids  []grid           // of the owners of weights: the blocks that stay
	alike  []circuit.NodeID // see alike
	needed [][]bool         // of the nodes by which sets are named: blocks of units that stay
	reach  []bool           // nodes that stay
	graph  *circuit.Graph   // of what stays
	from   []circuit.NodeID // of its nodes: the old ones
}

// granule is the number of units of a node that stay or go together. It is a multiple of the sides of all blocks
// that touch them.
func (p *pruner) granule(id circuit.NodeID) int { return gcd(p.size, p.g.Nodes[id].Units) }

// followNeeds finds the units that blocks lead to, from the root down, and the nodes that have some.
func (p *pruner) followNeeds() {
	p.needed = make([][]bool, len(p.g.Nodes))
	for i := range p.g.Nodes {
		if id := circuit.NodeID(i); p.alike[i] == id {
			p.needed[i] = make([]bool, p.g.Nodes[i].Units/p.granule(id))
		}
	}
	p.reach = make([]bool, len(p.g.Nodes))
	p.reach[p.g.Root] = true
	p.needed[p.alike[p.g.Root]][0] = true
	for changed := true; changed; { // what nodes that are alike need is found in another order than that of nodes
		changed = false
		for id := p.g.Root; id >= 0; id-- {
			if p.reach[id] && p.followNode(id) {
				changed = true
			}
		}
	}
}

// followNode marks what a node that stays needs, and reports whether something is new.
func (p *pruner) followNode(id circuit.NodeID) (changed bool) {
	mark := func(b *bool) {
		changed = changed || !*b
		*b = true
	}
	n := &p.g.Nodes[id]
	switch n.Kind {
	case circuit.Product:
		for _, c := range n.Children {
			mark(&p.reach[c])
		}
	case circuit.Sum:
		w := &p.grids[p.g.Owner(id)]
		child := childOf(p.g, n, w)
		needed := p.needed[p.alike[id]]
		for _, b := range w.blocks {
			if !needed[int(b.row)*w.rows/p.granule(id)] {
				continue
			}
			k, first := child(b.col)
			c := n.Children[k]
			mark(&p.reach[c])
			mark(&p.needed[p.alike[c]][first/p.granule(c)])
		}
	}
	return changed
}

// childOf returns a function that says in which child of a sum a column of blocks lies, and at
// which of its units it begins.
func childOf(g *circuit.Graph, n *circuit.Node, w *grid) func(col int32) (child, unit int) {
	firsts := make([]int, len(n.Children)) // units before each child
	for k := 1; k < len(firsts); k++ {
		firsts[k] = firsts[k-1] + g.Nodes[n.Children[k-1]].Units
	}
	return func(col int32) (int, int) {
		at := int(col) * w.cols
		k, found := slices.BinarySearch(firsts, at)
		if !found {
			k--
		}
		return k, at - firsts[k]
	}
}

// rebuild makes the graph of what stays.
func (p *pruner) rebuild() {
	h := &circuit.Graph{NumVars: p.g.NumVars}
	to := make([]circuit.NodeID, len(p.g.Nodes))
	owner := map[circuit.NodeID]circuit.NodeID{} // of the parameters of an old owner: the first new node that uses them
	for i := range p.g.Nodes {
		id, n := circuit.NodeID(i), p.g.Nodes[i]
		if !p.reach[i] {
			continue
		}
		to[i] = circuit.NodeID(len(h.Nodes))
		n.Units = p.units(id)
		n.Tie = circuit.Tie{}
		if n.Kind != circuit.Product {
			if first, ok := owner[p.g.Owner(id)]; ok {
				n.Tie = circuit.TieTo(first)
			} else {
				owner[p.g.Owner(id)] = to[i]
			}
		}
		if n.Kind == circuit.Sum {
			w, children := p.left(id)
			n.Children = children
			n.Edges = w.edges(n.Units/w.rows, has(&p.g.Nodes[id]))
			if first := n.Tie.Node(); first != circuit.None {
				n.Edges = h.Nodes[first].Edges
			}
		}
		if n.Kind != circuit.Input {
			children := make([]circuit.NodeID, len(n.Children))
			for k, c := range n.Children {
				children[k] = to[c]
			}
			n.Children = children
		}
		h.Nodes = append(h.Nodes, n)
		p.from = append(p.from, id)
	}
	h.Root = to[p.g.Root]
	p.graph = h
}

// units returns how many units of a node stay.
func (p *pruner) units(id circuit.NodeID) int { return len(p.stay(id)) * p.granule(id) }

// stay returns the blocks of units of a node that stay.
func (p *pruner) stay(id circuit.NodeID) []int {
	var left []int
	for k, needed := range p.needed[p.alike[id]] {
		if needed {
			left = append(left, k)
		}
	}
	return left
}

// left returns the grid of a sum that stays: blocks by their new rows and columns, at their old
// places among the parameters, and the old children that are left. These are those of all
// nodes that share the weights.
func (p *pruner) left(id circuit.NodeID) (grid, []circuit.NodeID) {
	n, w := &p.g.Nodes[id], p.grids[p.g.Owner(id)]
	child := childOf(p.g, n, &w)
	rows := p.places(id, w.rows)
	used := make([]bool, len(n.Children))
	for _, b := range w.blocks {
		k, _ := child(b.col)
		used[k] = used[k] || rows[b.row] >= 0
	}
	var children []circuit.NodeID
	firsts, places := make([]int32, len(n.Children)), make([][]int32, len(n.Children))
	columns := 0
	for k, c := range n.Children {
		if used[k] {
			firsts[k], places[k] = int32(columns), p.places(c, w.cols)
			columns += p.units(c) / w.cols
			children = append(children, c)
		}
	}
	left := grid{rows: w.rows, cols: w.cols, columns: columns}
	for _, b := range w.blocks {
		if rows[b.row] < 0 {
			continue
		}
		k, unit := child(b.col)
		b.row, b.col = rows[b.row], firsts[k]+places[k][unit/w.cols]
		left.blocks = append(left.blocks, b)
	}
	return left, children
}

// places returns where each run of so many units of a node goes, -1 for one that does not stay.
func (p *pruner) places(id circuit.NodeID, run int) []int32 {
	each := p.granule(id) / run
	places := make([]int32, p.g.Nodes[id].Units/run)
	next := int32(0)
	for k, needed := range p.needed[p.alike[id]] {
		for i := range each {
			places[k*each+i] = -1
			if needed {
				places[k*each+i] = next
				next++
			}
		}
	}
	return places
}

// read fills dst with the parameters of a node of the new graph.
func (p *pruner) read(id circuit.NodeID, dst []float64) error {
	old := p.from[id]
	n := &p.g.Nodes[old]
	src := make([]float64, p.g.NumParams(old))
	if err := p.params(p.g.Owner(old), src); err != nil {
		return err
	}
	if n.Kind == circuit.Input {
		each := n.Leaf.NumParams() * p.granule(old)
		for i, k := range p.stay(old) {
			copy(dst[i*each:(i+1)*each], src[k*each:])
		}
		return nil
	}
	w, _ := p.left(old)
	w.fill(&p.graph.Nodes[id], has(n), dst, func(_ block, at int) float64 { return src[at] })
	return nil
}
