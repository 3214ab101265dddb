package x86

import (
	"encoding/binary"

	"github.com/pce-engine/pce/kernels/simt"
	"github.com/pce-engine/pce/kernels/x86/asm"
)

// Sizes of tables that are looked up by permutations of registers, in vectors of 32 bytes: a
// permutation and a blend are quicker than the loads of a gather up to there.
const maxVectors = 2

// gather lowers a lookup in a table. Indices are clamped first.
func (l *lowering) gather(ref int, index reg) reg {
	t := &l.m.Tables[ref]
	last := len(t.Bits) - 1
	if last == 0 {
		return l.splat(t.Type, t.Bits[0])
	}
	index = l.op(asm.MaxD, asm.X, index, l.zero())
	index = l.op(asm.MinD, asm.X, index, l.splat32(uint32(last)))
	perVector := 8
	if wide(t.Type) {
		perVector = 4
	}
	if n := (last + perVector) / perVector; n <= maxVectors {
		return l.permute(t, index, perVector, n)
	}
	n := node{kind: gather, in: asm.GatherPS, w: asm.X, args: [3]reg{index}, at: asm.Mem{Scale: 4, Disp: l.table(ref)}}
	if wide(t.Type) {
		n.in, n.w, n.at.Scale = asm.GatherPD, asm.Y, 8
	}
	return l.value(n)
}

// elements appends elements of a table, u8 and u16 as 32 bits.
func elements(b []byte, t simt.Type, bits []uint64) []byte {
	for _, x := range bits {
		if wide(t) {
			b = binary.LittleEndian.AppendUint64(b, x)
		} else {
			b = binary.LittleEndian.AppendUint32(b, uint32(x))
		}
	}
	return b
}

// table returns where a table is in the pool.
func (l *lowering) table(ref int) int32 {
	at, ok := l.tables[ref]
	if !ok {
		at = l.reserve(elements(nil, l.m.Tables[ref].Type, l.m.Tables[ref].Bits))
		l.tables[ref] = at
	}
	return at
}

// permute looks up in tables of one or two vectors. A permutation takes the index's low three bits, of
// 32-bit places; which of two vectors it is for is told by the bit above, moved to the sign.
func (l *lowering) permute(t *simt.Table, index reg, perVector, vectors int) reg {
	const w = asm.Y
	places := index
	if wide(t.Type) { // 2i and 2i + 1
		low := l.op(asm.AddQ, w, l.widen(index), l.widen(index))
		places = l.op(asm.Or, w, low, l.opImm(asm.ShlQ, w, 32, low))
		places = l.op(asm.Or, w, places, l.splat64(1<<32))
	}
	var found [maxVectors]reg
	for i := range vectors {
		part := t.Bits[i*perVector : min((i+1)*perVector, len(t.Bits))]
		b := elements(make([]byte, 0, 32), t.Type, part)
		found[i] = l.op(asm.Permute, w, places, l.constant(append(b, make([]byte, 32-len(b))...)))
	}
	if vectors == 1 {
		return found[0]
	}
	if wide(t.Type) {
		return l.op3(asm.BlendPD, w, found[0], found[1], l.opImm(asm.ShlQ, w, 61, l.widen(index)))
	}
	return l.op3(asm.BlendPS, asm.X, found[0], found[1], l.opImm(asm.ShlD, asm.X, 28, index))
}
