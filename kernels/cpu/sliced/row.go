package sliced

import "math"

// rowPlan is how one row at a time goes through the forest.
type rowPlan struct {
	depth int      // of the complete tops
	most  int      // rows for which it is faster than a block; 0 if there is no such way
	trees int      // rounded up to a multiple of together
	nodes []uint64 // [trees][2^depth], as descendGeneric takes them
	// Where each tree has one table and none walks on, values are [trees][2^depth], of the
	// outputs of the trees.
	outputs []int32
	single  []float32
	double  []float64
	low     int // where keys begin in which a missing cell is below all others
	mixed   int // where the outcomes of mixed tests begin
	one     int // where a 1 is
	size    int // of the keys
	lowUsed bool
}

// rowMemory is the memory of one row.
type rowMemory struct {
	rowKeys   []uint32
	rowLeaves []uint32
	rowSums   []float32
}

// rowNodes is the most nodes of the complete tops: beyond, blocks serve single rows too.
const rowNodes = 1 << 24

// plan chooses the height of the tops: that of the deepest tree, as far as it goes.
func (r *rowPlan) plan(p *Program, depths []int) {
	r.depth = 1
	for _, d := range depths {
		r.depth = max(r.depth, min(d, maxHeight))
	}
	f := p.m.Features
	r.low, r.mixed = f, 2*f
	r.one = r.mixed + len(p.mixed)
	r.size = r.one + 1
	r.trees = (len(depths) + together - 1) / together * together
	if r.trees<<r.depth <= rowNodes {
		r.nodes = make([]uint64, r.trees<<r.depth)
	}
}

// slot is a test as a row takes it: a place of a key in its low half, and the largest key
// that passes in its high half.
func (p *Program) slot(t *test) uint64 {
	pack := func(place int, last uint32) uint64 { return uint64(last)<<32 | uint64(uint32(place)) }
	c := &p.columns[t.column]
	last := func(end uint16) uint32 { // of the keys with a rank below end
		if end == c.missing() {
			return math.MaxUint32 - 1
		}
		return cutKey(c.cuts[end-1]) - 1
	}
	switch t.kind {
	case always:
		return pack(p.row.one, math.MaxUint32)
	case single:
		return pack(c.feature, last(t.end))
	case present:
		if t.end == 0 {
			return pack(p.row.low+c.feature, 0)
		}
		return pack(p.row.low+c.feature, last(t.end))
	case mixed:
		return pack(p.row.mixed+int(t.ordinal), 0)
	}
	return pack(p.row.one, 0)
}

// fill makes the nodes of the tops, and decides up to how many rows they serve.
func (r *rowPlan) fill(p *Program) {
	if r.nodes == nil {
		return
	}
	steps := 0
	for i := range p.m.Trees {
		t := &p.m.Trees[i]
		nodes := r.nodes[i<<r.depth:][:1<<r.depth]
		height := p.trees[i].height
		steps += r.depth
		var place func(at int32, node, level int)
		place = func(at int32, node, level int) {
			if node >= len(nodes) {
				return
			}
			if at < 0 || level == height {
				nodes[node] = uint64(math.MaxUint32)<<32 | uint64(r.one)
				place(at, 2*node, level+1)
				place(at, 2*node+1, level+1)
				return
			}
			n := t.Nodes[at]
			nodes[node] = p.slot(&p.tests[n.Mask])
			place(n.Yes, 2*node, level+1)
			place(n.No, 2*node+1, level+1)
		}
		place(t.Root, 1, 0)
	}
	r.most = rowsBelow(p)
	r.tabulate(p)
}

// tabulate puts the values of all trees side by side, where that can be done.
func (r *rowPlan) tabulate(p *Program) {
	for i := range p.trees {
		if t := &p.trees[i]; len(t.tables) != 1 || t.on != nil {
			return
		}
	}
	if n := len(p.trees) << r.depth; p.m.Single {
		r.single = make([]float32, 0, n)
	} else {
		r.double = make([]float64, 0, n)
	}
	for i := range p.trees {
		t := &p.trees[i]
		x := &t.tables[0]
		r.outputs = append(r.outputs, int32(x.output))
		for leaf := range 1 << r.depth {
			if top := leaf >> (r.depth - t.height); p.m.Single {
				r.single = append(r.single, x.single[top])
			} else {
				r.double = append(r.double, x.double[top])
			}
		}
	}
}

// addRow adds the values of a row's leaves to its sums.
func addRow[T float32 | float64](sums []T, outputs []int32, leaves []uint32, values []T, depth int) {
	if len(sums) == 1 {
		sum := sums[0]
		for i, leaf := range leaves {
			sum += values[i<<depth+int(leaf)]
		}
		sums[0] = sum
		return
	}
	for i, leaf := range leaves {
		sums[outputs[i]] += values[i<<depth+int(leaf)]
	}
}

