package sliced

import (
	"fmt"
	"math"
	"sync"

	"github.com/pce-engine/pce/internal/parallel"
	"github.com/pce-engine/pce/kernels/sliced"
)

// Program is a module that is ready to run. It is safe for concurrent use.
type Program struct {
	m       *sliced.Module
	loops   *Loops
	columns []column
	quads   []quad
	tests   []test
	mixed   []int32 // tests whose masks are made of others'
	masks   int     // their number, none and all included
	narrows int     // columns whose ranks fit in a byte
	wides   int     // columns with ranks of 16 bits
	trees   []tree
	nodes   []walkNode
	slots   []uint64 // nodes as rows take them

	deep deepPlan
	row  rowPlan
	pool sync.Pool
}

// New makes a program of a module, which must not be changed afterwards. A nil set of
// loops is Select's.
func New(m *sliced.Module, l *Loops) (*Program, error) {
	if err := m.Validate(); err != nil {
		return nil, err
	}
	if l == nil {
		var err error
		if l, err = Select(); err != nil {
			return nil, err
		}
	}
	p := &Program{m: m, loops: l, masks: firstMask}
	apart := make([]bool, len(m.Columns))
	for i := range m.Masks {
		column := m.Masks[i].Column
		missing := uint16(len(m.Columns[column].Cuts) + 1)
		t := classify(&m.Masks[i], missing)
		p.tests = append(p.tests, t)
		apart[column] = apart[column] || t.missingApart(missing)
	}
	for i := range m.Columns {
		p.columns = append(p.columns, newColumn(&m.Columns[i], !apart[i], l))
	}
	b := p.survey()
	if err := p.number(); err != nil {
		return nil, err
	}
	p.gather()
	p.row.plan(p, b.depths)
	b.build()
	p.deep.plan(p, b.walks)
	p.row.fill(p)
	p.pool.New = func() any { return p.newScratch() }
	return p, nil
}

// Loops returns the loops that the program runs.
func (p *Program) Loops() *Loops { return p.loops }

// Together is how many rows Sums takes through a tree before the next one, so that calls of fewer rows read the trees more often.
func (p *Program) Together() int { return max(1, p.deep.blocks) * blockRows }

// Bytes returns the memory of the tables, in bytes.
func (p *Program) Bytes() int64 {
	n := 24*len(p.nodes) + 8*len(p.slots) + 8*len(p.row.nodes)
	for i := range p.columns {
		n += 4*len(p.columns[i].fast) + 4*len(p.columns[i].table) + 2*len(p.columns[i].bucket)
	}
	for i := range p.trees {
		t := &p.trees[i]
		n += 4*len(t.offsets) + 4*len(t.exits) + len(t.on)
		if t.deep != nil {
			n += 4*len(t.deep.starts) + 8*len(t.deep.nodes) + 4*len(t.deep.leaves)
		}
		for _, x := range t.tables {
			n += 4*len(x.single) + 4*len(x.laid) + 8*len(x.double)
		}
	}
	return int64(n)
}

// survey asks for what the nodes of all trees need.
func (p *Program) survey() *builder {
	b := &builder{Program: p, depths: make([]int, len(p.m.Trees)), walks: make([]int, len(p.m.Trees))}
	var mu sync.Mutex // guards needs
	var needs []*treeNeeds
	_ = parallel.Each(len(p.m.Trees), func() func(int) error { // whose function returns nil
		n := &treeNeeds{program: p, set: make([]bool, len(p.tests)), wide: make([]bool, len(p.columns))}
		mu.Lock()
		needs = append(needs, n)
		mu.Unlock()
		return func(i int) error {
			b.depths[i], b.walks[i] = n.add(&p.m.Trees[i])
			return nil
		}
	})
	for _, n := range needs {
		for i, set := range n.set {
			if set && p.tests[i].set < 0 {
				p.tests[i].set = 0
			}
		}
		for i, wide := range n.wide {
			if wide {
				p.columns[i].wide = 0
			}
		}
	}
	for i := range p.tests {
		p.row.lowUsed = p.row.lowUsed || p.tests[i].kind == present
	}
	return b
}

