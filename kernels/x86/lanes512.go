package x86

import (
	"github.com/pce-engine/pce/kernels/simt"
	"github.com/pce-engine/pce/kernels/x86/asm"
)

// strided returns a column of rows with AVX-512. A load of 32 bits has the lane's element and those beside
// it, so that none is behind the last row; bytes of rows that are long enough are turned instead.
func (l *lowering) strided(p simt.Param, output bool, ref, col int) reg {
	size := p.Type.Bits() / 8
	if size >= 4 {
		return l.gatherRows(p, output, ref, col)
	}
	from := min(col, p.Width-4/size)
	v := l.gatherRows(p, output, ref, from)
	if from < col {
		v = l.shift(simt.Shr, simt.I32, v, uint8(8*size*(col-from)))
	}
	return l.clip(p.Type, v)
}

// gatherRows loads an element of each row, or 32 bits from a column of smaller ones on.
func (l *lowering) gatherRows(p simt.Param, output bool, ref, col int) reg {
	at, step := l.pointTo(output, p, ref, col)
	at.Scale = 1
	places := l.vector(l.multiples(int(step)))
	return l.value(node{kind: gather, in: byBits(p.Type, asm.GatherPS, asm.GatherPD), w: l.width(p.Type), hasAt: true, at: at, args: [3]reg{places}})
}

// picked returns four columns of sixteen rows of 4 to 8 bytes, which lie in two registers: those that the rows
// start with, and those that they end with. A column is that many bytes further on in its 32 bits.
func (l *lowering) picked(p simt.Param, ref, first, further int) reg {
	end := l.lanes*p.Width - int(l.bytes)
	key := column{false, ref, 0}
	rows, ok := l.ends[key]
	if !ok {
		at, _ := l.pointTo(false, p, ref, 0)
		rows[0] = l.opAt(asm.Move, l.full, 0, at)
		at.Disp += int32(end)
		rows[1] = l.opAt(asm.Move, l.full, 0, at)
		if len(l.open) == 1 {
			l.ends[key] = rows
		}
	}
	places := make([]byte, l.bytes)
	for i := range places {
		b := i/4*p.Width + first + (i-further)&3
		if b >= int(l.bytes) {
			b += int(l.bytes) - end
		}
		places[i] = byte(b)
	}
	return l.value(node{kind: pair, in: asm.PermutePairB, args: [3]reg{l.constant(places), rows[0], rows[1]}})
}

// lookup512 looks up in a table at indices within it: by permutations of up to eight registers of elements, or of 128
// elements that fit bytes, else by a gather.
func (l *lowering) lookup512(in *simt.Instr) reg {
	ref, v := in.Ref, in.Args[0]
	t := &l.m.Tables[ref]
	n := len(t.Bits)
	index := none
	if !l.gathers {
		index = l.index(t, v)
	}
	size := uint8(4)
	if wide(t.Type) {
		size = 8
	}
	per := int(l.bytes) / int(size) // elements of a register
	places := func() reg {
		if !wide(t.Type) {
			return index
		}
		if p, ok := l.picks[index]; ok && p.n > 0 { // which the groups of a turn share as it is
			return l.opImm(asm.ShrQ, l.full, 8*p.n, l.widen(p.from))
		}
		return l.widen(index)
	}
	two := func(from int) reg {
		return l.pair(byBits(t.Type, asm.PermutePairPS, asm.PermutePairPD), l.words(t, from, from+2*per), places())
	}
	switch {
	case l.gathers:
	case n <= per:
		return l.op(byBits(t.Type, asm.Permute, asm.PermuteQ), l.full, places(), l.constant(l.words(t, 0, per)))
	case n <= 128 && bytesOnly(t):
		low := l.bytesOf(t, index)
		l.low[in.Out] = low
		return l.op(asm.And, l.short, low, l.splat32(0xFF))
	case n <= 2*per:
		return two(0)
	case n <= 3*per:
		high := l.op(asm.TestD, l.short, index, l.splat32(uint32(2*per)))
		table := l.regs[l.constant(l.words(t, 2*per, 3*per))].pool
		return l.value(node{kind: patch, in: byBits(t.Type, asm.Permute, asm.PermuteQ), num: table, args: [3]reg{two(0), places(), high}})
	case n <= 8*per:
		var parts []reg
		for from := 0; from < n; from += 2 * per {
			parts = append(parts, two(from))
		}
		return l.among(t.Type, parts, index, 2*per)
	}
	at := asm.Mem{Base: poolReg, Disp: l.table(ref), Scale: size}
	return l.value(node{kind: gather, in: byBits(t.Type, asm.GatherPS, asm.GatherPD), w: l.width(t.Type), at: at, args: [3]reg{l.clamp(n-1, v)}})
}

// among chooses among what was looked up in parts of a table of that many elements each, by the bits of the index from there on.
func (l *lowering) among(t simt.Type, parts []reg, index reg, elements int) reg {
	for ; len(parts) > 1; elements *= 2 {
		high := l.op(asm.TestD, l.short, index, l.splat32(uint32(elements)))
		var joined []reg
		for i := 0; i+1 < len(parts); i += 2 {
			joined = append(joined, l.choose(t, high, parts[i+1], parts[i]))
		}
		if len(parts)%2 == 1 {
			joined = append(joined, parts[len(parts)-1])
		}
		parts = joined
	}
	return parts[0]
}

// pair looks up in a table of two vectors.
func (l *lowering) pair(in *asm.Inst, table []byte, index reg) reg {
	low, high := l.constant(table[:l.bytes]), l.constant(table[l.bytes:])
	return l.value(node{kind: pair, in: in, args: [3]reg{index, low, high}})
}

// bytesOf looks up in a table of bytes, and leaves what it finds in the lanes' low bytes. It comes before the shift to the
// bytes of a group of rows, so that the other groups share it.
func (l *lowering) bytesOf(t *simt.Table, index reg) reg {
	list := make([]byte, 128)
	for i, x := range t.Bits {
		list[i] = byte(x)
	}
	find := func(index reg) reg {
		if len(t.Bits) <= 64 {
			return l.op(asm.PermuteB, l.full, index, l.constant(list[:64]))
		}
		return l.pair(asm.PermutePairB, list, index)
	}
	if p, ok := l.picks[index]; ok {
		return l.pickByte(find(p.from), p.n)
	}
	return find(index)
}

// words returns elements from to below to of a table, repeating the last one.
func (l *lowering) words(t *simt.Table, from, to int) []byte {
	var b []byte
	for i := from; i < to; i++ {
		b = appendElement(b, t.Type, t.Bits[min(i, len(t.Bits)-1)])
	}
	return b
}

// bytesOnly reports whether all elements of a table of integers of at most 32 bits fit a byte.
func bytesOnly(t *simt.Table) bool {
	for _, x := range t.Bits {
		if x > 0xFF || t.Type.Float() || wide(t.Type) {
			return false
		}
	}
	return true
}
