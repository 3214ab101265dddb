package sliced

import (
	"math"
	"math/bits"
	"unsafe"

	"github.com/pce-engine/pce/kernels/cpu"
	"github.com/pce-engine/pce/kernels/sliced"
)

// Cell is the type of cells: float32 for modules of any forest, float64 for those whose
// forests compare in float64.
type Cell interface{ float32 | float64 }

// scratch is the memory of one block, or of one row.
type scratch struct {
	keys   [(quadCells + 1) * quadRows]uint32 // a quad's, and what search may read behind them
	rest   [quadLeast * quadCells]float32     // the cells of the last rows
	narrow []byte                             // [columns][512]
	wide   []uint16                           // [columns][512]
	masks  []rowSet
	table  []rowSet
	planes []rowSet
	index  [blockRows]byte
	single []float32 // [outputs][512]
	double []float64
	levels [2][]rowSet // of the upper digits of codes
	order  [blockRows]uint16
	deep   deepMemory
	rowMemory
}

func (p *Program) newScratch() *scratch {
	most := 0
	for i := range p.columns {
		if c := &p.columns[i]; c.narrow < 0 {
			most = max(most, len(c.ends.groups))
		}
	}
	levels := most + groupSets + 1
	sets := cpu.Aligned[rowSet](p.masks + tableSets + planeSets + 2*levels)
	s := &scratch{
		masks: sets[:p.masks], table: sets[p.masks:][:tableSets], planes: sets[p.masks+tableSets:][:planeSets],
		narrow: make([]byte, p.narrows*blockRows), wide: make([]uint16, p.wides*blockRows),
	}
	for w := range s.masks[all] {
		s.masks[all][w] = math.MaxUint64
	}
	switch {
	case p.deep.blocks > 0: // whose sums are there
	case p.m.Single:
		s.single = make([]float32, p.m.Outputs*blockRows)
	default:
		s.double = make([]float64, p.m.Outputs*blockRows)
	}
	for k := range s.levels {
		s.levels[k] = sets[p.masks+tableSets+planeSets+k*levels:][:levels:levels]
	}
	s.rowMemory = p.row.memory(p)
	s.deep = p.deep.memory(p)
	return s
}

// Sums adds the values of the leaves that rows reach, tree after tree, to start, a
// number for each output, and writes the sums, [rows][Outputs]. In a module of float32
// sums, start must be float32 numbers. Cells of type float64 are for modules whose
// forests compare in float64.
func Sums[T Cell](p *Program, rows []T, start, out []float64) {
	f := p.m.Features
	n := len(rows) / f
	if n == 0 {
		return
	}
	s := p.pool.Get().(*scratch)
	defer p.pool.Put(s)
	if cells, ok := any(rows).([]float32); ok && p.row.takes(n) {
		for r := range n {
			p.sumRow(s, cells[r*f:(r+1)*f], start, out[r*p.m.Outputs:(r+1)*p.m.Outputs])
		}
		return
	}
	if p.deep.blocks > 0 {
		sumsDeep(p, s, rows, start, out)
		return
	}
	for at := 0; at < n; at += blockRows {
		end := min(n, at+blockRows)
		fill(p, s, rows[at*f:end*f], end-at)
		p.sums(s, start, out[at*p.m.Outputs:end*p.m.Outputs], end-at, bytesOf(rows[end*f:min(n, end+blockRows)*f]))
	}
}

// Leaves writes the ID of the leaf that each row reaches in each tree, [rows][trees].
func Leaves[T Cell](p *Program, rows []T, out []float64) {
	f, trees := p.m.Features, len(p.trees)
	n := len(rows) / f
	if n == 0 {
		return
	}
	s := p.pool.Get().(*scratch)
	defer p.pool.Put(s)
	for at := 0; at < n; at += blockRows {
		end := min(n, at+blockRows)
		fill(p, s, rows[at*f:end*f], end-at)
		if p.deep.blocks > 0 {
			p.deep.group(s, 0)
		}
		for i := range p.trees {
			t := &p.trees[i]
			p.top(s, t, halves(end-at))
			p.loops.indices(&s.planes[0], &s.index[0], halves(end-at))
			together := p.deep.blocks > 0 && t.deep != nil
			if together {
				p.walkTogether(s, t.deep, s.index[:], end-at, nil)
			}
			for r := range end - at {
				leaf := t.exits[s.index[r]]
				switch {
				case together:
					leaf = ^t.deep.leaves[s.deep.ends[r]]
				case leaf >= 0:
					leaf = p.walk(s, leaf, r)
				}
				out[(at+r)*trees+i] = float64(t.leaves[^leaf].ID)
			}
		}
	}
}

// bytesOf returns the memory of cells.
func bytesOf[T Cell](cells []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(cells))), len(cells)*int(unsafe.Sizeof(*new(T))))
}

