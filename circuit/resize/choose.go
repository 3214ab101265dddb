package resize

import (
	"cmp"
	"container/heap"
	"math"
	"slices"

	"github.com/pce-engine/pce/circuit"
)

// chooser decides which blocks stay. It begins with those that the root cannot do without. Then it lets in, one at a
// time, the block with the most flow for each weight among those of units that are in, with the blocks that the units it
// leads to cannot do without, as long as there is room. So no weight stays that the root does not reach.
type chooser struct {
	all   []candidate // by owners, in the order of their grids
	rows  [][][]int   // the candidates of a place
	in    [][]bool    // the places that stay
	stays []bool      // the candidates that stay
	room  int         // weights that may still be let in
	queue []int       // a heap of candidates that do not stay, of units that do
}

// candidate is a block that may stay.
type candidate struct {
	owner    circuit.NodeID
	block    block
	flow     float64 // for each weight
	n        int     // weights that exist
	first    bool    // it stays if its units do: one would have no weight without it, or it is of a root that stays whole
	from, to place   // of its rows and of its columns
}

// place is units that stay or go together: a granule of nodes that are alike, by the name of their set.
type place struct {
	set     circuit.NodeID
	granule int
}

// choose leaves those blocks in the grids that stay, and returns their share of the flow.
func (p *pruner) choose(flows circuit.ParamFunc64, o PruneOptions) (float64, error) {
	for i := range p.g.Nodes {
		if id := circuit.NodeID(i); p.g.Nodes[i].Kind == circuit.Sum && p.g.Owner(id) == id {
			p.grids[i] = gridOf(p.g, id, p.size)
		}
	}
	c := &chooser{rows: make([][][]int, len(p.g.Nodes)), in: make([][]bool, len(p.g.Nodes))}
	p.followNeeds()
	for i, needed := range p.needed {
		c.rows[i], c.in[i] = make([][]int, len(needed)), make([]bool, len(needed))
	}
	for i, used := range p.used() {
		if !used {
			continue
		}
		id := circuit.NodeID(i)
		flow := make([]float64, p.g.NumParams(id))
		if err := flows(id, flow); err != nil {
			return 0, err
		}
		found := p.candidatesOf(id, flow)
		if o.Root && id == p.g.Owner(p.g.Root) {
			for k := range found {
				found[k].first = true
			}
		}
		c.add(found, p.g.Nodes[i].Units, &p.grids[i], has(&p.g.Nodes[i]))
	}
	weights, total := 0, 0.0
	for _, x := range c.all {
		weights += x.n
		total += x.flow * float64(x.n)
	}
	c.room = int(o.Keep * float64(weights) * (1 + 1e-12)) // 0.29 of 100 is 29, and float64 has the product below it
	c.choose(place{p.alike[p.g.Root], 0})
	for i := range p.grids {
		p.grids[i].blocks = p.grids[i].blocks[:0]
	}
	for k, x := range c.all {
		if c.stays[k] {
			w := &p.grids[x.owner]
			w.blocks = append(w.blocks, x.block)
		}
	}
	p.followNeeds()
	kept, used := 0.0, p.used()
	for k, x := range c.all {
		if c.stays[k] && used[x.owner] && p.needed[x.from.set][x.from.granule] {
			kept += x.flow * float64(x.n)
		}
	}
	if total == 0 {
		return 1, nil
	}
	return kept / total, nil
}

// used returns the owners of the weights of sums that are reached.
func (p *pruner) used() []bool {
	used := make([]bool, len(p.g.Nodes))
	for i, reached := range p.reach {
		if reached && p.g.Nodes[i].Kind == circuit.Sum {
			used[p.g.Owner(circuit.NodeID(i))] = true
		}
	}
	return used
}

// candidatesOf returns the blocks of a sum that are reached and have a weight.
func (p *pruner) candidatesOf(id circuit.NodeID, flow []float64) []candidate {
	n, w := &p.g.Nodes[id], &p.grids[id]
	child, has := childOf(p.g, n, w), has(n)
	var all []candidate
	for _, b := range w.blocks {
		to, unit := child(b.col)
		c := candidate{
			owner: id, block: b,
			from: place{p.alike[id], int(b.row) * w.rows / p.granule(id)},
			to:   place{p.alike[n.Children[to]], unit / p.granule(n.Children[to])},
		}
		if !p.needed[c.from.set][c.from.granule] {
			continue
		}
		w.each(b, func(_, _, at int) {
			if has(at) {
				c.n++
				c.flow += flow[at]
			}
		})
		if c.n > 0 {
			c.flow /= float64(c.n)
			all = append(all, c)
		}
	}
	return all
}

// add adds the candidates of a sum of so many units. The first ones are those that give a weight to a unit which those with
// more flow leave without.
func (c *chooser) add(found []candidate, units int, w *grid, has func(int) bool) {
	byFlow := make([]int, len(found))
	for k := range byFlow {
		byFlow[k] = k
	}
	slices.SortStableFunc(byFlow, func(a, b int) int { return cmp.Compare(found[b].flow, found[a].flow) })
	seen := make([]bool, units)
	for _, k := range byFlow {
		x := &found[k]
		w.each(x.block, func(r, _, at int) {
			if u := int(x.block.row)*w.rows + r; !seen[u] && has(at) {
				seen[u] = true
				x.first = true
			}
		})
	}
	for _, x := range found {
		at := &c.rows[x.from.set][x.from.granule]
		*at = append(*at, len(c.all))
		c.all = append(c.all, x)
	}
}

// choose finds the candidates that stay.
func (c *chooser) choose(root place) {
	c.stays = make([]bool, len(c.all))
	c.letIn(nil, root, math.MaxInt)
	for len(c.queue) > 0 {
		if k := heap.Pop(c).(int); c.all[k].n <= c.room {
			c.letIn([]int{k}, c.all[k].to, c.room)
		}
	}
}

// letIn lets blocks and a place in, with the first blocks of all places that this leads to, unless these have more than so
// many weights.
func (c *chooser) letIn(blocks []int, to place, most int) {
	var entered []place
	enter := func(at place) {
		if c.in[at.set][at.granule] {
			return
		}
		c.in[at.set][at.granule] = true
		entered = append(entered, at)
		for _, k := range c.rows[at.set][at.granule] {
			if c.all[k].first {
				blocks = append(blocks, k)
			}
		}
	}
	enter(to)
	weights := 0
	for i := 0; i < len(blocks); i++ {
		x := &c.all[blocks[i]]
		if weights += x.n; weights > most {
			for _, at := range entered {
				c.in[at.set][at.granule] = false
			}
			return
		}
		enter(x.to)
	}
	c.room -= weights
	for _, k := range blocks {
		c.stays[k] = true
	}
	for _, at := range entered {
		for _, k := range c.rows[at.set][at.granule] {
			if !c.stays[k] {
				heap.Push(c, k)
			}
		}
	}
}

// Len, Less, Swap, Push and Pop make the queue a heap with the most flow for each weight first.
func (c *chooser) Len() int { return len(c.queue) }

func (c *chooser) Less(i, k int) bool {
	a, b := c.queue[i], c.queue[k]
	return cmp.Or(cmp.Compare(c.all[b].flow, c.all[a].flow), cmp.Compare(a, b)) < 0
}

func (c *chooser) Swap(i, k int) { c.queue[i], c.queue[k] = c.queue[k], c.queue[i] }

func (c *chooser) Push(k any) { c.queue = append(c.queue, k.(int)) }

func (c *chooser) Pop() any {
	last := c.queue[len(c.queue)-1]
	c.queue = c.queue[:len(c.queue)-1]
	return last
}
