package sliced

import (
	"errors"
	"math"
	"unsafe"

	"github.com/pce-engine/pce/internal/parallel"
	"github.com/pce-engine/pce/kernels/sliced"
)

const (
	groupRows   = 8        // rows that walk together
	deepMost    = 8        // blocks whose rows walk through a tree before the next one
	deepRanks   = 1 << 20  // bytes of their ranks: they stay in the second cache
	deepIndices = 8 << 20  // bytes of where they leave the tops of trees
	deepSums    = 32 << 20 // bytes of their sums
	deepFirst   = 2        // a column of zeros and one of ones come before the others
)

// deepPlan is how rows walk on below the tops of trees, eight at a time and many blocks
// in one tree before the next: a tree's nodes stay in the cache.
type deepPlan struct {
	blocks int // that walk through a tree before the next; 0 where rows walk one at a time
	ranks  []deepColumn
}

// deepColumn is a column of ranks as walks read it: in a low one, ranks are one higher
// and a missing cell is below all others.
type deepColumn struct {
	wide int
	low  bool
}

// deepTree is the nodes of the walks of a tree, each of them in three parts: a place in a
// group of ranks, 16 bits, in units of eight bytes; the distance of its first child, 16
// bits, which the second child follows; and the largest rank that goes to the first
// child. A leaf is its own child. It has the bits of what it adds in place of a rank, if
// each of the tree's leaves adds one float32 to the same output.
type deepTree struct {
	starts []uint32 // by leaf of the top: a node
	nodes  []uint64
	leaves []int32 // by node
	output int     // -1 where leaves add otherwise
}

// deepMemory is the memory of blocks that walk together.
type deepMemory struct {
	groups  []uint16  // [rows/8][columns][8]
	indices []byte    // [trees][rows]
	ends    []uint32  // the nodes where rows arrive
	single  []float32 // [outputs][rows]
	double  []float64
}

// plan makes the nodes of all walks, of which trees have so many. If some do not fit, rows walk one at a time.
func (d *deepPlan) plan(p *Program, walks []int) {
	places, ok := d.place(p)
	if !ok || len(p.nodes) == 0 {
		return
	}
	err := parallel.Each(len(p.trees), func() func(int) error {
		b := &deepBuilder{program: p, places: places}
		return func(i int) error {
			t := &p.trees[i]
			if t.on == nil {
				return nil
			}
			if t.deep = b.tree(&p.m.Trees[i], t, walks[i]); t.deep == nil {
				return errFar
			}
			return nil
		}
	})
	if err == nil {
		d.blocks = max(1, min(deepMost, deepRanks/(2*blockRows*d.columns()), deepIndices/(blockRows*len(p.trees)), deepSums/(8*blockRows*p.m.Outputs)))
	}
}

// errFar says that a child is too far from its parent for the bits that it has.
var errFar = errors.New("sliced: the nodes of a walk are too far apart")

// columns is how many columns a group has.
func (d *deepPlan) columns() int { return deepFirst + len(d.ranks) }

const deepUnits = 2 * groupRows / 8 // of a column in a group

// place lists the columns whose ranks walks compare, and returns their places in a group. It returns
// false if there is a test that is not of ranks, or a place needs more bits than it has.
func (d *deepPlan) place(p *Program) (places []uint16, ok bool) {
	places = make([]uint16, 2*p.wides)
	for i := range p.nodes {
		n := &p.nodes[i]
		if n.masked {
			return nil, false
		}
		if n.limit > 0 {
			places[columnOf(n)] = 1
		}
	}
	for i, used := range places {
		if used == 0 {
			continue
		}
		at := deepUnits * d.columns()
		if at > math.MaxUint16 {
			return nil, false
		}
		places[i] = uint16(at)
		d.ranks = append(d.ranks, deepColumn{i / 2, i%2 > 0})
	}
	return places, true
}

// columnOf numbers the column that a node compares: that of ranks that are not low, before that of low ones.
func columnOf(n *walkNode) int {
	c := 2 * int(n.ranks/blockRows)
	if n.bias > 0 {
		c++
	}
	return c
}

// deepBuilder makes the nodes of trees, one after the other.
type deepBuilder struct {
	program *Program
	places  []uint16 // by columnOf
	queue   []int32
}

// tree makes the nodes of a tree, parents first, so many of walks; nil if they do not fit.
func (b *deepBuilder) tree(from *sliced.Tree, t *tree, walks int) *deepTree {
	n := len(t.exits) + 2*walks // each node of a walk adds a child
	out := &deepTree{starts: make([]uint32, maxLeaves), output: -1, nodes: make([]uint64, 0, n), leaves: make([]int32, 0, n)}
	if b.program.m.Single {
		out.output = soleOutput(from)
	}
	for i, exit := range t.exits {
		out.starts[i] = uint32(len(out.nodes))
		b.queue = append(b.queue[:0], exit) // the nodes of walks, or leaves, from that one on
		for k := 0; k < len(b.queue); k++ {
			at := b.queue[k]
			if at < 0 {
				out.nodes = append(out.nodes, uint64(math.Float32bits(out.value(from, ^at)))<<32)
				out.leaves = append(out.leaves, ^at)
				continue
			}
			n := &b.program.nodes[at]
			delta := len(b.queue) - k
			if delta > math.MaxUint16 {
				return nil
			}
			place, last := uint16(deepUnits), uint64(0) // of a test that no rank passes: its column is of ones
			if n.limit > 0 {
				place, last = b.places[columnOf(n)], uint64(n.limit-1)
			}
			out.nodes = append(out.nodes, last<<32|uint64(delta)<<16|uint64(place))
			out.leaves = append(out.leaves, -1)
			b.queue = append(b.queue, n.yes, n.no)
		}
	}
	return out
}

