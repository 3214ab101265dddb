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
			return l.op(asm.BToD, l.short, v)
		}
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

// turn returns the sixteen bytes of a column of rows, from the register of sixteen columns that sixteen loads
// and four rounds of interleaving make; ok is false within a block, which other blocks could not use.
func (l *lowering) turn(p simt.Param, output bool, ref, col int) (v reg, ok bool) {
	if v, ok = l.turned[column{output, ref, col}]; ok || len(l.open) > 1 || output {
		return v, ok
	}
	n := l.lanes
	first := min(col/n*n, p.Width-n)
	at, step := l.pointTo(output, p, ref, first)
	rows := make([]reg, n)
	for i := range rows {
		rows[i] = l.opAt(asm.Move, asm.X, 0, at)
		at.Disp += step
	}
	for range 4 {
		next := make([]reg, n)
		for i := range n / 2 {
			next[2*i] = l.op(asm.UnpackLowB, asm.X, rows[i], rows[i+n/2])
			next[2*i+1] = l.op(asm.UnpackHighB, asm.X, rows[i], rows[i+n/2])
		}
		rows = next
	}
	for i, r := range rows {
		l.turned[column{output, ref, first + i}] = r
	}
	return l.turned[column{output, ref, col}], true
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
