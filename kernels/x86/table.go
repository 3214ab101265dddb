package x86

import (
	"encoding/binary"
	"math"

	"github.com/pce-engine/pce/kernels/simt"
	"github.com/pce-engine/pce/kernels/x86/asm"
)

// maxParts is the size of tables, in parts of 16 bytes, up to which lookups of four lanes are permutations of registers
// and blends; more lanes share these. Beyond it loads are quicker, each lane on its own: processors take longer for a gather than
// for these.
const maxParts = 4

// perPart returns how many elements of a table a part has.
func perPart(t *simt.Table) int {
	if wide(t.Type) {
		return 2
	}
	return 4
}

// small reports whether a table is looked up by permutations.
func (s shape) small(t *simt.Table) bool { return len(t.Bits) <= maxParts*perPart(t)*s.lanes/4 }

// The instructions that lookups take without AVX-512, of a register of results each.

// laneLoads is those of a number of lookups by one index in a register, each lane of which goes to a general register.
func (s shape) laneLoads(n int) int {
	if s.lanes == 4 {
		return n/2*15 + n%2*13
	}
	return n/2*31 + n%2*27
}

// byteLoads is those of lookups by bytes in memory.
func (s shape) byteLoads(n int) int {
	if s.lanes == 4 {
		return n/2*14 + n%2*9
	}
	return n/2*20 + n%2*17
}

// permutations is those of a lookup in a small table: permutations of its parts, and blends.
func (s shape) permutations(t *simt.Table) int {
	per := perPart(t)
	if per == 4 && len(t.Bits) > per {
		per = 8
	}
	parts := (len(t.Bits) + per - 1) / per
	return 2*parts - 1
}

// partners pairs the lookups of a block that have one index, and large tables of one length and size of
// elements.
func (l *lowering) partners(b simt.Block) map[int]int {
	type like struct {
		index simt.Value
		wide  bool
		n     int
	}
	pairs, alone := map[int]int{}, map[like]int{}
	if l.evex {
		return pairs
	}
	for i := range b {
		if b[i].Op != simt.Gather {
			continue
		}
		t := &l.m.Tables[b[i].Ref]
		if l.small(t) && !l.gathers {
			continue
		}
		key := like{b[i].Args[0], wide(t.Type), len(t.Bits)}
		if first, ok := alone[key]; ok {
			pairs[first] = i
			delete(alone, key)
		} else {
			alone[key] = i
		}
	}
	return pairs
}

// clamp returns indices from 0 to last.
func (l *lowering) clamp(last int, v simt.Value) reg {
	index := l.val[v]
	s, known := l.span(v)
	if !known || s.lo < 0 {
		index = l.op(asm.MaxD, l.short, index, l.zero())
	}
	if !known || s.hi > float64(last) {
		index = l.op(asm.MinD, l.short, index, l.splat32(uint32(last)))
	}
	return index
}

// lookup lowers a lookup in a table.
func (l *lowering) lookup(in *simt.Instr) reg {
	ref, v := in.Ref, in.Args[0]
	t := &l.m.Tables[ref]
	if len(t.Bits) == 1 {
		return l.splat(t.Type, t.Bits[0])
	}
	if l.evex {
		return l.lookup512(in)
	}
	if l.small(t) && !l.gathers {
		return l.permute(t, l.clamp(len(t.Bits)-1, v))
	}
	at, places := l.table(ref), l.places(t, v)
	if !wide(t.Type) {
		return l.fromQuads(func(quad int) reg { return l.fetch(4, 4*quad, at, places) })
	}
	return l.opImm(asm.Join, asm.Y, 1, l.fetch(8, 0, at, places), l.fetch(8, 2, at, places))
}

// places is where lanes have their indices of a table, which are within it.
type places struct {
	quads []reg // four lanes in each
	// In place of these they are the bytes of a column of an input, whose type has no others: each is loaded to a general
	// register, where a lane of a vector takes about three instructions to move to.
	bytes *column
}

// places returns the indices that a value has of a table.
func (l *lowering) places(t *simt.Table, v simt.Value) places {
	if c, ok := l.columnOf[v]; ok && len(t.Bits) > math.MaxUint8 {
		return places{bytes: &c}
	}
	return places{quads: l.quads(l.clamp(len(t.Bits)-1, v))}
}

// fetch loads elements of some bytes from a table in the pool, for some lanes from the given one on; see allocator.fetch.
func (l *lowering) fetch(bytes int32, lane int, table int32, p places) reg {
	n := node{kind: fetch, num: bytes, imm: uint8(lane % 4), table: table}
	if p.bytes == nil {
		n.args[0] = p.quads[lane/4]
		return l.value(n)
	}
	at, step := l.pointTo(false, l.m.Inputs[p.bytes.param], p.bytes.param, p.bytes.col)
	at.Disp += int32(lane-lane%4) * step
	n.hasAt, n.at, n.side = true, at, step
	return l.value(n)
}

