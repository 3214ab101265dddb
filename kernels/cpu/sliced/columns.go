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
	steps   int       // ranks fit in so many bits, all ones for a missing cell: 4 or 8 where they are narrow
	fast    []int32   // the table of the loops' search (narrow)
	table   []uint32  // of the search among float32 cuts
	merged  bool      // no test tells missing cells from those above all cuts: they have one rank
	cuts    []float64 // for cells in float64
	narrow  int       // index among columns whose ranks fit in a byte, -1 for others
	wide    int       // index among columns that have ranks of 16 bits, -1 for none

	ends    []uint16 // ranks of the masks {rank >= end}, ascending, missing cells included
	present []uint16 // ranks of masks without missing cells
	first   int      // mask of ends[0]; those of present follow
	packed  []uint32 // ends, then present, as loops take them (narrow)
	bucket  []uint16 // how many ends are not above a rank (not narrow)
}

// missing is the rank of a missing cell in the module.
func (c *column) missing() uint16 { return uint16(len(c.cuts) + 1) }

// newColumn makes the search of a column. merged says that no test tells missing cells
// from those above all cuts.
func newColumn(c *sliced.Column, merged bool) column {
	out := column{feature: int(c.Feature), cuts: c.Cuts, narrow: -1, wide: -1, merged: merged}
	// The largest rank is the number of cuts; all ones must be above it, or be it.
	most := len(c.Cuts) + 1
	if merged {
		most--
	}
	switch out.steps = max(1, bits.Len(uint(most))); {
	case out.steps <= 4:
		out.steps = 4
	case out.steps <= 8:
		out.steps = 8
	}
	if out.steps <= 8 {
		out.fast = narrowTable(c.Cuts, out.steps/4)
	}
	out.table = searchTable(c.Cuts, out.steps)
	return out
}

// narrowTable lays at most 15 cuts, or 255 in two levels, out in nodes of 16 numbers. A
// number is less by one than a key with the sign turned, so that the keys above it are
// those that are not below the cut; the last of each node is below all keys.
func narrowTable(cuts []float64, levels int) []int32 {
	number := func(at int) int32 {
		cut := uint32(math.MaxUint32) // only a missing cell reaches it
		if at < len(cuts) {
			cut = cutKey(cuts[at])
		}
		return int32((cut - 1) ^ 1<<31)
	}
	var out []int32
	node := func(first, step int) {
		for i := range 15 {
			out = append(out, number(first+i*step))
		}
		out = append(out, math.MinInt32)
	}
	if levels == 1 {
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

// packEnd returns an end as endsGeneric takes it.
func packEnd(e int) uint32 {
	return uint32(e>>4*setBytes) | uint32((17+e&15)*setBytes)<<16
}

// pack completes a column whose ends are known; first is the mask of the first.
func (c *column) pack(first int) {
	slices.Sort(c.ends)
	slices.Sort(c.present)
	c.ends, c.present = slices.Compact(c.ends), slices.Compact(c.present)
	c.first = first
	if c.narrow < 0 {
		c.bucket = make([]uint16, c.missing()+1)
		at := uint16(0)
		for r := range c.bucket {
			for int(at) < len(c.ends) && int(c.ends[at]) <= r {
				at++
			}
			c.bucket[r] = at
		}
		return
	}
	for _, list := range [][]uint16{c.ends, c.present} {
		for _, e := range list {
			rank := int(e)
			if e >= c.missing() {
				rank = 1<<c.steps - 1
			}
			c.packed = append(c.packed, packEnd(rank))
		}
	}
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
