package sliced

import (
	"math"
	"math/bits"
	"slices"
	"sync"
)

// BlockRows is the most rows of a block.
const BlockRows = 512

const words = BlockRows / 64

// rowSet is a set of the rows of a block.
type rowSet [words]uint64

// Program is a module that is ready to run. It is safe for concurrent use.
type Program struct {
	m       *Module
	columns []column
	masks   []mask
	depth   int // of the deepest tree
	scratch sync.Pool
}

// column is a Column as the interpreter reads it.
type column struct {
	feature int
	keys    []uint64 // of the cuts, ascending
	ends    []uint16 // ranks whose prefix masks are needed, ascending
	first   int      // index of the first one's mask among those of all columns
}

// mask is the exclusive or of prefix masks. Those with one end are the usual ones.
type mask struct{ prefixes []int32 }

// scratch is the memory of one block.
type scratch struct {
	ranks    [BlockRows]uint16
	order    [BlockRows]uint16 // rows by rank
	starts   []uint16          // by rank: where its rows start in order
	prefixes []rowSet
	masks    []rowSet
	stack    []visit
}

// visit is a node, or leaf, with the rows that reach it.
type visit struct {
	node int32
	rows rowSet
}

// New makes a program of a module, which must not be changed afterwards.
func New(m *Module) (*Program, error) {
	if err := m.Validate(); err != nil {
		return nil, err
	}
	p := &Program{m: m}
	needed := make([][]uint16, len(m.Columns))
	for _, mask := range m.Masks {
		needed[mask.Column] = append(needed[mask.Column], mask.Ends...)
	}
	total, most := 0, 0
	for i, c := range m.Columns {
		slices.Sort(needed[i])
		ends := slices.Compact(needed[i])
		col := column{feature: int(c.Feature), ends: ends, first: total}
		for _, x := range c.Cuts {
			col.keys = append(col.keys, key(x))
		}
		p.columns = append(p.columns, col)
		total += len(ends)
		most = max(most, len(c.Cuts)+3)
	}
	for _, mk := range m.Masks {
		var out mask
		col := &p.columns[mk.Column]
		for _, e := range mk.Ends {
			at, _ := slices.BinarySearch(col.ends, e)
			out.prefixes = append(out.prefixes, int32(col.first+at))
		}
		p.masks = append(p.masks, out)
	}
	for i := range m.Trees {
		p.depth = max(p.depth, m.Trees[i].depth())
	}
	p.scratch.New = func() any {
		return &scratch{starts: make([]uint16, most+1), prefixes: make([]rowSet, total), masks: make([]rowSet, len(m.Masks)), stack: make([]visit, 0, p.depth+2)}
	}
	return p, nil
}

// depth returns the number of tests on the longest way down. Children come later than
// their parents, so one pass does.
func (t *Tree) depth() int {
	deepest := 0
	depth := make([]int, len(t.Nodes))
	for i, n := range t.Nodes {
		deepest = max(deepest, depth[i]+1)
		for _, c := range []int32{n.Yes, n.No} {
			if c >= 0 {
				depth[c] = max(depth[c], depth[i]+1)
			}
		}
	}
	return deepest
}

// key maps numbers to integers in the same order; 0 and -0 get one key.
func key(x float64) uint64 {
	b := math.Float64bits(x + 0)
	if b>>63 != 0 {
		return ^b
	}
	return b | 1<<63
}

// Sums adds the values of the leaves that each row reaches to sums, [rows][Outputs],
// tree after tree. rows has at most BlockRows rows of Features cells, already rounded
// to the precision in which the forest compares. In a module of float32 sums, sums
// must be float32 numbers, and stay so.
func (p *Program) Sums(rows, sums []float64) {
	n := len(rows) / p.m.Features
	if n == 0 {
		return
	}
	s := p.scratch.Get().(*scratch)
	defer p.scratch.Put(s)
	p.fill(s, rows, n)
	outputs := p.m.Outputs
	for i := range p.m.Trees {
		t := &p.m.Trees[i]
		p.divide(s, t, n, func(leaf *Leaf, at *rowSet) {
			for _, v := range t.Values[leaf.First:leaf.Last] {
				if p.m.Single {
					addSingle(sums[v.Output:], outputs, at, float32(v.Value))
				} else {
					addDouble(sums[v.Output:], outputs, at, v.Value)
				}
			}
		})
	}
}