// lookupBoth lowers two lookups by one index. The tables lie in the pool element by element, so that a load
// has a lane's elements of both.
func (l *lowering) lookupBoth(one, two *simt.Instr) {
	t := &l.m.Tables[one.Ref]
	at, places := l.table(one.Ref, two.Ref), l.places(t, one.Args[0])
	if !wide(t.Type) {
		half := func(first int) reg { // of each four lanes
			return l.fromQuads(func(quad int) reg { return l.fetch(8, 4*quad+first, at, places) })
		}
		low, high := half(0), half(2)
		l.val[one.Out], l.val[two.Out] = l.opImm(asm.Shuffle, l.short, 0x88, low, high), l.opImm(asm.Shuffle, l.short, 0xDD, low, high)
		return
	}
	for i, quad := range places.quads {
		places.quads[i] = l.shift(simt.Shl, simt.I32, quad, 1) // in units of 8 bytes
	}
	even, odd := l.fetch(16, 0, at, places), l.fetch(16, 1, at, places)
	l.val[one.Out] = l.op(asm.UnpackLow, asm.Y, even, odd)
	l.val[two.Out] = l.op(asm.UnpackHigh, asm.Y, even, odd)
}

// appendElement appends an element of a table, u8 and u16 as 32 bits.
func appendElement(b []byte, t simt.Type, bits uint64) []byte {
	if wide(t) {
		return binary.LittleEndian.AppendUint64(b, bits)
	}
	return binary.LittleEndian.AppendUint32(b, uint32(bits))
}

// cacheLine is what tables lie apart in the pool, in bytes. Those of all bytes are powers of 2 long, and the first elements are the
// ones that are read most: without a gap they would all want the same few places of the first-level cache.
const cacheLine = 64

// table returns where a table is in the pool, or two of them, element by element.
func (l *lowering) table(refs ...int) int32 {
	key := [2]int{refs[0], -1}
	copy(key[:], refs)
	at, ok := l.tables[key]
	if ok {
		return at
	}
	n := len(l.m.Tables[refs[0]].Bits)
	b := make([]byte, 0, 8*len(refs)*n+cacheLine)
	for i := range n {
		for _, ref := range refs {
			t := &l.m.Tables[ref]
			b = appendElement(b, t.Type, t.Bits[i])
		}
	}
	at = l.reserve(append(b, make([]byte, cacheLine)...))
	l.tables[key] = at
	return at
}

// permute looks up in a small table. Parts are permuted by the index's low bits; the bits above choose
// among parts, each moved to the sign.
func (l *lowering) permute(t *simt.Table, index reg) reg {
	per, w, blend := perPart(t), l.short, asm.BlendPS
	places, bit := index, uint8(29)
	part := func(table reg) reg { return l.op(asm.PermilPS, w, table, places) }
	choice := func(bit uint8) reg { return l.opImm(asm.ShlD, l.short, bit, index) }
	switch {
	case wide(t.Type):
		w, blend = asm.Y, asm.BlendPD
		part = func(table reg) reg { return l.op(asm.PermilPD, w, table, places) }
		q := l.widen(index)
		places, bit = l.op(asm.AddQ, w, q, q), 62
		choice = func(bit uint8) reg { return l.opImm(asm.ShlQ, w, bit, q) }
	case len(t.Bits) > per: // one permutation of eight, where two of four would want a blend
		per, bit = 8, 28
		part = func(table reg) reg { return l.op(asm.Permute, asm.Y, places, table) }
	}
	var parts []reg
	for rest := t.Bits; len(rest) > 0; rest = rest[min(per, len(rest)):] {
		n := min(per, len(rest))
		if n == 1 {
			parts = append(parts, l.splat(t.Type, rest[0]))
			continue
		}
		b := make([]byte, 0, 32)
		for i := range 2 * perPart(t) {
			b = appendElement(b, t.Type, rest[min(i%per, n-1)])
		}
		parts = append(parts, part(l.constant(b)))
	}
	for ; len(parts) > 1; bit-- {
		var joined []reg
		for i := 0; i < len(parts); i += 2 {
			if i+1 == len(parts) {
				joined = append(joined, parts[i])
				continue
			}
			joined = append(joined, l.op3(blend, w, parts[i], parts[i+1], choice(bit)))
		}
		parts = joined
	}
	return parts[0]
}
