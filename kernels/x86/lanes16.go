package x86

import (
	"encoding/binary"

	"github.com/pce-engine/pce/kernels/simt"
	"github.com/pce-engine/pce/kernels/x86/asm"
)

// strided returns a column of rows, in sixteen lanes. A load of 32 bits has the lane's element and those beside
// it, so that none is behind the last row; bytes of rows that are long enough are turned instead.
func (l *lowering) strided(p simt.Param, output bool, ref, col int) reg {
	size := p.Type.Bits() / 8
	if size == 1 && p.Width >= avx512.lanes {
		if v, ok := l.turn(p, output, ref, col); ok {
			return v
		}
	}
	if size == 1 && p.Width <= 8 {
		return l.clip(p.Type, l.picked(p, output, ref, col))
	}
	from := min(col, p.Width-4/size)
	at, step := l.pointTo(output, p, ref, from)
	var places []byte
	for lane := range l.lanes {
		places = binary.LittleEndian.AppendUint32(places, uint32(lane)*uint32(step))
	}
	at.Scale = 1
	v := l.value(node{kind: gather, hasAt: true, at: at, args: [3]reg{l.constant(places)}})
	if from < col {
		v = l.shift(simt.Shr, simt.I32, v, uint8(8*size*(col-from)))
	}
	return l.clip(p.Type, v)
}

// picked returns the bytes of a column of sixteen rows of 4 to 8 bytes, which lie in two registers: those that
// the rows start with, and those that they end with.
func (l *lowering) picked(p simt.Param, output bool, ref, col int) reg {
	at, _ := l.pointTo(output, p, ref, 0)
	end := l.lanes*p.Width - int(l.bytes)
	places := make([]byte, l.bytes)
	for lane := range l.lanes {
		b := lane*p.Width + col
		if b >= int(l.bytes) {
			b += int(l.bytes) - end
		}
		places[4*lane] = byte(b)
	}
	return l.value(node{kind: pair, in: asm.PermutePairB, hasAt: true, at: at, num: int32(end), args: [3]reg{l.constant(places)}})
}

// turn returns the bytes of a column of rows, from registers that have four columns of sixteen rows each. Sixteen
// columns are loaded at once: four rows fill a register, bytes of a column are put together, and two rounds
// interleave the registers. ok is false within a block, whose registers other blocks could not use.
func (l *lowering) turn(p simt.Param, output bool, ref, col int) (v reg, ok bool) {
	n := l.lanes
	first := min(col/n*n, p.Width-n)
	key := column{output, ref, first + (col-first)&3}
	if v, ok = l.turned[key]; !ok {
		if len(l.open) > 1 || output {
			return none, false
		}
		l.turnAll(p, output, ref, first)
		v = l.turned[key]
	}
	places := make([]byte, l.bytes)
	for row := range n {
		places[4*row] = byte(n*((col-first)/4) + row)
	}
	return l.clip(p.Type, l.op(asm.PermuteB, l.short, l.constant(places), v)), true
}

// turnAll loads sixteen columns of bytes. The register of the column first + k has those of every fourth column
// from there on, too.
func (l *lowering) turnAll(p simt.Param, output bool, ref, first int) {
	at, step := l.pointTo(output, p, ref, first)
	next := func() asm.Mem { m := at; at.Disp += step; return m }
	places := make([]byte, l.bytes)
	for i := range places {
		places[i] = byte(i%4*16 + i/4)
	}
	var rows [4]reg
	for i := range rows {
		v := l.opAt(asm.Move, asm.X, 0, next())
		for k := uint8(1); k < 4; k++ {
			v = l.opAt(asm.Insert128, l.short, k, next(), v)
		}
		rows[i] = v
	}
	for i, v := range rows {
		rows[i] = l.op(asm.PermuteB, l.short, l.constant(places), v)
	}
	for i, in := range [2]*asm.Inst{asm.UnpackLowD, asm.UnpackHighD} {
		x, y := l.op(in, l.short, rows[0], rows[1]), l.op(in, l.short, rows[2], rows[3])
		l.turned[column{output, ref, first + 2*i}] = l.op(asm.UnpackLowQ, l.short, x, y)
		l.turned[column{output, ref, first + 2*i + 1}] = l.op(asm.UnpackHighQ, l.short, x, y)
	}
}

// lookup16 looks up in a table at indices within it: by permutations of up to 64 elements, or of 128 that fit
// bytes, else by a gather.
func (l *lowering) lookup16(ref int, index reg) reg {
	t := &l.m.Tables[ref]
	n := len(t.Bits)
	switch {
	case n <= 16:
		return l.op(asm.Permute, l.short, index, l.constant(l.words(t, 0, 16)))
	case n <= 128 && bytesOnly(t):
		return l.op(asm.And, l.short, l.bytesOf(t, ref, index), l.splat32(0xFF))
	case n <= 32:
		return l.pair(asm.PermutePairPS, [2]int{ref, 0}, func() []byte { return l.words(t, 0, 32) }, index)
	case n <= 64:
		low := l.pair(asm.PermutePairPS, [2]int{ref, 0}, func() []byte { return l.words(t, 0, 32) }, index)
		high := l.pair(asm.PermutePairPS, [2]int{ref, 32}, func() []byte { return l.words(t, 32, 64) }, index)
		return l.op3(asm.BlendPS, l.short, low, high, l.opImm(asm.ShlD, l.short, 26, index))
	}
	at := asm.Mem{Base: poolReg, Disp: l.table(ref, ref), Scale: 4}
	return l.value(node{kind: gather, at: at, args: [3]reg{index}})
}

// pair looks up in a table of two vectors, which make returns.
func (l *lowering) pair(in *asm.Inst, key [2]int, make func() []byte, index reg) reg {
	key[1] = ^key[1] // tables has those of one or two tables too
	at, ok := l.tables[key]
	if !ok {
		at = l.reserve(make())
		l.tables[key] = at
	}
	return l.value(node{kind: pair, in: in, num: at, args: [3]reg{index}})
}

// bytesOf looks up in a table of bytes, and leaves what it finds in the lanes' low bytes.
func (l *lowering) bytesOf(t *simt.Table, ref int, index reg) reg {
	list := make([]byte, 128)
	for i, x := range t.Bits {
		list[i] = byte(x)
	}
	if len(t.Bits) <= 64 {
		return l.op(asm.PermuteB, l.short, index, l.constant(list[:64]))
	}
	return l.pair(asm.PermutePairB, [2]int{ref, 1 << 20}, func() []byte { return list }, index)
}

// words returns elements from to below to of a table, repeating the last one.
func (l *lowering) words(t *simt.Table, from, to int) []byte {
	var b []byte
	for i := from; i < to; i++ {
		b = element(b, t.Type, t.Bits[min(i, len(t.Bits)-1)])
	}
	return b
}

// bytesOnly reports whether all elements of a table of integers fit a byte.
func bytesOnly(t *simt.Table) bool {
	for _, x := range t.Bits {
		if x > 0xFF || t.Type.Float() {
			return false
		}
	}
	return true
}