// treeNeeds is what the nodes of some trees need.
type treeNeeds struct {
	program *Program
	set     []bool // tests: masks
	wide    []bool // columns: ranks of 16 bits
	depth   []int
}

// add asks for what a tree's nodes need, and returns its depth and how many nodes are below the top: ranks of 16 bits there,
// masks above. Children come later than their parents, so one pass does.
func (n *treeNeeds) add(t *sliced.Tree) (deepest, walks int) {
	for len(n.depth) < len(t.Nodes) {
		n.depth = append(n.depth, make([]int, len(t.Nodes)-len(n.depth))...)
	}
	depth := n.depth[:len(t.Nodes)]
	clear(depth)
	for i := range t.Nodes {
		node := &t.Nodes[i]
		below := depth[i] + 1
		deepest = max(deepest, below)
		for _, c := range [...]int32{node.Yes, node.No} {
			if c >= 0 {
				depth[c] = below
			}
		}
		test := &n.program.tests[node.Mask]
		switch {
		case test.kind == mixed || depth[i] < maxHeight:
			n.set[node.Mask] = true
		default:
			n.wide[test.column] = true
		}
		if depth[i] >= maxHeight {
			walks++
		}
	}
	if t.Root < 0 {
		return 0, 0
	}
	return deepest, walks
}

// quad is neighbouring cells that become columns together.
type quad struct {
	feature     int // of the first cell
	first, last int // columns [first,last) are among them
}

// gather divides the columns among quads. Those whose features follow each other, as Lower of package compile/forest
// has them, share one; a module may have them in any order.
func (p *Program) gather() {
	for i := range p.columns {
		feature := p.columns[i].feature
		if k := len(p.quads) - 1; k >= 0 && feature >= p.quads[k].feature && feature < p.quads[k].feature+quadCells {
			p.quads[k].last++
			continue
		}
		p.quads = append(p.quads, quad{max(0, min(feature, p.m.Features-quadCells)), i, i + 1})
	}
}

// number gives columns their places and masks their numbers.
func (p *Program) number() error {
	for i := range p.columns {
		c := &p.columns[i]
		if c.fast != nil {
			c.narrow = p.narrows
			p.narrows++
		}
		if c.narrow < 0 || c.wide == 0 {
			c.wide = p.wides
			p.wides++
		}
	}
	for i := range p.tests {
		t := &p.tests[i]
		c := &p.columns[t.column]
		if t.set < 0 {
			continue
		}
		switch t.kind {
		case single:
			c.ends.ends = append(c.ends.ends, t.end)
		case present:
			c.present.ends = append(c.present.ends, t.end)
			c.ends.ends = append(c.ends.ends, t.end, c.missing())
		case mixed:
			for _, e := range t.ends {
				if e <= c.missing() {
					c.ends.ends = append(c.ends.ends, e)
				}
			}
		}
	}
	for i := range p.columns {
		p.masks = p.columns[i].pack(p.masks)
	}
	for i := range p.tests {
		t := &p.tests[i]
		if t.set < 0 {
			continue
		}
		switch c := &p.columns[t.column]; t.kind {
		case nothing:
			t.set = all
		case always:
			t.set = none
		case single:
			t.set = int32(c.mask(&c.ends, t.end))
		case present:
			t.set = int32(c.mask(&c.present, t.end))
		case mixed:
			t.set = int32(p.masks)
			p.masks++
			t.ordinal = int32(len(p.mixed))
			p.mixed = append(p.mixed, int32(i))
		}
	}
	if p.masks > math.MaxUint32/setBytes {
		return fmt.Errorf("%w: %d masks; want at most %d", sliced.ErrModule, p.masks, math.MaxUint32/setBytes)
	}
	return nil
}

// index returns where a sorted list has x, which it does.
func index[T uint16 | uint32](list []T, x T) int {
	lo, hi := 0, len(list)
	for lo < hi {
		mid := (lo + hi) / 2
		if list[mid] < x {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}