// halves is how many halves of a block n rows take.
func halves(n int) int { return (n + blockRows/2 - 1) / (blockRows / 2) }

// fill computes the ranks and masks of n rows.
func fill[T Cell](p *Program, s *scratch, rows []T, n int) {
	if cells, ok := any(rows).([]float32); ok {
		p.rank(s, cells, n)
	} else {
		p.rankDouble(s, any(rows).([]float64), n)
	}
	half := halves(n)
	for i := range p.columns {
		c := &p.columns[i]
		if c.narrow >= 0 {
			codes := s.narrow[c.narrow*blockRows:][:blockRows]
			p.prefixes(s, c, codes, half)
			if c.wide >= 0 {
				widen(s.wide[c.wide*blockRows:][:n], codes, byte(1<<c.steps-1))
			}
			continue
		}
		p.prefixesWide(s, c, s.wide[c.wide*blockRows:][:n], half)
	}
	for _, i := range p.mixed {
		t := &p.tests[i]
		c := &p.columns[t.column]
		var set rowSet
		if t.invert {
			set = s.masks[all]
		}
		for _, e := range t.ends {
			if e > c.missing() {
				continue // no row is as high
			}
			one := &s.masks[c.mask(&c.ends, e)]
			for w := range set {
				set[w] ^= one[w]
			}
		}
		s.masks[t.set] = set
	}
}

// rank writes the ranks of n rows of float32 cells.
func (p *Program) rank(s *scratch, rows []float32, n int) {
	for at := 0; at < n; at += quadRows {
		count := min(quadRows, n-at)
		for i := range p.quads {
			p.rankQuad(s, &p.quads[i], rows[at*p.m.Features:], at, count)
		}
	}
}

// rankQuad writes the ranks of a quad for count rows, the first of which is row at of the
// block.
func (p *Program) rankQuad(s *scratch, q *quad, rows []float32, at, count int) {
	f := p.m.Features
	whole := 0 // rows that the loop takes as they are
	if f >= quadCells {
		whole = count &^ (quadLeast - 1)
	}
	if whole > 0 {
		p.loops.quads(&rows[q.feature], 4*f, whole, &s.keys[0])
	}
	for ; whole < count; whole += quadLeast {
		for r := range min(quadLeast, count-whole) {
			copy(s.rest[quadCells*r:][:quadCells], rows[(whole+r)*f+q.feature:(whole+r+1)*f])
		}
		p.loops.quads(&s.rest[0], 4*quadCells, quadLeast, &s.keys[whole])
	}
	for i := q.first; i < q.last; i++ {
		c := &p.columns[i]
		keys := s.keys[(c.feature-q.feature)*quadRows:]
		if c.narrow >= 0 {
			p.loops.search(&keys[0], &c.fast[0], c.steps, &s.narrow[c.narrow*blockRows+at], count)
			continue
		}
		p.loops.ranks(&keys[0], &c.table[0], c.steps, &s.wide[c.wide*blockRows+at], count)
	}
}

// rankDouble writes the ranks of n rows of float64 cells.
func (p *Program) rankDouble(s *scratch, rows []float64, n int) {
	for i := range p.columns {
		c := &p.columns[i]
		for r := range n {
			rank := c.find(rows[r*p.m.Features+c.feature])
			if c.narrow >= 0 {
				s.narrow[c.narrow*blockRows+r] = byte(rank)
			} else {
				s.wide[c.wide*blockRows+r] = rank16(rank, c.steps)
			}
		}
	}
}

