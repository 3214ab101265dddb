package sliced

import (
	"encoding/binary"
	"math"
	"math/bits"
	"unsafe"
)

// generic is the portable set, which defines the others.
var generic = &Loops{
	Name: "generic", keysStep: 1,
	keys: keysGeneric, quads: quadsGeneric, steps: []int{4, 5, 6, 7, 8}, table: searchTable, search: searchGeneric, ranks: ranksGeneric, fetch: func(*byte, int) {}, nibbles: nibblesGeneric, ends: endsGeneric,
	mux: func() (out [maxHeight + 1]func(*rowSet, *uint32, *rowSet, int)) {
		for h := 1; h <= maxHeight; h++ {
			out[h] = func(masks *rowSet, offsets *uint32, planes *rowSet, _ int) {
				muxGeneric(h, masks, offsets, planes)
			}
		}
		return out
	}(),
	indices: indicesGeneric, values: same, add: every(addGeneric[float32]), double: addGeneric[float64], walk: walkGeneric,
	descend: func() (out [maxHeight + 1]func(*uint32, *uint64, int, *uint32)) {
		for depth := 1; depth <= maxHeight; depth++ {
			out[depth] = func(keys *uint32, nodes *uint64, trees int, leaves *uint32) {
				descendGeneric(depth, keys, nodes, trees, leaves)
			}
		}
		return out
	}(),
}

// key maps numbers to integers in the same order, 0 and -0 to one, and NaN above all.
func key(x float32) uint32 {
	b := math.Float32bits(x + 0)
	switch {
	case x != x:
		return math.MaxUint32
	case b>>31 != 0:
		return ^b
	}
	return b | 1<<31
}

func keysGeneric(dst *uint32, src *float32, n int) {
	to := unsafe.Slice(dst, n)
	for i, x := range unsafe.Slice(src, n) {
		to[i] = key(x)
	}
}

// same is for loops that take values as they are.
func same(values []float32) []float32 { return values }

// every is one loop for all heights of trees.
func every(add func(index *byte, values, sums *float32, n int)) (out [maxHeight + 1]func(index *byte, values, sums *float32, n int)) {
	for h := range out {
		out[h] = add
	}
	return out
}

// quadsGeneric writes the keys of quadCells neighbouring cells of n rows, which lie stride
// bytes apart, as columns that lie quadRows apart.
func quadsGeneric(cells *float32, stride, n int, keys *uint32) {
	out := unsafe.Slice(keys, quadCells*quadRows)
	for r := range n {
		for i, x := range *(*[quadCells]float32)(unsafe.Add(unsafe.Pointer(cells), r*stride)) {
			out[quadRows*i+r] = key(x)
		}
	}
}

// searchGeneric writes the number of cuts that are not above each key, 2^steps-1 for a
// missing cell.
func searchGeneric(keys, table *uint32, steps int, codes *byte, n int) {
	cuts, out := unsafe.Slice(table, 1<<steps), unsafe.Slice(codes, n)
	for i, k := range unsafe.Slice(keys, n) {
		out[i] = byte(rank(k, cuts, steps))
	}
}

// ranksGeneric writes the number of cuts that are not above each key, missing16 for a
// missing cell, by the table of searchTable.
func ranksGeneric(keys, table *uint32, steps int, ranks *uint16, n int) {
	cuts, out := unsafe.Slice(table, 1<<steps), unsafe.Slice(ranks, n)
	for i, k := range unsafe.Slice(keys, n) {
		out[i] = rank16(rank(k, cuts, steps), steps)
	}
}

// rank16 gives missing cells the rank that they have in 16 bits.
func rank16(rank uint32, steps int) uint16 {
	if rank == 1<<steps-1 {
		return missing16
	}
	return uint16(rank)
}

// rank returns the number of cuts that are not above a key, 2^steps-1 for a missing cell.
// The table is an implicit tree, [2^steps] with its root at 1, over the cuts in
// descending order: a key below a node's cut goes to the second child, so the path
// spells how many cuts are above it.
func rank(k uint32, cuts []uint32, steps int) uint32 {
	j := uint32(1)
	for range steps {
		_, below := bits.Sub32(k, cuts[j], 0)
		j = 2*j + below
	}
	return j ^ (2<<steps - 1)
}

// nibblesGeneric writes 33 sets: of the rows whose code has a high nibble of at least
// 0..16, and of those whose low nibble is at least 0..15.
func nibblesGeneric(codes *byte, table *rowSet, _ int) {
	in, out := unsafe.Slice(codes, blockRows), unsafe.Slice(table, tableSets)
	clear(out)
	for r, c := range in {
		w, bit := r>>6, uint64(1)<<(r&63)
		out[c>>4][w] |= bit
		out[17+c&15][w] |= bit
	}
	for _, part := range [][]rowSet{out[:17], out[17:]} {
		for t := len(part) - 2; t >= 0; t-- {
			for w := range part[t] {
				part[t][w] |= part[t+1][w]
			}
		}
	}
}

// endsGeneric writes groups of groupSets masks: the sets of the rows whose code is at
// least a number and which are not in the set not. The numbers of a group have one high
// part; its set and the next are at an offset in high, in bytes. Sets of rows whose low
// nibble is at least 0..15 are in low.
func endsGeneric(high, low *rowSet, groups *uint32, n int, not, masks *rowSet, _ int) {
	lows, out := unsafe.Slice(low, groupSets), unsafe.Slice(masks, n*groupSets)
	for i, g := range unsafe.Slice(groups, n) {
		highs := (*[2]rowSet)(unsafe.Add(unsafe.Pointer(high), g))
		for l := range lows {
			for w := range not {
				out[groupSets*i+l][w] = (highs[1][w] | highs[0][w]&lows[l][w]) &^ not[w]
			}
		}
	}
}