// Leaves writes the ID of the leaf that each row reaches in each tree into out,
// [rows][trees].
func (p *Program) Leaves(rows, out []float64) {
	n := len(rows) / p.m.Features
	if n == 0 {
		return
	}
	s := p.scratch.Get().(*scratch)
	defer p.scratch.Put(s)
	p.fill(s, rows, n)
	for i := range p.m.Trees {
		p.divide(s, &p.m.Trees[i], n, func(leaf *Leaf, at *rowSet) {
			for w, set := range at {
				for ; set != 0; set &= set - 1 {
					out[(64*w+bits.TrailingZeros64(set))*len(p.m.Trees)+i] = float64(leaf.ID)
				}
			}
		})
	}
}

// addSingle adds v to the rows of a set in float32.
func addSingle(sums []float64, stride int, at *rowSet, v float32) {
	for w, set := range at {
		for base := 64 * w * stride; set != 0; set &= set - 1 {
			x := &sums[base+bits.TrailingZeros64(set)*stride]
			*x = float64(float32(*x) + v)
		}
	}
}

// addDouble adds v to the rows of a set in float64.
func addDouble(sums []float64, stride int, at *rowSet, v float64) {
	for w, set := range at {
		for base := 64 * w * stride; set != 0; set &= set - 1 {
			sums[base+bits.TrailingZeros64(set)*stride] += v
		}
	}
}

// fill computes the masks for n rows.
func (p *Program) fill(s *scratch, rows []float64, n int) {
	for i := range p.columns {
		c := &p.columns[i]
		c.rank(s, rows[c.feature:], p.m.Features, n)
		c.prefix(s, n)
	}
	for i := range p.masks {
		set := s.prefixes[p.masks[i].prefixes[0]]
		for _, k := range p.masks[i].prefixes[1:] {
			more := &s.prefixes[k]
			for w := range set {
				set[w] ^= more[w]
			}
		}
		s.masks[i] = set
	}
}

// rank writes the ranks of n cells, a stride apart: a search in halves that has no
// branch to mispredict.
func (c *column) rank(s *scratch, cells []float64, stride, n int) {
	missing := uint16(len(c.keys) + 1)
	for r := range n {
		x := cells[r*stride]
		if x != x {
			s.ranks[r] = missing
			continue
		}
		k := key(x)
		keys := c.keys
		at := 0
		for len(keys) > 1 {
			half := len(keys) / 2
			_, below := bits.Sub64(k, keys[half-1], 0) // 1 if k is below the cut
			skip := half &^ -int(below)
			at += skip
			keys = keys[skip:][:len(keys)-half]
		}
		if len(keys) == 1 {
			_, below := bits.Sub64(k, keys[0], 0)
			at += 1 - int(below)
		}
		s.ranks[r] = uint16(at)
	}
}

// prefix computes the masks {rank < end} of a column for its ends in ascending order:
// rows are sorted by rank, and each mask is the one before it and the rows between.
func (c *column) prefix(s *scratch, n int) {
	starts := s.starts[:len(c.keys)+3]
	clear(starts)
	for _, r := range s.ranks[:n] {
		starts[r+1]++
	}
	for i := 1; i < len(starts); i++ {
		starts[i] += starts[i-1]
	}
	for row, r := range s.ranks[:n] {
		s.order[starts[r]] = uint16(row)
		starts[r]++ // now the end of r's rows
	}
	var set rowSet
	at := uint16(0)
	for i, end := range c.ends {
		for stop := starts[end-1]; at < stop; at++ {
			row := s.order[at]
			set[row>>6] |= 1 << (row & 63)
		}
		s.prefixes[c.first+i] = set
	}
}

// divide calls leaf with every leaf that one of n rows reaches, and these rows.
func (p *Program) divide(s *scratch, t *Tree, n int, leaf func(*Leaf, *rowSet)) {
	top := visit{node: t.Root}
	for w := range top.rows {
		if left := n - 64*w; left >= 64 {
			top.rows[w] = math.MaxUint64
		} else if left > 0 {
			top.rows[w] = 1<<left - 1
		}
	}
	stack := append(s.stack[:0], top)
	for len(stack) > 0 {
		v := &stack[len(stack)-1]
		if v.node < 0 {
			leaf(&t.Leaves[^v.node], &v.rows)
			stack = stack[:len(stack)-1]
			continue
		}
		node := &t.Nodes[v.node]
		mask := &s.masks[node.Mask]
		var yes rowSet
		anyYes, anyNo := uint64(0), uint64(0)
		for w := range yes {
			here := v.rows[w]
			yes[w] = here & mask[w]
			v.rows[w] = here &^ mask[w]
			anyYes |= yes[w]
			anyNo |= v.rows[w]
		}
		v.node = node.No
		switch {
		case anyNo == 0:
			v.node, v.rows = node.Yes, yes
		case anyYes != 0:
			stack = append(stack, visit{node.Yes, yes})
		}
	}
	s.stack = stack[:0]
}
