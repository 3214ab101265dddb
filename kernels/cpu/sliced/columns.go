package sliced

import (
	"math"
	"math/bits"
	"slices"

	"github.com/pce-engine/pce/kernels/sliced"
)

const setBytes = 8 * words

// none and all are the masks of no row and of every row.
const (
	none = iota
	all
	firstMask
)

// column is a column of the module with the masks that the tops of trees need.
type column struct {
	feature int
	steps   int       // ranks fit in so many bits, all ones for a missing cell
	fast    []uint32  // the table of the loops' search (narrow)
	table   []uint32  // of the search among float32 cuts
	merged  bool      // no test tells missing cells from those above all cuts: they have one rank
	cuts    []float64 // for cells in float64
	narrow  int       // index among columns whose ranks fit in a byte, -1 for others
	wide    int       // index among columns that have ranks of 16 bits, -1 for none

	ends    bank     // of the masks {rank >= end}, missing cells included
	present bank     // of masks without missing cells
	bucket  []uint16 // how many ends are not above a rank (not narrow)
}

// bank is masks of a column, with their ends in ascending order. They come in groups of
// groupSets, whose codes have one high part. In narrow columns a code is a rank, otherwise
// the number of the column's ends that are not above it.
type bank struct {
	ends   []uint16
	first  int      // mask of the first
	groups []uint32 // as loops take them
}

// missing is the rank of a missing cell in the module.
func (c *column) missing() uint16 { return uint16(len(c.cuts) + 1) }

// newColumn makes the search of a column. merged says that no test tells missing cells
// from those above all cuts.
func newColumn(c *sliced.Column, merged bool, l *Loops) column {
	out := column{feature: int(c.Feature), cuts: c.Cuts, narrow: -1, wide: -1, merged: merged}
	// The largest rank is the number of cuts; all ones must be above it, or be it.
	most := len(c.Cuts) + 1
	if merged {
		most--
	}
	out.steps = max(1, bits.Len(uint(most)))
	for _, steps := range l.steps {
		if out.steps <= steps {
			out.steps = steps
			out.fast = l.table(c.Cuts, steps)
			break
		}
	}
	out.table = searchTable(c.Cuts, out.steps)
	return out
}

// nodeTable lays at most 15 cuts, or 255 in 8 steps, out in nodes of 16 numbers, for a
// search that compares a key with a node at a time. A number is less by one than a key
// with the sign turned, so that the keys above it are those that are not below the cut;
// the last of each node is below all keys.
func nodeTable(cuts []float64, steps int) []uint32 {
	number := func(at int) uint32 {
		cut := uint32(math.MaxUint32) // only a missing cell reaches it
		if at < len(cuts) {
			cut = cutKey(cuts[at])
		}
		return (cut - 1) ^ 1<<31
	}
	var out []uint32
	node := func(first, step int) {
		for i := range 15 {
			out = append(out, number(first+i*step))
		}
		out = append(out, 1<<31)
	}
	if steps == 4 {
		node(0, 1)
		return out
	}
	node(15, 16)
	for i := range 16 {
		node(16*i, 1)
	}
	return out
}

// searchTable lays cuts out for a search of so many levels, with cuts that only a
// missing cell reaches in the places that are left.
func searchTable(cuts []float64, steps int) []uint32 {
	table := make([]uint32, 1<<steps)
	for level := range steps {
		for p := range 1 << level {
			below := p<<(steps-level) + 1<<(steps-level-1) - 1 // cuts before it in descending order
			at := 1<<steps - 2 - below
			cut := uint32(math.MaxUint32)
			if at < len(cuts) {
				cut = cutKey(cuts[at])
			}
			table[1<<level+p] = cut
		}
	}
	return table
}

// cutKey is the key of the least float32 that is not below x: the float32 cells with a
// key from there on are those that are not below x.
func cutKey(x float64) uint32 {
	y := float32(x)
	if float64(y) < x {
		y = math.Nextafter32(y, float32(math.Inf(1)))
	}
	return key(y)
}

