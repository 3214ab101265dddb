package sliced

import (
	"fmt"
	"math"
	"sync"

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
	depths := make([]int, len(m.Trees))
	for i := range m.Trees {
		depths[i] = p.need(&m.Trees[i])
	}
	if err := p.number(); err != nil {
		return nil, err
	}
	p.gather()
	p.row.plan(p, depths)
	b := &builder{Program: p}
	for i := range m.Trees {
		b.build(&m.Trees[i], depths[i])
	}
	p.deep.plan(p)
	p.row.fill(b)
	p.pool.New = func() any { return p.newScratch() }
	return p, nil
}

// Loops returns the loops that the program runs.
func (p *Program) Loops() *Loops { return p.loops }

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

// need asks for what a tree's nodes need, and returns its depth: ranks of 16 bits below
// the top, masks above. Children come later than their parents, so one pass does.
func (p *Program) need(t *sliced.Tree) int {
	depth := make([]int, len(t.Nodes))
	deepest := 0
	for i, n := range t.Nodes {
		deepest = max(deepest, depth[i]+1)
		for _, c := range []int32{n.Yes, n.No} {
			if c >= 0 {
				depth[c] = depth[i] + 1
			}
		}
		t := &p.tests[n.Mask]
		c := &p.columns[t.column]
		switch {
		case t.kind == mixed:
			t.set = 0
		case depth[i] >= maxHeight:
			c.wide = 0
		case t.set < 0:
			t.set = 0
		}
	}
	if t.Root < 0 {
		return 0
	}
	return deepest
}

// quad is neighbouring cells that become columns together.
type quad struct {
	feature     int // of the first cell
	first, last int // columns [first,last) are among them
}

// gather divides the columns, which are in the order of their features, among quads.
func (p *Program) gather() {
	for i := range p.columns {
		feature := p.columns[i].feature
		if k := len(p.quads) - 1; k >= 0 && feature < p.quads[k].feature+quadCells {
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