// soleOutput is the output to which all leaves of a tree add, -1 if there are several or
// a leaf adds twice.
func soleOutput(t *sliced.Tree) int {
	for i := range t.Values {
		if t.Values[i].Output != t.Values[0].Output {
			return -1
		}
	}
	for i := range t.Leaves {
		if t.Leaves[i].Last-t.Leaves[i].First > 1 {
			return -1
		}
	}
	if len(t.Values) == 0 {
		return -1
	}
	return int(t.Values[0].Output)
}

// value is what a leaf adds to the only output; -0 leaves a sum as it is.
func (t *deepTree) value(from *sliced.Tree, leaf int32) float32 {
	if l := &from.Leaves[leaf]; t.output >= 0 && l.First < l.Last {
		return float32(from.Values[l.First].Value)
	}
	return float32(math.Copysign(0, -1))
}

// memory is for as many blocks as walk together.
func (d *deepPlan) memory(p *Program) deepMemory {
	if d.blocks == 0 {
		return deepMemory{}
	}
	rows := d.blocks * blockRows
	m := deepMemory{groups: make([]uint16, rows*d.columns()), indices: make([]byte, rows*len(p.trees)), ends: make([]uint32, rows)}
	for g := range rows / groupRows {
		ones := m.groups[(g*d.columns()+1)*groupRows:]
		for r := range groupRows {
			ones[r] = 1
		}
	}
	if p.m.Single {
		m.single = make([]float32, rows*p.m.Outputs)
	} else {
		m.double = make([]float64, rows*p.m.Outputs)
	}
	return m
}

// group copies the ranks of a block to where its rows walk, as the k-th block.
func (d *deepPlan) group(s *scratch, k int) {
	stride := d.columns() * groupRows
	groups := s.deep.groups[k*blockRows*d.columns():]
	for i, c := range d.ranks {
		ranks := s.wide[c.wide*blockRows:][:blockRows]
		for g := range blockRows / groupRows {
			from, to := (*[groupRows]uint16)(ranks[groupRows*g:]), (*[groupRows]uint16)(groups[g*stride+(deepFirst+i)*groupRows:])
			*to = *from
			if c.low {
				for r := range to {
					to[r]++ // a missing cell's becomes 0
				}
			}
		}
	}
}

// walk leads n rows of a tree, of the first blocks, from its top to leaves, and adds their
// values to sums unless it is nil.
func (p *Program) walkTogether(s *scratch, t *deepTree, index []byte, n int, sums *float32) {
	ceil := (n + groupRows - 1) &^ (groupRows - 1)
	p.loops.walk(&t.nodes[0], &t.starts[0], &index[0], &s.deep.groups[0], 2*groupRows*p.deep.columns(), ceil, &s.deep.ends[0], sums)
}

// sumsDeep computes the sums of rows, tree after tree for many blocks.
func sumsDeep[T Cell](p *Program, s *scratch, rows []T, start, out []float64) {
	f, outputs := p.m.Features, p.m.Outputs
	total := p.deep.blocks * blockRows
	for first := 0; first < len(rows)/f; first += total {
		n := min(total, len(rows)/f-first)
		for k := 0; k*blockRows < n; k++ {
			at, count := first+k*blockRows, min(blockRows, n-k*blockRows)
			fill(p, s, rows[at*f:(at+count)*f], count)
			p.deep.group(s, k)
			for i := range p.trees {
				p.top(s, &p.trees[i], halves(count))
				p.loops.indices(&s.planes[0], &s.deep.indices[i*total+k*blockRows], halves(count))
			}
		}
		for i := range s.deep.single {
			s.deep.single[i] = float32(start[i/total])
		}
		for i := range s.deep.double {
			s.deep.double[i] = start[i/total]
		}
		for i := range p.trees {
			if next := i + 1; next < len(p.trees) && p.trees[next].deep != nil {
				nodes := p.trees[next].deep.nodes
				p.loops.fetch((*byte)(unsafe.Pointer(&nodes[0])), 8*len(nodes))
			}
			p.addDeep(s, &p.trees[i], s.deep.indices[i*total:][:total], n)
		}
		to := out[first*outputs:]
		for o := range outputs {
			for r := range n {
				if p.m.Single {
					to[r*outputs+o] = float64(s.deep.single[o*total+r])
				} else {
					to[r*outputs+o] = s.deep.double[o*total+r]
				}
			}
		}
	}
}

// addDeep adds a tree to the sums of n rows.
func (p *Program) addDeep(s *scratch, t *tree, index []byte, n int) {
	total := len(index)
	if t.deep == nil {
		p.addTables(t, index, n, s.deep.single, s.deep.double, total)
		return
	}
	if t.deep.output >= 0 {
		p.walkTogether(s, t.deep, index, n, &s.deep.single[t.deep.output*total])
		return
	}
	p.walkTogether(s, t.deep, index, n, nil)
	for r, end := range s.deep.ends[:n] {
		leaf := &t.leaves[t.deep.leaves[end]]
		for _, v := range t.values[leaf.First:leaf.Last] {
			if p.m.Single {
				s.deep.single[int(v.Output)*total+r] += float32(v.Value)
			} else {
				s.deep.double[int(v.Output)*total+r] += v.Value
			}
		}
	}
}