// code is the lowest code of the rows that an end lets in.
func (c *column) code(end uint16) int {
	switch {
	case c.narrow < 0:
		return index(c.ends.ends, end) + 1
	case end >= c.missing():
		return 1<<c.steps - 1
	}
	return int(end)
}

// pack completes the banks of a column, whose ends are known. Masks are numbered from
// first on; it returns the next number.
func (c *column) pack(first int) int {
	for _, b := range []*bank{&c.ends, &c.present} {
		slices.Sort(b.ends)
		b.ends = slices.Compact(b.ends)
		b.first = first
		if c.narrow < 0 && len(b.ends) > 0 { // all groups: levels are made of the ones below
			for code := 0; code <= len(c.ends.ends); code += groupSets {
				b.groups = append(b.groups, groupOf(code))
			}
		} else {
			for _, e := range b.ends {
				b.groups = append(b.groups, groupOf(c.code(e)))
			}
			b.groups = slices.Compact(b.groups)
		}
		first += groupSets * len(b.groups)
	}
	if c.narrow >= 0 {
		return first
	}
	c.bucket = make([]uint16, c.missing()+1)
	at := uint16(0)
	for r := range c.bucket {
		for int(at) < len(c.ends.ends) && int(c.ends.ends[at]) <= r {
			at++
		}
		c.bucket[r] = at
	}
	return first
}

// groupOf is the group of a code as endsGeneric takes it.
func groupOf(code int) uint32 { return uint32(code / groupSets * setBytes) }

// mask is that of an end of a bank.
func (c *column) mask(b *bank, end uint16) int {
	code := c.code(end)
	return b.first + groupSets*index(b.groups, groupOf(code)) + code%groupSets
}

// test is how a mask of the module is computed.
type test struct {
	column  int32
	kind    kind
	end     uint16 // of single and present
	invert  bool   // of mixed
	ends    []uint16
	set     int32 // its mask for blocks; -1 if the top of no tree needs it
	ordinal int32 // among mixed tests
}

// kind is a form of tests, in the order in which they are cheap.
type kind uint8

const (
	nothing kind = iota // no rank passes
	always              // every rank passes
	single              // rank < end
	present             // rank < end, or the cell is missing
	mixed               // another set of ranks
)

// classify finds the form of a mask. A rank passes if it is below an odd number of
// ends; missing is the rank of a missing cell, one more than every other rank.
func classify(m *sliced.Mask, missing uint16) test {
	t := test{column: m.Column, set: -1, ordinal: -1}
	// Pairs of equal ends say nothing.
	for _, e := range m.Ends {
		if k := slices.Index(t.ends, e); k >= 0 {
			t.ends = slices.Delete(t.ends, k, k+1)
		} else {
			t.ends = append(t.ends, e)
		}
	}
	slices.Sort(t.ends)
	switch e := t.ends; {
	case len(e) == 0:
		t.kind = nothing
	case len(e) == 1 && e[0] == missing+1:
		t.kind = always
	case len(e) == 1:
		t.kind, t.end = single, e[0]
	case len(e) == 2 && e[0] == missing && e[1] == missing+1:
		t.kind, t.end = present, 0
	case len(e) == 3 && e[1] == missing && e[2] == missing+1:
		t.kind, t.end = present, e[0]
	default:
		t.kind = mixed
		t.invert = len(e)%2 == 0
	}
	return t
}

// missingApart reports whether a test tells missing cells from those above all cuts.
func (t *test) missingApart(missing uint16) bool {
	return t.kind == present || t.kind == mixed || t.kind == single && t.end == missing
}

// passes reports whether a rank passes a test.
func (t *test) passes(rank, missing uint16) bool {
	switch t.kind {
	case always:
		return true
	case single:
		return rank < t.end
	case present:
		return rank < t.end || rank == missing
	case mixed:
		in := false
		for _, e := range t.ends {
			in = in != (rank < e)
		}
		return in
	}
	return false
}