// muxGeneric evaluates a complete tree of a height. Its nodes are offsets of masks, in
// bytes: those of its subtrees of lowHeight from left to right, each node after the nodes
// of its two subtrees, then those above, the lowest level first. A row in a node's mask
// goes to the second child. Plane i of eight gets bit i of the leaf that the row reaches,
// 0 above the height.
func muxGeneric(height int, masks *rowSet, offsets *uint32, planes *rowSet) {
	low := min(height, lowHeight)
	nodes := unsafe.Slice(offsets, 1<<height-1)
	slots := unsafe.Slice((*[maxHeight]rowSet)(unsafe.Pointer(planes)), 1<<(height-low))
	for i := range slots {
		nodes = nodes[muxLow(low, masks, nodes, slots[i][:]):]
	}
	for h := low + 1; h <= height; h++ {
		for j := range 1 << (height - h) {
			test := *(*rowSet)(unsafe.Add(unsafe.Pointer(masks), nodes[0]))
			nodes = nodes[1:]
			left, right := &slots[2*j], &slots[2*j+1]
			for i := range h - 1 {
				slots[j][i] = choose(&test, &left[i], right[i])
			}
			slots[j][h-1] = test
		}
	}
	clear(slots[0][height:])
}

// muxLow writes the planes of a subtree and returns how many nodes it has.
func muxLow(height int, masks *rowSet, nodes []uint32, out []rowSet) int {
	n, left := 0, [lowHeight]rowSet{}
	if height > 1 {
		n = muxLow(height-1, masks, nodes, left[:])
		n += muxLow(height-1, masks, nodes[n:], out)
	}
	test := (*rowSet)(unsafe.Add(unsafe.Pointer(masks), nodes[n]))
	for i := range height - 1 {
		out[i] = choose(test, &left[i], out[i])
	}
	out[height-1] = *test
	return n + 1
}

// choose returns right where a mask is set, and left elsewhere.
func choose(mask, left *rowSet, right rowSet) rowSet {
	for w := range right {
		right[w] = left[w] ^ mask[w]&(left[w]^right[w])
	}
	return right
}

// indicesGeneric writes the byte that the eight planes spell for each row. Eight bytes of
// eight planes are a square of bits, which exchanges of its halves, quarters and eighths
// transpose.
func indicesGeneric(planes *rowSet, index *byte, _ int) {
	in, out := unsafe.Slice(planes, maxHeight), unsafe.Slice(index, blockRows)
	for w := range words {
		for b := 0; b < 64; b += 8 {
			x := uint64(0)
			for i := range in {
				x |= in[i][w] >> b & 0xff << (8 * i)
			}
			for _, e := range [3]struct {
				shift uint
				mask  uint64
			}{{7, 0x00aa00aa00aa00aa}, {14, 0x0000cccc0000cccc}, {28, 0x00000000f0f0f0f0}} {
				t := (x ^ x>>e.shift) & e.mask
				x ^= t ^ t<<e.shift
			}
			binary.LittleEndian.PutUint64(out[64*w+b:], x)
		}
	}
}

// addGeneric adds values[index[r]] to sums[r].
func addGeneric[T float32 | float64](index *byte, values, sums *T, n int) {
	in, out := unsafe.Slice(index, n), unsafe.Slice(sums, n)
	for r, x := range in {
		out[r] += *(*T)(unsafe.Add(unsafe.Pointer(values), uintptr(x)*unsafe.Sizeof(*values)))
	}
}

// descendGeneric writes the leaf that a row reaches in each of trees complete trees of a
// depth. The nodes of a tree, [2^depth] with the root at 1, have the place of a key in
// their low half and a number in their high half; a larger key goes to the second child.
func descendGeneric(depth int, keys *uint32, nodes *uint64, trees int, leaves *uint32) {
	out := unsafe.Slice(leaves, trees)
	for t := range out {
		tree := unsafe.Slice((*uint64)(unsafe.Add(unsafe.Pointer(nodes), t*8<<depth)), 1<<depth)
		at := uint32(1)
		for range depth {
			n := tree[at]
			k := *(*uint32)(unsafe.Add(unsafe.Pointer(keys), 4*uintptr(uint32(n))))
			_, above := bits.Sub32(uint32(n>>32), k, 0)
			at = 2*at + above
		}
		out[t] = at - 1<<depth
	}
}

// walkGeneric leads n rows, a positive multiple of groupRows, from the leaves of the top of
// a tree, which index names, to leaves of the tree. Their nodes go to ends, and what they
// add is added to sums unless it is nil. Groups of ranks lie stride bytes apart. See
// deepTree.
func walkGeneric(nodes *uint64, starts *uint32, index *byte, groups *uint16, stride, n int, ends *uint32, sums *float32) {
	out, from := unsafe.Slice(ends, n), unsafe.Slice(starts, maxLeaves)
	for r, top := range unsafe.Slice(index, n) {
		group := unsafe.Add(unsafe.Pointer(groups), r/groupRows*stride+2*(r%groupRows))
		at := from[top]
		for {
			node := *(*uint64)(unsafe.Add(unsafe.Pointer(nodes), 8*uintptr(at)))
			delta := uint32(node) >> 16
			if delta == 0 {
				if sums != nil {
					x := (*float32)(unsafe.Add(unsafe.Pointer(sums), 4*r))
					*x += math.Float32frombits(uint32(node >> 32))
				}
				break
			}
			rank := *(*uint16)(unsafe.Add(group, 8*uintptr(node&0xffff)))
			_, above := bits.Sub32(uint32(node>>32), uint32(rank), 0)
			at += delta + above
		}
		out[r] = at
	}
}