// rowsBelow is the number of rows up to which one at a time is faster than a block: a row
// takes a step for each level, a block one for each node of each top and each mask, on
// vectors. The weights fit one forest of 100 trees of depth 8 on a Zen 3; both ways give the same bits.
func rowsBelow(p *Program) int {
	row := len(p.trees) * (p.row.depth + 2)
	block := 0
	for i := range p.trees {
		block += 1 << p.trees[i].height
	}
	block = block*3 + p.masks*2 + 100*len(p.columns)
	return min(max(block/max(row, 1)/2, 1), blockRows/4)
}

func (r *rowPlan) memory(p *Program) rowMemory {
	m := rowMemory{rowKeys: make([]uint32, r.size+16), rowLeaves: make([]uint32, r.trees), rowSums: make([]float32, p.m.Outputs)}
	m.rowKeys[r.one] = 1
	return m
}

// Least is the least number of rows for which the program is faster than a walk through
// the trees: 1 unless rows cannot go one at a time, and then an estimate.
func (p *Program) Least() int {
	if p.row.most > 0 {
		return 1
	}
	return 32
}

// takes reports whether n rows go one at a time.
func (r *rowPlan) takes(n int) bool { return n <= r.most }

// sumRow computes the sums of one row.
func (p *Program) sumRow(s *scratch, cells []float32, start, out []float64) {
	p.keysOfRow(s, cells)
	if len(p.trees) > 0 {
		p.loops.descend[p.row.depth](&s.rowKeys[0], &p.row.nodes[0], p.row.trees, &s.rowLeaves[0])
	}
	if p.m.Single {
		for i, x := range start {
			s.rowSums[i] = float32(x)
		}
	} else {
		copy(out, start)
	}
	switch leaves := s.rowLeaves[:len(p.trees)]; {
	case p.row.single != nil:
		addRow(s.rowSums, p.row.outputs, leaves, p.row.single, p.row.depth)
	case p.row.double != nil:
		addRow(out, p.row.outputs, leaves, p.row.double, p.row.depth)
	default:
		p.addTrees(s, leaves, out)
	}
	if p.m.Single {
		for i, x := range s.rowSums {
			out[i] = float64(x)
		}
	}
}

// addTrees adds the values of a row's leaves to its sums, and walks on where the top of a
// tree is not the whole.
func (p *Program) addTrees(s *scratch, leaves []uint32, out []float64) {
	for i := range p.trees {
		t := &p.trees[i]
		top := leaves[i] >> (p.row.depth - t.height)
		if t.on != nil && t.on[top&(maxLeaves-1)] != 0 {
			leaf := t.exits[top]
			for leaf >= 0 {
				n, test := &p.nodes[leaf], p.slots[leaf]
				if leaf = n.yes; s.rowKeys[uint32(test)] > uint32(test>>32) {
					leaf = n.no
				}
			}
			at := &t.leaves[^leaf]
			for _, v := range t.values[at.First:at.Last] {
				if p.m.Single {
					s.rowSums[v.Output] += float32(v.Value)
				} else {
					out[v.Output] += v.Value
				}
			}
			continue
		}
		for j := range t.tables {
			if x := &t.tables[j]; p.m.Single {
				s.rowSums[x.output] += x.single[top]
			} else {
				out[x.output] += x.double[top]
			}
		}
	}
}

// keysOfRow writes the keys of a row, and the outcomes of its mixed tests.
func (p *Program) keysOfRow(s *scratch, cells []float32) {
	keys := s.rowKeys[:len(cells)]
	whole := len(cells) / p.loops.keysStep * p.loops.keysStep
	if whole > 0 {
		p.loops.keys(&keys[0], &cells[0], whole)
	}
	for i := whole; i < len(cells); i++ {
		keys[i] = key(cells[i])
	}
	if p.row.lowUsed {
		low := s.rowKeys[p.row.low:][:len(keys)]
		for i, k := range keys {
			if k == math.MaxUint32 {
				k = 0
			}
			low[i] = k
		}
	}
	for i, k := range p.mixed {
		t := &p.tests[k]
		c := &p.columns[t.column]
		r := rank(keys[c.feature], c.table, c.steps)
		if r == 1<<c.steps-1 {
			r = uint32(c.missing())
		}
		fails := uint32(1)
		if t.passes(uint16(r), c.missing()) {
			fails = 0
		}
		s.rowKeys[p.row.mixed+i] = fails
	}
}