// find returns the number of cuts that are not above x, all ones where it is missing.
func (c *column) find(x float64) uint32 {
	if x != x {
		return 1<<c.steps - 1
	}
	lo, hi := 0, len(c.cuts)
	for lo < hi {
		if mid := int(uint(lo+hi) / 2); c.cuts[mid] <= x {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return uint32(lo)
}

// prefixes computes the masks of a narrow column.
func (p *Program) prefixes(s *scratch, c *column, codes []byte, half int) {
	if len(c.ends.groups) == 0 {
		return
	}
	p.loops.nibbles(&codes[0], &s.table[0], half)
	p.ends(s, c, s.table, half)
}

// ends makes the masks of a column's banks of the sets of the high parts of its codes;
// those of low nibbles are in the table.
func (p *Program) ends(s *scratch, c *column, high []rowSet, half int) {
	low := &s.table[lowSets]
	p.loops.ends(&high[0], low, &c.ends.groups[0], len(c.ends.groups), &s.masks[none], &s.masks[c.ends.first], half)
	if b := &c.present; len(b.groups) > 0 {
		p.loops.ends(&high[0], low, &b.groups[0], len(b.groups), &s.masks[c.mask(&c.ends, c.missing())], &s.masks[b.first], half)
	}
}

// prefixesWide computes the masks of a column that is not narrow. A row's code is how
// many ends are not above its rank; a nibble after the other, from the highest, makes of
// the sets of its upper digits those of one digit more.
func (p *Program) prefixesWide(s *scratch, c *column, ranks []uint16, half int) {
	count := len(c.ends.ends)
	if count == 0 {
		return
	}
	for r, rank := range ranks {
		s.order[r] = c.bucket[min(int(rank), len(c.bucket)-1)]
	}
	top := (bits.Len(uint(count)) - 1) / 4
	high := append(s.levels[(top+1)&1][:0], s.masks[all], s.masks[none])
	for k := top; k >= 0; k-- {
		for r, code := range s.order {
			s.index[r] = byte(code>>(4*k)) & 15
		}
		p.loops.nibbles(&s.index[0], &s.table[0], half)
		if k == 0 {
			p.ends(s, c, high, half)
			return
		}
		groups := count>>(4*k+4) + 1
		next := s.levels[k&1][:groups*groupSets+1]
		p.loops.ends(&high[0], &s.table[lowSets], &c.ends.groups[0], groups, &s.masks[none], &next[0], half)
		next[groups*groupSets] = s.masks[none]
		high = next
	}
}

// widen writes ranks in 16 bits.
func widen(out []uint16, codes []byte, missing byte) {
	for r := range out {
		x := uint16(codes[r])
		if codes[r] == missing {
			x = missing16
		}
		out[r] = x
	}
}

// top writes the planes of the leaves that rows reach in the top of a tree.
func (p *Program) top(s *scratch, t *tree, half int) {
	p.loops.mux[t.height](&s.masks[0], &t.offsets[0], &s.planes[0], half)
}

// sums adds up all trees for the n rows whose masks are filled. Meanwhile it fetches the
// next block's cells, a part with each tree.
func (p *Program) sums(s *scratch, start, out []float64, n int, next []byte) {
	for i := range s.single {
		s.single[i] = float32(start[i/blockRows])
	}
	for i := range s.double {
		s.double[i] = start[i/blockRows]
	}
	half := halves(n)
	part := (len(next)/max(len(p.trees), 1) + setBytes) &^ (setBytes - 1)
	for i := range p.trees {
		t := &p.trees[i]
		if len(next) > 0 {
			k := min(part, len(next))
			p.loops.fetch(&next[0], k)
			next = next[k:]
		}
		p.top(s, t, half)
		p.loops.indices(&s.planes[0], &s.index[0], half)
		p.addTables(t, s.index[:], n, s.single, s.double, blockRows)
		if t.on != nil {
			p.walkOn(s, t, n)
		}
	}
	for o := range p.m.Outputs {
		if p.m.Single {
			sums := s.single[o*blockRows:][:blockRows]
			for r := range n {
				out[r*p.m.Outputs+o] = float64(sums[r])
			}
			continue
		}
		sums := s.double[o*blockRows:][:blockRows]
		for r := range n {
			out[r*p.m.Outputs+o] = sums[r]
		}
	}
}

// addTables adds the values of the leaves of a tree's top to the sums of n rows,
// [outputs][stride].
func (p *Program) addTables(t *tree, index []byte, n int, single []float32, double []float64, stride int) {
	ceil := (n + 7) &^ 7
	for j := range t.tables {
		x := &t.tables[j]
		if first := x.output * stride; p.m.Single {
			p.loops.add[t.height](&index[0], &x.laid[0], &single[first], ceil)
		} else {
			p.loops.double(&index[0], &x.double[0], &double[first], ceil)
		}
	}
}

// walkOn adds the values of the rows that did not reach a leaf in the top of a tree.
func (p *Program) walkOn(s *scratch, t *tree, n int) {
	count := 0
	for r := range n {
		s.order[count&(blockRows-1)] = uint16(r)
		count += int(t.on[s.index[r]])
	}
	for _, r := range s.order[:count] {
		leaf := t.exits[s.index[r]]
		if leaf >= 0 {
			leaf = p.walk(s, leaf, int(r))
		}
		at := &t.leaves[^leaf]
		p.addValues(s, t.values[at.First:at.Last], int(r))
	}
}

// addValues adds the values of a leaf to a row's sums.
func (p *Program) addValues(s *scratch, values []sliced.Value, row int) {
	for _, v := range values {
		if p.m.Single {
			s.single[int(v.Output)*blockRows+row] += float32(v.Value)
		} else {
			s.double[int(v.Output)*blockRows+row] += v.Value
		}
	}
}

// walk goes down from a node to a leaf, and returns it as the exits of tops name it.
func (p *Program) walk(s *scratch, at int32, row int) int32 {
	for at >= 0 {
		n := &p.nodes[at]
		yes := false
		if n.masked {
			yes = s.masks[n.ranks][row>>6]>>(row&63)&1 == 0
		} else {
			yes = s.wide[int(n.ranks)+row]+n.bias < n.limit
		}
		if at = n.no; yes {
			at = n.yes
		}
	}
	return at
}
